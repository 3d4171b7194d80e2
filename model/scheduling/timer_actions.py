"""What a partition does when a timer is due, and for when it sets the next one."""

from __future__ import annotations

from ..applications.effects import TimerKind
from ..preemption.quota import preempt_over_quota
from ..queues.application_entry import wake
from ..queues.quota_timer import next_due_ns
from ..queues.ranks import is_reached
from ..state.applying import apply
from ..state.charges import drop_asks, leave_swap
from ..state.expiries import expire_due
from ..state.host import ApplicationTimer, Expiry, Inspection, QueueCleaning, QuotaCheck, TimerAction
from ..state.partition_state import PartitionState
from .cycle import is_idle
from .outstanding import outstanding_asks


def carry_out(state: PartitionState, action: TimerAction) -> None:
    """Do what is due."""
    if isinstance(action, ApplicationTimer):
        _application_timer(state, action)
        return
    state.timers.mark_fired(action)
    if isinstance(action, QueueCleaning):
        for queue in state.tree.clean():  # Those still in use are tried again later.
            state.placed.forget_queue(queue.path)
            if queue.lend is not None:
                state.changes += 1  # What it kept back is room for others.
    elif isinstance(action, QuotaCheck):
        preempt_over_quota(state)
        watch_quotas(state)
    elif isinstance(action, Expiry):
        expire_due(state)
    elif isinstance(action, Inspection):
        outstanding_asks(state)


def _application_timer(state: PartitionState, action: ApplicationTimer) -> None:
    entry = state.entries.get(action.application_id)
    if entry is None or state.serials[action.application_id] != action.serial:
        return
    answer = entry.application.on_timer(action.kind, action.generation, state.now_ns())
    if answer is None:
        return
    for allocation in answer.swaps:
        leave_swap(state, allocation)
    drop_asks(state, entry, answer, timed_out=True)
    apply(state, entry, answer)
    if action.kind is TimerKind.GANG and not entry.facts.gang_waits:  # Its asks may be placed one by one now.
        wake(entry.queue)


def schedule_wakeups(state: PartitionState) -> None:
    """Set a timer for when time alone may change an answer; none while nothing is placed for the RM."""
    if state.host.placement_halt() is not None:
        return
    watch_quotas(state)
    if not state.tree.root.pending:
        return
    retry_ns = next_retry_ns(state)
    if retry_ns is not None:
        state.timers.retry_at(retry_ns)
    state.timers.inspect_later()


def watch_quotas(state: PartitionState) -> None:
    """Set a timer for when a queue that is above its maximum is due for preemption."""
    if state.quota_preemption_enabled and state.host.placement_halt() is None:
        due_ns = next_due_ns(state.tree)
        if due_ns is not None:
            state.timers.check_quotas(due_ns)


def next_retry_ns(state: PartitionState) -> int | None:
    """Return when time alone may let something be placed.

    It is `None` if only a change can, such as a first node.
    """
    if is_idle(state):
        return None
    awake = state.tree.root.awake
    sleeps = [leaf.entries.sleep for leaf in awake.leaves if is_reached(leaf)]
    due = [sleep.until_ns for sleep in sleeps if sleep is not None and sleep.until_ns is not None]
    asleep_due_ns = awake.next_due_ns()
    if asleep_due_ns is not None:
        due.append(asleep_due_ns)
    reserved = state.reserved_sleep
    if reserved is not None and reserved.until_ns is not None and state.reservations:
        due.append(reserved.until_ns)
    claim_due_ns = state.claims.next_due_ns()
    if claim_due_ns is not None:
        due.append(claim_due_ns)
    if state.node_checks is not None:
        unanswered_ns = state.node_checks.next_due_ns()
        if unanswered_ns is not None:
            due.append(unanswered_ns)
    return min(due, default=None)
