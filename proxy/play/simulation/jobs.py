"""The jobs of a simulation: what became of each application as a whole.

A job is submitted when its first task is asked for. It starts when all tasks that were asked for at that
moment have got a node. It ends when nothing of it waits or runs any longer; both are the latest such moment.
Placeholders do not count: a gang starts when its tasks run. Times are whole nanoseconds of virtual time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from .accounts import Account

if TYPE_CHECKING:
    from .record import AskEntry

BOUND_NS: Final = 10 * 10**9
"""How long work counts as having run at least, for its slowdown."""


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One job; `asked` is what all its tasks ask for, `worked` the same of those that completed by how long.

    `first_left` are the tasks that were asked for first and have not got a node yet. `is_recovered` marks
    a job of which something ran before the simulation: it did not wait, and has no slowdown.
    """

    account: Account
    name: str
    submitted_at_ns: int
    tasks: int = 0
    completed: int = 0
    rejected: int = 0
    withdrawn: int = 0
    preempted: int = 0
    first_left: int = 0
    started_at_ns: int | None = None
    ended_at_ns: int | None = None
    is_recovered: bool = False
    asked: dict[str, int] = field(default_factory=dict)
    worked: dict[str, int] = field(default_factory=dict)

    @property
    def has_completed(self) -> bool:
        """Whether all its tasks ran to their ends."""
        return self.completed == self.tasks

    @property
    def wait_ns(self) -> int | None:
        """How long it waited for its start, `None` while it does, and where that is not known."""
        if self.started_at_ns is None or self.is_recovered:
            return None
        return self.started_at_ns - self.submitted_at_ns

    @property
    def run_ns(self) -> int | None:
        """How long it took from its start to its end, `None` where it did not start or end."""
        if self.started_at_ns is None or self.ended_at_ns is None:
            return None
        return self.ended_at_ns - self.started_at_ns

    @property
    def slowdown(self) -> int | None:
        """Its bounded slowdown in thousandths, rounded; `None` of a job that did not complete."""
        wait_ns, run_ns = self.wait_ns, self.run_ns
        if wait_ns is None or run_ns is None or not self.has_completed:
            return None
        bound_ns = max(run_ns, BOUND_NS)
        return max(1000, (2000 * (wait_ns + run_ns) + bound_ns) // (2 * bound_ns))


@final
class Jobs:
    """All jobs of a simulation, in the order of their submission."""

    def __init__(self) -> None:
        self._by_account: dict[int, Job] = {}

    def __iter__(self) -> Iterator[Job]:
        return iter(self._by_account.values())

    def asked(self, entry: AskEntry, at_ns: int) -> None:
        """Write that a task is asked for, for the first time or again."""
        job = self._by_account.get(id(entry.account))
        if job is None:
            job = Job(account=entry.account, name=entry.application_id, submitted_at_ns=at_ns)
            self._by_account[id(entry.account)] = job
        if entry.is_repeated:
            return
        job.tasks += 1
        if at_ns == job.submitted_at_ns:
            job.first_left += 1
            job.started_at_ns = None
        job.is_recovered |= entry.is_recovered
        job.ended_at_ns = None
        _add(job.asked, entry.resources, 1)

    def placed(self, entry: AskEntry, at_ns: int) -> None:
        """Write that a task got its first node."""
        job = self._of(entry)
        if entry.asked_at_ns == job.submitted_at_ns:
            job.first_left -= 1
            job.started_at_ns = None if job.first_left else at_ns

    def completed(self, entry: AskEntry, at_ns: int) -> None:
        """Write that a task came to its end."""
        job = self._of(entry)
        job.completed += 1
        _add(job.worked, entry.resources, at_ns - entry.placed_at_ns)
        _note_end(job, at_ns)

    def preempted(self, entry: AskEntry) -> None:
        """Write that a task was taken off its node; what becomes of it is written next."""
        self._of(entry).preempted += 1

    def withdrawn(self, entry: AskEntry, at_ns: int) -> None:
        """Write that a task is not asked for again."""
        job = self._of(entry)
        job.withdrawn += 1
        _note_end(job, at_ns)

    def rejected(self, entry: AskEntry, at_ns: int) -> None:
        """Write that the scheduler refuses a task."""
        job = self._of(entry)
        job.rejected += 1
        _note_end(job, at_ns)

    def _of(self, entry: AskEntry) -> Job:
        return self._by_account[id(entry.account)]


def _note_end(job: Job, at_ns: int) -> None:
    """Note when a job ended of which nothing waits or runs any longer."""
    if job.tasks == job.completed + job.withdrawn + job.rejected:
        job.ended_at_ns = at_ns


def _add(sums: dict[str, int], resources: Mapping[str, int], times: int) -> None:
    """Add an amount, so many times."""
    for name, quantity in resources.items():
        sums[name] = sums.get(name, 0) + quantity * times
