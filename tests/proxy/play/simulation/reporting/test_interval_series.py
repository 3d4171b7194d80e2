from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.play.simulation.reporting.figures import INTERVALS_MAX, Gauge, Intervals

SECOND = 10**9
_AMOUNTS = st.tuples(st.integers(1, 9), st.integers(0, 5_000), st.integers(0, 5_000))


def test_an_amount_is_counted_in_the_intervals_that_it_touches() -> None:
    """Three for two and a half seconds, from the middle of the second one."""
    series = Intervals().series()
    series.add(3, SECOND + SECOND // 2, 4 * SECOND)

    assert [0, 3 * SECOND // 2, 3 * SECOND, 3 * SECOND, 0] == series.integrals()[:5]


def test_intervals_double_when_time_goes_on() -> None:
    """However long it takes there are no more of them; nothing is lost."""
    intervals = Intervals()
    series = intervals.series()
    series.add(1, 0, 3 * SECOND)
    series.add(2, 0, 1_000 * SECOND)

    assert 8 * SECOND == intervals.width_ns
    assert INTERVALS_MAX == len(series.integrals())
    assert [19 * SECOND, 16 * SECOND] == series.integrals()[:2]
    assert 2_003 * SECOND == sum(series.integrals())


@given(st.lists(_AMOUNTS, max_size=20))
def test_the_integrals_are_those_of_the_amounts_in_any_order(amounts: list[tuple[int, int, int]]) -> None:
    """Compared with counting every second."""
    intervals = Intervals()
    series = intervals.series()
    expected = [0] * (5_000 + 1)
    for amount, one, other in amounts:
        start, end = sorted((one, other))
        series.add(amount, start * SECOND, end * SECOND)
        for second in range(start, end):
            expected[second] += amount * SECOND

    width = intervals.width_ns // SECOND
    sums = [sum(expected[at * width : (at + 1) * width]) for at in range(INTERVALS_MAX)]

    assert sums == series.integrals()


def test_a_gauge_keeps_its_value_until_it_changes() -> None:
    """The last value holds to the end."""
    gauge = Gauge(Intervals().series())
    gauge.change(SECOND, 4)
    gauge.change(3 * SECOND, -3)

    assert [0, 4 * SECOND, 4 * SECOND, SECOND, SECOND, 0] == gauge.integrals(5 * SECOND)[:6]


def test_the_borders_end_at_the_end() -> None:
    """The last interval is shorter; a simulation of no time has one without length."""
    assert [0, SECOND, 2 * SECOND, 2 * SECOND + 5] == Intervals().borders_ns(2 * SECOND + 5)
    assert [0, 0] == Intervals().borders_ns(0)
