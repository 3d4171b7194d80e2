"""A trace: events in the order in which they happened, their layout in its file, and reading that file.

A lock is noted as taken after it was taken, and as left before it is released. So critical sections that
exclude each other in the program do so in the trace, whichever thread wrote first.

The file begins with its magic, the size of a segment and their number. A segment begins with its number in
the sequence and contains everything that its events refer to, so the oldest one can be overwritten. Its
records follow, up to the first one that is all zeros:

* An *event* is one word of eight bytes: what happened, a checksum, and the execution, the object and the
  place. These three are numbers that a segment gives to names anew; so two bytes each are enough.
* A *name* is a head of one word and JSON, filled up to whole words. Names of one kind are numbered from one,
  as they come; zero is no name. The JSON begins with the number of the thing in the whole trace.

Checksums depend on the number of the segment, so remains of an older one are not read as records. The file
of a process that was killed can be read as well.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast, final
from zlib import crc32

from ..findings.terms import Frame, LockCheckError, Mode, RWPolicy
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
    """A file is not a trace, or is broken in a way that no crash explains."""


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
    """The object of the wait, in words."""
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
    """The missing parts, in words."""
    late: bool = False
    """Whether the beginning is missing."""
    things: Mapping[int, TracedThing] = field(default_factory=dict)
    """The objects that executions waited for without a limit; other objects of signals only order events."""


NOWHERE: Final = Frame("?", 0, "?", "")
"""The place of an event without one."""
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
        ValueError: the word is not an event of the segment.
    """
    what, check, execution, thing, site = _EVENT.unpack(word)
    if check != crc32(_EVENT.pack(what, 0, execution, thing, site), segment) & 0xFF:
        raise ValueError("the checksum of an event is wrong")
    how = what >> _KIND_BITS
    kind = EventKind(what & ((1 << _KIND_BITS) - 1))
    attempt = how >> _MODE_BITS
    if attempt >= len(_ATTEMPTS):
        raise ValueError(f"expected an attempt, got {attempt}")
    return kind, _MODES[how & 1], _ATTEMPTS[attempt], execution, thing, site


def packed_name(kind: int, said: Sequence[str | int | None], segment: int) -> bytes:
    """Return a name, as whole words."""
    text = json.dumps(said).encode()
    record = NAME_HEAD.pack(kind, len(text), crc32(text, segment)) + text
    return record + bytes(-len(record) % WORD_BYTES)


def packed_segment_head(number: int) -> bytes:
    """Return the head of a segment."""
    return SEGMENT_HEAD.pack(number, crc32(struct.pack("<I", number)))


_ANY_VERSION: Final = MAGIC[: MAGIC.index(b"\n") - 1]


def is_trace(path: Path) -> bool:
    """Return whether a file begins as a trace does, of any version."""
    with path.open("rb") as file:
        return file.read(len(_ANY_VERSION)) == _ANY_VERSION


def read_trace(path: Path) -> Trace:
    """Read a trace, also one whose process was killed.

    Raises:
        TraceFileError: the file is not a trace, one of another version, or broken; the text has the place.
    """
    data = path.read_bytes()
    if len(data) < FILE_HEAD.size or not data.startswith(_ANY_VERSION):
        raise TraceFileError(f"{path}: no trace of locks: the magic at offset 0 is missing")
    magic, segment_bytes, segments = FILE_HEAD.unpack_from(data)
    if magic != MAGIC:
        raise TraceFileError(
            f"{path}: a trace of version {_version(magic)}, where version {_version(MAGIC)} is read: "
            "record it anew"
        )
    if segments < 2 or segment_bytes % WORD_BYTES or len(data) != FILE_HEAD.size + segment_bytes * segments:
        raise TraceFileError(
            f"{path}: the head at offset {len(MAGIC)} says {segments} segments of {segment_bytes} bytes, "
            f"but the file has {len(data)} bytes"
        )
    return _TraceReader(path, data, segment_bytes, segments).read()


def _version(magic: bytes) -> str:
    return magic[len(_ANY_VERSION) :].partition(b"\n")[0].decode("ascii", "replace")


