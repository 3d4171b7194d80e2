"""The nodes that could be reserved for an ask that preempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...resources.resource import fits
from .ledger import ProjectedUsage, QueueFactsOf, covers
from .node_solver import NodeRoom

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...nodes.order import NodeSeat
    from ...queues.queue import Queue
    from ...queues.seat import Seat
    from ...resources.resource import Resource
    from ...state.partition_state import PartitionState
    from ...values.allocation import Ask
    from ..claims import SpokenFor
    from .pool import VictimPool

__all__ = ["STALE_AFTER_NS", "YieldingReservations", "rooms_for", "yielding_reservations"]

STALE_AFTER_NS: Final = (2 * 60 * 60 + 2) * 1_000_000_000
"""How old a reserved ask must be before one of higher priority may take its node over, whatever it is owed
itself: twice the time a reservation waits, and the time until it is made."""

YieldingReservations = dict[str, "tuple[Seat, str]"]
"""By node: the application and the allocation key of the reservation that may be dropped."""


def yielding_reservations(state: PartitionState, ask: Ask, spoken_for: SpokenFor) -> YieldingReservations:
    """Find the reservations that yield to an ask whose queue is owed room.

    Only ordinary ones do: those of asks that nothing is owed to and whose priority is no higher, and those of
    lower priority that have waited for more than two hours.
    """
    found: YieldingReservations = {}
    if not state.reservations:
        return found
    before_ns = state.now_ns() - STALE_AFTER_NS
    for seat in state.seats.values():
        if not seat.facts.reserved:
            continue
        owed = _Owed(seat.queue, spoken_for)
        for reservation, record in seat.application.reservations.with_asks():
            if record is None or reservation.required or record.preemption_triggered:
                continue
            holder = record.ask
            stale = holder.priority < ask.priority and holder.created_at_ns < before_ns
            if stale or (holder.priority <= ask.priority and not owed.covers(holder.resource)):
                found[reservation.node_id] = (seat, reservation.allocation_key)
    return found


class _Owed:
    """What a leaf is owed, worked out when it is first asked for."""

    def __init__(self, leaf: Queue, spoken_for: SpokenFor) -> None:
        self._leaf = leaf
        self._spoken_for = spoken_for
        self._known: tuple[Resource | None] | None = None

    def covers(self, resource: Resource) -> bool:
        """Tell whether the leaf would be within its guarantee with so much more."""
        if self._known is None:
            facts = QueueFactsOf(self._leaf, self._spoken_for)(self._leaf)
            self._known = (ProjectedUsage(facts).remaining(facts),)
        (remaining,) = self._known
        return covers(remaining, resource, resource)


def rooms_for(
    state: PartitionState,
    ask: Ask,
    pool: VictimPool,
    *,
    reserved_node: str,
    nodes_tried: bool,
    yielding: YieldingReservations,
) -> tuple[NodeRoom, ...]:
    """Return the nodes that are large enough for the ask and that nobody has reserved who keeps them.

    Only those matter that hold victims or, where nodes have not been tried yet, that have room already.
    """
    with_victims = dict.fromkeys(victim.allocation.node_id for victim in pool.victims)
    nodes: Iterable[NodeSeat | None] = (
        map(state.nodes.get, with_victims)
        if nodes_tried
        else (
            node for node in state.nodes if node.node_id in with_victims or fits(node.available, ask.resource)
        )
    )
    return tuple(
        NodeRoom(node.node_id, node.available)
        for node in nodes
        if node is not None
        and node.schedulable
        and fits(node.capacity, ask.resource)
        and (not node.reserved or node.node_id == reserved_node or node.node_id in yielding)
    )
