"""The effect of a configuration on jobs: the same input under A and under B, job by job.

The *delay* of a job is its start under B less its start under A: above zero it starts later in B, below zero
earlier. A job that starts under only one of the two has no delay, and is counted separately: its loss or gain
is larger than any other. A job that starts under neither is counted as one that starts at the same time.

Exchanging A and B only exchanges later and earlier.

The room of a job that starts later in B is on the node of the last task that it needs for its start in A. Of
the tasks that run there in B at that moment, but not in A, the one that was placed last has taken it. For a
job that starts earlier in B, A and B are exchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from ..simulation.job_figures import JobReport, JobRow
from ..simulation.record import Decision, DecisionKind
from ..simulation.report import NO_OWNER

CONSEQUENCES_MAX: Final = 10
"""The number of jobs that are followed in each direction."""


@final
@dataclass(frozen=True, slots=True)
class JobEffect:
    """One job under A and under B."""

    a: JobRow
    b: JobRow

    @property
    def delay_ns(self) -> int | None:
        """Its delay under B, `None` unless it starts under both."""
        if self.a.started_ns is None or self.b.started_ns is None:
            return None
        return self.b.started_ns - self.a.started_ns

    @property
    def is_only_in_a(self) -> bool:
        """Whether it starts under A, and never under B."""
        return self.a.started_ns is not None and self.b.started_ns is None

    @property
    def is_only_in_b(self) -> bool:
        """Whether it starts under B, and never under A."""
        return self.a.started_ns is None and self.b.started_ns is not None

    @property
    def is_later(self) -> bool:
        """Whether it starts later under B, or never."""
        return self.is_only_in_a or (self.delay_ns or 0) > 0

    @property
    def is_earlier(self) -> bool:
        """Whether it starts earlier under B, or only there."""
        return self.is_only_in_b or (self.delay_ns or 0) < 0

    def queues(self) -> Sequence[str]:
        """Return the queue of its placement; two if the configurations place it differently."""
        return _once(row.queue or NO_OWNER.queue for row in (self.a, self.b))

    def users(self) -> Sequence[str]:
        """Return its user; two if the configurations find different ones."""
        return _once(row.user or NO_OWNER.user for row in (self.a, self.b))

    def groups(self) -> Sequence[str]:
        """Return all groups of its user, under A or under B."""
        return _once(group for row in (self.a, self.b) for group in row.groups or NO_OWNER.groups)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The effects on some jobs.

    `later` counts the jobs that start later in B, of which `only_a` never start there; `earlier` those that
    start earlier, of which `only_b` never start in A; `same` counts all others. `later_ns` and `earlier_ns`
    are the sums of the delays of those that start in both; both are zero or more.
    """

    jobs: int
    later: int
    only_a: int
    earlier: int
    only_b: int
    same: int
    later_ns: int
    earlier_ns: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JobEffects:
    """The effects on all jobs of an input.

    Queues, users and groups are in the order of their effects, the largest losses first. `later` and
    `earlier` are the jobs that start at another time, the largest effect first. A job counts in each of its
    groups, and in both queues if the configurations place it in different ones. `unpaired` are jobs that
    exist in only one run; they are not counted.
    """

    total: Effects
    queues: Mapping[str, Effects]
    users: Mapping[str, Effects]
    groups: Mapping[str, Effects]
    rows: tuple[JobEffect, ...]
    later: tuple[JobEffect, ...]
    earlier: tuple[JobEffect, ...]
    unpaired: int


def job_effects(a: JobReport, b: JobReport) -> JobEffects:
    """Compare the jobs of two simulations of one input.

    Args:
        a: The jobs under the configuration A.
        b: The jobs under the configuration B.
    """
    rows_a, rows_b = _numbered(a.rows), _numbered(b.rows)
    rows = tuple(JobEffect(row, rows_b[name]) for name, row in rows_a.items() if name in rows_b)

    def by(names: Callable[[JobEffect], Iterable[str]]) -> dict[str, Effects]:
        parts: defaultdict[str, list[JobEffect]] = defaultdict(list)
        for row in rows:
            for name in names(row):
                parts[name].append(row)
        effects = {name: _effects(part) for name, part in parts.items()}
        return {
            name: effects[name] for name in sorted(effects, key=lambda name: (*_size(effects[name]), name))
        }

    return JobEffects(
        total=_effects(rows),
        queues=by(JobEffect.queues),
        users=by(JobEffect.users),
        groups=by(JobEffect.groups),
        rows=rows,
        # Sorting keeps the order of submission among equal effects.
        later=tuple(sorted((row for row in rows if row.is_later), key=_largest_delay)),
        earlier=tuple(sorted((row for row in rows if row.is_earlier), key=_largest_delay)),
        unpaired=len(rows_a.keys() ^ rows_b.keys()),
    )


def _numbered(rows: Iterable[JobRow]) -> dict[tuple[str, int], JobRow]:
    """Return jobs by name and number, since a transcript may use a name again."""
    seen: Counter[str] = Counter()
    numbered = {}
    for row in rows:
        numbered[row.job, seen[row.job]] = row
        seen[row.job] += 1
    return numbered


def _effects(rows: Sequence[JobEffect]) -> Effects:
    """Add up the effects on some jobs."""
    delays_ns = [row.delay_ns or 0 for row in rows]
    later, earlier = sum(row.is_later for row in rows), sum(row.is_earlier for row in rows)
    return Effects(
        jobs=len(rows),
        later=later,
        only_a=sum(row.is_only_in_a for row in rows),
        earlier=earlier,
        only_b=sum(row.is_only_in_b for row in rows),
        same=len(rows) - later - earlier,
        later_ns=sum(max(delay_ns, 0) for delay_ns in delays_ns),
        earlier_ns=sum(max(-delay_ns, 0) for delay_ns in delays_ns),
    )


