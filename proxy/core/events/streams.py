"""A stream of events: a place in the ring, from which one reader reads on.

The reader's queue is the ring itself, so that a stream costs the scheduler nothing, has no gap and gives
nothing twice. A reader that is slower than the ring is overwritten is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, final

from ....model.values.events import EventRecord
from .ring import FactRing, records_from

LOOK_INTERVAL_SECONDS: Final = 0.05
"""How often a stream that waits looks for new events: to wake it would cost the scheduler more."""
_READ_MAX: Final = 1000
"""How many records are read at a time."""
KEPT_MAX: Final = 8_192
"""How many records are kept; readers that are further behind have theirs made for them alone."""


@final
class EventStream:
    """The events of a scheduler, one after the other; one thread reads.

    Args:
        recent: Where they are read.
        next_id: The id of the first one.
        ended: Called once, when the stream is over.
        host: Where the reader is, if it is not in this process.
        created_ns: When it began, nanoseconds since 1970.
    """

    def __init__(
        self,
        recent: RecentRecords,
        next_id: int,
        ended: Callable[[EventStream], None],
        *,
        host: str | None = None,
        created_ns: int = 0,
    ) -> None:
        self.host = host
        self.created_ns = created_ns
        self._recent = recent
        self._next_id = next_id
        self._ended = ended
        self._read: list[EventRecord] = []
        self._end_id: int | None = None
        self._finished = threading.Event()
        self._is_over = False
        self.lost = 0
        """How many events were overwritten before they were read; then the stream is over."""

    @property
    def next_id(self) -> int:
        """The id of the event that `take` returns first."""
        return self._next_id - len(self._read)

    @property
    def behind(self) -> float:
        """How much of the room for events those have that it has not given yet; above 1 it loses some."""
        return (self._recent.bounds()[1] - self.next_id) / self._recent.capacity

    @property
    def is_over(self) -> bool:
        """Whether it has ended: it was closed, the scheduler has stopped, or it was too slow."""
        return self._is_over

    def take(self, count_max: int = _READ_MAX) -> list[EventRecord]:
        """Return the next events that are there already, `count_max` at most; it does not wait."""
        if self._read:
            taken, self._read = self._read[:count_max], self._read[count_max:]
            return taken
        if self._is_over:
            return []
        end_id = self._end_id
        found = self._recent.read(self._next_id, count_max)
        if self._next_id < found.lowest_id:
            self.lost = found.next_id - self._next_id
            self.close()
            return []
        records = found.records
        if end_id is not None:
            records = records[: max(0, end_id - self._next_id)]
        self._next_id += len(records)
        if end_id is not None and self._next_id >= end_id:
            self.close()
        return records

    def next(self, timeout_seconds: float) -> EventRecord | None:
        """Return the next event, `None` if none comes in this time or the stream is over."""
        deadline = time.monotonic() + timeout_seconds
        while not self._read:
            self._read = self.take()
            left = deadline - time.monotonic()
            if self._read or self._is_over or left <= 0:
                break
            if self._finished.wait(min(left, LOOK_INTERVAL_SECONDS)) and self._end_id is None:
                break
        return self._read.pop(0) if self._read else None

    def __iter__(self) -> Iterator[EventRecord]:
        """Give all events until the stream is over."""
        while not self._is_over:
            record = self.next(1.0)
            if record is not None:
                yield record
        yield from self._read

    def finish(self) -> None:
        """Give the events up to now, then end; for the scheduler, when it stops."""
        self._end_id = self._recent.bounds()[1]
        self._finished.set()

    def close(self) -> None:
        """End the stream."""
        if not self._is_over:
            self._is_over = True
            self._finished.set()
            self._ended(self)


class Records(NamedTuple):
    """Neighbouring records, and how far the ring goes."""

    lowest_id: int
    next_id: int
    records: list[EventRecord]


@final
class RecentRecords:
    """Makes records of the facts of a ring; any thread may call."""

    def __init__(self, ring: FactRing) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._first = 0
        self._kept: list[EventRecord] = []

    def bounds(self) -> tuple[int, int]:
        """Return the lowest id that is kept, and the next one that will be given."""
        return self._ring.bounds()

    @property
    def capacity(self) -> int:
        """Of how many records ids are kept."""
        return self._ring.capacity

    def read(self, start: int, count: int) -> Records:
        """Return up to `count` records from an id on, all that there are; none if that id is not kept."""
        lowest_id, next_id = self._ring.bounds()
        if not lowest_id <= start < next_id:
            return Records(lowest_id, next_id, [])
        with self._lock:
            if start < self._first:
                return Records(lowest_id, next_id, self._made(start, count))
            if not start <= self._first + len(self._kept):
                self._first, self._kept = start, []
            made_up_to = self._first + len(self._kept)
            missing = min(start + count, next_id) - made_up_to
            if missing > 0:
                self._kept += self._made(made_up_to, missing)
            place = start - self._first
            records = self._kept[place : place + count]
            self._trim()
            return Records(lowest_id, next_id, records)

    def _made(self, start: int, count: int) -> list[EventRecord]:
        return records_from(self._ring.read(start, count), start, count)

    def _trim(self) -> None:
        surplus = len(self._kept) - KEPT_MAX
        if surplus > KEPT_MAX:  # Seldom: it moves all others.
            del self._kept[:surplus]
            self._first += surplus
