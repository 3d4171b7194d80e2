"""Writing a trace: into segments of its file that are mapped, so that the end of the process loses nothing.

The word of an event is valid as long as its segment: an equal event writes the same word again, by one call
and under no lock. A segment that is left is closed, and refuses writes; so nothing is written to it after
something was written to the next one.

Without a global interpreter lock two calls would write to the same place, so there they take turns. No lock
of `threading` gives the turn: it would be held between two instructions, where a signal handler may run and
wait for another thread, which waits for the turn. See `_Turn`.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections import deque
from collections.abc import Callable, Sequence
from itertools import starmap
from pathlib import Path
from typing import Final, TypeAlias, final

from ..findings.terms import Frame, LockUsageError
from ..holding.runtime import has_global_lock
from .trace import (
    EXECUTION,
    FILE_HEAD,
    LOCK,
    MAGIC,
    NUMBER_MAX,
    SEGMENT_HEAD,
    SITE,
    THING,
    WORD_BYTES,
    Event,
    EventKind,
    TracedExecution,
    TracedLock,
    TracedThing,
    packed_event,
    packed_name,
    packed_segment_head,
    table_of,
)

Said: TypeAlias = "TracedExecution | TracedLock | TracedThing | Frame | None"
"""The contents of a name besides its number."""
Description: TypeAlias = "tuple[Said, Said, Said]"
"""The execution of an event, its object (a lock, another execution, or a thing), and the place."""
Write: TypeAlias = "Callable[[bytes], object]"
"""Writes a record; raises `ValueError` if the segment has no room for it, or was left."""
_CANNOT_RESERVE: Final = frozenset({errno.EINVAL, errno.EOPNOTSUPP})
_TEXT_LENGTH_MAX: Final = 200
SEGMENT_BYTES: Final = 1 << 20
SEGMENT_BYTES_MIN: Final = 1 << 13
SEGMENTS: Final = 16


@final
class TraceWriter:
    """Writes a trace; callers take turns.

    Args:
        path: the file, which is overwritten.
        segment_bytes: the size of a segment, a multiple of eight.
        segments: how many there are; with the size it bounds the file.

    Raises:
        LockUsageError: there would be fewer than two segments, or they would be too small for one event.
        OSError: the file cannot be made, or the disk has no room for a segment.
    """

    def __init__(self, path: Path, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS) -> None:
        if segments < 2 or segment_bytes < SEGMENT_BYTES_MIN or segment_bytes % WORD_BYTES:
            raise LockUsageError(
                f"a trace of {segments} segments of {segment_bytes} bytes cannot be: "
                f"2 of {SEGMENT_BYTES_MIN} are the least, and {WORD_BYTES} divides their size"
            )
        self._segment_bytes = segment_bytes
        self._segments = segments
        self._file = path.open("w+b", buffering=0)
        try:
            self._file.truncate(FILE_HEAD.size + segment_bytes * segments)
            self._segment = self._mapped(1)
        except OSError:
            self._file.close()
            raise

    def event(
        self, event: Event, describe: Callable[[], Description], others: Sequence[Event] = ()
    ) -> tuple[Write, list[bytes]]:
        """Write an event.

        Args:
            event: what happened.
            describe: returns the execution, the object and the place; called if the segment does not have
                all of their names yet.
            others: other events of the same execution with the same lock, which are written later.

        Returns:
            A function that writes records as long as the segment is not left, and the records of all events.

        Raises:
            OSError: the disk has no room for the next segment; nothing can be written after that.
        """
        every = (event, *others)
        while True:
            segment = self._segment
            try:
                records = [segment.packed(one) for one in every]
            except KeyError:
                if not segment.name(every, describe()):
                    self._next_segment()
                continue
            if segment.put(records[0]):
                return segment.write, records
            self._next_segment()

    @property
    def used_bytes(self) -> int:
        """How many bytes were written, including those that were overwritten."""
        return (self._segment.number - 1) * self._segment_bytes + self._segment.used_bytes

    def close(self) -> None:
        """Write the end of the trace, and close the file."""
        end = Event(EventKind.END, 0, 0)
        while not self._segment.put(self._segment.packed(end)):
            self._next_segment()
        self.abandon()

    def abandon(self) -> None:
        """Close the file without a change."""
        self._segment.close()
        self._file.close()

    def forget(self) -> None:
        """Close the file in a forked child: it belongs to the parent."""
        self._segment.unmap()
        self._file.close()

    def _next_segment(self) -> None:
        self._segment.close()
        self._segment = self._mapped(self._segment.number + 1)

    def _mapped(self, number: int) -> _FileSegment:
        """Map a segment of the file, cleared; its head is written last.

        The head of the file is in the map of the first one. To write it separately before stalls the first
        access to the second page of the map for milliseconds, on ext4.
        """
        start = FILE_HEAD.size + (number - 1) % self._segments * self._segment_bytes
        self._reserve(start)
        below = start % mmap.ALLOCATIONGRANULARITY
        room = mmap.mmap(self._file.fileno(), below + self._segment_bytes, offset=start - below)
        if number == 1:
            room.write(FILE_HEAD.pack(MAGIC, self._segment_bytes, self._segments))
        if number > self._segments:
            room[below : below + SEGMENT_HEAD.size] = bytes(SEGMENT_HEAD.size)
            room[below:] = bytes(self._segment_bytes)
        room.seek(below)
        room.write(packed_segment_head(number))
        return _FileSegment(room, below, number)

    def _reserve(self, start: int) -> None:
        """Reserve room on the disk for a segment, if the system can: a write without it ends the process."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            os.posix_fallocate(self._file.fileno(), start, self._segment_bytes)
        except OSError as error:
            if error.errno not in _CANNOT_RESERVE:
                raise


