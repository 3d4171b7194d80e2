"""The nodes that could be reserved for an ask that preempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .queue_preemption_nodes import NodeRoom
from .resources import fits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .allocation import Ask
    from .node_order import NodeSeat
    from .partition_state import PartitionState
    from .queue_preemption_pool import VictimPool
    from .seat import Seat

__all__ = ["STALE_AFTER_NS", "StaleReservations", "rooms_for", "stale_reservations"]

STALE_AFTER_NS: Final = (2 * 60 * 60 + 2) * 1_000_000_000
"""How old a reserved ask must be before one of higher priority may take its node over: twice the time a
reservation waits, and the time until it is made."""

StaleReservations = dict[str, "tuple[Seat, str]"]
"""By node: the application and the allocation key of the reservation that may be dropped."""


def stale_reservations(state: PartitionState, ask: Ask) -> StaleReservations:
    """Find the reservations that yield to an ask: ordinary, older than two hours, and of lower priority."""
    found: StaleReservations = {}
    if not state.reservations:
        return found
    before_ns = state.now_ns() - STALE_AFTER_NS
    for seat in state.seats.values():
        if not seat.facts.reserved:
            continue
        for reservation, record in seat.application.reserved_asks():
            if record is None or reservation.required or record.preemption_triggered:
                continue
            if record.ask.priority < ask.priority and record.ask.created_at_ns < before_ns:
                found[reservation.node_id] = (seat, reservation.allocation_key)
    return found


def rooms_for(
    state: PartitionState,
    ask: Ask,
    pool: VictimPool,
    *,
    reserved_node: str,
    nodes_tried: bool,
    stale: StaleReservations,
) -> tuple[NodeRoom, ...]:
    """Return the nodes that are large enough for the ask and that nobody else has reserved.

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
        and (not node.reserved or node.node_id == reserved_node or node.node_id in stale)
    )
