"""The newest records of the ring, each made once for all streams that read them."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple, final

from ....model.values.events import EventRecord
from .expanding import records_from
from .ring import FactRing

KEPT_MAX: Final = 8_192
"""How many records are kept; readers that are further behind have theirs made for them alone."""


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
