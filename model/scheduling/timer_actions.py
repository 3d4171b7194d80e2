"""What a partition does when a timer comes, and when it has its clock call the next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..preemption.quota import preempt_over_quota
from ..queues.quota_timer import next_due_ns
from ..state.applying import apply
from ..state.charges import drop_reservations, leave_node
from ..state.expiries import expire_due
from ..state.surroundings import ApplicationTimer, Expiry, Inspection, QueueCleaning, QuotaCheck
from .outstanding import outstanding_asks

if TYPE_CHECKING:
    from ..state.partition_state import PartitionState
    from ..state.surroundings import TimerAction

__all__ = ["carry_out", "next_look_ns", "schedule_wakeups", "watch_quotas"]


def carry_out(state: PartitionState, action: TimerAction) -> None:
    """Do what is due."""
    if isinstance(action, ApplicationTimer):
        _application_timer(state, action)
        return
    state.timers.came(action)
    if isinstance(action, QueueCleaning):
        state.tree.clean()  # Those still in use are looked at again later.
    elif isinstance(action, QuotaCheck):
        preempt_over_quota(state)
        watch_quotas(state)
    elif isinstance(action, Expiry):
        expire_due(state)
    elif isinstance(action, Inspection):
        outstanding_asks(state)


def _application_timer(state: PartitionState, action: ApplicationTimer) -> None:
    seat = state.seats.get(action.application_id)
    if seat is None or state.serials[action.application_id] != action.serial:
        return
    answer = seat.application.on_timer(action.kind, action.generation, state.now_ns())
    if answer is None:
        return
    for record in answer.asks:
        if not record.placed:
            seat.remove_pending(record.ask)
    for allocation in answer.swaps:
        leave_node(state, allocation)
    drop_reservations(state, answer.reservations)
    apply(state, seat, answer)


def schedule_wakeups(state: PartitionState) -> None:
    """Have the partition called where time alone may change an answer."""
    watch_quotas(state)
    if not state.tree.root.pending:
        return
    look_ns = next_look_ns(state)
    if look_ns is not None:
        state.timers.look_again(look_ns)
    state.timers.inspect_later()


def watch_quotas(state: PartitionState) -> None:
    """Have the partition called when a queue that is above its maximum is due for preemption."""
    if state.quota_preemption_enabled:
        due_ns = next_due_ns(state.tree)
        if due_ns is not None:
            state.timers.check_quotas(due_ns)


def next_look_ns(state: PartitionState) -> int | None:
    """Return when time alone may let something be placed, `None` if only a change can.

    It brings the orders of the queues up to date on its way.
    """
    rests = [queue.seats.rest for queue in state.tree.leaves_in_order()]
    due = [rest.until_ns for rest in rests if rest is not None and rest.until_ns is not None]
    reserved = state.reserved_rest
    if reserved is not None and reserved.look_ns is not None and state.reservations:
        due.append(reserved.look_ns)
    return min(due, default=None)
