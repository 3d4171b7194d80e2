"""The ring of facts: the newest of them, and the ids of the records that they stand for.

Partitions report into a *channel*, which costs an append. When it has `_FOLD_AT` facts, or a reader comes,
they are folded into the ring: they get the next ids, one a record, from 0. The oldest ids are overwritten
when there are more than the capacity. Nothing here makes a record.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, final

from ....model.resources.resource import Resource, describe
from ....model.values.allocation import Allocation, Ask
from ....model.values.events import ChangeDetail, ChangeType, EventRecord, EventType
from ....model.values.facts import (
    AsksAddedFact,
    AsksDroppedFact,
    EndedFact,
    Fact,
    HeadroomFact,
    LeftFact,
    PlacedFact,
    SingleFact,
    SwappedFact,
    UnschedulableFact,
    UsageFact,
)
from ....model.values.messages import TerminationType

CHANNEL_FACTS_MAX: Final = 100_000
"""How many facts wait for a turn of the ring before new ones are dropped: only a lock that is held for
long can make this many wait."""
_FOLD_AT: Final = 1024
_BLOCK_FACTS_MAX: Final = 1024
MESSAGE_BYTES_MAX: Final = 1024
_CUT: Final = "..."
_ENDS: Final = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: ChangeDetail.ALLOC_NODEREMOVED,
    TerminationType.STOPPED_BY_RM: ChangeDetail.ALLOC_CANCEL,
    TerminationType.TIMEOUT: ChangeDetail.ALLOC_TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: ChangeDetail.ALLOC_PREEMPT,
    TerminationType.PLACEHOLDER_REPLACED: ChangeDetail.ALLOC_REPLACED,
    TerminationType.SCHEDULING_FAILED_ON_RM: ChangeDetail.ALLOC_CANCEL,
}
_ADD: Final = ChangeType.ADD
_REMOVE: Final = ChangeType.REMOVE


@final
class _FactBlock:
    """Neighbouring facts; the first record of them has the id `first`."""

    __slots__ = ("facts", "first", "records")

    def __init__(self, first: int) -> None:
        self.first = first
        self.records = 0
        self.facts: list[Fact] = []


class Span(NamedTuple):
    """Some facts of the ring; the first record of the first fact has the id `first`."""

    lowest_id: int
    next_id: int
    first: int
    facts: list[Fact]


@final
class FactRing:
    """The newest facts; any thread may call.

    Args:
        capacity: Of how many records ids are kept.
    """

    def __init__(self, capacity: int) -> None:
        self._lock = threading.Lock()
        self._channel: deque[Fact] = deque()
        self._blocks: deque[_FactBlock] = deque()
        self._capacity = capacity
        self._next_id = 0
        self._lowest_id = 0
        self.dropped = 0
        """How many records found no place in the channel."""
        self.report: Final = self._reporter()
        """Take a fact; it never waits."""

    def _reporter(self) -> Callable[[Fact], None]:
        """Return the function that reports: a closure, which is quicker than a method."""
        channel = self._channel
        append = channel.append
        fold = self._fold_nowait

        def report(fact: Fact) -> None:
            append(fact)
            if len(channel) >= _FOLD_AT:
                fold()

        return report

    def _fold_nowait(self) -> None:
        """Fold the channel if no other thread uses the ring now; drop the newest fact if too many wait."""
        if self._lock.acquire(blocking=False):
            try:
                self._fold()
            finally:
                self._lock.release()
        elif len(self._channel) > CHANNEL_FACTS_MAX:
            self.dropped += self._channel.pop()[0]

    def _fold(self) -> None:
        channel, blocks = self._channel, self._blocks
        left = len(channel)  # Later facts wait: otherwise busy partitions would keep a reader here.
        while left > 0:
            if not blocks or len(blocks[-1].facts) >= _BLOCK_FACTS_MAX:
                blocks.append(_FactBlock(self._next_id))
            block = blocks[-1]
            count = min(left, _BLOCK_FACTS_MAX - len(block.facts))
            facts = [channel.popleft() for _ in range(count)]
            records = sum([fact[0] for fact in facts])
            block.facts += facts
            block.records += records
            self._next_id += records
            left -= count
        self._trim()

    def _trim(self) -> None:
        self._lowest_id = max(self._lowest_id, self._next_id - self._capacity)
        blocks = self._blocks
        while blocks and blocks[0].first + blocks[0].records <= self._lowest_id:
            blocks.popleft()

    # -------------------------------------------------------------------------------------- reading

    def set_capacity(self, capacity: int) -> None:
        """Change the capacity; the newest records and their ids are kept."""
        with self._lock:
            self._fold()
            self._capacity = capacity
            self._trim()

    @property
    def capacity(self) -> int:
        """Of how many records ids are kept."""
        return self._capacity

    def bounds(self) -> tuple[int, int]:
        """Return the lowest id that is kept, and the next one that will be given."""
        with self._lock:
            self._fold()
            return self._lowest_id, self._next_id

    def read(self, start: int, count: int) -> Span:
        """Return the facts of up to `count` records from an id on; none if that id is not kept.

        The first fact may begin before `start`, the last one may end after the count.
        """
        with self._lock:
            self._fold()
            bounds = self._lowest_id, self._next_id
            if not bounds[0] <= start < bounds[1]:
                return Span(*bounds, start, [])
            return Span(*bounds, *self._facts_from(start, start + count))

    def _facts_from(self, start: int, end: int) -> tuple[int, list[Fact]]:
        first = -1
        found: list[Fact] = []
        for block in self._blocks_from(start):
            if block.first >= end:
                break
            next_id = block.first
            if first >= 0 and next_id + block.records <= end:
                found += block.facts
                continue
            for fact in block.facts:
                if next_id >= end:
                    break
                if next_id + fact[0] > start:
                    first = next_id if first < 0 else first
                    found.append(fact)
                next_id += fact[0]
        return first, found

    def _blocks_from(self, start: int) -> Iterator[_FactBlock]:
        """Walk the blocks from the one with an id on; most readers want the newest ones."""
        later: list[_FactBlock] = []
        for block in reversed(self._blocks):
            later.append(block)
            if block.first <= start:
                break
        return reversed(later)


def message_text(text: str) -> str:
    """Return a message that is no longer than 1024 bytes of UTF-8: one that is ends with `...`."""
    if len(text) * 4 <= MESSAGE_BYTES_MAX:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= MESSAGE_BYTES_MAX:
        return text
    return encoded[: MESSAGE_BYTES_MAX - len(_CUT)].decode(errors="ignore") + _CUT


def expand(fact: Fact) -> Sequence[EventRecord]:
    """Return the records of a fact: as many as its number of records."""
    match fact:
        case PlacedFact():
            records = _placed(fact)
        case EndedFact():
            records = _ended(fact)
        case AsksAddedFact():
            records = [_of_ask(ask, _ADD, ChangeDetail.APP_REQUEST, fact.time_ns) for ask in fact.asks]
        case AsksDroppedFact():
            detail = ChangeDetail.REQUEST_TIMEOUT if fact.timed_out else ChangeDetail.REQUEST_CANCEL
            records = [_of_ask(ask, _REMOVE, detail, fact.time_ns) for ask in fact.asks]
        case SingleFact():
            records = [
                EventRecord(
                    *(fact.type, fact.change, fact.detail, fact.object_id, fact.reference_id),
                    *(message_text(fact.message), fact.resource, fact.time_ns),
                )
            ]
        case _:
            records = _rare(fact)
    return records


def records_from(span: Span, start: int, count: int) -> list[EventRecord]:
    """Return up to `count` records of a part of the ring, from an id on."""
    records: list[EventRecord] = []
    end = start - span.first + count
    for fact in span.facts:
        records += expand(fact)
        if len(records) >= end:
            break
    return records[start - span.first : end]


def _rare(fact: SwappedFact | UsageFact | LeftFact | HeadroomFact | UnschedulableFact) -> list[EventRecord]:
    match fact:
        case SwappedFact():
            records = _swapped(fact)
        case UsageFact():
            records = _usages(fact, _REMOVE, fact.before) + _usages(fact, _ADD, fact.after)
        case LeftFact():
            records = _left(fact)
        case HeadroomFact():
            records = [_of_request(fact.ask, _headroom_text(fact), fact.time_ns)]
        case UnschedulableFact():
            texts = "".join(f"{text} ({times}x); " for text, times in fact.refusals)
            text = f"Unschedulable request '{fact.ask.allocation_key}': {texts}"
            records = [_of_request(fact.ask, text, fact.time_ns)]
    return records


def _placed(fact: PlacedFact) -> list[EventRecord]:
    allocation = fact.allocation
    ask = allocation.ask
    return [
        _on_node(allocation, _ADD, fact.time_ns),
        *_usages(fact, _ADD, ask.resource),
        _of_ask(ask, _ADD, ChangeDetail.APP_ALLOC, fact.time_ns),
    ]


def _ended(fact: EndedFact) -> list[EventRecord]:
    allocation = fact.allocation
    records = [_of_ask(allocation.ask, _REMOVE, _ENDS[fact.termination], fact.time_ns)]
    if fact.on_node:
        records.append(_on_node(allocation, _REMOVE, fact.time_ns))
    return records + _usages(fact, _REMOVE, allocation.ask.resource)


def _swapped(fact: SwappedFact) -> list[EventRecord]:
    placeholder, real = fact.placeholder, fact.real
    records = [
        _of_ask(placeholder.ask, _REMOVE, ChangeDetail.ALLOC_REPLACED, fact.time_ns),
        _of_ask(real.ask, _ADD, ChangeDetail.APP_ALLOC, fact.time_ns),
    ]
    if fact.leaves_node:
        records.append(_on_node(placeholder, _REMOVE, fact.time_ns))
    records += _usages(fact, _REMOVE, placeholder.ask.resource)
    return records + _usages(fact, _ADD, real.ask.resource)


def _left(fact: LeftFact) -> list[EventRecord]:
    name, path = fact.application_id, fact.queue_path
    return [
        EventRecord(EventType.APP, _REMOVE, ChangeDetail.NONE, name, time_ns=fact.time_ns),
        EventRecord(EventType.QUEUE, _REMOVE, ChangeDetail.QUEUE_APP, path, name, time_ns=fact.time_ns),
    ]


def _of_ask(ask: Ask, change: ChangeType, detail: ChangeDetail, time_ns: int) -> EventRecord:
    """Return an event of the application of an ask."""
    return EventRecord(
        EventType.APP, change, detail, ask.application_id, ask.allocation_key, "", ask.resource, time_ns
    )


def _of_request(ask: Ask, text: str, time_ns: int) -> EventRecord:
    return EventRecord(
        *(EventType.REQUEST, ChangeType.NONE, ChangeDetail.NONE, ask.allocation_key, ask.application_id),
        *(message_text(text), ask.resource, time_ns),
    )


def _on_node(allocation: Allocation, change: ChangeType, time_ns: int) -> EventRecord:
    ask = allocation.ask
    return EventRecord(
        *(EventType.NODE, change, ChangeDetail.NODE_ALLOC, allocation.node_id, ask.allocation_key),
        *("", ask.resource, time_ns),
    )


def _usages(
    fact: PlacedFact | EndedFact | SwappedFact | UsageFact, change: ChangeType, resource: Resource
) -> list[EventRecord]:
    """Return the events of the user and of the group."""
    path, time_ns = fact.queue_path, fact.time_ns
    kind, detail = EventType.USERGROUP, ChangeDetail.UG_USER_RESOURCE
    records = [EventRecord(kind, change, detail, fact.user, path, "", resource, time_ns)]
    if fact.group is not None:
        detail = ChangeDetail.UG_GROUP_RESOURCE
        records.append(EventRecord(kind, change, detail, fact.group, path, "", resource, time_ns))
    return records


def _headroom_text(fact: HeadroomFact) -> str:
    ask = fact.ask
    request = f"Request '{ask.allocation_key}'"
    if fact.available is None:
        if fact.queue_path is None:
            return f"{request} fits in the available user quota"
        return f"{request} has become schedulable in queue '{fact.queue_path}'"
    compared = f"(requested {describe(ask.resource)}, available {describe(fact.available)})"
    if fact.queue_path is None:
        return f"{request} exceeds the available user quota {compared}"
    return f"{request} does not fit in queue '{fact.queue_path}' {compared}"
