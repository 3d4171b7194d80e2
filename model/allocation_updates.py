"""Asks, existing and foreign allocations, and releases that an RM sends, carried out on a partition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, final

from . import queue_quota
from .allocation import CREATION_TIME_TAG, FOREIGN_TAG, REQUIRED_NODE_TAG, Allocation, Ask
from .messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsReleased,
    Release,
    TerminationType,
)
from .node_updates import exchange_counts, settle_swap_on_nodes
from .object_state import ObjectState
from .quota_preemption_timer import usage_raised
from .resource_comparisons import equals, has_negative, is_zero

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .messages import AllocationSubmission
    from .partition_state import PartitionState
    from .resources import Resource
    from .seat import Seat

__all__ = ["release_allocation", "submit_allocations"]

_SECOND_NS: Final = 1_000_000_000
_STATIC: Final = "static"
_RELEASE_TEXT: Final = "allocation remove as per RM request"


def submit_allocations(
    state: PartitionState,
    submissions: Sequence[AllocationSubmission],
) -> tuple[AllocationRejection, ...]:
    """Take asks and allocations, in order; return those that are not taken, and why.

    Neighbouring asks of one application are taken in one step.
    """
    rejections = []
    batch = _AskBatch(state)
    for submission in submissions:
        if submission.node_id or FOREIGN_TAG in submission.tags:
            batch.flush()
            reason = _submit(state, submission)
        else:
            reason = _refusal(state, submission)
            if reason is None:
                batch.add(submission)
        if reason is not None:
            rejections.append(
                AllocationRejection(submission.allocation_key, submission.application_id, reason),
            )
    batch.flush()
    return tuple(rejections)


@final
class _AskBatch:
    """Asks of one application that have come one after the other."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self._seat: Seat | None = None
        self._asks: list[Ask] = []

    def add(self, submission: AllocationSubmission) -> None:
        """Keep an ask, and take those of another application in."""
        seat = self._state.seats[submission.application_id]
        if seat is not self._seat:
            self.flush()
            self._seat = seat
        self._asks.append(_ask(self._state, submission))
        self._state.claim(submission.allocation_key, submission.application_id)

    def flush(self) -> None:
        """Take the asks in; those whose keys are known change what is there."""
        state, seat = self._state, self._seat
        if seat is None or not self._asks:
            return
        asks, self._asks = self._asks, []
        answer, known = seat.application.add_asks(asks, state.now_ns())
        if len(known) < len(asks):
            again = {id(ask) for ask in known}
            state.add_pending(seat, *[ask for ask in asks if id(ask) not in again])
            state.settle(seat, answer)
        for ask in known:
            _resize_known(state, seat, ask.allocation_key, ask.resource)


def _resize_known(state: PartitionState, seat: Seat, key: str, resource: Resource) -> str | None:
    """Give what is known by this key another size."""
    placed = seat.application.allocation(key)
    if placed is not None:
        return _resize_allocation(state, seat, placed, resource)
    record = seat.application.ask_record(key)
    # What is known and neither placed nor waiting has its swap under way: its size and node are settled.
    if record is not None and not record.placed and not equals(record.ask.resource, resource):
        _resize_ask(state, seat, record.ask, resource)
    return None


def _submit(state: PartitionState, submission: AllocationSubmission) -> str | None:
    """Take an existing, external or foreign allocation."""
    if FOREIGN_TAG in submission.tags:
        return _submit_foreign(state, submission)
    reason = _refusal(state, submission)
    if reason is not None:
        return reason
    seat = state.seats[submission.application_id]
    key = submission.allocation_key
    if not seat.application.knows(key):
        _recover(state, seat, _ask(state, submission), submission.node_id)
        return None
    reason = _resize_known(state, seat, key, submission.resource)
    record = seat.application.ask_record(key)
    if reason is None and record is not None and not record.placed:
        _place_externally(state, seat, submission)
    return reason


def _refusal(state: PartitionState, submission: AllocationSubmission) -> str | None:
    """Return why a submission is turned away, `None` if it is taken."""
    if state.state is ObjectState.STOPPED:
        return f"partition {state.name} is stopped; cannot process allocation {submission.allocation_key}"
    if submission.placeholder and not submission.task_group_name:
        return f"placeholder {submission.allocation_key} has no task group name"
    if submission.application_id not in state.seats:
        return f"failed to find application {submission.application_id}"
    if submission.node_id and state.nodes.get(submission.node_id) is None:
        return f"failed to find node {submission.node_id}"
    owner = state.owner_of(submission.allocation_key)
    if owner not in ("", submission.application_id):
        return f"allocation key {submission.allocation_key} is in use by application {owner}"
    if is_zero(submission.resource):
        return "allocation contains no resources"
    if has_negative(submission.resource):
        return "allocation contains negative resources"
    return None


