"""How much of something is in use over virtual time: an exact step function of whole numbers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import final


@final
class StepFunction:
    """A quantity that changes at moments of virtual time and starts at zero.

    Several changes at one moment are one step: only the value at its end counts.
    """

    __slots__ = ("_moments_ns", "_values")

    def __init__(self) -> None:
        self._moments_ns = [0]
        self._values = [0]

    @property
    def value(self) -> int:
        """The value after the last change."""
        return self._values[-1]

    @property
    def peak(self) -> int:
        """The largest value that it had at the end of a moment."""
        return max(self._values)

    def deltas(self) -> Iterator[tuple[int, int]]:
        """Yield every change: when, and by how much."""
        before = 0
        for at_ns, value in zip(self._moments_ns, self._values, strict=True):
            yield at_ns, value - before
            before = value

    def change(self, at_ns: int, delta: int) -> None:
        """Add a delta from a moment on; moments never go back."""
        assert at_ns >= self._moments_ns[-1], "virtual time does not go back"
        if at_ns == self._moments_ns[-1]:
            self._values[-1] += delta
            return
        self._moments_ns.append(at_ns)
        self._values.append(self._values[-1] + delta)

    def integrals(self, borders_ns: list[int]) -> list[int]:
        """Return the integral between each border and the next, in quantity times nanoseconds.

        The borders must not decrease, and the first must not be below zero.
        """
        moments_ns, values = self._moments_ns, self._values
        last = len(moments_ns) - 1
        results = []
        index = 0
        for start_ns, end_ns in pairwise(borders_ns):
            while index < last and moments_ns[index + 1] <= start_ns:
                index += 1
            total = 0
            position_ns = start_ns
            while index < last and moments_ns[index + 1] < end_ns:
                total += values[index] * (moments_ns[index + 1] - position_ns)
                index += 1
                position_ns = moments_ns[index]
            results.append(total + values[index] * (end_ns - position_ns))
        return results


def sum_of(parts: list[StepFunction]) -> StepFunction:
    """Return the sum of step functions."""
    total = StepFunction()
    for at_ns, delta in heapq.merge(*(part.deltas() for part in parts)):
        total.change(at_ns, delta)
    return total


def permille_by_interval(
    used: StepFunction, capacity: StepFunction, *, end_ns: int, intervals: int
) -> tuple[int, ...]:
    """Return the mean use of a capacity in each interval from zero to an end, in thousandths.

    A simulation that ends at the moment it began has one interval without length: its use at that moment.
    """
    if end_ns == 0:
        return (permille(used.value, capacity.value),)
    intervals = min(intervals, end_ns)
    borders_ns = [end_ns * number // intervals for number in range(intervals + 1)]
    pairs = zip(used.integrals(borders_ns), capacity.integrals(borders_ns), strict=True)
    return tuple(permille(part, whole) for part, whole in pairs)


def permille(part: int, whole: int) -> int:
    """Return a part in thousandths of the whole, rounded to the nearest, half up; 0 of nothing."""
    return (part * 2000 + whole) // (whole * 2) if whole else 0