@final
class _TraceReader:
    def __init__(self, path: Path, data: bytes, segment_bytes: int, segments: int) -> None:
        self._path = path
        self._data = data
        self._segment_bytes = segment_bytes
        self._starts = [FILE_HEAD.size + place * segment_bytes for place in range(segments)]
        self._at = 0
        """The offset at which it reads."""
        self._events: list[Event] = []
        self._executions: dict[int, TracedExecution] = {}
        self._locks: dict[int, TracedLock] = {}
        self._sites: dict[int, Frame] = {}
        self._things: dict[int, TracedThing] = {}
        self._numbers: dict[int, list[int]] = {}
        """For each kind of name, the numbers in the whole trace of those that the segment has numbered."""

    def read(self) -> Trace:
        numbers = sorted(self._numbered())
        if not numbers or [number for number, _ in numbers] != list(
            range(numbers[0][0], numbers[0][0] + len(numbers))
        ):
            found = ", ".join(f"{number} at offset {start}" for number, start in numbers)
            raise TraceFileError(f"{self._path}: the segments make no sequence: {found or 'there is none'}")
        first, last = numbers[0][0], numbers[-1][0]
        notices: list[str] = []
        if first > 1:
            notices.append(
                f"the first {first - 1} of {last} segments were written over: "
                "what happened before is not known"
            )
        ended = False
        for number, start in numbers:
            try:
                ended = self._take_segment(number, start)
            except (struct.error, ValueError, TypeError, LookupError, RecursionError) as error:
                if number != last:
                    raise TraceFileError(
                        f"{self._path}: the record at offset {self._at} is broken: {error}"
                    ) from None
        if not ended:
            notices.append(f"the trace was not closed: it is cut off at offset {self._at}")
        return Trace(
            tuple(self._events),
            self._executions,
            self._locks,
            self._sites,
            tuple(notices),
            late=first > 1,
            things=self._things,
        )

    def _numbered(self) -> Iterator[tuple[int, int]]:
        for start in self._starts:
            head = self._data[start : start + SEGMENT_HEAD.size]
            number, _ = SEGMENT_HEAD.unpack(head)
            if number and head == packed_segment_head(number):
                yield number, start
            elif any(head):
                raise TraceFileError(f"{self._path}: the head of the segment at offset {start} is broken")

    def _take_segment(self, number: int, start: int) -> bool:
        """Take the records of a segment; return whether the trace ends there.

        Equal events share one object: most words occurred before.
        """
        self._numbers = {kind: [0] for kind in (EXECUTION, LOCK, SITE, THING)}
        end = start + self._segment_bytes
        known: dict[int, Event] = {}
        words = iter(memoryview(self._data)[start + SEGMENT_HEAD.size : end].cast("Q").tolist())
        for word in words:
            event = known.get(word)
            if event is not None:
                self._events.append(event)
                continue
            self._at = end - (length_hint(words) + 1) * WORD_BYTES
            if not word:
                return False
            if self._data[self._at] in self._numbers:
                more = self._take_name(number, end) // WORD_BYTES
                next(islice(words, more, more), None)
                continue
            event = known[word] = self._event(number)
            if event.kind is EventKind.END:
                return True
            self._events.append(event)
        self._at = end
        return False

    def _event(self, segment: int) -> Event:
        word = self._data[self._at : self._at + WORD_BYTES]
        kind, mode, attempt, execution, thing, site = unpacked_event(word, segment)
        numbers = self._numbers
        return Event(
            kind,
            numbers[EXECUTION][execution],
            numbers[table_of(kind)][thing],
            mode,
            attempt,
            numbers[SITE][site],
        )

    def _take_name(self, segment: int, end: int) -> int:
        """Take a name; return how many bytes it has after its head."""
        kind: int
        length: int
        kind, length, check = NAME_HEAD.unpack_from(self._data, self._at)
        start = self._at + NAME_HEAD.size
        text = self._data[start : start + length]
        if start + length > end or check != crc32(text, segment):
            raise ValueError("the checksum of a name is wrong")
        number, *said = json.loads(text)
        self._numbers[kind].append(number)
        if kind == EXECUTION:
            self._executions[number] = TracedExecution(str(said[0]), str(said[1]))
        elif kind == LOCK:
            policy = cast("RWPolicy | None", said[2] if said[2] in {"writer", "reader"} else None)
            self._locks[number] = TracedLock(str(said[0]), None if said[1] is None else str(said[1]), policy)
        elif kind == SITE:
            self._sites[number] = Frame(str(said[0]), int(said[1]), str(said[2]), str(said[3]))
        elif len(said) > 1 and said[1] in THING_KINDS:
            self._things[number] = TracedThing(str(said[0]), THING_KINDS[said[1]])
        return length + -length % WORD_BYTES
