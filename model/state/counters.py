"""The counters of a partition: placements, how long they waited, and how long cycles take."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, final

from ..marks import Marks
from ..values.allocation import Ask

BOUNDS_NS: Final = tuple(10**power for power in range(5, 13))
"""The upper bounds of the buckets: 0.1 ms, 1 ms, ... to 1,000 s; a last bucket has what took longer."""


class HistogramFigures(NamedTuple):
    """The counts of a histogram at one moment."""

    counts: Sequence[int]
    """How many durations fell into each bucket, and at the end how many into none."""
    total_ns: int

    @property
    def durations(self) -> int:
        """How many durations there were."""
        return sum(self.counts)


@final
class Histogram:
    """Counts durations by the bucket that each falls into."""

    __slots__ = ("counts", "total_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        self.total_ns = 0

    def add(self, duration_ns: int) -> None:
        """Count a duration; one below zero, as clocks that differ give it, counts as none."""
        if duration_ns < 0:  # noqa: PLR1730 - `max` takes longer, and each cycle comes here
            duration_ns = 0
        self.counts[bisect_left(BOUNDS_NS, duration_ns)] += 1
        self.total_ns += duration_ns

    def figures(self) -> HistogramFigures:
        """Return what was counted."""
        return HistogramFigures(tuple(self.counts), self.total_ns)


def merged(histograms: Iterable[HistogramFigures]) -> HistogramFigures:
    """Return the sum of histograms; of none, an empty one."""
    rows = [Histogram().figures(), *histograms]
    counts = zip(*(row.counts for row in rows), strict=True)
    return HistogramFigures(tuple(map(sum, counts)), sum(row.total_ns for row in rows))


@final
class PlacedCounts:
    """The allocations of a partition, and how many of them are placeholders."""

    MARKS: Final = Marks(writes=("count", "count_existing", "uncount", "exchange", "forget_queue"))

    def __init__(self) -> None:
        self.allocations = 0
        self.placeholders = 0
        self.waits = Histogram()
        """From the creation of an ask to its placement."""
        self.placed_in: dict[str, int] = {}
        """How many allocations have come to a leaf, by its path; until the leaf is removed."""
        self.ended_in: dict[str, int] = {}
        """How many have ended there."""

    def count(self, ask: Ask, queue_path: str, waited_ns: int | None = None) -> None:
        """Count an ask that was placed in a leaf; one that the RM has placed did not wait."""
        self.allocations += 1
        self.placeholders += ask.placeholder
        if waited_ns is not None:
            self.waits.add(waited_ns)
        self.placed_in[queue_path] = self.placed_in.get(queue_path, 0) + 1

    def count_existing(self, number: int, queue_path: str, *, placeholders: int) -> None:
        """Count allocations of a leaf that were recovered: nothing waited for them."""
        self.allocations += number
        self.placeholders += placeholders
        self.placed_in[queue_path] = self.placed_in.get(queue_path, 0) + number

    def uncount(self, ask: Ask, queue_path: str) -> None:
        """Count an ask no longer whose allocation has ended."""
        self.allocations -= 1
        self.placeholders -= ask.placeholder
        self.ended_in[queue_path] = self.ended_in.get(queue_path, 0) + 1

    def exchange(self) -> None:
        """Count a placeholder as what has taken its place."""
        self.placeholders -= 1

    def forget_queue(self, queue_path: str) -> None:
        """Forget what was counted for a leaf that is removed."""
        self.placed_in.pop(queue_path, None)
        self.ended_in.pop(queue_path, None)


DETAILED_EVERY: Final = 32
"""The parts of one in this many cycles are timed: to time them takes as long as a tenth of a short cycle."""


class TimedPart(Enum):
    """The timed parts."""

    __hash__ = object.__hash__  # That of `Enum` is written in Python, and each cycle asks for it.

    CYCLE = "the cycle"
    RESERVED = "asks with a reservation"
    PLACEHOLDER = "members that replace placeholders"
    REGULAR = "everything else"
    QUEUE_ORDER = "finding the first leaf"
    APPLICATION_ORDER = "finding the first application of a leaf"
    NODE_SEARCH = "finding a node for an ask, and placing it there"
    PREEMPTION = "looking for victims"


@final
class CycleTimes:
    """The histograms of the cycles of one partition.

    Args:
        stopwatch_ns: Returns nanoseconds since any moment; differences decide nothing.
    """

    def __init__(self, stopwatch_ns: Callable[[], int]) -> None:
        self.stopwatch_ns = stopwatch_ns
        self.histograms: Final = {part: Histogram() for part in TimedPart}
        self._until_detailed = 1
        self.detailed = False
        """Whether the parts of the cycle that runs are timed."""

    def begin(self) -> int:
        """Begin a cycle; return the time."""
        self._until_detailed -= 1
        self.detailed = not self._until_detailed
        if self.detailed:
            self._until_detailed = DETAILED_EVERY
        return self.stopwatch_ns()

    def add(self, part: TimedPart, began_ns: int) -> None:
        """Count what began then and ends now."""
        self.histograms[part].add(self.stopwatch_ns() - began_ns)

    def figures(self) -> Mapping[TimedPart, HistogramFigures]:
        """Return what was counted."""
        return {part: histogram.figures() for part, histogram in self.histograms.items()}
