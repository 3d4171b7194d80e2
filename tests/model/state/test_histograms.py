"""Histograms of durations."""

from __future__ import annotations

from licorne.model.state.counters import BOUNDS_NS, Histogram, merged


def test_a_duration_falls_into_the_bucket_whose_bound_it_does_not_exceed() -> None:
    """Exactly at the bound it is still in; beyond the last one there is one bucket more."""
    histogram = Histogram()
    for duration_ns in (0, BOUNDS_NS[0], BOUNDS_NS[0] + 1, BOUNDS_NS[-1], BOUNDS_NS[-1] + 1):
        histogram.add(duration_ns)

    assert (2, 1, 0, 0, 0, 0, 0, 1, 1) == histogram.figures().counts
    assert histogram.figures().durations == 5


def test_a_duration_below_zero_counts_as_none() -> None:
    """An ask may be created later than now: the clock of its resource manager is another one."""
    histogram = Histogram()
    histogram.add(-5)

    assert (1, 0) == (histogram.figures().counts[0], histogram.figures().total_ns)


def test_histograms_are_added_up() -> None:
    """None of them is an empty one."""
    one, two = Histogram(), Histogram()
    one.add(1)
    two.add(2)

    assert merged([one.figures(), two.figures()]) == ((2, *[0] * len(BOUNDS_NS)), 3)
    assert merged([]) == ((0,) * (len(BOUNDS_NS) + 1), 0)
