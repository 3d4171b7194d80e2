"""Jobs in the order of their submission start exactly when a plain FCFS starts them."""

from __future__ import annotations

import csv
import hashlib
import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.proxy.simulation_builders import SECOND, shared_data, simulated, written

from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName
from licorne.proxy.play.simulation.job_figures import JobReport
from licorne.proxy.play.simulation.workloads.swf import JobOptions, read_swf

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
    report = simulated(
        read_swf(log, machines, options), engine=engine, configuration=configuration, with_jobs=True
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


_POOL = 10
ENDING = ONE_QUEUE.replace("{name: all}", "{name: all, properties: {runtime.overrun: end}}")
"""One queue that ends what runs longer than its walltime."""


@dataclass(frozen=True, slots=True)
class Worked:
    """Jobs on ten processors, and when they start in the order of their submission."""

    jobs: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]


WORKED: dict[str, Worked] = {
    "a short job waits behind a long one": Worked(((0, 6, 100), (1, 6, 50), (2, 4, 90)), (0, 100, 100)),
    "a job that would fit beside waits": Worked(((0, 6, 100), (1, 8, 50), (2, 4, 99)), (0, 100, 150)),
    "small jobs keep their places": Worked(
        ((0, 5, 100), (1, 7, 50), (2, 2, 500), (3, 2, 500), (4, 1, 500)), (0, 100, 100, 150, 150)
    ),
    "two start together when one ends": Worked(
        ((0, 7, 10), (1, 5, 20), (2, 5, 10), (3, 2, 10)), (0, 10, 10, 20)
    ),
    "a job of all processors waits for the last": Worked(
        ((0, 7, 10), (1, 1, 40), (2, 10, 20), (3, 6, 20), (4, 4, 10)), (0, 1, 41, 61, 61)
    ),
    "an end lets two in and not the third": Worked(
        ((0, 10, 15), (1, 4, 10), (2, 7, 20), (3, 5, 10)), (0, 15, 25, 45)
    ),
    "each waits for its turn": Worked(
        ((0, 7, 10), (1, 2, 25), (2, 10, 10), (3, 6, 20), (4, 7, 10)), (0, 1, 26, 36, 56)
    ),
    "what ends at a moment gives room to what comes then": Worked(((0, 10, 5), (5, 10, 5)), (0, 5)),
    "of one moment the first of the file goes first": Worked(
        ((0, 10, 5), *((0, 6, 5),) * 10), (0, *range(5, 55, 5))
    ),
}


@pytest.mark.parametrize("case", WORKED.values(), ids=WORKED)
def test_whole_jobs_start_in_their_order(case: Worked, tmp_path: Path) -> None:
    """The first that does not fit stops all behind it, on one node as on five with two processors."""
    jobs = [RigidJob(*job) for job in case.jobs]
    log = written(tmp_path / "log.swf", log_of(jobs))
    one = starts_of(simulated_jobs(log, tmp_path, processors=_POOL))
    five = starts_of(simulated_jobs(log, tmp_path, nodes=5, processors=2))

    assert list(case.starts) == list(one.values()) == list(five.values()) == fcfs_starts(jobs, _POOL)


