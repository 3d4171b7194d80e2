from __future__ import annotations

from pathlib import Path

import pytest
from figure import Figure
from support.proxy.bench_fakes import some_figures
from targets import QUOTED, comparisons, goals, main

from licorne.proxy.bench.engine import EngineKind
from licorne.proxy.bench.figures import Backlog, Pods
from licorne.proxy.bench.report import report_json
from licorne.proxy.bench.workload_table import WORKLOADS


def test_every_workload_has_its_quoted_row() -> None:
    """The report shows what the recorded core did beside every figure."""
    assert [workload.name for workload in WORKLOADS] == list(QUOTED)


def test_flatness_is_compared_where_both_sides_were_run() -> None:
    """Workload u5000 is to keep 0.8 of the ratio of u500; c is compared with u5000 alone."""
    runs = [some_figures("u500", pace=20_000.0), some_figures("u5000", pace=15_000.0)]

    assert [Figure("u5000 / u500 (actors)", 0.75, "x", wanted_min=0.8)] == list(comparisons(runs))
    assert not list(comparisons([some_figures("u500"), some_figures("c")]))


def test_a_slower_machine_is_no_lack_of_flatness() -> None:
    """Ratios to the light are compared: half the pace at half the light is the same."""
    runs = [
        some_figures("u5000", pace=20_000.0, light=40_000.0),
        some_figures("c", pace=10_000.0, light=20_000.0),
    ]

    assert [1.0] == [each.value for each in comparisons(runs)]


def test_engines_are_not_mixed_in_a_comparison_of_workloads() -> None:
    """One engine on u500 and another on u5000 say nothing about flatness."""
    runs = [some_figures("u500", engine=EngineKind.DIRECT), some_figures("u5000", engine=EngineKind.ACTORS)]

    assert not list(comparisons(runs))


def test_actors_are_compared_with_direct() -> None:
    """They may take 1.25 times as long, which is 0.8 of the pace."""
    runs = [
        some_figures("a", engine=EngineKind.ACTORS, pace=18_000.0),
        some_figures("a", engine=EngineKind.DIRECT, pace=20_000.0),
    ]

    (comparison,) = comparisons(runs)

    assert comparison.subject == "actors / direct (a)"
    assert comparison.value == pytest.approx(0.9)
    assert comparison.wanted_min == pytest.approx(0.8)
    assert comparison.is_met


def test_what_is_wanted_of_a_run_is_held_against_it() -> None:
    """The ratio to the light, the reaction to a freed node, and bytes, as far as the run has them."""
    backlog = Backlog(waiting_cpu_share=0.0, reaction_median_seconds=0.002, reaction_max_seconds=0.004)

    run = list(goals(some_figures("u500", pace=18_000.0)))
    waiting = list(goals(some_figures("g_full", pace=None, backlog=backlog)))
    pods = Pods(cpu_seconds_per_application=0.000_3, cpu_seconds_per_ask=0.000_1)
    of_one_ask = list(goals(some_figures("k_pods", pods=pods)))

    assert [(0.45, False), (7_000.0, True), (3_000.0, True)] == [(each.value, each.is_met) for each in run]
    assert ["≥ 0.5", "≤ 8,000", "≤ 4,000"] == [each.wanted for each in run]
    assert Figure("g_full (actors), reaction", 2.0, "ms", wanted_max=1.0) == waiting[0]
    assert ("k_pods (actors), application / ask", False) == (of_one_ask[1].subject, of_one_ask[1].is_met)


def test_figures_are_read_as_the_command_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run has a row beside the recorded core, and one for each figure of which something is wanted."""
    path = tmp_path / "figures.json"
    path.write_text(report_json([some_figures("u500"), some_figures("u5000")]), encoding="utf-8")

    main([str(path)])

    printed = capsys.readouterr().out
    assert 2 == printed.count("3,500-4,100/s")
    assert "u5000 / u500 (actors)" in printed


def test_what_was_measured_beside_go_is_quoted_with_its_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a figure of that day, not of the run that it stands beside."""
    path = tmp_path / "figures.json"
    path.write_text(report_json([some_figures("c")]), encoding="utf-8")

    main([str(path)])

    shown = capsys.readouterr().out
    assert "of Go, 2026-11-22" in shown
    assert "23x" in shown
