from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from bench_fakes import some_figures
from figures import Backlog, Figures, Pods, figures_to_json
from history import HISTORY, MeasuredCommit, read_history
from report import Figure
from targets import QUOTED, comparisons, goals, main
from workloads import WORKLOADS


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
    runs = [
        some_figures("u500", engine="direct"),
        some_figures("u5000", engine="actors"),
    ]

    assert not list(comparisons(runs))


def test_actors_are_compared_with_direct() -> None:
    """They may take 1.25 times as long, which is 0.8 of the pace."""
    runs = [
        some_figures("a", engine="actors", pace=18_000.0),
        some_figures("a", engine="direct", pace=20_000.0),
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


Main = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Main:
    """Return the program: runs go in, its status, standard output and standard error come out."""
    history = tmp_path / "history.jsonl"
    history.touch()

    def compare(runs: Sequence[Figures], *arguments: str) -> tuple[int, str, str]:
        path = tmp_path / "figures.jsonl"
        path.write_text("".join(figures_to_json(run) + "\n" for run in runs), encoding="utf-8")
        status = main([str(path), *arguments], history)
        return status, *capsys.readouterr()

    return compare


def test_each_run_has_a_row_beside_the_recorded_core(compared: Main) -> None:
    """And one for each figure of which something is expected."""
    status, printed, _ = compared([some_figures("u500"), some_figures("u5000")])

    assert 0 == status
    assert 2 == printed.count("3,500-4,100/s")
    assert "u5000 / u500 (actors)" in printed


def test_what_was_measured_beside_go_is_quoted_with_its_day(compared: Main) -> None:
    """It is a figure of that day, not of the run that it stands beside."""
    _, shown, _ = compared([some_figures("c")])

    assert "of Go, 2026-11-22" in shown
    assert "23x" in shown


def test_a_pace_below_three_quarters_of_the_earlier_ones_is_a_regression(compared: Main) -> None:
    """They are compared in units of the light, so that a slower machine is none."""
    for pace in (19_000.0, 20_000.0, 24_000.0):
        assert 0 == compared([some_figures("u500", pace=pace)], "--record")[0]

    same, _, _ = compared([some_figures("u500", pace=10_000.0, light=20_000.0)])
    slower, shown, errors = compared([some_figures("u500", pace=14_900.0), some_figures("a")])
    other_build, _, _ = compared([some_figures("u500", pace=1_000.0, build="compiled")])

    assert (0, 1, 0) == (same, slower, other_build)
    assert errors.startswith("slower than earlier commits (load ")
    assert errors.endswith("): u500 (actors) / median of the last 3\n")
    assert "0.74" in shown


def test_the_output_ends_with_the_line_of_the_commit(compared: Main) -> None:
    """One line for each build and engine; without `--record` it is printed alone."""
    backlog = Backlog(waiting_cpu_share=0.0, reaction_median_seconds=0.002, reaction_max_seconds=0.004)
    runs = [
        some_figures("u500"),
        some_figures("g_full", pace=None, backlog=backlog),
        some_figures("a", engine="direct"),
    ]

    actors, direct = (json.loads(line) for line in compared(runs)[1].splitlines()[-2:])

    assert {
        "u500": {"ratio": 0.5, "per_second": 20_000.0},
        "g_full": {"reaction_ms": 2.0},
    } == actors["workloads"]
    assert ("actors", "direct", "pure Python") == (actors["engine"], direct["engine"], actors["build"])
    assert 40_000.0 == actors["light_per_second"]


def test_the_history_is_of_workloads_that_there_are() -> None:
    """Every line can be read, and the days are in their order."""
    lines: list[MeasuredCommit] = read_history(HISTORY)

    assert lines
    assert sorted(line.day for line in lines) == [line.day for line in lines]
    assert set() == {name for line in lines for name in line.workloads} - set(QUOTED)