def _size(effects: Effects) -> tuple[int, ...]:
    """Return the key by which the largest losses come first, and then the largest gains."""
    return (-effects.only_a, -effects.later_ns, -effects.only_b, -effects.earlier_ns)


def _largest_delay(row: JobEffect) -> tuple[bool, int]:
    """Return the sort key for jobs without a delay first, then for the largest delay of either sign."""
    return (row.delay_ns is not None, -abs(row.delay_ns or 0))


def _once(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in their order, each once."""
    return tuple(dict.fromkeys(names))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """One job that starts at another time.

    `waits_in` is the run in which it starts later, `A` or `B`; `at_ns` is its start in the other run, on
    `node_id`. `taken_by` is the job that has its room at that moment, `None` if no other job has it. `reason`
    is the blocker of the job then; empty if it is unknown, or if the job is not blocked.
    """

    job: str
    queue: str
    user: str
    waits_in: str
    delay_ns: int | None
    at_ns: int
    node_id: str
    taken_by: str | None
    reason: str

    def text(self) -> str:
        """Return the consequence as a sentence."""
        room = (
            f"no other job has its room on {self.node_id}"
            if self.taken_by is None
            else f"{self.taken_by} has its room on {self.node_id}"
        )
        return f"{self.job} waits in {self.waits_in}: {room}" + (f"; {self.reason}" if self.reason else "")


def moments_of(effects: JobEffects) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """Return the jobs to explain in A and in B, by the time of their start in the other run."""
    moments: tuple[dict[int, list[str]], dict[int, list[str]]] = ({}, {})
    for row, is_later in _rows(effects):
        start_ns = _start_ns(row, is_later=is_later)
        moments[is_later].setdefault(start_ns, []).append(row.a.job)
    return moments


def consequences(
    effects: JobEffects,
    decisions: tuple[Sequence[Decision], Sequence[Decision]],
    lines: tuple[Mapping[tuple[int, str], str], Mapping[tuple[int, str], str]],
) -> tuple[Consequence, ...]:
    """Return the largest consequences, first those of jobs that start later in B.

    Args:
        effects: The effects on all jobs.
        decisions: The decisions under A and under B.
        lines: The blockers of jobs, by moment and job, in A and in B.
    """
    runs = (
        _PlacedTasks(decisions[0], (row.a for row in effects.rows)),
        _PlacedTasks(decisions[1], (row.b for row in effects.rows)),
    )
    return tuple(_consequence(row, runs, lines, is_later=is_later) for row, is_later in _rows(effects))


def _rows(effects: JobEffects) -> Iterator[tuple[JobEffect, bool]]:
    """Walk the jobs with the largest effects, each with whether it starts later in B."""
    for rows, is_later in ((effects.later, True), (effects.earlier, False)):
        for row in rows[:CONSEQUENCES_MAX]:
            yield row, is_later


def _start_ns(row: JobEffect, *, is_later: bool) -> int:
    """Return the start of a job in the run in which it is earlier."""
    start_ns = (row.a if is_later else row.b).started_ns
    assert start_ns is not None, "a job starts in the run in which it starts earlier"
    return start_ns


@final
class _PlacedTasks:
    """The placements of one run, by job, and the ends of its jobs."""

    def __init__(self, decisions: Iterable[Decision], rows: Iterable[JobRow]) -> None:
        self._placed = [each for each in decisions if each.kind is DecisionKind.PLACED]
        self._ends_ns = {row.job: row.ended_ns for row in rows}

    def node_of(self, job: str, start_ns: int) -> str:
        """Return the node of the last task that was placed before a job's start; empty if it is unknown."""
        nodes = [each.node_id for each in self._placed if (each.application, each.at_ns) == (job, start_ns)]
        return nodes[-1] if nodes else ""

    def on_node(self, node_id: str, at_ns: int) -> dict[str, str]:
        """Return the job of each task on a node just after a moment, by ask, the last placed first.

        A task counts as running until its job ends.
        """
        there = [each for each in self._placed if each.node_id == node_id and each.at_ns <= at_ns]
        return {each.ask: each.application for each in reversed(there) if self._runs(each.application, at_ns)}

    def _runs(self, job: str, at_ns: int) -> bool:
        end_ns = self._ends_ns.get(job)
        return end_ns is None or end_ns > at_ns


def _consequence(
    row: JobEffect,
    runs: tuple[_PlacedTasks, _PlacedTasks],
    lines: tuple[Mapping[tuple[int, str], str], Mapping[tuple[int, str], str]],
    *,
    is_later: bool,
) -> Consequence:
    """Return the consequence for one job."""
    starts, waits = (runs[0], runs[1]) if is_later else (runs[1], runs[0])
    at_ns, job = _start_ns(row, is_later=is_later), row.a.job
    node_id = starts.node_of(job, at_ns)
    before = starts.on_node(node_id, at_ns)
    there = waits.on_node(node_id, at_ns).items()
    taken = [other for ask, other in there if ask not in before and other != job]
    return Consequence(
        job=job,
        queue=row.queues()[0],
        user=row.users()[0],
        waits_in="B" if is_later else "A",
        delay_ns=row.delay_ns,
        at_ns=at_ns,
        node_id=node_id,
        taken_by=taken[0] if taken else None,
        reason=lines[is_later].get((at_ns, job), ""),
    )
