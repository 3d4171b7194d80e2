from __future__ import annotations

import itertools
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.proxy.play.simulation.accounts import StepFunction, permille, permille_by_interval, sum_of


def _steps(*changes: tuple[int, int]) -> StepFunction:
    function = StepFunction()
    for at_ns, delta in changes:
        function.change(at_ns, delta)
    return function


def test_an_integral_adds_up_the_steps_between_two_moments() -> None:
    """2 from 0 on and 5 from 10 on make 2*5 + 5*10 between 5 and 20."""
    function = _steps((0, 2), (10, 3))

    assert [10 + 50] == function.integrals([5, 20])


def test_changes_at_one_moment_are_one_step() -> None:
    """What is taken and given back at once was never in use."""
    function = _steps((0, 2), (10, 5), (10, -5))

    assert (2, 2) == (function.peak, function.value)


_HALF: Final = (_steps((0, 0), (5, 4)), _steps((0, 8)))


@pytest.mark.parametrize(
    ("used", "capacity", "end_ns", "intervals", "expected"),
    [
        pytest.param(*_HALF, 10, 2, (0, 500), id="the share of an interval is its mean over time"),
        pytest.param(*_HALF, 10, 1, (250,), id="half of it used for half of the interval is a quarter"),
        pytest.param(
            _steps((0, 3)), _steps((0, 4)), 0, 60, (750,), id="without length: the share of its moment"
        ),
        pytest.param(StepFunction(), StepFunction(), 10, 2, (0, 0), id="a share of no capacity is zero"),
        pytest.param(_steps((0, 1)), _steps((0, 1)), 3, 60, (1000,) * 3, id="an interval has a nanosecond"),
    ],
)
def test_a_share_is_computed_for_each_interval(
    used: StepFunction, capacity: StepFunction, end_ns: int, intervals: int, expected: tuple[int, ...]
) -> None:
    """In thousandths of the capacity."""
    assert expected == permille_by_interval(used, capacity, end_ns=end_ns, intervals=intervals)


_CHANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(-9, 9)), max_size=20).map(sorted)


@settings(max_examples=50)
@given(_CHANGES, st.lists(st.integers(0, 60), min_size=2, max_size=8).map(sorted))
def test_an_integral_is_the_sum_of_every_single_nanosecond(
    changes: list[tuple[int, int]], borders: list[int]
) -> None:
    """Borders may lie anywhere, also beyond the last change."""
    values = [sum(delta for at, delta in changes if at <= moment) for moment in range(61)]
    expected = [sum(values[start:end]) for start, end in itertools.pairwise(borders)]

    assert expected == _steps(*changes).integrals(borders)


@settings(max_examples=50)
@given(_CHANGES, _CHANGES)
def test_a_sum_has_the_sum_of_the_integrals(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    """Adding first or integrating first is the same."""
    parts = [_steps(*left), _steps(*right)]
    expected = sum(part.integrals([3, 40])[0] for part in parts)

    assert [expected] == sum_of(parts).integrals([3, 40])


def test_shares_are_rounded() -> None:
    """To the nearest thousandth, half of one up; of nothing there is no share."""
    assert [333, 667, 1, 0, 0] == [permille(*pair) for pair in ((1, 3), (2, 3), (1, 2000), (1, 2001), (1, 0))]
    assert (667,) == permille_by_interval(_steps((0, 2)), _steps((0, 3)), end_ns=10, intervals=1)
    assert (667,) == permille_by_interval(_steps((0, 2)), _steps((0, 3)), end_ns=0, intervals=1)
