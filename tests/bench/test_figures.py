from __future__ import annotations

import pytest
from bench_fakes import some_figures
from figures import (
    Backlog,
    Churn,
    Figures,
    figures_from_json,
    figures_to_json,
    median_figures,
    percentile,
)
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "figures",
    [
        some_figures(engine="direct"),
        some_figures(
            pace=None, churn=Churn(per_second=1.5, latency_p50_seconds=0.1, latency_p99_seconds=0.3)
        ),
        some_figures(
            pace=None,
            backlog=Backlog(waiting_cpu_share=0.0, reaction_median_seconds=0.1, reaction_max_seconds=0.2),
        ),
    ],
    ids=["pace", "churn", "backlog"],
)
def test_figures_come_out_of_json_as_they_went_in(figures: Figures) -> None:
    """They travel from the measuring process to the one that reports, which reads a pipe line by line."""
    assert figures == figures_from_json(figures_to_json(figures))
    assert "\n" not in figures_to_json(figures)


def a_backlog(reaction_seconds: float) -> Figures:
    backlog = Backlog(
        waiting_cpu_share=0.0, reaction_median_seconds=reaction_seconds, reaction_max_seconds=9.0
    )
    return some_figures(pace=None, backlog=backlog)


@pytest.mark.parametrize(
    ("slow", "middle", "fast"),
    [
        pytest.param(*(some_figures(pace=pace) for pace in (1_000.0, 2_000.0, 3_000.0)), id="by the pace"),
        pytest.param(*map(a_backlog, (0.3, 0.2, 0.1)), id="backlogs by their reaction"),
    ],
)
def test_the_run_in_the_middle_is_chosen(slow: Figures, middle: Figures, fast: Figures) -> None:
    """Of two it is the slower one: an even number of runs gives no better figure."""
    assert middle == median_figures([fast, slow, middle])
    assert slow == median_figures([fast, slow])


def test_a_percentile_is_one_of_the_values() -> None:
    """Of a hundred values the 99th is the one that a single value exceeds."""
    values = [float(number) for number in range(100, 0, -1)]

    assert percentile(values, 99) == 99.0
    assert percentile(values, 50) == 50.0
    assert percentile([7.0], 99) == 7.0


@settings(max_examples=50)
@given(values=st.lists(st.floats(0, 100), min_size=1, max_size=30), percent=st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(
    values: list[float], percent: int
) -> None:
    """This is the definition, counted out."""
    result = percentile(values, percent)

    needed = len(values) * percent / 100
    assert sum(value <= result for value in values) >= needed
    assert sum(value < result for value in values) < needed
