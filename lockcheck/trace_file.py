"""The file of a trace: a ring of segments in memory that is mapped to it, so that a crash loses nothing.

Each segment begins with its number in the sequence and says by itself everything that its events refer to.
When the last one is full the oldest is written over, and readers say how many were lost. A record has a
length and a checksum; the number of its segment is part of the checksum. So what is left over from an older
segment, or was torn by the end of the process, is not taken for a record.
"""

from __future__ import annotations

import json
import mmap
import struct
from typing import TYPE_CHECKING, Final, TypeAlias, cast, final
from zlib import crc32

from .errors import LockUsageError
from .findings import Frame
from .trace import Event, EventKind, Trace, TracedLock, TracedUnit, TraceFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .findings import Mode
    from .holding import Attempt
    from .rwlock import Policy

__all__ = ["Description", "TraceWriter", "is_trace", "read_trace"]

_MAGIC: Final = b"LOCKTRACE1\n\0\0\0\0\0"
_FILE: Final = struct.Struct("<16sII")
"""Magic, bytes a segment, number of segments."""
_SEGMENT: Final = struct.Struct("<II")
"""Number in the sequence, from one, and its checksum."""
_RECORD: Final = struct.Struct("<IH")
"""Checksum and length of what follows."""
_EVENT: Final = struct.Struct("<BBBxIII")
"""Kind, mode, attempt, unit, object, site."""
_NAME: Final = struct.Struct("<BI")
"""Kind and number; then JSON."""
_UNIT, _LOCK, _SITE = 16, 17, 18
_KINDS: Final = {int(kind): kind for kind in EventKind}
_MODES: Final[tuple[Mode, ...]] = ("R", "W")
_ATTEMPTS: Final[tuple[Attempt, ...]] = ("block", "timed", "try")
_NUMBER_OF_MODE: Final = {mode: number for number, mode in enumerate(_MODES)}
_NUMBER_OF_ATTEMPT: Final = {attempt: number for number, attempt in enumerate(_ATTEMPTS)}
_OF_LOCKS: Final = frozenset({EventKind.TOOK, EventKind.FAILED, EventKind.LEFT})
Description: TypeAlias = "tuple[TracedUnit, TracedLock | None, Frame | None]"
"""Who did something, with which lock, and where."""
_TEXT_LENGTH_MAX: Final = 200
SEGMENT_BYTES: Final = 1 << 18
SEGMENT_BYTES_MIN: Final = 1 << 13
SEGMENTS: Final = 64