def _ask(state: PartitionState, submission: AllocationSubmission) -> Ask:
    tags = submission.tags
    created_at_ns = state.now_ns()
    required_node = ""
    if tags:
        created = tags.get(CREATION_TIME_TAG, "")
        if re.fullmatch(r"[0-9]{1,10}", created):
            created_at_ns = int(created) * _SECOND_NS
        required_node = tags.get(REQUIRED_NODE_TAG, "")
    return Ask(
        allocation_key=submission.allocation_key,
        application_id=submission.application_id,
        resource=submission.resource,
        created_at_ns=created_at_ns,
        priority=submission.priority,
        tags=tags,
        task_group_name=submission.task_group_name,
        placeholder=submission.placeholder,
        originator=submission.originator,
        allow_preempt_self=submission.allow_preempt_self,
        allow_preempt_other=submission.allow_preempt_other,
        required_node=required_node,
    )


def _recover(state: PartitionState, seat: Seat, ask: Ask, node_id: str) -> None:
    """Take over an allocation that exists: whatever the quotas, and whatever room the node has."""
    allocation = _put_on_node(state, ask, node_id)
    state.claim(ask.allocation_key, ask.application_id)
    _charge(state, seat, ask.resource)
    state.count_placed(seat, allocation)
    answer = seat.application.recover(allocation, state.now_ns())
    state.settle(seat, answer)
    state.around.announce(AllocationPlaced(allocation))


def _charge(state: PartitionState, seat: Seat, resource: Resource) -> None:
    """Charge the queues whatever their quotas, and note where that brought one above its maximum."""
    queue_quota.charge(seat.queue, resource)
    if state.quota_preemption_enabled:
        usage_raised(seat.queue, state.now_ns())


def _put_on_node(state: PartitionState, ask: Ask, node_id: str) -> Allocation:
    node = state.nodes.get(node_id)
    assert node is not None, "the caller has looked"
    allocation = Allocation(ask, node_id, state.now_ns(), node.instance_type)
    state.nodes.give(node, node.node.add(allocation))
    return allocation


def _place_externally(state: PartitionState, seat: Seat, submission: AllocationSubmission) -> None:
    """Take over that the RM has placed a waiting ask itself."""
    record = seat.application.ask_record(submission.allocation_key)
    assert record is not None, "the caller has looked"
    ask = record.ask
    allocation = _put_on_node(state, ask, submission.node_id)
    answer = seat.application.try_place(allocation, state.now_ns())
    assert answer is not None, "the ask waits: please report"
    _charge(state, seat, ask.resource)
    state.remove_pending(seat, ask)
    state.count_placed(seat, allocation)
    state.drop_reservations(answer.reservations)
    state.settle(seat, answer)
    state.around.announce(AllocationPlaced(allocation))


# ---------------------------------------------------------------------------------------- resizing


def _resize_ask(state: PartitionState, seat: Seat, ask: Ask, resource: Resource) -> None:
    answer = seat.application.resize_ask(ask.allocation_key, resource)
    assert answer is not None, "the ask waits: please report"
    state.remove_pending(seat, ask)
    state.add_pending(seat, answer.asks[0].ask)
    state.changes += 1
    state.settle(seat, answer)


def _resize_allocation(
    state: PartitionState,
    seat: Seat,
    allocation: Allocation,
    resource: Resource,
) -> str | None:
    """Give an allocation another size in place: whatever the quotas, and whatever room the node has."""
    before = allocation.ask.resource
    if equals(before, resource):
        return None
    node = state.nodes.get(allocation.node_id)
    if node is None:
        return f"failed to find node {allocation.node_id}"
    answer = seat.application.resize_allocation(allocation.ask.allocation_key, resource)
    assert answer is not None, "the allocation is placed: please report"
    resized = answer.allocations[0]
    after = resized.ask.resource
    state.nodes.give_unscored(node, node.node.replace(allocation.ask.allocation_key, resized))
    queue_quota.discharge(seat.queue, before)
    _charge(state, seat, after)
    path = seat.queue.path
    state.limits.decrease(path, seat.application_id, seat.user, before, remove_application=False)
    state.limits.increase(path, seat.application_id, seat.user, after)
    state.changes += 1
    state.settle(seat, answer)
    return None


# ----------------------------------------------------------------------------------------- foreign


def _submit_foreign(state: PartitionState, submission: AllocationSubmission) -> str | None:
    key = submission.allocation_key
    if not submission.node_id:
        return f"trying to add a foreign request (non-allocation) {key}"
    seat = state.nodes.get(submission.node_id)
    if seat is None:
        return f"failed to find node {submission.node_id} for allocation {key}"
    before = state.foreign.get(key)
    if before is not None and before.node_id != submission.node_id:
        _remove_foreign(state, key)
    ask = Ask(
        allocation_key=key,
        application_id="",
        resource=submission.resource,
        created_at_ns=_ask(state, submission).created_at_ns,
        priority=submission.priority,
        tags=submission.tags,
        allow_preempt_self=submission.tags[FOREIGN_TAG] != _STATIC,
    )
    allocation = Allocation(ask, seat.node_id, state.now_ns(), seat.instance_type)
    state.foreign[key] = allocation
    state.nodes.give_unscored(seat, seat.node.put_foreign(allocation))
    return None


