"""The actions of a partition when a timer is due, and the asks that it reports as outstanding.

An application is looked at again when it has changed or has been tried, or has an ask that is still to be
reported and does not fit.
"""

from __future__ import annotations

from typing import Final

from ..applications.effects import TimerKind
from ..preemption.quota import preempt_over_quota
from ..queues.application_entry import ApplicationEntry, wake
from ..queues.quota import headroom_without_root, is_reached, next_due_ns
from ..resources.resource import (
    Resource,
    component_wise_min,
    fits_undefined_unlimited,
    subtract,
    subtract_only_existing,
)
from ..state.applying import apply, expire_due
from ..state.charges import drop_asks, leave_swap, user_headroom
from ..state.host import ApplicationTimer, Expiry, Inspection, QueueCleaning, QuotaCheck, TimerAction
from ..state.partition_state import PartitionState
from ..values.messages import SchedulingStateChanged
from .cycle import is_idle

_REASON: Final = "request is waiting for cluster resources become available"


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
                state.changes += 1  # The room that it kept back is free for others.
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


def is_resting(state: PartitionState) -> bool:
    """Return whether `Partition.run_until_idle` does nothing, however late, until something changes."""
    return (
        is_idle(state)
        and state.node_checks is None
        and not state.host.policies.by_name
        and not state.quota_preemption_enabled
    )


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
    review_ns = _policy_review_ns(state)
    if review_ns is not None:
        due.append(review_ns)
    return min(due, default=None)


def review_policies_when_due(state: PartitionState) -> None:
    """Ask the policies anew whose keys depend on time, if that is due."""
    review_ns = _policy_review_ns(state)
    if review_ns is not None and review_ns <= state.now_ns():
        state.review_policies()


def _policy_review_ns(state: PartitionState) -> int | None:
    """Return when the keys of policies that depend on time are found anew, `None` if none depends on it."""
    every_ns = state.host.policies.every_ns
    if every_ns is None:
        return None
    if not state.policies_reviewed_ns:
        state.policies_reviewed_ns = state.now_ns()
    return state.policies_reviewed_ns + every_ns


def outstanding_asks(state: PartitionState) -> None:
    """Report to the RM each ask that more nodes would help, once, in the order of scheduling."""
    for leaf in state.tree.leaves_in_order():
        unreported = leaf.entries.unreported
        if not unreported:
            continue
        entries = leaf.entries.in_order(unreported)
        for name in unreported.keys() - {entry.application_id for entry in entries}:
            del unreported[name]  # Nothing of it waits until it changes.
        room = headroom_without_root(leaf)
        for entry in entries:
            room = _visit(state, entry, room)


def _visit(state: PartitionState, entry: ApplicationEntry, room: Resource | None) -> Resource | None:
    """Report the asks of one application that fit; return the room that is left in the queue."""
    user_room = user_headroom(state, entry)
    own_room = component_wise_min(room, user_room) if room is not None else user_room
    is_left = False
    for ask, tells in entry.application.asks.outstanding():
        resource = ask.resource
        claim = state.claims.find(ask.allocation_key)
        if claim is not None:  # Its held room is not in the room of the queues.
            resource = subtract(resource, claim.held_in_all(entry.queue.above[:-1]))
        if not fits_undefined_unlimited(own_room, resource):
            is_left = is_left or tells
            continue
        own_room = subtract_only_existing(own_room, resource)
        if not tells:
            continue
        room = subtract_only_existing(room, resource)
        entry.application.asks.note_scale_up(ask.allocation_key)
        changed = SchedulingStateChanged(entry.application_id, ask.allocation_key, _REASON)
        state.host.announce(changed)
    if not is_left:
        entry.queue.entries.unreported.pop(entry.application_id, None)
    return room
