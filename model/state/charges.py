"""The counts of a placement and of its end: at queues, the user, the node and the partition's counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..applications.effects import Answer
from ..applications.pending_asks import AskRecord, Reservation
from ..limits.usage_tree import Held
from ..limits.user_limits import room_in_limit
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry, HeldStart
from ..queues.bars import LimitBar
from ..queues.child_orders import view_of
from ..queues.queue import Queue
from ..resources.resource import EMPTY, Resource, subtract
from ..values.allocation import Allocation
from ..values.events import ChangeType
from ..values.facts import AsksDroppedFact, EndedFact, PlacedFact
from ..values.messages import TerminationType, User

if TYPE_CHECKING:
    from .partition_state import PartitionState

_new: Final = tuple.__new__


def user_headroom(state: PartitionState, entry: ApplicationEntry, own_key: str = "") -> Resource | None:
    """Return how much more an application's user and group may use, `None` if they are not limited.

    What is held for asks that have preempted counts as used, except that of the ask with the key `own_key`.
    """
    if entry.user_is_listed and not state.limits.is_limited:
        return None
    entry.user_is_listed = True
    of_entry = (entry.queue.path, entry.application_id, entry.user)
    if not state.claims.by_key:
        return state.limits.headroom(*of_entry)
    return state.limits.headroom(*of_entry, held_of_holders(state, *of_entry, own_key))


def room_at(state: PartitionState, bar: Queue | LimitBar) -> Resource | None:
    """Return the room of a queue, or what a limit leaves; `None` without a maximum or a limit."""
    if isinstance(bar, LimitBar):
        return room_in_limit(state.limits, bar.kind, bar.name, bar.queue_path)
    return bar.room()


def holder_of(state: PartitionState, entry: ApplicationEntry) -> tuple[str, str | None]:
    """Return the user and the group whose limits hold an application."""
    user = entry.user
    return user.name, state.limits.group_of(entry.queue.path, entry.application_id, user)


def held_of_holders(
    state: PartitionState, queue_path: str, application_id: str, user: User, own_key: str
) -> tuple[Held, Held]:
    """Return what claims hold of the limits of an application's user, and of its group, by queue."""
    group_of = state.limits.group_of
    group = group_of(queue_path, application_id, user)
    return (
        state.claims.held_of_holder(lambda _, other, __: other.name == user.name, own_key),
        {}
        if group is None
        else state.claims.held_of_holder(
            lambda other_id, other, queue: group_of(queue.path, other_id, other) == group, own_key
        ),
    )


def may_start(state: PartitionState, entry: ApplicationEntry) -> bool:
    """Return whether the limits on running applications of its user and group let an application start."""
    if entry.user_is_listed and not state.limits.is_limited:
        return True
    return state.limits.can_run(entry.queue.path, entry.application_id, entry.user)


def held_by_policy(state: PartitionState, entry: ApplicationEntry) -> HeldStart | None:
    """Return the policy that keeps an application from starting, if any; the entry keeps it."""
    entry.held = holding_policy(state, entry)
    return entry.held


def holding_policy(state: PartitionState, entry: ApplicationEntry) -> HeldStart | None:
    """Return the first policy that does not let an application start, `None` if all let it."""
    for name in state.config.policies.admission:
        wait = state.host.policies.by_name[name].may_start(view_of(entry), state.now_ns())
        if wait is not None:
            return HeldStart(name, wait)
    return None


def count_placed(state: PartitionState, entry: ApplicationEntry, allocation: Allocation) -> str | None:
    """Count an allocation for its user and the partition; its queues are charged. Return the group."""
    ask = allocation.ask
    group = state.limits.increase(entry.queue.path, entry.application_id, entry.user, ask.resource)
    state.placed.count(ask, entry.queue.path)
    return group


def report_placed(
    state: PartitionState, entry: ApplicationEntry, allocation: Allocation, answer: Answer, group: str | None
) -> None:
    """Set in an answer, before anything else, the fact that an allocation was placed."""
    if state.ends.is_on:
        state.ends.add(entry, allocation, group)
    if state.events.sink.report is not None:
        # Not by its constructor, which is slower: a function in Python that calls this one.
        path, user = entry.queue.path, entry.user.name
        records = 3 if group is None else 4
        fact = _new(PlacedFact, (records, state.rm_id, allocation.bound_at_ns, allocation, path, user, group))
        answer.happened = (fact,)


def report_all_placed(
    state: PartitionState,
    entry: ApplicationEntry,
    allocations: Sequence[Allocation],
    answer: Answer,
    group: str | None,
) -> None:
    """Set in an answer, before anything else, a fact for each allocation that was placed."""
    if state.ends.is_on:
        for allocation in allocations:
            state.ends.add(entry, allocation, group)
    if state.events.sink.report is not None:
        path, user, rm_id = entry.queue.path, entry.user.name, state.rm_id
        records = 3 if group is None else 4
        answer.happened = tuple(
            [
                _new(PlacedFact, (records, rm_id, allocation.bound_at_ns, allocation, path, user, group))
                for allocation in allocations
            ]
        )