def _remove_foreign(state: PartitionState, key: str) -> None:
    allocation = state.foreign.pop(key, None)
    seat = state.nodes.get(allocation.node_id) if allocation is not None else None
    if seat is not None:
        state.nodes.give_unscored(seat, seat.node.remove_foreign(key))


# ---------------------------------------------------------------------------------------- releases


def release_allocation(state: PartitionState, release: Release) -> None:
    """End what the RM says has ended; what is not known has ended already."""
    if not release.application_id:
        _remove_foreign(state, release.allocation_key)
        return
    seat = state.seats.get(release.application_id)
    if seat is None:
        return
    if not release.allocation_key:
        _release_all(state, seat, release)
    elif release.termination is TerminationType.PLACEHOLDER_REPLACED:
        _confirm_replacement(state, seat, release)
    else:
        _release_one(state, seat, release)


def _release_one(state: PartitionState, seat: Seat, release: Release) -> None:
    key = release.allocation_key
    _cancel_swap_of(state, seat, key)
    answer = seat.application.remove_allocation(key, release.termination, state.now_ns())
    ended = answer is not None
    if answer is not None:
        for allocation in answer.allocations:
            state.leave_node(allocation)
        state.count_ended(seat, answer)
        state.settle(seat, answer)
    if release.termination is not TerminationType.TIMEOUT:
        _remove_ask(state, seat, key)
    if ended:
        _echo(state, seat, (key,), release.termination)


def _cancel_swap_of(state: PartitionState, seat: Seat, placeholder_key: str) -> None:
    """Let the member wait again whose placeholder ends by another way than its replacement."""
    real = seat.application.cancel_swap(placeholder_key)
    if real is None:
        return
    state.leave_node(real)
    answer = seat.application.displace(real.ask.allocation_key)
    if answer is not None:
        for record in answer.asks:
            state.add_pending(seat, record.ask)
        state.settle(seat, answer)


def _remove_ask(state: PartitionState, seat: Seat, key: str) -> None:
    if seat.application_id not in state.seats:
        return
    answer = seat.application.remove_ask(key, state.now_ns())
    for record in answer.asks:
        if not record.placed:
            state.remove_pending(seat, record.ask)
    state.drop_reservations(answer.reservations)
    state.settle(seat, answer)


def _release_all(state: PartitionState, seat: Seat, release: Release) -> None:
    now_ns = state.now_ns()
    answer = seat.application.remove_all_allocations(now_ns, leaving=False)
    for allocation in (*answer.allocations, *answer.swaps):
        state.leave_node(allocation)
    state.count_ended(seat, answer)
    state.settle(seat, answer)
    keys = tuple(allocation.ask.allocation_key for allocation in answer.allocations)
    if release.termination is not TerminationType.TIMEOUT and seat.application_id in state.seats:
        asks = seat.application.remove_all_asks(now_ns)
        for record in asks.asks:
            if not record.placed:
                state.remove_pending(seat, record.ask)
        state.drop_reservations(asks.reservations)
        state.settle(seat, asks)
    if keys:
        _echo(state, seat, keys, release.termination)


def _echo(
    state: PartitionState,
    seat: Seat,
    keys: tuple[str, ...],
    termination: TerminationType,
) -> None:
    """Confirm what the RM ended by itself; a confirmation of the RM is not confirmed again."""
    if termination not in (TerminationType.STOPPED_BY_RM, TerminationType.UNKNOWN_TERMINATION_TYPE):
        return
    releases = tuple(
        Release(
            partition=state.name,
            application_id=seat.application_id,
            allocation_key=key,
            termination=TerminationType.STOPPED_BY_RM,
            message=_RELEASE_TEXT,
        )
        for key in keys
    )
    state.around.announce(AllocationsReleased(releases))


def _confirm_replacement(state: PartitionState, seat: Seat, release: Release) -> None:
    """Complete a swap; without one the placeholder just ends, as the RM says that it has."""
    key = release.allocation_key
    answer = seat.application.end_swap(key, release.termination, state.now_ns())
    if answer is None:
        answer = seat.application.remove_allocation(key, release.termination, state.now_ns())
        if answer is not None:
            for allocation in answer.allocations:
                state.leave_node(allocation)
            state.count_ended(seat, answer)
            state.settle(seat, answer)
    else:
        placeholder, real = answer.allocations
        exchange_counts(state, seat, placeholder, real)
        settle_swap_on_nodes(state, placeholder, real)
        state.settle(seat, answer)
        state.around.announce(AllocationPlaced(real))
    _remove_ask(state, seat, key)
