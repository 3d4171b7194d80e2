from __future__ import annotations

import pytest
from support.proxy.bench_fakes import some_figures

from licorne.proxy.bench.engine import Engine
from licorne.proxy.bench.targets import QUOTED, Comparison, comparisons
from licorne.proxy.bench.workloads import WORKLOADS


def test_every_workload_has_its_quoted_row() -> None:
    """The report shows what the recorded core did beside every figure."""
    assert [workload.name for workload in WORKLOADS] == list(QUOTED)


def test_flatness_is_compared_where_both_sides_were_run() -> None:
    """Workload u5000 is to keep 0.8 of the ratio of u500; c is compared with u5000 alone."""
    runs = [some_figures("u500", pace=20_000.0), some_figures("u5000", pace=15_000.0)]

    assert [Comparison("u5000 / u500 (actors)", 0.75, 0.8)] == list(comparisons(runs))
    assert not list(comparisons([some_figures("u500"), some_figures("c")]))


def test_a_slower_machine_is_no_lack_of_flatness() -> None:
    """Ratios to the light are compared: half the pace at half the light is the same."""
    runs = [
        some_figures("u5000", pace=20_000.0, light=40_000.0),
        some_figures("c", pace=10_000.0, light=20_000.0),
    ]

    assert [1.0] == [each.quotient for each in comparisons(runs)]


def test_engines_are_not_mixed_in_a_comparison_of_workloads() -> None:
    """One engine on u500 and another on u5000 say nothing about flatness."""
    runs = [some_figures("u500", engine=Engine.DIRECT), some_figures("u5000", engine=Engine.ACTORS)]

    assert not list(comparisons(runs))


def test_actors_are_compared_with_direct() -> None:
    """They may take 1.25 times as long, which is 0.8 of the pace."""
    runs = [
        some_figures("a", engine=Engine.ACTORS, pace=18_000.0),
        some_figures("a", engine=Engine.DIRECT, pace=20_000.0),
    ]

    (comparison,) = comparisons(runs)

    assert comparison.subject == "actors / direct (a)"
    assert comparison.quotient == pytest.approx(0.9)
    assert comparison.quotient_min == pytest.approx(0.8)
    assert comparison.is_met


def test_a_quotient_below_its_limit_is_not_met() -> None:
    """The limit itself is still good."""
    assert Comparison("", 0.8, 0.8).is_met
    assert not Comparison("", 0.79, 0.8).is_met
