"""Forecasts of starts: one run of a copy, and ranges that earlier ones calibrate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from support.proxy.command_runs import run
from support.proxy.simulation_builders import (
    SECOND,
    a_node,
    a_task,
    a_workload,
    an_application,
    simulated,
    written,
)

from licorne.proxy.play.simulation.forecasts import (
    ForecastScore,
    Quantiles,
    StartForecast,
    UsualRunTimes,
)
from licorne.proxy.play.simulation.workloads.workload import (
    SimulatedApplication,
    SimulatedWorkload,
    configuration_for,
)

_WALLTIME: Final = 100 * SECOND


def a_job(number: int, *, at: int, runs: int, user: str = "u") -> SimulatedApplication:
    """Build a job of one task on a whole node; times are in seconds, and its walltime is 100 s."""
    task = a_task(f"t{number}", cores=10, at=at, duration=runs)
    return replace(an_application(task, name=f"job-{number}", at=at, user=user), walltime_ns=_WALLTIME)


def a_log(*jobs: SimulatedApplication) -> SimulatedWorkload:
    """Build a workload on one node, with its queue."""
    return replace(a_workload(*jobs, nodes=(a_node(),)), default_configuration=configuration_for(["root.q"]))


def pairs(count: int, *, runs: int) -> list[SimulatedApplication]:
    """Build pairs of jobs, of which the second waits for the first one, 10 s after its submission."""
    return [
        a_job(2 * number + second, at=1000 * number + 10 * second, runs=runs)
        for number in range(count)
        for second in (0, 1)
    ]


def test_forecasts_of_jobs_that_run_as_always_are_exact() -> None:
    """A copy does not know the run times, but those of ended jobs: from the second pair on it is right.

    The first forecast takes the walltime, 90 s instead of 40 s, and is the only one outside of later ranges.
    """
    report = simulated(a_log(*pairs(54, runs=50)), with_forecasts=True)

    assert (
        ForecastScore(forecasts=54, ranges=4, within_90=4, within_50=4, median_error_ns=0, median_width_ns=0)
        == report.forecasts
    )


def test_forecasts_change_no_decision() -> None:
    """The copies do not touch the run that makes them."""
    work = a_log(*pairs(5, runs=30))

    with_them, without = (simulated(work, with_jobs=True, with_forecasts=each) for each in (True, False))

    assert with_them.jobs == without.jobs


def test_work_that_runs_is_expected_to_run_like_what_ran_longer() -> None:
    """The jobs of a user are parts of their walltimes; with too few of a user those of all count."""
    jobs = [a_job(number, at=0, runs=10 * number) for number in range(1, 6)]
    other = a_job(9, at=0, runs=70, user="other")
    times = UsualRunTimes(a_log(*jobs, other))
    for job in jobs:
        times.learn(job.application_id)

    expected = [times.expected_ns("job-9", passed * SECOND) for passed in (0, 10, 35, 60, 200)]

    assert [30 * SECOND, 40 * SECOND, 50 * SECOND, 100 * SECOND, 200 * SECOND + 1] == expected


def test_a_run_time_without_history_and_walltime_is_unknown() -> None:
    """Then the work runs to the end of the copy, and no start follows from its end."""
    job = replace(a_job(1, at=0, runs=10), walltime_ns=None)

    assert UsualRunTimes(a_log(job)).expected_ns("job-1", 0) is None


@pytest.mark.parametrize(
    ("forecast", "text"),
    [
        (
            StartForecast(wait_ns=None, ratios=0),
            "forecast: it does not start even if nothing more is submitted",
        ),
        (
            StartForecast(wait_ns=90 * SECOND, ratios=3),
            (
                "forecast: it starts in 1m30s if nothing more is submitted; "
                "a range needs 50 jobs that waited before, not 3"
            ),
        ),
        (
            StartForecast(
                wait_ns=SECOND,
                ratios=80,
                quantiles=Quantiles(*(each * SECOND for each in (60, 61, 70, 80, 90))),
            ),
            (
                "forecast: it starts in 1m to 1m30s with 90 %, and in 1m10s or less with 50 %, "
                "by 80 jobs that waited before"
            ),
        ),
    ],
)
def test_a_forecast_is_a_sentence(forecast: StartForecast, text: str) -> None:
    """It has a range only if enough jobs calibrate it."""
    assert text == forecast.sentence()


_SCENARIO: Final = """\
nodes: [{prefix: n, resources: {vcore: 1}}]
applications:
  - {name: a, queue: root.q, user: u, count: 2, every: 1m, tasks: [{resources: {vcore: 1}, duration: 10m}]}
  - {name: b, queue: root.q, user: u, submit: 11m, tasks: [{resources: {vcore: 1}, duration: 10m}]}
"""


def test_explain_forecasts_the_start_of_a_job(tmp_path: Path) -> None:
    """The first job ran ten minutes: the second one has run one, and the third starts in nine."""
    scenario = str(written(tmp_path / "day.yaml", _SCENARIO))

    _, shown, _ = run("explain", "b-1", "--forecast", "-i", scenario, "--at", "11m")

    assert "forecast: it starts in 9m if nothing more is submitted" in shown


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        (
            "day.yaml",
            _SCENARIO,
            ["--engine", "threads"],
            "--forecast: expected the engine direct, got threads",
        ),
        (
            "day.jsonl",
            '{"register": {"rmID": "rm"}}\n',
            [],
            "--forecast: expected a workload with jobs, got a transcript",
        ),
    ],
)
def test_forecasts_need_jobs_and_one_thread(
    tmp_path: Path, name: str, text: str, options: list[str], message: str
) -> None:
    """A transcript has no jobs, and a copy of a process has one thread alone."""
    result = run("simulate", "--forecast", *options, str(written(tmp_path / name, text)))

    assert (2, f"licorne simulate: {message}\n") == (result[0], result[2])
