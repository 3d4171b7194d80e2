"""What follows from a first difference: the jobs that start at another time, and which jobs have their room.

The room of a job that starts later in B is on the node of the last task that it needs for its start in A. Of
the tasks that run there in B at that moment, and do not in A, the one that was placed last has taken it. For
a job that starts earlier in B, A and B change places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from ..simulation.decisions import Decision, DecisionKind
from ..simulation.job_figures import JobRow
from .effects import JobEffect, JobEffects

CONSEQUENCES_MAX: Final = 10
"""How many jobs are followed in each direction."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """One job that starts at another time.

    `waits_in` is the run in which it starts later, `A` or `B`; `at_ns` when it starts in the other one, there
    on `node_id`. `taken_by` is the job that has its room at that moment, `None` where no other job has, and
    `reason` what blocks the job then; empty where that is not known, or nothing blocks it.
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
    """Return the jobs to explain in A and in B, by the moment at which they start in the other run."""
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
    """Return the largest consequences, those of jobs that start later in B first.

    Args:
        effects: The effects on all jobs.
        decisions: The decisions under A and under B.
        lines: What blocks a job, by moment and job, in A and in B.
    """
    runs = (
        _PlacedTasks(decisions[0], (row.a for row in effects.rows)),
        _PlacedTasks(decisions[1], (row.b for row in effects.rows)),
    )
    return tuple(_consequence(row, runs, lines, is_later=is_later) for row, is_later in _rows(effects))


def _rows(effects: JobEffects) -> Iterator[tuple[JobEffect, bool]]:
    """Walk the jobs with the largest effects, and whether they start later in B."""
    for rows, is_later in ((effects.later, True), (effects.earlier, False)):
        for row in rows[:CONSEQUENCES_MAX]:
            yield row, is_later


def _start_ns(row: JobEffect, *, is_later: bool) -> int:
    """Return when a job starts in the run in which that is earlier."""
    start_ns = (row.a if is_later else row.b).started_ns
    assert start_ns is not None, "a job starts in the run in which it starts earlier"
    return start_ns


@final
class _PlacedTasks:
    """The placements of one run, by job, and when its jobs end."""

    def __init__(self, decisions: Iterable[Decision], rows: Iterable[JobRow]) -> None:
        self._placed = [each for each in decisions if each.kind is DecisionKind.PLACED]
        self._ends_ns = {row.job: row.ended_ns for row in rows}

    def node_of(self, job: str, start_ns: int) -> str:
        """Return the node of the task that was placed last when a job started; empty if it is not known."""
        nodes = [each.node_id for each in self._placed if (each.application, each.at_ns) == (job, start_ns)]
        return nodes[-1] if nodes else ""

    def on_node(self, node_id: str, at_ns: int) -> dict[str, str]:
        """Return the job of each task on a node just after a moment, by ask, those placed last first.

        A task counts as there until its job ends.
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
    """Return what became of one job."""
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
