"""The layout of a trace in its file: a ring of segments, each a sequence of records.

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
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from ..findings.evidence import Mode
from ..holding.chains import Attempt
from .trace import Event, EventKind

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
_TABLES: Final = {
    EventKind.TOOK: LOCK,
    EventKind.FAILED: LOCK,
    EventKind.LEFT: LOCK,
    EventKind.JOIN: EXECUTION,
}
_KIND_BITS, _MODE_BITS = 3, 1


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