@final
class TraceWriter:
    """Writes a trace; callers take turns.

    Args:
        path: the file, which is made anew.
        segment_bytes: the size of a segment.
        segments: how many there are; with the size it bounds the file.

    Raises:
        LockUsageError: there would be fewer than two segments, or they would be too small for one event.
    """

    def __init__(self, path: Path, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS) -> None:
        if segments < 2 or segment_bytes < SEGMENT_BYTES_MIN:
            raise LockUsageError(
                f"a trace of {segments} segments of {segment_bytes} bytes is too small: "
                f"2 of {SEGMENT_BYTES_MIN} are the least"
            )
        self._segment_bytes = segment_bytes
        self._segments = segments
        self._file = path.open("w+b")
        self._file.truncate(_FILE.size + segment_bytes * segments)
        self._map = mmap.mmap(self._file.fileno(), 0)
        _FILE.pack_into(self._map, 0, _MAGIC, segment_bytes, segments)
        self._number = 0
        self._units: set[int] = set()
        self._locks: set[int] = set()
        self._sites: set[int] = set()
        self._at = self._end = 0
        self._next_segment()

    def event(self, event: Event, describe: Callable[[], Description]) -> None:
        """Write an event.

        Args:
            event: what happened.
            describe: tells who did it, with which lock and where; asked for where the segment does not
                have all of their names yet.
        """
        if self._at + _RECORD.size + _EVENT.size > self._end:
            self._next_segment()
        if not self._knows(event):
            self._name(event, *describe())
        self._write(
            _EVENT.pack(
                event.kind,
                _NUMBER_OF_MODE[event.mode],
                _NUMBER_OF_ATTEMPT[event.attempt],
                event.unit,
                event.object,
                event.site,
            )
        )

    @property
    def used_bytes(self) -> int:
        """How much was written, what was written over included."""
        start = _FILE.size + (self._number - 1) % self._segments * self._segment_bytes
        return (self._number - 1) * self._segment_bytes + self._at - start

    def close(self) -> None:
        """Say that the trace ends here, and let go of the file."""
        if self._at + _RECORD.size + _EVENT.size > self._end:
            self._next_segment()
        self._write(_EVENT.pack(EventKind.END, 0, 0, 0, 0, 0))
        self._map.flush()
        self._map.close()
        self._file.close()

    def _knows(self, event: Event) -> bool:
        return (
            event.unit in self._units
            and (event.object in self._locks or event.kind not in _OF_LOCKS)
            and event.site in self._sites
        )

    def _name(self, event: Event, unit: TracedUnit, lock: TracedLock | None, site: Frame | None) -> None:
        """Write the names that an event refers to and its segment does not have yet."""
        names: list[tuple[int, set[int], int, list[str | int | None]]] = [
            (_UNIT, self._units, event.unit, [_cut(unit.name), _cut(unit.role)])
        ]
        if lock is not None:
            key = None if lock.key is None else _cut(lock.key)
            names.append((_LOCK, self._locks, event.object, [_cut(lock.name), key, lock.policy]))
        if site is not None:
            file, source = _cut(site.file), _cut(site.source)
            place: list[str | int | None] = [file, site.line, _cut(site.function), source]
            names.append((_SITE, self._sites, event.site, place))
        records = [_NAME.pack(kind, number) + json.dumps(said).encode() for kind, _, number, said in names]
        room = sum(_RECORD.size + len(record) for record in records) + _RECORD.size + _EVENT.size
        if self._at + room > self._end:
            self._next_segment()
        for (_, known, number, _), record in zip(names, records, strict=True):
            if number not in known:
                known.add(number)
                self._write(record)

    def _next_segment(self) -> None:
        start = _FILE.size + self._number % self._segments * self._segment_bytes
        self._number += 1
        head = struct.pack("<I", self._number)
        _SEGMENT.pack_into(self._map, start, self._number, crc32(head))
        self._at, self._end = start + _SEGMENT.size, start + self._segment_bytes
        for known in (self._units, self._locks, self._sites):
            known.clear()
        self._sites.add(0)  # no place has no name

    def _write(self, payload: bytes) -> None:
        """Write a record; one that is torn by the end of the process has a checksum that is wrong."""
        record = _RECORD.pack(crc32(payload, self._number), len(payload)) + payload
        self._map[self._at : self._at + len(record)] = record
        self._at += len(record)


def _cut(text: str) -> str:
    """Shorten a text: its end says more, of paths and of keys."""
    return text if len(text) <= _TEXT_LENGTH_MAX else "..." + text[3 - _TEXT_LENGTH_MAX :]


