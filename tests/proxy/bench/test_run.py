from __future__ import annotations

import pytest
from support.proxy.bench_fakes import a_workload, some_figures

from licorne.proxy.bench.errors import BenchError
from licorne.proxy.bench.figures import Figures
from licorne.proxy.bench.run import run_all, run_in_process_of_its_own
from licorne.proxy.bench.workload_table import workload_named
from licorne.proxy.bench.workloads import BenchWorkload
from licorne.proxy.core.scheduler.engine_names import EngineName


def test_every_workload_runs_on_every_engine_in_order() -> None:
    """All engines of one workload come before the next workload."""
    workloads = [workload_named("u500"), workload_named("a")]

    def run(workload: BenchWorkload, engine: EngineName) -> Figures:
        return some_figures(workload.name, engine=engine)

    figures = run_all(workloads, ["actors", "direct"], repeat=1, run=run)

    assert [
        ("u500", "actors"),
        ("u500", "direct"),
        ("a", "actors"),
        ("a", "direct"),
    ] == [(each.workload, each.engine) for each in figures]


def test_a_repeated_workload_gives_the_run_in_the_middle() -> None:
    """Three runs, one result."""
    paces = iter([3_000.0, 1_000.0, 2_000.0])

    def run(workload: BenchWorkload, engine: EngineName) -> Figures:
        return some_figures(workload.name, engine=engine, pace=next(paces))

    figures = run_all([workload_named("u500")], ["direct"], repeat=3, run=run)

    assert [2_000.0] == [each.measurement.pace_per_second for each in figures]


def test_figures_are_given_as_soon_as_they_are_there() -> None:
    """Who runs everything sees the first workload before the last one has begun."""
    started: list[str] = []

    def run(workload: BenchWorkload, engine: EngineName) -> Figures:
        started.append(workload.name)
        return some_figures(workload.name, engine=engine)

    next(run_all([workload_named("u500"), workload_named("d")], ["direct"], repeat=1, run=run))

    assert started == ["u500"]


def test_a_process_that_fails_is_an_error_with_its_last_words() -> None:
    """The child does not know the workload of this test; the error names workload, engine and reason."""
    with pytest.raises(BenchError, match="tiny on direct: unknown workload 'tiny': there are u500"):
        run_in_process_of_its_own(a_workload(), "direct")
