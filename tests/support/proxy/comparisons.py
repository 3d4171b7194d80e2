"""Builders for the tests of comparisons, and the command that makes them."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from licorne.proxy.play.simulation.job_figures import JobFigures, JobReport, JobRow
from licorne.proxy.shell.commands.simulate import compare

_NO_FIGURES = JobFigures(
    jobs=0, started=0, waited=0, completed=0, wait_ns=None, slowdown=None, makespan_ns=None, use={}
)


def a_row(job: str, *, started: int | None, queue: str = "root.q", user: str = "u") -> JobRow:
    """Build a job of one task, submitted at 0; the start is in nanoseconds, `None` for never."""
    return JobRow(
        job=job,
        queue=queue,
        user=user,
        groups=("g",),
        tasks=1,
        completed=0,
        rejected=0,
        withdrawn=0,
        preempted=0,
        submitted_ns=0,
        started_ns=started,
        ended_ns=None,
        wait_ns=started,
        run_ns=None,
        walltime_ns=None,
        slowdown=None,
        resources={"vcore": 1000},
    )


def a_job_report(*rows: JobRow) -> JobReport:
    """Build a report of jobs without figures."""
    return JobReport(total=_NO_FIGURES, queues={}, users={}, groups={}, rows=rows)


def compared(*arguments: str | Path) -> Result:
    """Run `licorne compare`."""
    application = typer.Typer()
    application.command()(compare)
    return CliRunner().invoke(application, [str(argument) for argument in arguments])
