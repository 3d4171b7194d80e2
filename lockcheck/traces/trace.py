"""A trace: events in the order in which they happened, and the names of what took part.

A lock is noted as taken after it was taken, and as left before it is released. So critical sections that
exclude each other in the program do so in the trace, whichever thread wrote first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal, TypeAlias

from ..findings.errors import LockCheckError
from ..findings.evidence import Frame, Mode, RWPolicy
from ..holding.chains import Attempt

ThingKind: TypeAlias = Literal["flag", "items", "wakeups"]
"""How signals end waits for a thing: a flag stays set, an item is for one that waits, and a wakeup is for one
that waits already."""

THING_KINDS: Final[Mapping[str, ThingKind]] = {"flag": "flag", "items": "items", "wakeups": "wakeups"}
"""As traces name them."""


class TraceFileError(LockCheckError, ValueError):
    """A file is no trace, or is broken in a way that no crash explains."""


class EventKind(IntEnum):
    """The kind of an event."""

    TOOK = 1  # a lock
    FAILED = 2  # to take a lock, by an attempt or within a limit of time
    LEFT = 3  # a lock
    SIGNAL = 4  # others may wait for this: a start, a result, an item in a queue
    AWAIT = 5  # went on, maybe only because of what was signalled before
    JOIN = 6  # another execution has ended
    END = 7  # of the trace


@dataclass(frozen=True, slots=True)
class TracedExecution:
    """An execution of the recorded run."""

    name: str
    role: str
    """The name without the numbers that threads are given: the same in every run."""


@dataclass(frozen=True, slots=True)
class TracedLock:
    """A lock, in terms by which another run can identify it."""

    name: str
    key: str | None
    policy: RWPolicy | None
    """The policy of a read/write lock; `None` for an exclusive one."""

    def __str__(self) -> str:
        return self.name if self.key is None else f"{self.name} {self.key}"


@dataclass(frozen=True, slots=True)
class TracedThing:
    """Something that executions wait for without a limit, besides locks and ends of threads."""

    text: str
    """What is waited for, in words."""
    kind: ThingKind


@dataclass(slots=True, unsafe_hash=True)
class Event:
    """One thing that one execution did.

    Events are never changed. They are not frozen, since there are millions, and frozen ones take three
    times as long to create.
    """

    kind: EventKind
    execution: int
    object: int
    """The lock, what was signalled, or the execution that ended; by number."""
    mode: Mode = "W"
    """Of a lock; a signal that ends no wait, and what takes one of several items, are `R`."""
    attempt: Attempt = "block"
    """How long it would have waited; what only comes after signals is a `try`. A signal that is a
    `try` is not one: the execution begins to wait for the thing."""
    site: int = 0


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of a run, as far as they were kept."""

    events: tuple[Event, ...]
    executions: Mapping[int, TracedExecution]
    locks: Mapping[int, TracedLock]
    sites: Mapping[int, Frame]
    notices: tuple[str, ...] = ()
    """What is missing, in words."""
    late: bool = False
    """Whether the beginning is missing."""
    things: Mapping[int, TracedThing] = field(default_factory=dict)
    """What executions waited for without a limit; other objects of signals only order events."""


NOWHERE: Final = Frame("?", 0, "?", "")
"""The place of an event that has none."""