@final
class _Turn:
    """Makes calls of built-in functions one at a time, also without a global interpreter lock.

    CPython lets one thread at a time into a method of a `deque`, and this one makes the call before it
    returns. So the turn begins and ends within one instruction, and an interruption of the thread comes
    before it or after it.
    """

    __slots__ = ("_extend",)

    def __init__(self) -> None:
        self._extend = deque[object](maxlen=0).extend

    def call(self, function: Callable[..., object], *given: object) -> None:
        """Call a built-in function that calls no Python code, and pass on what it raises."""
        self._extend(starmap(function, (given,)))


@final
class _FileSegment:
    """A segment of the file, and the numbers that it has for names."""

    __slots__ = ("_below", "_map", "_numbers", "_turn", "number", "write")

    def __init__(self, room: mmap.mmap, below: int, number: int) -> None:
        self._map = room
        self._below = below
        self.number = number
        self._turn = _Turn()
        self.write: Write = room.write if has_global_lock() else self._write_in_turn
        self._numbers: dict[int, dict[int, int]] = {kind: {0: 0} for kind in (EXECUTION, LOCK, SITE, THING)}
        """The numbers of names, by kind and by the number in the whole trace."""

    @property
    def used_bytes(self) -> int:
        return self._map.tell() - self._below

    def put(self, record: bytes) -> bool:
        """Write a record; return whether there was room."""
        try:
            self.write(record)
        except ValueError:
            return False
        return True

    def close(self) -> None:
        """Refuse all later writes."""
        self._turn.call(self._map.close)

    def unmap(self) -> None:
        """Refuse all later writes, in a forked child: the thread that had the turn may not exist there."""
        self._map.close()

    def name(self, events: Sequence[Event], description: Description) -> bool:
        """Write the names that the segment does not have; return whether there was room for them.

        An interruption meanwhile, by Ctrl-C, leaves the segment: it may have a name that is not counted.
        """
        try:
            return all(
                self._name(kind, number, said)
                for event in events
                for (kind, number), said in zip(_named_by(event), description, strict=True)
            )
        except BaseException:
            self.close()
            raise

    def _name(self, kind: int, number: int, said: Said) -> bool:
        known = self._numbers[kind]
        if number in known:
            return True
        if len(known) > NUMBER_MAX or not self.put(packed_name(kind, [number, *_words(said)], self.number)):
            return False
        known[number] = len(known)
        return True

    def packed(self, event: Event) -> bytes:
        """Return the record of an event; raise `KeyError` if the segment does not have its names."""
        numbers = self._numbers
        return packed_event(
            event,
            numbers[EXECUTION][event.execution],
            numbers[table_of(event.kind)][event.object],
            numbers[SITE][event.site],
            self.number,
        )

    def _write_in_turn(self, record: bytes) -> None:
        self._turn.call(self._map.write, record)


def _named_by(event: Event) -> tuple[tuple[int, int], ...]:
    """Return the kinds and numbers of the execution, the object and the place of an event."""
    return (EXECUTION, event.execution), (table_of(event.kind), event.object), (SITE, event.site)


def _words(said: Said) -> list[str | int | None]:
    """Return the contents of a name."""
    if isinstance(said, TracedExecution):
        return [_cut(said.name), _cut(said.role)]
    if isinstance(said, TracedLock):
        return [_cut(said.name), None if said.key is None else _cut(said.key), said.policy]
    if isinstance(said, TracedThing):
        return [_cut(said.text), said.kind]
    if said is None:
        return []
    return [_cut(said.file), said.line, _cut(said.function), _cut(said.source)]


def _cut(text: str) -> str:
    """Shorten a text and keep its end, which tells more for paths and keys."""
    return text if len(text) <= _TEXT_LENGTH_MAX else "..." + text[3 - _TEXT_LENGTH_MAX :]
