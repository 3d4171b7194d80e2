"""Asks, existing and foreign allocations that an RM sends, carried out on a partition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

from ..applications.effects import ApplicationState
from ..identifiers import id_refusal, names_refusal
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..resources.comparisons import equals, has_negative
from ..resources.resource import Resource, add, negative_text, strictly_greater_than_zero, total_of
from ..state.applying import apply
from ..state.gang_domains import warn_if_impossible
from ..state.partition_state import BrokenKind, PartitionState
from ..values.allocation import (
    CREATION_TIME_TAG,
    FOREIGN_TAG,
    PREDICATE_CLASS_TAG,
    REQUIRED_NODE_TAG,
    WALLTIME_TAG,
    Allocation,
    Ask,
)
from ..values.events import ChangeType
from ..values.facts import AsksAddedFact
from ..values.messages import (
    AllocationRejection,
    AllocationSubmission,
    RejectionCode,
    RejectionReason,
    invalid,
)
from ..values.states import ObjectState
from .existing import ExistingBatch, charge, note_checkpoint, place_externally, recover
from .submission_terms import (
    change_walltime,
    gang_sum_refusal,
    slices_refusal,
    walltime_refusal,
    watch_walltimes,
)

_SECOND_NS: Final = 1_000_000_000
_STATIC: Final = "static"


def submit_allocations(
    state: PartitionState,
    submissions: Sequence[AllocationSubmission],
) -> dict[int, AllocationRejection]:
    """Add asks and allocations, in order; return why some are rejected, by their places in the request.

    Neighbouring asks of one application are added in one step, and its neighbouring existing allocations are
    recovered in one. A key does not identify an item: a request may have one twice.
    """
    rejections: dict[int, AllocationRejection] = {}
    asks, existing = _AskBatch(state, rejections), ExistingBatch(state)
    for place, submission in enumerate(submissions):
        if FOREIGN_TAG in submission.tags:
            asks.flush()
            existing.flush()
            reason = submit_foreign(state, submission, ask_of(submission, state.now_ns()).created_at_ns)
        elif submission.node_id:
            asks.flush()
            reason = _submit_existing(state, existing, submission)
        else:
            existing.flush()
            reason = asks.submit(place, submission)
        if reason is not None:
            rejections[place] = AllocationRejection(
                submission.allocation_key, submission.application_id, reason.text, reason.code
            )
    asks.flush()
    existing.flush()
    return rejections


@final
class _AskBatch:
    """Consecutive asks of one application."""

    def __init__(self, state: PartitionState, rejections: dict[int, AllocationRejection]) -> None:
        self._state = state
        self._rejections = rejections
        self._entry: ApplicationEntry | None = None
        self._asks: list[Ask] = []
        self._places: list[int] = []
        self._now_ns = state.now_ns()

    def submit(self, place: int, submission: AllocationSubmission) -> RejectionReason | None:
        """Keep an ask unless it is rejected; those of another application are added first.

        Whether this one is rejected may depend on them: one of them may have its key.
        """
        entry = self._state.entries.get(submission.application_id)
        if entry is not self._entry:
            self.flush()
            self._entry = entry
        reason = submission_refusal(self._state, submission)
        if reason is None:
            self._asks.append(ask_of(submission, self._now_ns))
            self._places.append(place)
        return reason

    def flush(self) -> None:
        """Add the asks; one whose key is known changes what is there."""
        state, entry = self._state, self._entry
        if entry is None or not self._asks:
            return
        if entry.facts.gang_waits:
            self._reject_too_large(entry)
            self._reject_other_sizes(entry)
            warn_if_impossible(state, entry, self._asks)
        asks, self._asks = self._asks, []
        places, self._places = self._places, []
        answer, known = entry.application.asks.add(asks, self._now_ns)
        for ask in asks:
            # Once the application has it: a key that is not in use may be forgotten.
            state.keys.claim(ask.allocation_key, ask.application_id)
        if len(known) < len(asks):
            again = {id(ask) for ask in known}
            added = [ask for ask in asks if id(ask) not in again] if again else asks
            entry.add_pending(*added, total=answer.added)
            if state.events.are_kept:
                answer.happened = (AsksAddedFact(len(added), state.rm_id, self._now_ns, tuple(added)),)
            apply(state, entry, answer)
            if entry.queue.settings.runtime.ends_overruns:
                watch_walltimes(state, entry, [ask.allocation_key for ask in added])
        if not known:
            return
        place_of = {id(ask): place for ask, place in zip(asks, places, strict=True)}
        for ask in known:
            note_checkpoint(entry, ask.allocation_key, ask.tags)
            change_walltime(state, entry, ask.allocation_key, ask.tags)
            reason = _resize_known(state, entry, ask.allocation_key, ask.resource)
            if reason is not None:
                self._reject(place_of[id(ask)], ask, reason)

    def _reject(self, place: int, ask: Ask, reason: RejectionReason) -> None:
        self._rejections[place] = AllocationRejection(
            ask.allocation_key, ask.application_id, reason.text, reason.code
        )

    def _reject_other_sizes(self, entry: ApplicationEntry) -> None:
        """Reject the asks that can be no member of a gang in slices; a known one may change its size."""
        settings = entry.application.gang_settings
        if settings.domains is None or not settings.domains.slice_level:
            return
        waiting = [record.ask for record in entry.application.asks.waiting()]
        keys = {ask.allocation_key for ask in waiting}
        first = next((ask for ask in waiting if ask.placeholder != (settings.size > 0)), None)
        asks, places, self._asks, self._places = self._asks, self._places, [], []
        for ask, place in zip(asks, places, strict=True):
            if ask.placeholder != (settings.size > 0) and ask.allocation_key not in keys:
                reason = slices_refusal(entry.application_id, settings, first or ask, ask)
                if reason is not None:
                    self._reject(place, ask, reason)
                    continue
                first = first or ask
            self._asks.append(ask)
            self._places.append(place)

    def _reject_too_large(self, entry: ApplicationEntry) -> None:
        """Reject the asks with which a gang of a number of asks could never be placed."""
        whose, user, queue = entry.application_id, entry.user, entry.queue
        size = entry.application.gang_settings.size
        total = add(entry.facts.pending, total_of([ask.resource for ask in self._asks]))
        if not size or gang_sum_refusal(self._state, whose, user, queue, total) is None:
            return
        waiting = [record.ask for record in entry.application.asks.waiting()]
        keys = {ask.allocation_key for ask in waiting}
        members = [ask.resource for ask in waiting if not ask.placeholder]
        total, missing = total_of(members), size - len(members)
        asks, places, self._asks, self._places = self._asks, self._places, [], []
        for ask, place in zip(asks, places, strict=True):
            if missing > 0 and not ask.placeholder and ask.allocation_key not in keys:
                more = add(total, ask.resource)
                reason = gang_sum_refusal(self._state, whose, user, queue, more)
                if reason is not None:
                    self._reject(place, ask, reason)
                    continue
                total, missing = more, missing - 1
                keys.add(ask.allocation_key)
            self._asks.append(ask)
            self._places.append(place)


def _resize_known(
    state: PartitionState, entry: ApplicationEntry, key: str, resource: Resource
) -> RejectionReason | None:
    """Change the size of the ask or allocation with this key."""
    placed = entry.application.allocations.get(key)
    if placed is not None:
        return _resize_allocation(state, entry, placed, resource)
    record = entry.application.asks.record(key)
    # A known one that is neither placed nor waiting is in a swap under way: its size and node are fixed.
    if record is not None and not record.placed and not equals(record.ask.resource, resource):
        _resize_ask(state, entry, record.ask, resource)
    return None


def _submit_existing(
    state: PartitionState, batch: ExistingBatch, submission: AllocationSubmission
) -> RejectionReason | None:
    """Recover an allocation, now or with its neighbours; or note the RM's changes of a known one."""
    is_taken = batch.takes(submission)
    reason = submission_refusal(state, submission)
    if reason is not None:
        return reason
    if is_taken:
        batch.add(ask_of(submission, batch.now_ns), submission.node_id)
        return None
    entry = state.entries[submission.application_id]
    key = submission.allocation_key
    if not entry.application.asks.knows(key):
        recover(state, entry, (ask_of(submission, batch.now_ns),), (submission.node_id,))
        return None
    note_checkpoint(entry, key, submission.tags)
    change_walltime(state, entry, key, submission.tags)
    reason = _resize_known(state, entry, key, submission.resource)
    record = entry.application.asks.record(key)
    if reason is None and record is not None and not record.placed:
        place_externally(state, entry, submission)
    return reason


