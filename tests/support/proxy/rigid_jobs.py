"""Rigid jobs on a pool of processors: logs of them, and when the scheduler and a plain FCFS start each."""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.proxy.simulation_builders import SECOND, written

from licorne.proxy.scheduler.engine_names import EngineName
from licorne.proxy.simulation.driver import NoProgress
from licorne.proxy.simulation.job_figures import JobReport
from licorne.proxy.simulation.scheduler_core import SchedulerCore
from licorne.proxy.simulation.simulation import simulate
from licorne.proxy.simulation.workloads.swf import JobOptions, read_swf

__all__ = ["ONE_QUEUE", "RigidJob", "fcfs_starts", "log_of", "simulated_jobs", "starts_of"]

ONE_QUEUE = """\
partitions:
  - name: default
    placementrules: [{name: fixed, value: root.all}]
    queues: [{name: root, submitacl: "*", queues: [{name: all}]}]
"""
"""All jobs in one queue, in the order of their submission."""

_WHOLE: Final = JobOptions(whole=True, task_processors=1)


@dataclass(frozen=True, slots=True)
class RigidJob:
    """When it is submitted, its processors, how long it runs, its requested time; times are in seconds."""

    submit: int
    processors: int
    run: int
    requested: int = -1


def log_of(jobs: Sequence[RigidJob]) -> str:
    """Return a log of jobs, numbered from one."""
    return "".join(
        f"{number} {job.submit} -1 {job.run} {job.processors} -1 -1 {job.processors} {job.requested} "
        "-1 1 1 1 -1 -1 -1 -1 -1\n"
        for number, job in enumerate(jobs, start=1)
    )


def fcfs_starts(jobs: Sequence[RigidJob], pool: int) -> list[int]:
    """Return when each job starts that waits for all before it: ends of a moment come before submissions."""
    order = sorted(range(len(jobs)), key=lambda index: (jobs[index].submit, index))
    starts = [0] * len(jobs)
    ends: list[tuple[int, int]] = []
    now, free = 0, pool
    for index in order:
        job = jobs[index]
        now = max(now, job.submit)
        while ends and (ends[0][0] <= now or free < job.processors):
            end, processors = heapq.heappop(ends)
            now, free = max(now, end), free + processors
        starts[index] = now
        free -= job.processors
        heapq.heappush(ends, (now + job.run, job.processors))
    return starts


def simulated_jobs(
    log: Path,
    folder: Path,
    *,
    nodes: int = 1,
    processors: int,
    options: JobOptions = _WHOLE,
    configuration: str = ONE_QUEUE,
    engine: EngineName = "direct",
) -> JobReport:
    """Simulate a log of rigid jobs on nodes of that many processors, and return the figures of its jobs."""
    machines = written(folder / "pool.machines", f"0 pool {nodes} {processors} 1\n")
    report = simulate(
        read_swf(log, machines, options),
        SchedulerCore,
        engine=engine,
        configuration=configuration,
        progress=NoProgress(),
        stopwatch=time.perf_counter,
        with_jobs=True,
    )
    assert () == report.surprises
    assert report.jobs is not None
    return report.jobs


def starts_of(report: JobReport, first_submission: int = 0) -> dict[int, int | None]:
    """Return when each job started, in seconds of the log, by its number."""
    return {
        int(row.job.removeprefix("job-")): None
        if row.started_ns is None
        else first_submission + row.started_ns // SECOND
        for row in report.rows
    }