def is_trace(path: Path) -> bool:
    """Tell whether a file begins as a trace does."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def read_trace(path: Path) -> Trace:
    """Read a trace, also one whose process has crashed.

    Raises:
        TraceFileError: the file is no trace, or broken; the text says where.
    """
    data = path.read_bytes()
    if len(data) < _FILE.size or data[: len(_MAGIC)] != _MAGIC:
        raise TraceFileError(f"{path}: no trace of locks: the magic at offset 0 is missing")
    _, segment_bytes, segments = _FILE.unpack_from(data)
    if segments < 2 or len(data) != _FILE.size + segment_bytes * segments:
        raise TraceFileError(
            f"{path}: the head at offset {len(_MAGIC)} says {segments} segments of {segment_bytes} bytes, "
            f"but the file has {len(data)} bytes"
        )
    return _Reader(path, data, segment_bytes, segments).read()


@final
class _Reader:
    def __init__(self, path: Path, data: bytes, segment_bytes: int, segments: int) -> None:
        self._path = path
        self._data = data
        self._segment_bytes = segment_bytes
        self._starts = [_FILE.size + place * segment_bytes for place in range(segments)]
        self._events: list[Event] = []
        self._units: dict[int, TracedUnit] = {}
        self._locks: dict[int, TracedLock] = {}
        self._sites: dict[int, Frame] = {}
        self._notices: list[str] = []
        self._ended = False

    def read(self) -> Trace:
        numbers = sorted(self._numbered())
        if not numbers or [number for number, _ in numbers] != list(
            range(numbers[0][0], numbers[0][0] + len(numbers))
        ):
            found = ", ".join(f"{number} at offset {start}" for number, start in numbers)
            raise TraceFileError(f"{self._path}: the segments make no sequence: {found or 'there is none'}")
        if numbers[0][0] > 1:
            self._notices.append(
                f"the first {numbers[0][0] - 1} of {numbers[-1][0]} segments were written over: "
                "what happened before is not known"
            )
        for number, start in numbers:
            at = start + _SEGMENT.size
            for offset, payload in self._records(number, at):
                self._take(offset, payload)
                at = offset + len(payload)
            if number == numbers[-1][0] and not self._ended:
                self._notices.append(f"the trace was not closed: it is cut off at offset {at}")
        return Trace(
            tuple(self._events),
            self._units,
            self._locks,
            self._sites,
            tuple(self._notices),
            late=numbers[0][0] > 1,
        )

    def _numbered(self) -> Iterator[tuple[int, int]]:
        for start in self._starts:
            number, check = _SEGMENT.unpack_from(self._data, start)
            if number and check == crc32(struct.pack("<I", number)):
                yield number, start
            elif number or check:
                raise TraceFileError(f"{self._path}: the head of the segment at offset {start} is broken")

    def _records(self, number: int, at: int) -> Iterator[tuple[int, bytes]]:
        end = at - _SEGMENT.size + self._segment_bytes
        while at + _RECORD.size <= end:
            check, length = _RECORD.unpack_from(self._data, at)
            payload = self._data[at + _RECORD.size : at + _RECORD.size + length]
            if not length or at + _RECORD.size + length > end or check != crc32(payload, number):
                return
            yield at + _RECORD.size, payload
            at += _RECORD.size + length

    def _take(self, offset: int, payload: bytes) -> None:
        try:
            if payload[0] < _UNIT:
                self._take_event(payload)
            else:
                self._take_name(payload)
        except (struct.error, ValueError, TypeError, LookupError) as error:
            raise TraceFileError(f"{self._path}: the record at offset {offset} is broken: {error}") from None

    def _take_event(self, payload: bytes) -> None:
        kind, mode, attempt, unit, thing, site = _EVENT.unpack(payload)
        if kind == EventKind.END:
            self._ended = True
            return
        self._events.append(Event(_KINDS[kind], unit, thing, _MODES[mode], _ATTEMPTS[attempt], site))

    def _take_name(self, payload: bytes) -> None:
        kind, number = _NAME.unpack_from(payload)
        said = json.loads(payload[_NAME.size :])
        if kind == _UNIT:
            self._units[number] = TracedUnit(str(said[0]), str(said[1]))
        elif kind == _LOCK:
            policy = cast("Policy | None", said[2] if said[2] in {"writer", "reader"} else None)
            self._locks[number] = TracedLock(str(said[0]), None if said[1] is None else str(said[1]), policy)
        elif kind == _SITE:
            self._sites[number] = Frame(str(said[0]), int(said[1]), str(said[2]), str(said[3]))
        else:
            raise ValueError(f"{kind} is no kind of record")