def submission_refusal(
    state: PartitionState,
    submission: AllocationSubmission,
    *,
    is_application_new: bool = False,
    is_node_new: bool = False,
) -> RejectionReason | None:
    """Return why a submission is rejected, `None` if it is accepted.

    Args:
        state: The partition.
        submission: The submission of the RM.
        is_application_new: Its application would be added just before it.
        is_node_new: Its node would be created just before it.
    """
    key = submission.allocation_key
    if state.state is ObjectState.STOPPED:
        return RejectionReason(
            RejectionCode.PARTITION_STOPPED,
            f"partition {state.name} is stopped; cannot process allocation {key}",
        )
    if not key:
        return RejectionReason(
            RejectionCode.INVALID,
            f"the allocation key of an ask of application {submission.application_id!r} is empty",
        )
    if submission.placeholder and not submission.task_group_name:
        return RejectionReason(RejectionCode.INVALID, f"placeholder {key} has no task group name")
    if not submission.application_id:
        return RejectionReason(RejectionCode.INVALID, f"the application id of the ask {key} is empty")
    bad = invalid(id_refusal("the allocation key", key))
    if bad is not None:
        return bad
    refusal = None if is_application_new else _application_refusal(state, submission.application_id, key)
    if refusal is not None:
        return refusal
    if submission.node_id and not is_node_new and state.nodes.get(submission.node_id) is None:
        return RejectionReason(RejectionCode.NODE_UNKNOWN, f"failed to find node {submission.node_id}")
    owner = state.keys.owner_of(key)
    if owner not in ("", submission.application_id):
        return RejectionReason(
            RejectionCode.KEY_IN_USE, f"allocation key {key} is in use by application {owner}"
        )
    if submission.placeholder and not (owner or submission.node_id) and _resumes(state, submission):
        return RejectionReason(
            RejectionCode.APPLICATION_ENDS,
            f"application {submission.application_id} is Resuming: placeholder {key} comes too late",
        )
    is_new = not (owner or submission.node_id)
    return _content_refusal(state, submission, is_new=is_new)


