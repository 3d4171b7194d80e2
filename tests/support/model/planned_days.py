"""Days of jobs on one pool: when they start by the rule of backfilling, and when a partition starts them.

The rule is written here a second time, as plainly as it can be: a plan is a list with the free room of each
second, and whatever is to be known is counted in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from support.model.builders import START_NS, a_resource
from support.model.harness import Harness

from licorne.model.explanation.explain import explain
from licorne.model.explanation.planned_starts import PlannedStart

_HORIZON: Final = 1600
Windows: TypeAlias = Sequence[tuple[int, int]]
"""When each window begins and ends, in seconds."""


@dataclass(frozen=True)
class PooledJob:
    """A job: when it is submitted, what it takes of the pool, how long it runs, and its walltime."""

    submitted: int
    size: int
    runs: int
    walltime: int


def _first_fit(free: list[int], job: PooledJob) -> int:
    start = 0
    while min(free[start : start + job.walltime]) < job.size:
        start += 1
    return start


def _less(free: list[int], job: PooledJob, start: int) -> list[int]:
    end = start + job.walltime
    return [*free[:start], *(room - job.size for room in free[start:end]), *free[end:]]


def _promises(free: list[int], jobs: list[PooledJob]) -> list[int]:
    starts = []
    for job in jobs:
        starts.append(_first_fit(free, job))
        free = _less(free, job, starts[-1])
    return starts


def _next_start(free: list[int], waiting: list[PooledJob], depth: int, *, shortest: bool) -> PooledJob | None:
    """Return the first job that may start now, `None` if none may."""
    promised: list[PooledJob] = []
    for index, job in enumerate(waiting):
        if len(promised) == depth and shortest:
            waiting = sorted(waiting[index:], key=lambda job: (job.walltime, job.submitted))
            break
        if min(free[: job.walltime]) >= job.size:
            with_it = _promises(_less(free, job, 0), promised)
            if all(new <= old for new, old in zip(with_it, _promises(free, promised), strict=True)):
                return job
        if len(promised) < depth:
            promised.append(job)
    else:
        return None
    before = _promises(free, promised)
    for job in waiting:
        if min(free[: job.walltime]) >= job.size:
            with_it = _promises(_less(free, job, 0), promised)
            if all(new <= old for new, old in zip(with_it, before, strict=True)):
                return job
    return None


def _next_moment(jobs: list[PooledJob], ends: dict[PooledJob, int], now: int) -> int:
    """Return when the next job is submitted or ends."""
    return min(moment for moment in (*(job.submitted for job in jobs), *ends.values()) if moment > now)


def _planned_room(pool: int, started: dict[PooledJob, int], now: int, windows: Windows = ()) -> list[int]:
    """Return the free room of each second from now on, if all that runs ends by its walltime."""
    closed = {second for begin, end in windows for second in range(begin, end)}
    free = [0 if now + second in closed else pool for second in range(_HORIZON)]
    for job, start in started.items():
        if start + job.runs > now:
            for second in range(start + job.walltime - now):
                free[second] -= job.size
    return free


def starts_by_rule(
    jobs: list[PooledJob], pool: int, depth: int, *, shortest: bool = False, windows: Windows = ()
) -> list[int]:
    """Return when each job starts if so many have promises; jobs are in the order of their submission."""
    started: dict[PooledJob, int] = {}
    now = 0
    while len(started) < len(jobs):
        free = _planned_room(pool, started, now, windows)
        waiting = [job for job in jobs if job.submitted <= now and job not in started]
        chosen = _next_start(free, waiting, depth, shortest=shortest)
        if chosen is None:
            ends = [end for _, end in windows if end > now]
            ends += [start + job.runs for job, start in started.items() if start + job.runs > now]
            now = min([*ends, *(job.submitted for job in jobs if job.submitted > now)])
        else:
            started[chosen] = now
    return [started[job] for job in jobs]


def _moved_up(free: list[int], promised: dict[PooledJob, int], now: int) -> None:
    """Take each job out of the plan, in order, and put it in again where it starts sooner."""
    for job, start in [*promised.items()]:
        others = free
        for other, begin in promised.items():
            if other is not job:
                others = _less(others, other, begin - now)
        promised[job] = min(start, now + _first_fit(others, job))


def kept_starts_by_rule(jobs: list[PooledJob], pool: int, windows: Windows = ()) -> list[int]:
    """Return when each job starts if each is promised a start when it comes; jobs are in that order."""
    promised: dict[PooledJob, int] = {}
    started: dict[PooledJob, int] = {}
    now = 0
    while len(started) < len(jobs):
        free = _planned_room(pool, started, now, windows)
        if any(start + job.runs == now and job.runs < job.walltime for job, start in started.items()):
            _moved_up(free, promised, now)
        for job in jobs:
            if job.submitted == now:
                plan = free
                for other, begin in promised.items():
                    plan = _less(plan, other, begin - now)
                promised[job] = now + _first_fit(plan, job)
        started |= {job: start for job, start in promised.items() if start == now}
        promised = {job: start for job, start in promised.items() if start > now}
        ends = {job: start + job.runs for job, start in started.items()}
        moments = [*promised.values(), *ends.values(), *(job.submitted for job in jobs)]
        now = min((moment for moment in moments if moment > now), default=now)
    return [started[job] for job in jobs]


def _keys(name: str, job: PooledJob, *, gangs: bool) -> list[str]:
    return [f"{name}-{number:02}" for number in range(job.size)] if gangs else [name]


def _a_pool(properties: str, capacities: list[int], windows: Windows = ()) -> Harness:
    harness = Harness(root=f"properties: {properties}", partition=_configured(windows, len(capacities)))
    for number, capacity in enumerate(capacities):
        harness.nodes(f"n{number}", capacity=a_resource(vcore=capacity))
    return harness


def _configured(windows: Windows, nodes: int) -> str:
    """Return windows of all nodes, in seconds since the start of the clock."""
    names = ", ".join(f"n{number}" for number in range(nodes))
    rows = [
        f"  - {{name: w{begin}, nodes: [{names}], from: {_time(begin)}, to: {_time(end)}}}"
        for begin, end in windows
    ]
    return "\n".join(["windows:", *rows]) if rows else ""


def _time(second: int) -> str:
    moment = datetime.fromtimestamp(START_NS // 10**9 + second, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _submit(harness: Harness, name: str, job: PooledJob, *, gangs: bool) -> None:
    """Submit a job as an application with one ask, or as a whole gang of asks of one."""
    tags = {"walltime": f"{job.walltime}s"}
    harness.submit(name, tags={"gangSize": str(job.size)} if gangs else {})
    size = a_resource(vcore=1 if gangs else job.size)
    for key in _keys(name, job, gangs=gangs):
        assert harness.ask(key, application_id=name, resource=size, tags=tags) == ()


def _following(jobs: list[PooledJob], ends: dict[PooledJob, int], now: int, depth: int | str) -> int:
    """Return the next moment to look at; a promised start may come where nothing else happens."""
    return now + 1 if depth == "all" else _next_moment(jobs, ends, now)


def starts_in_partition(
    jobs: list[PooledJob],
    pool: int,
    depth: int | str,
    *,
    shortest: bool = False,
    gangs: bool = False,
    nodes: int = 1,
    windows: Windows = (),
) -> list[int]:
    """Return when a partition starts the jobs, each a single ask, or each a gang of asks of one.

    The pool is shared out evenly to its nodes.
    """
    order = "shortest" if shortest else "queue"
    properties = f'{{backfill.reservations: "{depth}", backfill.order: {order}}}'
    harness = _a_pool(properties, [pool // nodes] * nodes, windows)
    began = harness.clock.now_ns()
    ends: dict[int, int] = {}
    names = {f"j{index:03}": index for index in range(len(jobs))}
    now = 0
    while len(ends) < len(jobs):
        for name, index in names.items():
            if ends.get(index) == now:
                for key in _keys(name, jobs[index], gangs=gangs):
                    harness.release(key, application_id=name)
        for name, index in names.items():
            if jobs[index].submitted == now:
                _submit(harness, name, jobs[index], gangs=gangs)
        harness.run_until_idle()
        for name, index in names.items():
            entry = harness.state.entries.get(name)
            if index not in ends and entry is not None and not entry.facts.pending:
                ends[index] = now + jobs[index].runs
        assert harness.clock.now_ns() - began == now * 1_000_000_000
        if len(ends) < len(jobs):
            unended = {jobs[index]: end for index, end in ends.items()}
            following = _following(jobs, unended, now, "all" if windows else depth)
            harness.advance(following - now)
            now = following
    return [ends[index] - job.runs for index, job in enumerate(jobs)]


def send(
    harness: Harness, name: str, queue: str, user: str, *, size: int, walltime: str, priority: int = 0
) -> None:
    """Submit a job, an application with one ask, and run cycles."""
    harness.submit(name, queue, user=user)
    tags = {"walltime": walltime} if walltime else {}
    size_of = a_resource(vcore=size * 1000)
    assert harness.ask(name, application_id=name, resource=size_of, tags=tags, priority=priority) == ()
    harness.run_until_idle()


def is_placed(harness: Harness, name: str) -> bool:
    """Return whether a job runs."""
    return not harness.state.entries[name].facts.pending


def planned_start_of(harness: Harness, name: str) -> PlannedStart | None:
    """Return when the ask of a job is expected to start."""
    explanation = explain(harness.state, name)
    assert explanation is not None
    return explanation.waiting[0].planned_start
