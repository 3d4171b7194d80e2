"""The counts of a simulation: the use, the asks of each application, and whole jobs.

The owner of an application is known once the scheduler has placed it. Until then its work is counted
separately; an application that is never placed counts for the owner that it requested.

A job is submitted when its first task is asked for. It starts when all tasks that were asked for at that
moment have got a node. It ends when nothing of it waits or runs any longer; for both the latest such moment
counts. Placeholders do not count: a gang starts when its tasks run. Times are whole nanoseconds of virtual
time.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from ...core.scheduler.answering.questions import QueueAndUser
    from .record import AskEntry

COUNTS: Final = (
    *("submitted", "placed", "waiting", "running", "completed", "rejected", "withdrawn", "preempted"),
)
"""The counts of work, in the order of reports: each is a field of `Tally`."""
BOUND_NS: Final = 10 * 10**9
"""The minimum run time of work in its slowdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner of work: its queue, the user, and the groups of the user."""

    queue: str
    user: str
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: QueueAndUser) -> Owner:
        """Return the owner that the scheduler found."""
        return cls(queue=found.queue, user=found.user, groups=found.groups)


@dataclass(slots=True, kw_only=True)
class Tally:
    """The counts of one owner, or of several.

    Each piece of work counts once as submitted, however often it is asked for again after a preemption.
    Submitted is always the sum of waiting, running, completed, rejected and withdrawn; placed is the number
    of those that got a node at least once, and `waits_ns` has the wait of each of them for the first one.
    `lost` is the resources of preempted work on nodes times the nanoseconds for which it had them, by
    resource type.
    """

    submitted: int = 0
    placed: int = 0
    waiting: int = 0
    running: int = 0
    completed: int = 0
    rejected: int = 0
    withdrawn: int = 0
    preempted: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    waits_ns: list[int] = field(default_factory=list)
    slowdowns: list[int] = field(default_factory=list)
    """The slowdowns of completed work, in thousandths; see `SimulationRecord.completed`."""
    used: dict[str, StepFunction] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add the counts of another tally, which does not change."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lost.update(other.lost)
        self.waits_ns += other.waits_ns
        self.slowdowns += other.slowdowns
        for name, used in other.used.items():
            self.used[name] = sum_of([self.used[name], used] if name in self.used else [used])


@dataclass(slots=True, eq=False)
class Account:
    """An application that work is counted for; `owner` is the requested one until it has been placed.

    `walltime_ns` is the maximum run time given by its owner, `None` if it is unknown.
    """

    owner: Owner
    walltime_ns: int | None = None
    tally: Tally = field(default_factory=Tally)
    is_assigned: bool = False


@final
class Accounts:
    """The accounts of one simulation."""

    def __init__(self) -> None:
        self._tallies: dict[Owner, Tally] = {}
        self._open: dict[int, Account] = {}

    def opened(self, asked: Owner, walltime_ns: int | None = None) -> Account:
        """Open the account of a submitted application, and return it.

        Args:
            asked: The requested queue, user and groups.
            walltime_ns: The maximum run time given by its owner.
        """
        account = Account(asked, walltime_ns)
        self._open[id(account)] = account
        return account

    def assigned(self, account: Account, owner: Owner) -> None:
        """Count an application, with its earlier work, for the owner that the scheduler found."""
        if account.is_assigned:
            return
        shared = self._tallies.setdefault(owner, Tally())
        shared.add(account.tally)
        account.owner, account.tally, account.is_assigned = owner, shared, True
        del self._open[id(account)]

    def tallies(self) -> Mapping[Owner, Tally]:
        """Return the counts of all owners with work or use."""
        found: dict[Owner, Tally] = {}
        counted = [*self._tallies.items(), *((one.owner, one.tally) for one in self._open.values())]
        for owner, tally in counted:
            if tally != Tally():
                found.setdefault(owner, Tally()).add(tally)
        return found


@dataclass(frozen=True, slots=True)
class Remarks:
    """Texts of the scheduler for the report, each with its count.

    Attributes:
        rejections: The reasons of rejected work.
        refusals: The reasons of requests and nodes that were refused as a whole.
        surprises: Callbacks that do not fit the record: a sign of a bug.
    """

    rejections: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    surprises: Counter[str] = field(default_factory=Counter)


@final
class StepFunction:
    """A quantity that changes at moments of virtual time and starts at zero.

    Several changes at one moment are one step: only the value at its end counts.
    """

    __slots__ = ("_moments_ns", "_values")

    def __init__(self) -> None:
        self._moments_ns = [0]
        self._values = [0]

    @property
    def value(self) -> int:
        """The value after the last change."""
        return self._values[-1]

    @property
    def peak(self) -> int:
        """The largest value at the end of a moment."""
        return max(self._values)

    def deltas(self) -> Iterator[tuple[int, int]]:
        """Yield each change: its time, and its amount."""
        before = 0
        for at_ns, value in zip(self._moments_ns, self._values, strict=True):
            yield at_ns, value - before
            before = value

    def change(self, at_ns: int, delta: int) -> None:
        """Add a delta from a moment on; moments must not decrease."""
        assert at_ns >= self._moments_ns[-1], "virtual time does not go back"
        if at_ns == self._moments_ns[-1]:
            self._values[-1] += delta
            return
        self._moments_ns.append(at_ns)
        self._values.append(self._values[-1] + delta)

    def integrals(self, borders_ns: list[int]) -> list[int]:
        """Return the integral between each border and the next, in quantity times nanoseconds.

        The borders must not decrease, and the first must not be below zero.
        """
        moments_ns, values = self._moments_ns, self._values
        last = len(moments_ns) - 1
        results = []
        index = 0
        for start_ns, end_ns in pairwise(borders_ns):
            while index < last and moments_ns[index + 1] <= start_ns:
                index += 1
            total = 0
            position_ns = start_ns
            while index < last and moments_ns[index + 1] < end_ns:
                total += values[index] * (moments_ns[index + 1] - position_ns)
                index += 1
                position_ns = moments_ns[index]
            results.append(total + values[index] * (end_ns - position_ns))
        return results


def sum_of(parts: list[StepFunction]) -> StepFunction:
    """Return the sum of step functions."""
    total = StepFunction()
    for at_ns, delta in heapq.merge(*(part.deltas() for part in parts)):
        total.change(at_ns, delta)
    return total


def permille_by_interval(
    used: StepFunction, capacity: StepFunction, *, end_ns: int, intervals: int
) -> tuple[int, ...]:
    """Return the mean use of a capacity in each interval from zero to an end, in thousandths.

    A simulation without duration has one interval without length: the use at that moment.
    """
    if end_ns == 0:
        return (permille(used.value, capacity.value),)
    intervals = min(intervals, end_ns)
    borders_ns = [end_ns * number // intervals for number in range(intervals + 1)]
    pairs = zip(used.integrals(borders_ns), capacity.integrals(borders_ns), strict=True)
    return tuple(permille(part, whole) for part, whole in pairs)


def permille(part: int, whole: int) -> int:
    """Return a part in thousandths of the whole, rounded to the nearest, half up; 0 if the whole is 0."""
    return (part * 2000 + whole) // (whole * 2) if whole else 0


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """One job; `asked` is the sum of its tasks, `worked` the same for completed tasks times their run times.

    `first_left` are the tasks that were asked for first and have not got a node yet. `is_recovered` marks a
    job with work from before the simulation: it did not wait, and has no slowdown.
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
    def waits(self) -> bool:
        """Whether it can start still, and has not."""
        return self.started_at_ns is None and self.ended_at_ns is None

    @property
    def has_completed(self) -> bool:
        """Whether all its tasks ran to their ends."""
        return self.completed == self.tasks

    @property
    def wait_ns(self) -> int | None:
        """The wait for its start, `None` before its start, and if it is unknown."""
        if self.started_at_ns is None or self.is_recovered:
            return None
        return self.started_at_ns - self.submitted_at_ns

    @property
    def run_ns(self) -> int | None:
        """The time from its start to its end, `None` if it did not start or end."""
        if self.started_at_ns is None or self.ended_at_ns is None:
            return None
        return self.ended_at_ns - self.started_at_ns

    @property
    def slowdown(self) -> int | None:
        """Its bounded slowdown in thousandths, rounded; `None` for a job that did not complete."""
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

    def latest(self) -> Iterator[Job]:
        """Walk all jobs, the latest submission first."""
        return reversed(self._by_account.values())

    def asked(self, entry: AskEntry, at_ns: int) -> None:
        """Record that a task is asked for, for the first time or again."""
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
        """Record that a task got its first node."""
        job = self._of(entry)
        if entry.asked_at_ns == job.submitted_at_ns:
            job.first_left -= 1
            job.started_at_ns = None if job.first_left else at_ns

    def completed(self, entry: AskEntry, at_ns: int) -> None:
        """Record that a task completed."""
        job = self._of(entry)
        job.completed += 1
        _add(job.worked, entry.resources, at_ns - entry.placed_at_ns)
        _note_end(job, at_ns)

    def preempted(self, entry: AskEntry) -> None:
        """Record that a task was taken off its node; the next call records its state."""
        self._of(entry).preempted += 1

    def withdrawn(self, entry: AskEntry, at_ns: int) -> None:
        """Record that a task is not asked for again."""
        job = self._of(entry)
        job.withdrawn += 1
        _note_end(job, at_ns)

    def rejected(self, entry: AskEntry, at_ns: int) -> None:
        """Record that the scheduler refuses a task."""
        job = self._of(entry)
        job.rejected += 1
        _note_end(job, at_ns)

    def _of(self, entry: AskEntry) -> Job:
        return self._by_account[id(entry.account)]


def _note_end(job: Job, at_ns: int) -> None:
    """Note the end of a job of which nothing waits or runs any longer."""
    if job.tasks == job.completed + job.withdrawn + job.rejected:
        job.ended_at_ns = at_ns


def _add(sums: dict[str, int], resources: Mapping[str, int], times: int) -> None:
    """Add a multiple of an amount."""
    for name, quantity in resources.items():
        sums[name] = sums.get(name, 0) + quantity * times