_JOBS = st.lists(
    st.builds(
        RigidJob,
        submit=st.integers(0, 40),
        processors=st.integers(1, _POOL),
        run=st.integers(1, 30),
        requested=st.sampled_from([-1, 20]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(jobs=_JOBS)
def test_whole_jobs_start_as_first_come_first_served_says(jobs: list[RigidJob], tmp_path: Path) -> None:
    """Whatever the log, each job starts when a plain simulation of the policy starts it."""
    log = written(tmp_path / "log.swf", log_of(jobs))
    first = min(job.submit for job in jobs)
    starts = starts_of(simulated_jobs(log, tmp_path, processors=_POOL), first)

    assert dict(enumerate(fcfs_starts(jobs, _POOL), start=1)) == dict(sorted(starts.items()))


SHORTEST_FIRST = ONE_QUEUE.replace(
    'submitacl: "*"',
    'submitacl: "*", properties: {backfill.reservations: "1", backfill.order: shortest, gang.placing: whole}',
)
"""EASY backfilling: the first waiting job has a promise, the others are tried by their requested times."""


def easy_starts(jobs: Sequence[RigidJob], pool: int) -> list[int]:
    """Return the starts under EASY, shortest first: ends of a moment, then submissions, then one pass.

    Jobs run as long as they requested.
    """
    starts: dict[int, int] = {}
    running: list[tuple[int, int]] = []
    waiting: list[int] = []
    coming = sorted(range(len(jobs)), key=lambda index: (jobs[index].submit, index))

    def start(index: int, now: int) -> None:
        starts[index] = now
        running.append((now + jobs[index].run, jobs[index].processors))
        waiting.remove(index)

    while coming or waiting:
        now = min([jobs[index].submit for index in coming[:1]] + [end for end, _ in running])
        running = [one for one in running if one[0] > now]
        while coming and jobs[coming[0]].submit == now:
            waiting.append(coming.pop(0))
        while waiting and jobs[waiting[0]].processors <= _free(running, pool, now):
            start(waiting[0], now)
        for index in sorted(waiting[1:], key=lambda index: (jobs[index].run, waiting.index(index))):
            job, head = jobs[index], jobs[waiting[0]]
            shadow = min(end for end, _ in running if _free(running, pool, end) >= head.processors)
            left = _free(running, pool, shadow) - head.processors
            is_harmless = now + job.run <= shadow or job.processors <= left
            if job.processors <= _free(running, pool, now) and is_harmless:
                start(index, now)
    return [starts[index] for index in range(len(jobs))]


def _free(running: list[tuple[int, int]], pool: int, moment: int) -> int:
    """Return the processors that are free after the ends of a moment."""
    return pool - sum(processors for end, processors in running if end > moment)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    jobs=st.lists(
        st.builds(
            RigidJob,
            submit=st.integers(0, 4).map(lambda each: 10 * each),
            processors=st.integers(1, _POOL),
            run=st.integers(1, 4).map(lambda each: 10 * each),
        ),
        min_size=3,
        max_size=12,
    )
)
@example(
    jobs=[
        RigidJob(0, 5, 100),
        RigidJob(0, 5, 1000),
        RigidJob(1, 10, 10),
        RigidJob(2, 5, 500),
        RigidJob(100, 5, 200),
    ]
)
def test_ends_and_submissions_of_a_moment_come_before_its_decisions(
    jobs: list[RigidJob], tmp_path: Path
) -> None:
    """A shorter job that is submitted when another one ends gets its room, before a longer one that waits."""
    requested = [replace(job, requested=job.run) for job in jobs]
    log = written(tmp_path / "log.swf", log_of(requested))
    first = min(job.submit for job in jobs)
    starts = starts_of(simulated_jobs(log, tmp_path, processors=_POOL, configuration=SHORTEST_FIRST), first)

    assert dict(enumerate(easy_starts(jobs, _POOL), start=1)) == dict(sorted(starts.items()))


def test_tasks_of_the_size_of_a_request_never_start_a_job_earlier(tmp_path: Path) -> None:
    """Six processors are free, but no node has four: the job of one task of four waits for an end."""
    jobs = [RigidJob(0, 1, 100), RigidJob(0, 1, 100), RigidJob(1, 4, 10)]
    log = written(tmp_path / "log.swf", log_of(jobs))
    sized = simulated_jobs(log, tmp_path, nodes=2, processors=4, options=JobOptions(whole=True))
    single = simulated_jobs(log, tmp_path, nodes=2, processors=4)

    assert [0, 0, 1] == list(starts_of(single).values())
    assert [0, 0, 100] == list(starts_of(sized).values())


ENDED = [
    RigidJob(0, 6, 100, 60),  # is ended at 60
    RigidJob(1, 6, 50, 50),  # starts then, and ends by itself when its time is over
    RigidJob(2, 4, 90, 30),  # is ended at 90
    RigidJob(3, 2, 20),  # has no walltime
]


@pytest.mark.parametrize("engine", ENGINES)
def test_jobs_end_with_their_walltimes_where_the_queue_says_so(engine: EngineName, tmp_path: Path) -> None:
    """They start as those do that run no longer; a job that was ended is not asked for again."""
    log = written(tmp_path / "log.swf", log_of(ENDED))
    report = simulated_jobs(log, tmp_path, processors=_POOL, configuration=ENDING, engine=engine)

    assert [0, 60, 60, 90] == list(starts_of(report).values())
    assert [60, 110, 90, 110] == [(row.ended_ns or 0) // SECOND for row in report.rows]
    assert [(0, 6), (6, 0), (0, 4), (2, 0)] == [(row.completed, row.withdrawn) for row in report.rows]


@dataclass(frozen=True, slots=True)
class Reference:
    """A log, its processors, its first jobs, and the name of the figures in the reference."""

    log: str
    processors: int
    name: str
    jobs: int | None = None
    configuration: str = ONE_QUEUE


REFERENCES: dict[str, Reference] = {
    "hpc2n": Reference("hpc2n", 240, "hpc2n"),
    "hpc2n, whose jobs end with their walltimes": Reference("hpc2n", 240, "hpc2n kill", None, ENDING),
    "wagap-2013": Reference("wagap-2013", 2176, "wagap-2013"),
    "the first 2,000 of lublin": Reference("lublin_256", 256, "lublin_256 first 2000", 2000),
}


def _first_lines(log: Path, count: int | None, folder: Path) -> Path:
    """Return a log with the first jobs of another one."""
    lines = [line for line in log.read_text(encoding="utf-8").split("\n") if line.strip() and line[0] != ";"]
    return written(folder / "log.swf", "\n".join(lines[:count]) + "\n")


def _reference(name: str) -> dict[str, int | str | float | dict[str, int]]:
    """Return the figures of a reference under FCFS."""
    documents = json.loads(_policies("reference.json").read_text(encoding="utf-8"))
    figures: dict[str, int | str | float | dict[str, int]] = documents[name]["policies"]["fcfs"]
    return figures | {"first_submission": documents[name]["first_submission"]}


def _policies(name: str) -> Path:
    """Return a file of the references, which stand beside the traces."""
    return shared_data("../policies/" + name)


@pytest.mark.parametrize("name", ["hpc2n", "lublin_256"])
def test_the_first_jobs_of_a_log_start_as_the_reference_has_them(name: str, tmp_path: Path) -> None:
    """Jobs that come later change nothing for those before them, so that a piece of the log is enough."""
    starts_file, processors = _policies(f"starts-{name}.csv"), {"hpc2n": 240, "lublin_256": 256}[name]
    with starts_file.open(encoding="utf-8") as file:
        expected = {int(row["job"]): int(row["fcfs"]) for row in csv.DictReader(file)}
    log = _first_lines(shared_data(f"swf/{name}.swf"), 60, tmp_path)
    first = _reference("hpc2n" if name == "hpc2n" else "lublin_256 first 2000")["first_submission"]
    assert isinstance(first, int)
    starts = starts_of(simulated_jobs(log, tmp_path, processors=processors), first)

    assert {number: expected[number] for number in starts} == starts
    assert len(starts) > 50


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", REFERENCES.values(), ids=REFERENCES)
def test_a_log_starts_as_the_reference_has_it(case: Reference, tmp_path: Path) -> None:
    """Start by start, and so with the same figures."""
    reference = _reference(case.name)
    log = _first_lines(shared_data(f"swf/{case.log}.swf"), case.jobs, tmp_path)
    configuration = case.configuration
    report = simulated_jobs(log, tmp_path, processors=case.processors, configuration=configuration)
    first = reference["first_submission"]
    assert isinstance(first, int)
    starts = starts_of(report, first)
    text = "".join(
        f"{number} {starts[number]}\n"
        for number in (int(line.split()[0]) for line in log.read_text(encoding="utf-8").splitlines())
        if number in starts
    )
    total = report.total

    assert reference["starts_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    assert total.wait_ns is not None
    assert (reference["jobs"], reference["waited"], reference["makespan"]) == (
        total.jobs,
        total.waited,
        (total.makespan_ns or 0) // SECOND,
    )
    assert (reference["p95_wait"], reference["max_wait"]) == (
        total.wait_ns.p95 // SECOND,
        total.wait_ns.max // SECOND,
    )
    if configuration == ENDING:
        return  # The work of a job that was ended counts as none here.
    assert round(1000 * float(str(reference["utilisation"]))) == total.use["vcore"]
    assert total.slowdown is not None
    assert abs(float(str(reference["mean_bounded_slowdown"])) * 1000 - total.slowdown.mean) <= 1
