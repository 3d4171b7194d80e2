"""The first pass of a cycle: asks that have a reservation.

An ask is tried on the node that is reserved for it, and then on every other node: whichever has room
first. A reservation whose ask is gone, or that its quotas have barred for too long, is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import queue_quota
from .application_state import ApplicationState
from .placing import commit, unreserve
from .resources import fits, fits_undefined_unlimited

if TYPE_CHECKING:
    from .allocation import Ask
    from .node_order import NodeSeat
    from .partition_state import PartitionState
    from .queue import Queue
    from .reservations import Reservation
    from .resources import Resource
    from .seat import Seat

__all__ = ["RESERVATION_TIMEOUT_NS", "place_reserved"]

RESERVATION_TIMEOUT_NS: Final = 120 * 60 * 1_000_000_000
"""How long a reservation is kept for an ask that its quotas bar. The recorded core's setting says one
hour, and its check adds that hour twice; an RM sees two hours, so two hours it is."""


def place_reserved(state: PartitionState) -> bool:
    """Try the reserved asks, leaf by leaf; return whether one was placed."""
    for leaf in state.tree.leaves_in_order():
        for seat in list(leaf.seats.reserved_seats.values()):
            if seat.facts.state is ApplicationState.ACCEPTED and not _may_start(state, leaf, seat):
                continue
            if _try_application(state, leaf, seat):
                return True
    return False


def _may_start(state: PartitionState, leaf: Queue, seat: Seat) -> bool:
    if queue_quota.has_place_for(leaf, seat.application_id) is not None:
        return False
    return state.may_start(seat)


def _try_application(state: PartitionState, leaf: Queue, seat: Seat) -> bool:
    queue_room = queue_quota.headroom(leaf)
    user_room = state.user_headroom(seat)
    elsewhere: list[Ask] = []
    for reservation, record in seat.application.reserved_asks():
        if record is None:
            unreserve(state, seat, reservation.allocation_key)
            continue
        ask = record.ask
        if not _within(queue_room, user_room, ask.resource):
            _expire(state, seat, reservation)
            continue
        node = state.nodes.get(reservation.node_id)
        if node is not None and node.schedulable | bool(ask.required_node) and _place(state, seat, ask, node):
            return True
        if not ask.required_node:
            elsewhere.append(ask)
    return any(_place_elsewhere(state, seat, ask) for ask in elsewhere)


def _within(queue_room: Resource | None, user_room: Resource | None, resource: Resource) -> bool:
    return fits_undefined_unlimited(queue_room, resource) and fits_undefined_unlimited(user_room, resource)


def _expire(state: PartitionState, seat: Seat, reservation: Reservation) -> None:
    if state.now_ns() - reservation.created_at_ns > RESERVATION_TIMEOUT_NS:
        unreserve(state, seat, reservation.allocation_key)


def _place(state: PartitionState, seat: Seat, ask: Ask, node: NodeSeat) -> bool:
    if not (fits(node.available, ask.resource) and fits(node.capacity, ask.resource)):
        return False
    predicates = state.around.predicates
    if predicates is not None:
        reason = predicates.refuse(ask.allocation_key, node.node_id, allocate=True)
        if reason is not None:
            seat.application.note_refusal(ask.allocation_key, reason, state.now_ns())
            return False
    return commit(state, seat, ask, node)


def _place_elsewhere(state: PartitionState, seat: Seat, ask: Ask) -> bool:
    if state.around.predicates is None:
        node = state.nodes.first_fit(ask.resource)
        return node is not None and _place(state, seat, ask, node)
    return any(_place(state, seat, ask, node) for node in list(state.nodes.fitting(ask.resource)))
