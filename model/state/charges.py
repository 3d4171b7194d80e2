"""What a placement, and its end, count for: the queues, the user, the node and the partition's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..queues import quota as queue_quota

if TYPE_CHECKING:
    from ..applications.effects import Answer
    from ..applications.reservations import Reservation
    from ..queues.application_entry import ApplicationEntry
    from ..resources.resource import Resource
    from ..values.allocation import Allocation
    from .partition_state import PartitionState

__all__ = [
    "count_ended",
    "count_placed",
    "drop_asks",
    "drop_reservations",
    "leave_node",
    "may_start",
    "uncount",
    "user_headroom",
]


def user_headroom(state: PartitionState, entry: ApplicationEntry) -> Resource | None:
    """Return how much more an application's user and group may use, `None` if they are not limited."""
    if entry.user_is_listed and not state.limits.is_limited:
        return None
    entry.user_is_listed = True
    return state.limits.headroom(entry.queue.path, entry.application_id, entry.user)


def may_start(state: PartitionState, entry: ApplicationEntry) -> bool:
    """Return whether the limits on running applications of its user and group let an application start."""
    if entry.user_is_listed and not state.limits.is_limited:
        return True
    return state.limits.can_run(entry.queue.path, entry.application_id, entry.user)


def count_placed(state: PartitionState, entry: ApplicationEntry, allocation: Allocation) -> None:
    """Count an allocation for its user and the partition; its queues are charged already."""
    ask = allocation.ask
    state.limits.increase(entry.queue.path, entry.application_id, entry.user, ask.resource)
    state.placed.count(ask, entry.queue.path)


def count_ended(state: PartitionState, entry: ApplicationEntry, answer: Answer) -> None:
    """Count the removed allocations of an answer no longer for the queues, the user and the counters."""
    last = len(answer.allocations) - 1
    for position, allocation in enumerate(answer.allocations):
        uncount(state, entry, allocation, ended=answer.ended and position == last)
    for allocation in answer.preempted:
        for level in entry.queue.above:
            level.remove_preempting(allocation.ask.resource)


def uncount(state: PartitionState, entry: ApplicationEntry, allocation: Allocation, *, ended: bool) -> None:
    """Count an allocation no longer for its queues, its user and the counters."""
    resource = allocation.ask.resource
    queue_quota.release_charge(entry.queue, resource)
    state.limits.decrease(
        entry.queue.path, entry.application_id, entry.user, resource, remove_application=ended
    )
    state.placed.uncount(allocation.ask, entry.queue.path)
    state.changes += 1


def leave_node(state: PartitionState, allocation: Allocation) -> None:
    """Remove an allocation from its node, if the node is known."""
    node = state.nodes.get(allocation.node_id)
    if node is not None:
        state.nodes.give(node, node.node.remove(allocation.ask.allocation_key))


def drop_asks(state: PartitionState, entry: ApplicationEntry, answer: Answer) -> None:
    """Count asks that an application has dropped no longer as waiting, and free their reserved nodes."""
    for record in answer.asks:
        if not record.placed:
            entry.remove_pending(record.ask)
            if state.node_checks is not None:
                state.node_checks.forget(keys=(record.ask.allocation_key,))
    drop_reservations(state, answer.reservations)


def drop_reservations(state: PartitionState, reservations: tuple[Reservation, ...]) -> None:
    """Free the nodes of reservations that an application has dropped."""
    for reservation in reservations:
        state.reservations -= 1
        node = state.nodes.get(reservation.node_id)
        if node is not None and node.node.unreserve(reservation.allocation_key):
            state.nodes.set_reserved(node, reserved=False)
            state.node_changes += 1