def _content_refusal(
    state: PartitionState, submission: AllocationSubmission, *, is_new: bool
) -> RejectionReason | None:
    """Return why the walltime, the size or a name in a submission is refused, `None` if none of them is."""
    refusal = _walltime_refusal(state, submission, is_new=is_new) or _size_refusal(submission.resource)
    if refusal is not None:
        return refusal
    resource, bad = submission.resource, None
    if resource is not state.named_resource:  # Most asks have the size of the one before: the same object.
        bad = names_refusal("a resource type of it", resource)
        if bad is None:
            state.named_resource = resource
    if bad is None and submission.tags:
        bad = names_refusal("a tag of it", submission.tags)
    if bad is None and submission.task_group_name:
        bad = id_refusal("its task group", submission.task_group_name)
    return None if bad is None else invalid(f"allocation {submission.allocation_key}: {bad}")


def _walltime_refusal(
    state: PartitionState, submission: AllocationSubmission, *, is_new: bool
) -> RejectionReason | None:
    """Return why the walltime of a new ask is refused; what is known or exists already is not refused."""
    if not is_new or WALLTIME_TAG not in submission.tags:
        return None
    entry = state.entries.get(submission.application_id)
    whose = f"ask {submission.allocation_key} of application {submission.application_id}"
    return walltime_refusal(whose, submission.tags, None if entry is None else entry.queue)


def _resumes(state: PartitionState, submission: AllocationSubmission) -> bool:
    """Return whether the gang of an application has timed out, so that placeholders no longer time out."""
    entry = state.entries.get(submission.application_id)
    return entry is not None and entry.facts.state is ApplicationState.RESUMING


def _size_refusal(resource: Resource) -> RejectionReason | None:
    """Return why nothing of a size can be asked for, `None` if it can."""
    if strictly_greater_than_zero(resource):
        return None
    if has_negative(resource):
        return RejectionReason(RejectionCode.INVALID, "allocation contains negative resources")
    return RejectionReason(RejectionCode.INVALID, "allocation contains no resources")


def _application_refusal(state: PartitionState, application_id: str, key: str) -> RejectionReason | None:
    """Return why an application cannot accept an ask or allocation, `None` if it can."""
    entry = state.entries.get(application_id)
    if entry is None:
        broken = state.quarantine.reason(BrokenKind.APPLICATION, application_id)
        why = f": it is quarantined, {broken}" if broken else ""
        return RejectionReason(
            RejectionCode.APPLICATION_UNKNOWN, f"failed to find application {application_id}{why}"
        )
    if entry.facts.state is ApplicationState.FAILING and not entry.application.asks.knows(key):
        # It would be dropped with the application, unnoticed. An existing one may still change its size.
        return RejectionReason(
            RejectionCode.APPLICATION_ENDS,
            f"application {application_id} is Failing; cannot process allocation {key}",
        )
    return None


def ask_of(submission: AllocationSubmission, now_ns: int) -> Ask:
    """Make the ask of a submission; its age counts from now unless its tags have another time."""
    tags = submission.tags
    created_at_ns = now_ns
    required_node = predicate_class = ""
    if tags:
        created = tags.get(CREATION_TIME_TAG, "")
        if re.fullmatch(r"[0-9]{1,10}", created):
            created_at_ns = int(created) * _SECOND_NS
        required_node = tags.get(REQUIRED_NODE_TAG, "")
        predicate_class = tags.get(PREDICATE_CLASS_TAG, "")
    return Ask(  # In the order of its arguments: keywords take three times as long.
        submission.allocation_key,
        submission.application_id,
        submission.resource,
        created_at_ns,
        submission.priority,
        tags,
        submission.task_group_name,
        submission.placeholder,
        submission.originator,
        submission.allow_preempt_self,
        submission.allow_preempt_other,
        required_node,
        predicate_class,
    )


