"""Writing down what happens: a session at the level `record`, and who tells it of more than locks."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, final

from .errors import LockUsageError
from .holding import LockIdentity, Unit
from .levels import Level
from .runtime import local, runtime
from .sessions import NOTE_ALL, Session
from .signals import signals_heard
from .stacks import caller, resolve
from .trace import Event, EventKind, TracedLock, TracedUnit
from .trace_file import SEGMENT_BYTES, SEGMENTS, TraceWriter
from .witness import role_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import CodeType

    from .findings import Frame, Mode
    from .holding import Attempt
    from .order import Order

__all__ = ["Recorder", "events_written", "recording"]

_TOOK, _LEFT = EventKind.TOOK, EventKind.LEFT


@final
class Recorder:
    """Writes the events of a process to a trace, one at a time."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer: TraceWriter | None = writer
        self._process = os.getpid()
        self._mutex = threading.RLock()
        self._serials = itertools.count(1)
        self._tokens: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
        self._sites: dict[tuple[CodeType, int], tuple[int, Frame]] = {}
        self._begun: weakref.WeakSet[Unit] = weakref.WeakSet()

    def lock(self, kind: EventKind, lock: LockIdentity, mode: Mode, attempt: Attempt = "block") -> None:
        """Write down what became of a lock."""
        self._note(kind, lock, mode, attempt)

    def tell(self, kind: EventKind, thing: object) -> None:
        """Write down that something was signalled or awaited."""
        self._note(kind, thing)

    def joined(self, ended: Unit, *, endless: bool) -> None:
        """Write down that another unit has ended."""
        self._note(EventKind.JOIN, ended, attempt="block" if endless else "timed")

    def close(self) -> None:
        """Write the end of the trace; what still runs is not heard from here on."""
        with self._mutex:
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def _note(self, kind: EventKind, thing: object, mode: Mode = "W", attempt: Attempt = "block") -> None:
        unit, session = local.unit, runtime.session
        if unit.inside or session is None or os.getpid() != self._process:
            return  # the checker itself, or a fork, which shares the file with us
        unit.inside = True
        try:
            with self._mutex:
                session.guarded(lambda: self._write(unit, kind, thing, mode, attempt), lambda: None)
        finally:
            unit.inside = False

    def _write(self, unit: Unit, kind: EventKind, thing: object, mode: Mode, attempt: Attempt) -> None:
        writer = self._writer
        if writer is None:
            return
        if unit not in self._begun:
            self._begun.add(unit)
            start = Event(EventKind.AWAIT, unit.serial, self._token(threading.current_thread()))
            writer.event(start, lambda: (_traced(unit), None, None))
        number = thing.serial if isinstance(thing, (LockIdentity, Unit)) else self._token(thing)
        place, site = (0, None) if kind is _LEFT else self._here(unit, taken=kind is _TOOK)
        writer.event(
            Event(kind, unit.serial, number, mode, attempt, place),
            lambda: (_traced(unit), _traced_lock(thing) if isinstance(thing, LockIdentity) else None, site),
        )

    def _token(self, thing: object) -> int:
        known = self._tokens.get(thing)
        if known is None:
            known = self._tokens[thing] = next(self._serials)
        return known

    def _here(self, unit: Unit, *, taken: bool) -> tuple[int, Frame | None]:
        """Return the place where the program is; that of what was just taken is known already."""
        node = unit.node
        if taken and node.code is not None:
            place = node.code, node.instruction
        else:
            frame = caller()
            if frame is None:
                return 0, None
            place = frame.f_code, frame.f_lasti
        known = self._sites.get(place)
        if known is None:
            (site,) = resolve((place,))
            known = self._sites[place] = len(self._sites) + 1, site
        return known


def _traced(unit: Unit) -> TracedUnit:
    return TracedUnit(unit.name, role_of(unit.name))


def _traced_lock(lock: LockIdentity) -> TracedLock:
    return TracedLock(lock.name, None if lock.key is None else str(lock.key), lock.policy)


@contextmanager
def recording(
    path: Path, order: Order | None = None, *, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS
) -> Iterator[Session]:
    """Open a session that writes every event of its locks to a file, and raises only in real deadlocks.

    Args:
        path: the trace, which is made anew.
        order: the declared order, if any.
        segment_bytes: the size of a segment of the file.
        segments: how many there are; when the last one is full the oldest is written over.

    Raises:
        LockUsageError: another recording goes on, or the sizes are too small.
    """
    with (
        Session(order, level=Level.RECORD, on=NOTE_ALL) as opened,
        events_written(path, segment_bytes=segment_bytes, segments=segments),
    ):
        yield opened


@contextmanager
def events_written(
    path: Path, *, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS
) -> Iterator[None]:
    """Write every event of recorded locks to a file while the body runs; arguments as for `recording`.

    Raises:
        LockUsageError: another recording goes on, or the sizes are too small.
    """
    if runtime.recorder is not None:
        raise LockUsageError(f"{path}: another recording goes on")
    recorder = Recorder(TraceWriter(path, segment_bytes, segments))
    try:
        with signals_heard():
            runtime.recorder = recorder
            try:
                yield
            finally:
                runtime.recorder = None
    finally:
        recorder.close()
