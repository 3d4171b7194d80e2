from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from subprocess import CompletedProcess

import pytest
from bench_fakes import FakeClock, FakeScheduler, a_workload, fake_gauges, some_figures
from driver import Stepped
from figures import BenchError, Churn, Gauges, Measurement, figures_from_json, figures_to_json
from light import Light
from lit_run import lit_run, main, run_in_process
from measurement import measure
from workloads import DEFAULT_NAMES, WORKLOADS, BenchWorkload, workload_named

from licorne.proxy.core.scheduler.engine_names import EngineName, engine_named


class LoggingLight(Light):
    """Shines with a given pace, and logs that it did."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(allocations=1, nodes=1)
        self._log = log
        self._paces = iter([50_000.0, 30_000.0])

    def allocations_per_second(self, clock: Callable[[], float], *, runs: int) -> float:  # noqa: ARG002 - as the light
        """Log the number of runs."""
        self._log.append(f"light, {runs} runs")
        return next(self._paces)


def test_the_light_shines_before_and_after_the_workload() -> None:
    """Three runs each, in the same process, around the measurement; a machine that slows down slows both."""
    log: list[str] = []
    clock = FakeClock()

    def measure_on(
        workload: BenchWorkload, engine: EngineName, gauges: Gauges, threads: int | None
    ) -> Measurement:
        log.append(f"{workload.name} on {engine}, {threads}")
        return measure(workload, Stepped(FakeScheduler(clock), gauges), gauges)

    figures = lit_run(a_workload(), "direct", fake_gauges(clock), LoggingLight(log), measure_on=measure_on)

    assert log == ["light, 3 runs", "tiny on direct, None", "light, 3 runs"]
    assert (50_000.0, 30_000.0, 40_000.0) == (
        figures.light_before_per_second,
        figures.light_after_per_second,
        figures.light_per_second,
    )
    assert figures.measurement.nodes_per_second == 2.0


def test_the_ratio_is_that_of_the_pace_to_the_light() -> None:
    """The pace of `f_*` is that of replaced allocations; without a pace there is no ratio."""
    churn = Churn(per_second=4_000.0, latency_p50_seconds=0.1, latency_p99_seconds=0.1)

    assert 0.25 == some_figures(pace=10_000.0, light=40_000.0).ratio_to_light
    assert 0.1 == some_figures(pace=None, churn=churn, light=40_000.0).ratio_to_light
    assert some_figures(pace=None).ratio_to_light is None


Ran = list[tuple[str, str]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Let every process be done at once, and return which were started: workloads and what follows them."""
    log: Ran = []
    paces = cycle([3_000.0, 1_000.0, 2_000.0])

    def done(command: list[str], **_: object) -> CompletedProcess[str]:
        name, engine = command[2], engine_named(command[4])
        threads = int(command[6]) if "--threads" in command else None
        figures = replace(some_figures(name, engine=engine, pace=next(paces)), threads=threads)
        log.append((name, figures.engine_text))
        return CompletedProcess(command, 0, figures_to_json(figures), "")

    monkeypatch.setattr(subprocess, "run", done)
    return log


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], [(name, "actors") for name in DEFAULT_NAMES]),
        (["--all"], [(workload.name, "actors") for workload in WORKLOADS]),
        (["c", "a", "--engine", "direct"], [("c", "direct"), ("a", "direct")]),
        (
            ["a", "--engine", "actors", "--engine", "threads", "--threads", "3"],
            [("a", "actors"), ("a", "threads, 3")],
        ),
        (["b", "--repeat", "3"], [("b", "actors")] * 3),
    ],
)
def test_workloads_run_in_the_order_of_the_command_line(
    ran: Ran, arguments: list[str], expected: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each as often as `--repeat` says, on every engine that is named."""
    main(arguments)

    assert expected == ran
    written = [figures_from_json(line) for line in capsys.readouterr().out.splitlines()]
    assert list(dict.fromkeys(expected)) == [(run.workload, run.engine_text) for run in written]
    assert "--repeat" not in arguments or [2_000.0] == [run.measurement.pace_per_second for run in written]


def test_an_unknown_name_runs_nothing(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    """The error asks whether another name was meant, also where a known one stands beside it."""
    with pytest.raises(SystemExit):
        main(["u500", "a_fif"])

    assert "unknown workload 'a_fif': did you mean a_fifo?" in capsys.readouterr().err
    assert ran == []


def test_a_workload_runs_on_a_real_scheduler() -> None:
    """Between two runs of the light; a process that fails is an error with its last words."""
    figures = run_in_process(workload_named("u500"), "direct")

    assert ("u500", "direct") == (figures.workload, figures.engine)
    assert figures.ratio_to_light is not None
    with pytest.raises(BenchError, match=r"tiny on direct: .*unknown workload 'tiny': there are u500"):
        run_in_process(a_workload(), "direct")
