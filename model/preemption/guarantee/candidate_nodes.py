"""The nodes that could be reserved for an ask that preempts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...nodes.block import NodeEntry
from ...queues.application_entry import ApplicationEntry
from ...queues.queue import Queue
from ...resources.resource import Resource, add, fits, total_of
from ...state.claims import EndingVictim
from ...state.partition_state import PartitionState
from ...values.allocation import Ask
from ..claims import CommittedResources
from .candidate_victims import CandidateVictims
from .ledger import ProjectedUsage, QueueFactsOf, covers
from .node_solver import CandidateNode

__all__ = [
    "STALE_AFTER_NS",
    "PreemptibleReservations",
    "find_candidate_nodes",
    "preemptible_reservations",
    "reservations_inside",
]

STALE_AFTER_NS: Final = (2 * 60 * 60 + 2) * 1_000_000_000
"""How old a reserved ask must be before one of higher priority may take its node over, whatever its own queue
is entitled to: twice the time a reservation waits, and the time until it is made."""

PreemptibleReservations = dict[str, "tuple[ApplicationEntry, str]"]
"""By node: the application and the allocation key of the reservation that may be dropped."""


def preemptible_reservations(
    state: PartitionState, ask: Ask, committed: CommittedResources
) -> PreemptibleReservations:
    """Find the reservations that may be dropped for an ask whose queue is entitled to more.

    Only ordinary ones may: those of asks whose queue is entitled to nothing and whose priority is no higher,
    and those of lower priority that have waited for more than two hours.
    """
    found: PreemptibleReservations = {}
    if not state.reservations:
        return found
    before_ns = state.now_ns() - STALE_AFTER_NS
    by_leaf: dict[str, _Entitlement] = {}
    for entry in state.entries.values():
        if not entry.facts.reserved:
            continue
        leaf = entry.queue
        entitlement = by_leaf.get(leaf.path)
        if entitlement is None:
            entitlement = by_leaf[leaf.path] = _Entitlement(leaf, committed)
        for reservation, record in entry.application.reservations.with_asks():
            if record is None or reservation.required or record.preemption_triggered:
                continue
            holder = record.ask
            stale = holder.priority < ask.priority and holder.created_at_ns < before_ns
            if stale or (holder.priority <= ask.priority and not entitlement.covers(holder.resource)):
                found[reservation.node_id] = (entry, reservation.allocation_key)
    return found


def reservations_inside(state: PartitionState, leaf: Queue, ask: Ask) -> PreemptibleReservations:
    """Find the ordinary reservations of the ask's own leaf that are held for asks of lower priority."""
    if not state.reservations:
        return {}
    return {
        reservation.node_id: (entry, reservation.allocation_key)
        for entry in leaf.entries.by_id.values()
        if entry.facts.reserved
        for reservation, record in entry.application.reservations.with_asks()
        if record is not None
        and not (reservation.required or record.preemption_triggered)
        and record.ask.priority < ask.priority
    }


class _Entitlement:
    """What a leaf is entitled to, for one attempt; many asks have the same size."""

    def __init__(self, leaf: Queue, committed: CommittedResources) -> None:
        facts = QueueFactsOf(leaf, committed)(leaf)
        self._remaining = ProjectedUsage(facts).remaining(facts)
        self._covered: dict[Resource, bool] = {}

    def covers(self, resource: Resource) -> bool:
        """Return whether the leaf would be within its guarantee with so much more."""
        covered = self._covered.get(resource)
        if covered is None:
            covered = self._covered[resource] = covers(self._remaining, resource, resource)
        return covered


def find_candidate_nodes(
    state: PartitionState,
    ask: Ask,
    candidates: CandidateVictims,
    *,
    reserved_node: str,
    nodes_tried: bool,
    preemptible: PreemptibleReservations,
) -> tuple[CandidateNode, ...]:
    """Return the nodes that are large enough for the ask and without a reservation that must be kept.

    Only nodes count that hold victims, unclaimed ones included, or where nodes have not been tried yet that
    have room already.
    """
    with_victims = dict.fromkeys(victim.allocation.node_id for victim in candidates.victims)
    unclaimed: dict[str, list[EndingVictim]] = {}
    for ending in state.claims.unclaimed():
        with_victims[ending.node_id] = None
        unclaimed.setdefault(ending.node_id, []).append(ending)
    nodes: Iterable[NodeEntry | None] = (
        map(state.nodes.get, with_victims)
        if nodes_tried
        else (
            node for node in state.nodes if node.node_id in with_victims or fits(node.available, ask.resource)
        )
    )
    return tuple(
        _candidate(node, ask, unclaimed.get(node.node_id, ()))
        for node in nodes
        if node is not None
        and node.schedulable
        and fits(node.capacity, ask.resource)
        and (not node.reserved or node.node_id == reserved_node or node.node_id in preemptible)
    )


def _candidate(node: NodeEntry, ask: Ask, unclaimed: Sequence[EndingVictim]) -> CandidateNode:
    if not unclaimed or fits(node.available, ask.resource):
        return CandidateNode(node.node_id, node.available)
    coming = total_of(each.resource for each in unclaimed)
    return CandidateNode(node.node_id, add(node.available, coming), tuple(unclaimed))