def count_ended(
    state: PartitionState,
    entry: ApplicationEntry,
    answer: Answer,
    termination: TerminationType,
    *,
    node_is_gone: bool = False,
) -> None:
    """Count the removed allocations of an answer no longer for the queues, the user and the counters.

    The events are added to the answer: `termination` is why they ended, and `node_is_gone` whether
    they ended with their node.
    """
    last = len(answer.allocations) - 1
    facts: list[EndedFact] = []
    for position, allocation in enumerate(answer.allocations):
        group = uncount(state, entry, allocation, ended=answer.ended and position == last)
        if state.events.are_kept:
            on_node = not node_is_gone and state.nodes.get(allocation.node_id) is not None
            records = 2 + on_node + (group is not None)
            now_ns = state.now_ns()
            path, user = entry.queue.path, entry.user.name
            facts.append(
                EndedFact(records, state.rm_id, now_ns, allocation, path, user, group, termination, on_node)
            )
    if facts:
        answer.happened = (*answer.happened, *facts)
    for allocation in answer.preempted:
        count_victim_ended(state, entry, allocation)


def count_victim_ended(state: PartitionState, entry: ApplicationEntry, allocation: Allocation) -> None:
    """Count an allocation no longer as being preempted: what it gave back is its preemptor's."""
    back = subtract(EMPTY, allocation.ask.resource)
    for level in entry.queue.above:
        level.change_preempting(back)
    claim = state.claims.note_end(allocation.ask.allocation_key, state.now_ns())
    if claim is not None:
        for key in claim.reserving:
            _end_without_node(state, key)


def uncount(
    state: PartitionState, entry: ApplicationEntry, allocation: Allocation, *, ended: bool
) -> str | None:
    """Count an allocation no longer for its queues, its user and the counters; return the user's group."""
    resource = allocation.ask.resource
    queue_quota.release_charge(entry.queue, resource)
    group = state.limits.decrease(
        entry.queue.path, entry.application_id, entry.user, resource, remove_application=ended
    )
    state.placed.uncount(allocation.ask, entry.queue.path)
    if state.ends.is_on:
        state.ends.remove(allocation.ask, state.now_ns())
    if state.claims.by_key or state.tree.root.lending:
        state.changes += 1  # It may be room for any ask.
        return group
    state.local_changes += 1
    if len(state.tree.bars):
        state.tree.bars.free(entry.queue.above, entry.user.name, group)
    return group


def leave_node(state: PartitionState, allocation: Allocation) -> None:
    """Remove an allocation from its node, if the node is known."""
    node = state.nodes.get(allocation.node_id)
    if node is not None:
        state.nodes.give(node, node.node.remove(allocation.ask.allocation_key))


def leave_swap(state: PartitionState, real: Allocation) -> None:
    """Free what an allocation that was to replace a placeholder holds on its node."""
    node = state.nodes.get(real.node_id)
    if node is None:
        return
    before = node.available
    leave_node(state, real)
    if node.available != before:  # On the placeholder's own node it held none.
        state.events.note_on_node(ChangeType.REMOVE, real)


def drop_asks(
    state: PartitionState,
    entry: ApplicationEntry,
    answer: Answer,
    *,
    is_reported: bool = True,
    timed_out: bool = False,
) -> None:
    """Count asks that an application has dropped no longer as waiting, and free their reserved nodes."""
    if answer.asks and is_reported and state.events.are_kept:
        asks = tuple(record.ask for record in answer.asks)
        fact = AsksDroppedFact(len(asks), state.rm_id, state.now_ns(), asks, timed_out)
        answer.happened = (*answer.happened, fact)
    for record in answer.asks:
        end_claim(state, record.ask.allocation_key)
        if not record.placed:
            entry.remove_pending(record.ask)
            state.ends.run_times.forget(record.ask.allocation_key)
            if state.node_checks is not None:
                state.node_checks.forget(keys=(record.ask.allocation_key,))
    drop_reservations(state, answer.reservations)


def drop_last_ask(state: PartitionState, record: AskRecord) -> None:
    """Report that the ask of the last allocation of an application was dropped, which had ended before."""
    end_claim(state, record.ask.allocation_key)
    report = state.events.sink.report
    if report is not None:
        report(_new(AsksDroppedFact, (1, state.rm_id, state.now_ns(), (record.ask,), False)))


def end_claim(state: PartitionState, allocation_key: str) -> None:
    """End the claim of an ask that waits no longer: others may use the room."""
    if state.claims.by_key and state.claims.end(allocation_key):
        state.changes += 1


def _end_without_node(state: PartitionState, allocation_key: str) -> None:
    """End the claim of an ask whose victims have ended and which has no node: it must begin anew."""
    claim = state.claims.find(allocation_key)
    if claim is not None and not claim.ending and state.reserved.get(allocation_key) is None:
        end_claim(state, allocation_key)


def drop_reservations(state: PartitionState, reservations: tuple[Reservation, ...]) -> None:
    """Free the nodes of reservations that an application has dropped."""
    for reservation in reservations:
        state.reserved.remove(reservation.allocation_key)
        _end_without_node(state, reservation.allocation_key)
        node = state.nodes.get(reservation.node_id)
        if node is None:
            continue
        key = reservation.allocation_key
        state.events.note_reservation(ChangeType.REMOVE, node.node_id, key, reservation.resource)
        if node.node.unreserve(key):
            state.nodes.set_reserved(node, reserved=False)
            state.node_changes += 1
