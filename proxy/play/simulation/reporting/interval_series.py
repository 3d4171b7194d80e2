"""Amounts over virtual time in bounded memory: exact sums for a limited number of equal intervals.

How long a simulation takes is not known before its end. The intervals are one second long at first; when
there would be more than `INTERVALS_MAX`, each two neighbours become one of twice the length. Sums stay exact.
"""

from __future__ import annotations

from typing import Final, final

INTERVALS_MAX: Final = 240
"""An even number: pairs of neighbours become one."""

_FIRST_WIDTH_NS: Final = 10**9


@final
class Intervals:
    """The common length of the intervals of all series of one simulation."""

    def __init__(self) -> None:
        self.width_ns = _FIRST_WIDTH_NS
        self._series: list[IntervalSeries] = []

    def series(self) -> IntervalSeries:
        """Return a new series with these intervals."""
        series = IntervalSeries(self)
        self._series.append(series)
        return series

    def reach(self, at_ns: int) -> None:
        """Make the intervals so long that they reach a moment."""
        while at_ns > self.width_ns * INTERVALS_MAX:
            for series in self._series:
                series.join_neighbours()
            self.width_ns *= 2

    def borders_ns(self, end_ns: int) -> list[int]:
        """Return the borders of the intervals up to an end, the last of which may be shorter."""
        count = max(-(-end_ns // self.width_ns), 1)
        return [min(number * self.width_ns, end_ns) for number in range(count + 1)]


@final
class IntervalSeries:
    """One amount over time, as its integral over each interval: amount times nanoseconds."""

    __slots__ = ("_intervals", "_level_changes", "_parts")

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._parts = [0] * (INTERVALS_MAX + 1)
        # Whole intervals are noted by changes at their borders: a long time costs no more than a short one.
        self._level_changes = [0] * (INTERVALS_MAX + 1)

    def add(self, amount: int, start_ns: int, end_ns: int) -> None:
        """Add an amount that was there from one moment to another; times may come in any order."""
        assert 0 <= start_ns <= end_ns, f"from {start_ns} to {end_ns} is no time"
        if amount == 0 or start_ns == end_ns:
            return
        self._intervals.reach(end_ns)
        width_ns = self._intervals.width_ns
        first, last = start_ns // width_ns, end_ns // width_ns
        if first == last:
            self._parts[first] += amount * (end_ns - start_ns)
            return
        self._parts[first] += amount * ((first + 1) * width_ns - start_ns)
        self._level_changes[first + 1] += amount
        self._level_changes[last] -= amount
        self._parts[last] += amount * (end_ns - last * width_ns)

    def integrals(self) -> list[int]:
        """Return the integral over each interval, `INTERVALS_MAX` of them."""
        level = 0
        sums = []
        for part, change in zip(self._parts, self._level_changes, strict=True):
            level += change
            sums.append(part + level * self._intervals.width_ns)
        return sums[:INTERVALS_MAX]

    def join_neighbours(self) -> None:
        """Make one interval of each two; `Intervals.reach` does it for all series."""
        sums = self.integrals()
        joined = [sums[at] + sums[at + 1] for at in range(0, INTERVALS_MAX, 2)]
        self._parts = joined + [0] * (INTERVALS_MAX + 1 - len(joined))
        self._level_changes = [0] * (INTERVALS_MAX + 1)


@final
class Gauge:
    """An amount that changes at moments, written to a series."""

    __slots__ = ("_series", "_since_ns", "value")

    def __init__(self, series: IntervalSeries) -> None:
        self._series = series
        self._since_ns = 0
        self.value = 0

    def change(self, at_ns: int, delta: int) -> None:
        """Add a delta from a moment on; moments never go back."""
        self._series.add(self.value, self._since_ns, at_ns)
        self._since_ns = at_ns
        self.value += delta

    def integrals(self, end_ns: int) -> list[int]:
        """Return the integral over each interval; the amount stays as it is to the end."""
        self.change(end_ns, 0)
        return self._series.integrals()
