"""What a placement, and its end, count for: the queues, the user, the node and the partition's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..queues import quota as queue_quota

if TYPE_CHECKING:
    from ..applications.effects import Answer
    from ..applications.reservations import Reservation
    from ..queues.seat import Seat
    from ..resources.resource import Resource
    from ..values.allocation import Allocation
    from .partition_state import PartitionState

__all__ = [
    "count_ended",
    "count_placed",
    "drop_reservations",
    "leave_node",
    "may_start",
    "uncount",
    "user_headroom",
]


def user_headroom(state: PartitionState, seat: Seat) -> Resource | None:
    """Return how much more an application's user and group may use, `None` if they are not limited."""
    if seat.looked_at and not state.limits.is_limited:
        return None
    seat.looked_at = True
    return state.limits.headroom(seat.queue.path, seat.application_id, seat.user)


def may_start(state: PartitionState, seat: Seat) -> bool:
    """Return whether the numbers of running applications of its user and group let an application start."""
    if seat.looked_at and not state.limits.is_limited:
        return True
    return state.limits.can_run(seat.queue.path, seat.application_id, seat.user)


def count_placed(state: PartitionState, seat: Seat, allocation: Allocation) -> None:
    """Count an allocation for its user and the partition; its queues are charged already."""
    ask = allocation.ask
    state.limits.increase(seat.queue.path, seat.application_id, seat.user, ask.resource)
    state.placed.count(ask)


def count_ended(state: PartitionState, seat: Seat, answer: Answer) -> None:
    """Take the removed allocations of an answer off the queues, the user and the counters."""
    last = len(answer.allocations) - 1
    for position, allocation in enumerate(answer.allocations):
        uncount(state, seat, allocation, ended=answer.ended and position == last)
    for allocation in answer.preempted:
        for level in seat.queue.above:
            level.remove_preempting(allocation.ask.resource)


def uncount(state: PartitionState, seat: Seat, allocation: Allocation, *, ended: bool) -> None:
    """Take an allocation off its queues, its user and the counters."""
    resource = allocation.ask.resource
    queue_quota.discharge(seat.queue, resource)
    state.limits.decrease(seat.queue.path, seat.application_id, seat.user, resource, remove_application=ended)
    state.placed.uncount(allocation.ask)
    state.changes += 1


def leave_node(state: PartitionState, allocation: Allocation) -> None:
    """Take an allocation off its node, if the node is known."""
    node = state.nodes.get(allocation.node_id)
    if node is not None:
        state.nodes.give(node, node.node.remove(allocation.ask.allocation_key))


def drop_reservations(state: PartitionState, reservations: tuple[Reservation, ...]) -> None:
    """Free the nodes of reservations that an application has dropped."""
    for reservation in reservations:
        state.reservations -= 1
        node = state.nodes.get(reservation.node_id)
        if node is not None and node.node.unreserve(reservation.allocation_key):
            state.nodes.set_reserved(node, reserved=False)
            state.node_changes += 1
