"""The timers of a clock in the order in which they are due, without those that were cancelled.

Timers are in a heap. One that is cancelled stays there until it comes to the front, or until more than half
of the heap is cancelled, which is then rebuilt. So the heap never holds more than twice what waits, and
cancelling needs no search.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TypeAlias, final

from .host import TimerAction, TimerKey, timer_key

DueTimer: TypeAlias = "tuple[int, int, str, TimerAction]"
"""When it is due in nanoseconds since 1970, its number, the partition it is for, and what is to be done."""


@final
class DueTimers:
    """Timers in order of their times, then of their making."""

    __slots__ = ("_cancelled", "_heap", "_serial", "_waiting")

    def __init__(self) -> None:
        self._heap: list[DueTimer] = []
        self._serial = 0
        self._waiting: dict[tuple[str, TimerKey], tuple[int, ...]] = {}
        """The numbers of what waits under a key: one, as a rule."""
        self._cancelled: set[int] = set()
        """The numbers of what is cancelled and still in the heap."""

    def __len__(self) -> int:
        return len(self._heap) - len(self._cancelled)

    def __iter__(self) -> Iterator[DueTimer]:
        """Walk over what waits, in no order."""
        return (timer for timer in self._heap if timer[1] not in self._cancelled)

    def add(self, due_ns: int, partition: str, action: TimerAction) -> bool:
        """Add a timer; return whether it is the next one."""
        self._serial += 1
        timer = (due_ns, self._serial, partition, action)
        key = (partition, timer_key(action))
        self._waiting[key] = (*self._waiting.get(key, ()), self._serial)
        heappush(self._heap, timer)
        return self._heap[0][1] == self._serial

    def cancel(self, partition: str, key: TimerKey) -> None:
        """Cancel what waits under a key of a partition, if anything does."""
        self._cancelled.update(self._waiting.pop((partition, key), ()))
        if 2 * len(self._cancelled) > len(self._heap):
            self._keep(list(self))

    def forget(self, partition: str) -> None:
        """Cancel all timers of a partition."""
        self._keep([timer for timer in self if timer[2] != partition])
        self._waiting = {key: numbers for key, numbers in self._waiting.items() if key[0] != partition}

    def next_due_ns(self) -> int | None:
        """Return when the next timer is due, `None` if none waits."""
        heap = self._heap
        while heap and heap[0][1] in self._cancelled:
            self._cancelled.remove(heappop(heap)[1])
        return heap[0][0] if heap else None

    def pop(self) -> DueTimer:
        """Take the next timer; there must be one."""
        due_ns = self.next_due_ns()
        assert due_ns is not None, "no timer waits: please report"
        timer = heappop(self._heap)
        key = (timer[2], timer_key(timer[3]))
        left = tuple(number for number in self._waiting.pop(key) if number != timer[1])
        if left:
            self._waiting[key] = left
        return timer

    def clear(self) -> None:
        """Have nothing come."""
        self._keep([])
        self._waiting = {}

    def _keep(self, timers: list[DueTimer]) -> None:
        """Have these timers alone in the heap."""
        heapify(timers)
        self._heap = timers
        self._cancelled = set()
