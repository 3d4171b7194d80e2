"""Histograms of durations: how often one was at most so long, as plain integers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

__all__ = ["BOUNDS_NS", "Histogram", "HistogramFigures", "merged"]

BOUNDS_NS: Final = tuple(10**power for power in range(5, 13))
"""The upper bounds of the buckets: 0.1 ms, 1 ms, ... to 1,000 s; a last bucket has what took longer."""


class HistogramFigures(NamedTuple):
    """What a histogram has counted, as of one moment."""

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
