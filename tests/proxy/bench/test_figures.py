from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.proxy.bench_fakes import some_figures

from licorne.proxy.bench.engine import EngineKind
from licorne.proxy.bench.figures import (
    Backlog,
    Churn,
    Figures,
    figures_from_json,
    figures_to_json,
    median_figures,
    percentile,
)


@pytest.mark.parametrize(
    "figures",
    [
        some_figures(engine=EngineKind.DIRECT),
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


def test_the_ratio_is_taken_to_the_mean_of_the_light_before_and_after() -> None:
    """A machine that slows down meanwhile does so for both."""
    figures = Figures(
        workload="u500",
        engine=EngineKind.ACTORS,
        light_before_per_second=50_000.0,
        light_after_per_second=30_000.0,
        measurement=some_figures(pace=10_000.0).measurement,
    )

    assert figures.ratio_to_light == 0.25


def test_the_pace_of_churn_is_what_is_compared_with_the_light() -> None:
    """Workloads f_* have no other pace; without a pace or without the light there is no ratio."""
    churn = Churn(per_second=4_000.0, latency_p50_seconds=0.1, latency_p99_seconds=0.1)

    assert some_figures(pace=None, churn=churn, light=40_000.0).ratio_to_light == 0.1
    assert some_figures(pace=None).ratio_to_light is None
    assert some_figures(light=None).ratio_to_light is None


def a_backlog(reaction_seconds: float) -> Figures:
    backlog = Backlog(
        waiting_cpu_share=0.0, reaction_median_seconds=reaction_seconds, reaction_max_seconds=9.0
    )
    return some_figures(pace=None, backlog=backlog)


@pytest.mark.parametrize(
    ("slow", "middle", "fast"),
    [
        pytest.param(
            some_figures(pace=30_000.0, light=100_000.0),
            some_figures(pace=20_000.0, light=50_000.0),
            some_figures(pace=10_000.0, light=20_000.0),
            id="by the ratio: a fast run on a fast machine is no better than a slow one on a slow machine",
        ),
        pytest.param(
            *(some_figures(pace=pace, light=None) for pace in (1_000.0, 2_000.0, 3_000.0)),
            id="by the pace, where the light is not installed",
        ),
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


@settings(deadline=None, max_examples=50)
@given(values=st.lists(st.floats(0, 100), min_size=1, max_size=30), percent=st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(
    values: list[float], percent: int
) -> None:
    """This is the definition, counted out."""
    result = percentile(values, percent)

    needed = len(values) * percent / 100
    assert sum(value <= result for value in values) >= needed
    assert sum(value < result for value in values) < needed
