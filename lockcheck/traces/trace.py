"""A trace: events in the order in which they happened, and their layout in its file.

A lock is noted as taken after it was taken, and as left before it is released. So critical sections that
exclude each other in the program do so in the trace, whichever thread wrote first.

The file begins with its magic, the size of a segment and their number. A segment begins with its number in
the sequence and contains everything that its events refer to, so the oldest one can be overwritten. Its
records follow, up to the first one that is all zeros:

* An *event* is one word of eight bytes: what happened, a checksum, and the execution, the object and the
  place. These three are numbers that a segment gives to names anew; so two bytes each are enough.
* A *name* is a head of one word and JSON, filled up to whole words. Names of one kind are numbered from one,
  as they come; zero is no name. The JSON begins with the number of the thing in the whole trace.

Checksums depend on the number of the segment, so remains of an older one are not read as records.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Literal, TypeAlias
from zlib import crc32

from ..findings.errors import LockCheckError
from ..findings.evidence import Frame, Mode, RWPolicy
from ..holding.chains import Attempt

ThingKind: TypeAlias = Literal["flag", "items", "wakeups"]
"""How signals end waits for a thing: a flag stays set, an item is for one that waits, and a wakeup is for one
that waits already."""
THING_KINDS: Final[Mapping[str, ThingKind]] = {"flag": "flag", "items": "items", "wakeups": "wakeups"}
"""As traces name them."""
MAGIC: Final = b"LOCKTRACE2\n\0\0\0\0\0"
FILE_HEAD: Final = struct.Struct("<16sII")
"""Magic, bytes a segment, number of segments."""
SEGMENT_HEAD: Final = struct.Struct("<II")
"""Number in the sequence, from one, and its checksum."""
NAME_HEAD: Final = struct.Struct("<BxHI")
"""Kind, length of the JSON, and its checksum."""
_EVENT: Final = struct.Struct("<BBHHH")
"""Kind, mode and attempt; checksum; execution, object, site."""
WORD_BYTES: Final = 8
NUMBER_MAX: Final = 0xFFFF
"""How many names of one kind a segment has at most."""
EXECUTION, LOCK, SITE, THING = 0x81, 0x82, 0x83, 0x84
"""Kinds of names; no event begins with one of them. Things are objects of signals."""
_MODES: Final[tuple[Mode, ...]] = ("R", "W")
_ATTEMPTS: Final[tuple[Attempt, ...]] = ("block", "timed", "try")
_KIND_BITS, _MODE_BITS = 3, 1


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
_TABLES: Final = {
    EventKind.TOOK: LOCK,
    EventKind.FAILED: LOCK,
    EventKind.LEFT: LOCK,
    EventKind.JOIN: EXECUTION,
}


def table_of(kind: EventKind) -> int:
    """Return the kind of names that the objects of an event have."""
    return _TABLES.get(kind, THING)


def packed_event(event: Event, execution: int, thing: int, site: int, segment: int) -> bytes:
    """Return an event as a word.

    Args:
        event: what happened.
        execution: the number of its execution in the segment.
        thing: the number of its object in the segment.
        site: the number of its place in the segment.
        segment: the number of the segment.
    """
    how = _MODES.index(event.mode) | _ATTEMPTS.index(event.attempt) << _MODE_BITS
    what = event.kind | how << _KIND_BITS
    check = crc32(_EVENT.pack(what, 0, execution, thing, site), segment) & 0xFF
    return _EVENT.pack(what, check, execution, thing, site)


def unpacked_event(word: bytes, segment: int) -> tuple[EventKind, Mode, Attempt, int, int, int]:
    """Return kind, mode and attempt of an event, and the numbers of its execution, object and place.

    Raises:
        ValueError: the word is no event of the segment.
    """
    what, check, execution, thing, site = _EVENT.unpack(word)
    if check != crc32(_EVENT.pack(what, 0, execution, thing, site), segment) & 0xFF:
        raise ValueError("the checksum of an event is wrong")
    how = what >> _KIND_BITS
    kind = EventKind(what & ((1 << _KIND_BITS) - 1))
    attempt = how >> _MODE_BITS
    if attempt >= len(_ATTEMPTS):
        raise ValueError(f"{attempt} is no attempt")
    return kind, _MODES[how & 1], _ATTEMPTS[attempt], execution, thing, site


def packed_name(kind: int, said: Sequence[str | int | None], segment: int) -> bytes:
    """Return a name, as whole words."""
    text = json.dumps(said).encode()
    record = NAME_HEAD.pack(kind, len(text), crc32(text, segment)) + text
    return record + bytes(-len(record) % WORD_BYTES)


def packed_segment_head(number: int) -> bytes:
    """Return the head of a segment."""
    return SEGMENT_HEAD.pack(number, crc32(struct.pack("<I", number)))