# ---------------------------------------------------------------------------------------- resizing
def _resize_ask(state: PartitionState, entry: ApplicationEntry, ask: Ask, resource: Resource) -> None:
    answer = entry.application.asks.resize(ask.allocation_key, resource)
    assert answer is not None, "the ask waits: please report"
    entry.remove_pending(ask)
    resized = answer.asks[0].ask
    entry.add_pending(resized)
    state.claims.resize(resized)
    state.ends.run_times.ask_anew(ask.allocation_key)
    reserved = state.reserved.get(ask.allocation_key)
    if reserved is not None:
        state.reserved.remove(ask.allocation_key)
        state.reserved.add(reserved._replace(ask=resized))
        node = state.nodes.get(reserved.node_id)
        if node is not None:
            state.nodes.reserved_gains[node.node_id] = node
    state.changes += 1
    apply(state, entry, answer)


def _resize_allocation(
    state: PartitionState,
    entry: ApplicationEntry,
    allocation: Allocation,
    resource: Resource,
) -> RejectionReason | None:
    """Change the size of an allocation in place: whatever the quotas, and whatever room the node has."""
    before = allocation.ask.resource
    if equals(before, resource):
        return None
    node = state.nodes.get(allocation.node_id)
    if node is None:
        return RejectionReason(RejectionCode.NODE_UNKNOWN, f"failed to find node {allocation.node_id}")
    answer = entry.application.allocations.resize(allocation.ask.allocation_key, resource)
    assert answer is not None, "the allocation is placed: please report"
    resized = answer.allocations[0]
    after = resized.ask.resource
    state.nodes.give_unscored(node, node.node.replace(allocation.ask.allocation_key, resized))
    queue_quota.release_charge(entry.queue, before)
    charge(state, entry, after)
    path = entry.queue.path
    state.limits.decrease(path, entry.application_id, entry.user, before, remove_application=False)
    group = state.limits.increase(path, entry.application_id, entry.user, after)
    state.events.note_usage(before, after, path, entry.user.name, group)
    state.ends.run_times.ask_anew(allocation.ask.allocation_key)
    state.ends.forget()
    state.changes += 1
    apply(state, entry, answer)
    return None


def submit_foreign(
    state: PartitionState, submission: AllocationSubmission, created_at_ns: int
) -> RejectionReason | None:
    """Add a foreign allocation, or change its size or node; return why it is refused."""
    key = submission.allocation_key
    if not key:
        return RejectionReason(
            RejectionCode.INVALID,
            f"the allocation key of a foreign allocation on node {submission.node_id!r} is empty",
        )
    bad = invalid(foreign_name_refusal(submission))
    if bad is not None:
        return bad
    if not submission.node_id:
        return RejectionReason(
            RejectionCode.INVALID, f"trying to add a foreign request (non-allocation) {key}"
        )
    entry = state.nodes.get(submission.node_id)
    if entry is None:
        return RejectionReason(
            RejectionCode.NODE_UNKNOWN, f"failed to find node {submission.node_id} for allocation {key}"
        )
    refusal = invalid(negative_text(f"the resource of the foreign allocation {key}", submission.resource))
    if refusal is not None:
        return refusal
    before = state.foreign.get(key)
    if before is not None and before.node_id != submission.node_id:
        remove_foreign(state, key)
    ask = Ask(
        allocation_key=key,
        application_id="",
        resource=submission.resource,
        created_at_ns=created_at_ns,
        priority=submission.priority,
        tags=submission.tags,
        allow_preempt_self=submission.tags[FOREIGN_TAG] != _STATIC,
    )
    allocation = Allocation(ask, entry.node_id, state.now_ns(), entry.instance_type)
    if key not in state.foreign:
        state.events.note_on_node(ChangeType.ADD, allocation)
    state.foreign[key] = allocation
    state.nodes.give_unscored(entry, entry.node.put_foreign(allocation))
    return None


def foreign_name_refusal(submission: AllocationSubmission) -> str | None:
    """Return which name in a foreign allocation is not one, `None` if all are."""
    return (
        id_refusal("the key of a foreign allocation", submission.allocation_key)
        or names_refusal("a resource type of a foreign allocation", submission.resource)
        or names_refusal("a tag of a foreign allocation", submission.tags)
    )


def remove_foreign(state: PartitionState, key: str) -> None:
    """Remove a foreign allocation; one that is not known is gone already."""
    allocation = state.foreign.pop(key, None)
    entry = state.nodes.get(allocation.node_id) if allocation is not None else None
    if entry is not None and allocation is not None:
        state.events.note_on_node(ChangeType.REMOVE, allocation)
        state.nodes.give_unscored(entry, entry.node.remove_foreign(key))
