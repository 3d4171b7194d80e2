"""Accounts: the counts of the asks of each application, for its queue, user and groups.

The owner of an application is known once the scheduler has placed it. Until then its work is counted
separately; an application that is never placed counts for the owner that it asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from .usage import StepFunction, sum_of

if TYPE_CHECKING:
    from ...core.scheduler.answering.asking import QueueAndUser

COUNTS: Final = (
    *("submitted", "placed", "waiting", "running", "completed", "rejected", "withdrawn", "preempted"),
)
"""What is counted of work, in the order of reports: a field of `Tally` each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner of work: the queue that it is in, the user, and the groups of the user."""

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
    Submitted is always the sum of waiting, running, completed, rejected and withdrawn; placed are those
    that got a node at least once, and `waits_ns` holds how long each of them waited for the first one.
    `lost` is what preempted work had on nodes times the nanoseconds for which it had it, by resource type.
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
    """In thousandths, of what has completed; see `SimulationRecord.completed`."""
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
    """An application that work is counted for; `owner` is what it asked for until it has been placed.

    `walltime_ns` is how long it will run at most by its owner, `None` where that is not known.
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
        """Open the account of an application that is submitted, and return it.

        Args:
            asked: The queue, user and groups that it asks for.
            walltime_ns: How long it will run at most by its owner.
        """
        account = Account(asked, walltime_ns)
        self._open[id(account)] = account
        return account

    def assigned(self, account: Account, owner: Owner) -> None:
        """Count an application, with what it has had until now, for the owner that the scheduler found."""
        if account.is_assigned:
            return
        shared = self._tallies.setdefault(owner, Tally())
        shared.add(account.tally)
        account.owner, account.tally, account.is_assigned = owner, shared, True
        del self._open[id(account)]

    def tallies(self) -> Mapping[Owner, Tally]:
        """Return the counts of all that had work or used something."""
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
        rejections: Why work was rejected.
        refusals: Why requests and nodes were refused as a whole.
        surprises: Callbacks that do not fit the record: a sign of a bug.
    """

    rejections: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    surprises: Counter[str] = field(default_factory=Counter)
