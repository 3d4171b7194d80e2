"""How long the cycles of a partition take, and the parts of some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, final

from .histograms import Histogram, HistogramFigures

__all__ = ["DETAILED_EVERY", "CycleTimes", "TimedPart"]

DETAILED_EVERY: Final = 32
"""Of so many cycles the parts of one are timed: to time them takes as long as a tenth of a short cycle."""


class TimedPart(Enum):
    """What is timed."""

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
