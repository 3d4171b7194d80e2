"""Reading the file of a trace, also one whose process was killed; for the layout see `trace`."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Final, cast, final
from zlib import crc32

from ..findings.evidence import Frame, RWPolicy
from .trace import (
    EXECUTION,
    FILE_HEAD,
    LOCK,
    MAGIC,
    NAME_HEAD,
    SEGMENT_HEAD,
    SITE,
    THING,
    THING_KINDS,
    WORD_BYTES,
    Event,
    EventKind,
    Trace,
    TracedExecution,
    TracedLock,
    TracedThing,
    TraceFileError,
    packed_segment_head,
    table_of,
    unpacked_event,
)

_ANY_VERSION: Final = MAGIC[: MAGIC.index(b"\n") - 1]


def is_trace(path: Path) -> bool:
    """Return whether a file begins as a trace does, of any version."""
    with path.open("rb") as file:
        return file.read(len(_ANY_VERSION)) == _ANY_VERSION


def read_trace(path: Path) -> Trace:
    """Read a trace, also one whose process was killed.

    Raises:
        TraceFileError: the file is no trace, one of another version, or broken; the text says where.
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
