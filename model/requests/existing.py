"""Allocations that exist already by the word of an RM: they are recovered whatever quotas and nodes allow.

Neighbouring ones of one application are recovered in one step: what they use is added up before the queues
and the user are charged, the application answers once, and the RM gets one announcement of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, final

from ..applications.effects import ApplicationState
from ..queues import quota as queue_quota
from ..queues.application_entry import ApplicationEntry
from ..queues.quota import usage_raised
from ..queues.use_order import count_past
from ..resources.resource import Resource, total_of
from ..state.applying import apply
from ..state.charges import (
    count_placed,
    drop_asks,
    drop_reservations,
    end_claim,
    leave_node,
    report_all_placed,
    report_placed,
)
from ..state.partition_state import PartitionState
from ..state.placing import count_accepted
from ..values.allocation import CHECKPOINT_TIME_TAG, PART_MARK, START_TIME_TAG, Allocation, Ask, ask_key_of
from ..values.messages import AllocationPlaced, AllocationsRecovered, AllocationSubmission
from .submission_terms import watch_walltimes

RECOVERED_TOGETHER_MAX: Final = 256
"""How many allocations are recovered in one step at most: so large is an answer to the RM."""
_SECOND_NS: Final = 1_000_000_000
_STARTS_AT_ONCE: Final = frozenset(
    {ApplicationState.NEW, ApplicationState.ACCEPTED, ApplicationState.RUNNING},
)
"""The states of applications that run from their first allocation on: the others change nothing more."""


@final
class ExistingBatch:
    """Consecutive allocations of one application, each with a key that is new."""

    def __init__(self, state: PartitionState) -> None:
        self.now_ns = state.now_ns()
        self._state = state
        self._entry: ApplicationEntry | None = None
        self._asks: dict[str, Ask] = {}
        """By key."""
        self._node_ids: list[str] = []
        """Where the allocations of the asks are, in their order."""

    def takes(self, submission: AllocationSubmission) -> bool:
        """Return whether an allocation may be kept; what cannot be together with it is recovered first.

        Others are recovered on their own: placeholders, of which any may start a gang, parts of an ask, and
        what may be there already, or be waiting.
        """
        key = submission.allocation_key
        entry = self._state.entries.get(submission.application_id)
        if entry is not self._entry or key in self._asks:
            self.flush()
        is_taken = (
            entry is not None
            and not submission.placeholder
            and entry.facts.state in _STARTS_AT_ONCE
            and PART_MARK not in key
            and not self._state.keys.claimant_of(key)
        )
        if not is_taken:
            self.flush()
        return is_taken

    def add(self, ask: Ask, node_id: str) -> None:
        """Keep an allocation that the batch takes, and that is not refused."""
        if self._entry is None:
            self._entry = self._state.entries[ask.application_id]
        self._asks[ask.allocation_key] = ask
        self._node_ids.append(node_id)
        if len(self._asks) >= RECOVERED_TOGETHER_MAX:
            self.flush()

    def flush(self) -> None:
        """Recover the allocations that are kept."""
        entry = self._entry
        if entry is None:
            return
        asks, node_ids = [*self._asks.values()], self._node_ids
        self._entry, self._asks, self._node_ids = None, {}, []
        recover(self._state, entry, asks, node_ids)


def recover(
    state: PartitionState, entry: ApplicationEntry, asks: Sequence[Ask], node_ids: Sequence[str]
) -> None:
    """Recover allocations that exist, each an ask and its node: whatever the quotas and the room there.

    Several never include a placeholder or a part of an ask. All of them are recovered, or none if
    something breaks.
    """
    now_ns = state.now_ns()
    allocations: list[Allocation] = []
    answer = None
    try:
        for ask, node_id in zip(asks, node_ids, strict=True):
            allocations.append(_put_on_node(state, ask, node_id, now_ns))
        answer = entry.application.allocations.recover(allocations, now_ns)
    finally:
        if answer is None:
            for allocation in allocations:
                leave_node(state, allocation)
    if entry.waits is not None:
        state.dependencies.start(entry)
    name, path = entry.application_id, entry.queue.path
    for ask in asks:
        # Once the application has it: a key that is not in use may be forgotten.
        state.keys.claim(ask.allocation_key, name)
    first = asks[0]
    total = first.resource if len(asks) == 1 else total_of([ask.resource for ask in asks])
    charge(state, entry, total)
    _count_past(state, entry, allocations, now_ns)
    group = state.limits.increase(path, name, entry.user, total)
    state.placed.count_existing(len(asks), path, placeholders=int(first.placeholder))
    report_all_placed(state, entry, allocations, answer, group)
    apply(state, entry, answer)
    count_accepted(entry)  # With placeholders alone it is still Accepted.
    if len(asks) > 1:
        state.host.announce(AllocationsRecovered(tuple(allocations)))
    else:
        state.host.announce(AllocationPlaced(allocations[0]))
    if entry.queue.settings.runtime.ends_overruns:
        watch_walltimes(state, entry, [ask.allocation_key for ask in asks])
    for ask in asks:
        note_checkpoint(entry, ask.allocation_key, ask.tags)
    if PART_MARK in first.allocation_key:
        _note_part(state, entry, first.allocation_key)


def _count_past(
    state: PartitionState, entry: ApplicationEntry, allocations: Sequence[Allocation], now_ns: int
) -> None:
    """Let what runs already count in the fair share since it started, after what is counted of it anyway."""
    known_ns = state.host.kept_use.at_ns
    runs = [(max(each.bound_at_ns, known_ns), each.ask.resource) for each in allocations]
    if all(since_ns >= now_ns for since_ns, _ in runs):
        return
    for queue in entry.queue.above:
        count_past(queue, runs, now_ns)
    users = entry.queue.entries.users
    if users is not None:
        users.count_past(entry.user.name, runs, now_ns)


def _note_part(state: PartitionState, entry: ApplicationEntry, key: str) -> None:
    """Count an allocation that the RM has named for its ask: if others of the ask wait, one less does."""
    name = entry.application_id
    state.parts.note(name, key)
    withdraw_waiting(state, entry, state.parts.of(name, ask_key_of(key)), 1)


def charge(state: PartitionState, entry: ApplicationEntry, resource: Resource) -> None:
    """Charge the queues whatever their quotas, and note which of them are above their maximum then."""
    queue_quota.charge(entry.queue, resource)
    if state.quota_preemption_enabled:
        usage_raised(entry.queue, state.now_ns())


def _put_on_node(state: PartitionState, ask: Ask, node_id: str, now_ns: int) -> Allocation:
    node = state.nodes.get(node_id)
    assert node is not None, "the caller has looked"
    allocation = Allocation(ask, node_id, _started_at_ns(ask, now_ns), node.instance_type)
    state.nodes.give(node, node.node.add(allocation))
    return allocation


def _started_at_ns(ask: Ask, now_ns: int) -> int:
    """Return since when an existing allocation runs: now, unless its tags name an earlier time."""
    started = ask.tags.get(START_TIME_TAG)
    if started is None or not re.fullmatch(r"[0-9]{1,10}", started):
        return now_ns
    return min(now_ns, int(started) * _SECOND_NS)


def note_checkpoint(entry: ApplicationEntry, key: str, tags: Mapping[str, str]) -> None:
    """Note when the work of an allocation was saved, if its RM reports it."""
    saved = tags.get(CHECKPOINT_TIME_TAG)
    if saved is not None and re.fullmatch(r"[0-9]{1,10}", saved):
        entry.application.allocations.note_checkpoint(key, int(saved) * _SECOND_NS)


def place_externally(
    state: PartitionState, entry: ApplicationEntry, submission: AllocationSubmission
) -> None:
    """Record that the RM has placed a waiting ask itself."""
    record = entry.application.asks.record(submission.allocation_key)
    assert record is not None, "the caller has looked"
    ask = record.ask
    allocation = _put_on_node(state, ask, submission.node_id, state.now_ns())
    answer = entry.application.allocations.try_place(allocation, state.now_ns())
    assert answer is not None, "the ask waits: please report"
    charge(state, entry, ask.resource)
    entry.remove_pending(ask)
    report_placed(state, entry, allocation, answer, count_placed(state, entry, allocation))
    entry.held = None  # The RM has started it.
    if entry.waits is not None:
        state.dependencies.start(entry)
    end_claim(state, ask.allocation_key)
    drop_reservations(state, answer.reservations)
    apply(state, entry, answer)
    count_accepted(entry)
    state.host.announce(AllocationPlaced(allocation))


def withdraw_ask(state: PartitionState, entry: ApplicationEntry, key: str) -> None:
    """Drop an ask, whether it waits or its allocation has just ended."""
    if entry.application_id not in state.entries:
        return
    answer = entry.application.asks.remove(key, state.now_ns())
    drop_asks(state, entry, answer)
    apply(state, entry, answer)


def withdraw_waiting(
    state: PartitionState, entry: ApplicationEntry, keys: Sequence[str], count: int | None = None
) -> list[str]:
    """Drop those of the asks that wait, the last `count` of them if that is given; return what is left."""
    dropped: set[str] = set()
    for key in reversed(keys):
        if len(dropped) == count:
            break
        record = entry.application.asks.record(key)
        if record is not None and not record.placed:
            withdraw_ask(state, entry, key)
            dropped.add(key)
    return [key for key in keys if key not in dropped]
