"""The ring of facts: the newest of them, and the ids of the records that they stand for.

Partitions report into a *channel*, which costs an append. When it has `_FOLD_AT` facts, or a reader comes,
they are folded into the ring: they get the next ids, one a record, from 0. The oldest ids are overwritten
when there are more than the capacity. Nothing here makes a record.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, final

from ....model.values.facts import Fact

CHANNEL_FACTS_MAX: Final = 100_000
"""How many facts wait for a turn of the ring before new ones are dropped: only a lock that is held for
long can make so many wait."""
_FOLD_AT: Final = 1024
_BLOCK_FACTS_MAX: Final = 1024


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
        left = len(channel)  # What comes meanwhile waits: otherwise busy partitions would keep a reader here.
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
