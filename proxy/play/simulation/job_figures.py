"""The figures of whole jobs, by queue, user and group, and a row for each job as CSV and as lines of JSON.

Times are whole nanoseconds of virtual time. A bounded slowdown is in thousandths: the time from submission to
end divided by the time from start to end, where a job counts as having run at least ten seconds. It is never
below one.

The makespan is the time from the first submission to the last end. The use of a resource type is the
resources of completed tasks times their run times, in thousandths of the resources of the cluster during the
makespan of all jobs: the shares of all queues add up to that of the total. Resources that a gang holds before
it starts are left out.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final

from .accounts import Job, Jobs, StepFunction, permille
from .report import FigureSpread, JsonDocument, by_owner, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    """The figures of some jobs.

    `started` have started as a whole, `waited` of these not at once, `completed` ran to their ends. A spread
    is `None` if no job has the value, as is the makespan if no job ended.
    """

    jobs: int
    started: int
    waited: int
    completed: int
    wait_ns: FigureSpread | None
    slowdown: FigureSpread | None
    makespan_ns: int | None
    use: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One job; a time is `None` if it did not occur, or is unknown.

    `queue`, `user` and `groups` are those of its placement. `resources` is the sum of its tasks.
    """

    job: str
    queue: str
    user: str
    groups: tuple[str, ...]
    tasks: int
    completed: int
    rejected: int
    withdrawn: int
    preempted: int
    submitted_ns: int
    started_ns: int | None
    ended_ns: int | None
    wait_ns: int | None
    run_ns: int | None
    walltime_ns: int | None
    slowdown: int | None
    resources: Mapping[str, int]

    def document(self) -> dict[str, JsonDocument]:
        """Return the row as a JSON document."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return values | {"groups": list(self.groups), "resources": dict(self.resources)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """The figures of all jobs of a simulation, and the jobs themselves in the order of their submission."""

    total: JobFigures
    queues: Mapping[str, JobFigures]
    users: Mapping[str, JobFigures]
    groups: Mapping[str, JobFigures]
    rows: tuple[JobRow, ...]

    def document(self) -> dict[str, JsonDocument]:
        """Return the figures as a JSON document, without the single jobs."""
        kinds = (("queue", self.queues), ("user", self.users), ("group", self.groups))
        parts: dict[str, JsonDocument] = {
            f"{kind}s": [{kind: name, **asdict(one)} for name, one in figures.items()]
            for kind, figures in kinds
        }
        return {"total": asdict(self.total), **parts}


def build_job_report(jobs: Jobs, capacity: Mapping[str, StepFunction]) -> JobReport:
    """Make the figures of jobs.

    Args:
        jobs: The jobs of a simulation that has ended.
        capacity: The sum of all nodes over time.
    """
    ordered = list(jobs)
    there = _integrals(ordered, capacity)

    queues, users, groups = by_owner(
        ((job.account.owner, job) for job in ordered), lambda jobs: _figures(jobs, there)
    )
    return JobReport(
        total=_figures(ordered, there),
        queues=queues,
        users=users,
        groups=groups,
        rows=tuple(map(_row, ordered)),
    )


def _integrals(jobs: Sequence[Job], capacity: Mapping[str, StepFunction]) -> dict[str, int]:
    """Return the resources of the cluster during the makespan of jobs, times its length, by resource type."""
    ends_ns = [job.ended_at_ns for job in jobs if job.ended_at_ns is not None]
    if not ends_ns:
        return dict.fromkeys(sorted(capacity), 0)
    borders_ns = [min(job.submitted_at_ns for job in jobs), max(ends_ns)]
    return {name: amounts.integrals(borders_ns)[0] for name, amounts in sorted(capacity.items())}


def _figures(jobs: Sequence[Job], there: Mapping[str, int]) -> JobFigures:
    """Return the figures of some jobs."""
    waits_ns = [wait_ns for job in jobs if (wait_ns := job.wait_ns) is not None]
    ends_ns = [job.ended_at_ns for job in jobs if job.ended_at_ns is not None]
    return JobFigures(
        jobs=len(jobs),
        started=sum(job.started_at_ns is not None for job in jobs),
        waited=sum(wait_ns > 0 for wait_ns in waits_ns),
        completed=sum(job.has_completed for job in jobs),
        wait_ns=spread(waits_ns),
        slowdown=spread([slowdown for job in jobs if (slowdown := job.slowdown) is not None]),
        makespan_ns=max(ends_ns) - min(job.submitted_at_ns for job in jobs) if ends_ns else None,
        use={
            name: permille(sum(job.worked.get(name, 0) for job in jobs), whole)
            for name, whole in there.items()
        },
    )


def _row(job: Job) -> JobRow:
    """Return one job as an immutable value."""
    owner = job.account.owner
    return JobRow(
        job=job.name,
        queue=owner.queue,
        user=owner.user,
        groups=owner.groups,
        tasks=job.tasks,
        completed=job.completed,
        rejected=job.rejected,
        withdrawn=job.withdrawn,
        preempted=job.preempted,
        submitted_ns=job.submitted_at_ns,
        started_ns=job.started_at_ns,
        ended_ns=job.ended_at_ns,
        wait_ns=job.wait_ns,
        run_ns=job.run_ns,
        walltime_ns=job.account.walltime_ns,
        slowdown=job.slowdown,
        resources=dict(sorted(job.asked.items())),
    )


_COLUMNS: Final = tuple(one.name for one in fields(JobRow) if one.name != "resources")


def rows_to_csv(rows: Sequence[JobRow]) -> str:
    """Return jobs as CSV: a header, then a row for each job; unknown values are empty.

    Groups are separated by `;`. The last columns are the sums of its tasks, one for each resource type.
    """
    types = sorted({name for row in rows for name in row.resources})
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*_COLUMNS, *types))
    writer.writerows(_cells(row, types) for row in rows)
    return file.getvalue()


def _cells(row: JobRow, types: Sequence[str]) -> Iterator[str | int | None]:
    """Yield the cells of one job."""
    for name in _COLUMNS:
        yield ";".join(row.groups) if name == "groups" else getattr(row, name)
    for name in types:
        yield row.resources.get(name)


def rows_to_jsonl(rows: Sequence[JobRow]) -> str:
    """Return jobs as lines of JSON, an object for each; unknown values are `null`."""
    return "".join(f"{json.dumps(row.document())}\n" for row in rows)
