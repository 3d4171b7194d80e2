"""The nodes that may be reserved for an ask that preempts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ...nodes.entry import NodeEntry
from ...queues.queue import Queue
from ...resources.resource import Resource, add, fits, total_of
from ...state.claims import EndingVictim, ReservedAsk
from ...state.partition_state import PartitionState
from ...values.allocation import Ask
from ..required_node import can_be_served
from .candidate_victims import CandidateVictims
from .ledger import CommittedResources, ProjectedUsage, QueueFactsOf
from .nodes import CandidateNode

STALE_AFTER_NS: Final = (2 * 60 * 60 + 2) * 1_000_000_000
"""The minimum age of a reserved ask before one of higher priority may take over its node, whatever its own
queue is entitled to: twice the time that a reservation waits, and the time until it is made."""


def yielding_nodes(state: PartitionState, ask: Ask, committed: CommittedResources) -> frozenset[str]:
    """Find the nodes whose reservations may be dropped for an ask whose queue is entitled to more.

    Ordinary reservations of other asks may be dropped: of asks that cannot preempt, because they are not
    entitled or do not allow it, and whose priority is not higher; and of asks of lower priority that have
    waited for more than two hours. The same applies to asks that need the node, if too little may end there
    to make room for them.
    """
    before_ns = state.now_ns() - STALE_AFTER_NS
    by_leaf: dict[str, _Entitlement] = {}

    def yields(reserved: ReservedAsk) -> bool:
        entry, holder = reserved.entry, reserved.ask
        if holder.required_node:
            node = state.nodes.get(reserved.node_id)
            return node is None or not can_be_served(state, entry, holder, node)
        if holder.priority < ask.priority and holder.created_at_ns < before_ns:
            return True
        if holder.priority > ask.priority or not holder.allow_preempt_other:
            return holder.priority <= ask.priority
        leaf = entry.queue
        entitlement = by_leaf.get(leaf.path)
        if entitlement is None:
            entitlement = by_leaf[leaf.path] = _Entitlement(leaf, committed)
        return not entitlement.covers(holder.resource)

    return _nodes_where_all(state, ask, yields)


def yielding_nodes_inside(state: PartitionState, leaf: Queue, ask: Ask) -> frozenset[str]:
    """Find the nodes with ordinary reservations for asks of lower priority in the leaf of the ask."""

    def yields(reserved: ReservedAsk) -> bool:
        holder = reserved.ask
        return reserved.entry.queue is leaf and not holder.required_node and holder.priority < ask.priority

    return _nodes_where_all(state, ask, yields)


def _nodes_where_all(
    state: PartitionState, ask: Ask, yields: Callable[[ReservedAsk], bool]
) -> frozenset[str]:
    """Return the nodes whose reservations all yield; those of the ask and of preempting asks never do."""
    yielding: set[str] = set()
    kept: set[str] = set()
    for reserved in state.reserved.all():
        if reserved.node_id not in kept:
            key = reserved.ask.allocation_key
            record = None if key == ask.allocation_key else reserved.entry.application.asks.record(key)
            is_free = record is not None and not (record.placed or record.preemption_triggered)
            (yielding if is_free and yields(reserved) else kept).add(reserved.node_id)
    return frozenset(yielding - kept)


class _Entitlement:
    """The entitlement of a leaf, for one attempt; many asks have the same size."""

    def __init__(self, leaf: Queue, committed: CommittedResources) -> None:
        self._facts = QueueFactsOf(leaf, committed)(leaf)
        self._covered: dict[Resource, bool] = {}

    def covers(self, resource: Resource) -> bool:
        """Return whether the leaf would be within its guarantee with this resource in addition."""
        covered = self._covered.get(resource)
        if covered is None:
            covered = self._covered[resource] = ProjectedUsage(self._facts, resource).covers(resource)
        return covered


def find_candidate_nodes(
    state: PartitionState,
    ask: Ask,
    candidates: CandidateVictims,
    *,
    reserved_node: str,
    nodes_tried: bool,
    yielding: frozenset[str],
    members: Sequence[Ask] = (),
) -> tuple[CandidateNode, ...]:
    """Return the nodes that are large enough for the ask and without a reservation that must be kept.

    Only nodes with victims count, including unclaimed ones, and, where nodes have not been tried yet, nodes
    with enough room. For a gang these are the nodes that are large enough for, or have room for, one of its
    `members`; it has been tried before that they have no room for all of them together.
    """
    sizes = list(dict.fromkeys(member.resource for member in members)) or [ask.resource]
    with_victims = dict.fromkeys(victim.allocation.node_id for victim in candidates.victims)
    unclaimed: dict[str, list[EndingVictim]] = {}
    for ending in state.claims.unclaimed():
        with_victims[ending.node_id] = None
        unclaimed.setdefault(ending.node_id, []).append(ending)
    nodes: Iterable[NodeEntry | None] = (
        map(state.nodes.get, with_victims)
        if nodes_tried and not members
        else (
            node for node in state.nodes if node.node_id in with_victims or _fits_one(node.available, sizes)
        )
    )
    return tuple(
        _candidate(node, sizes, unclaimed.get(node.node_id, ()))
        for node in nodes
        if node is not None
        and node.schedulable
        and _fits_one(node.capacity, sizes)
        and (not node.reserved or node.node_id == reserved_node or node.node_id in yielding)
    )


def _fits_one(room: Resource, sizes: Sequence[Resource]) -> bool:
    """Return whether one of some sizes fits."""
    return any(fits(room, size) for size in sizes)


def _candidate(
    node: NodeEntry, sizes: Sequence[Resource], unclaimed: Sequence[EndingVictim]
) -> CandidateNode:
    """Return a node with its room, plus the room of its unclaimed victims if it has too little."""
    if not unclaimed or (len(sizes) == 1 and fits(node.available, sizes[0])):
        return CandidateNode(node.node_id, node.available)
    coming = total_of(each.resource for each in unclaimed)
    return CandidateNode(node.node_id, add(node.available, coming), tuple(unclaimed))
