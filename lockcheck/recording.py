"""Writing down what happens: a session at the level `record`, and who tells it of more than locks."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

from .errors import LockUsageError
from .findings import Rung
from .levels import Level
from .runtime import local, runtime
from .sessions import Session
from .signals import signals_heard
from .stacks import caller, capture, resolve
from .trace import NOWHERE, Event, EventKind, TracedLock, TracedUnit
from .trace_file import SEGMENT_BYTES, SEGMENTS, TraceWriter
from .witness import role_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import CodeType

    from .findings import Frame, Mode
    from .holding import Attempt, Grip, Unit
    from .order import Order
    from .sessions import Action

__all__ = ["NOTE_ALL", "Recorder", "events_written", "recording"]

NOTE_ALL: Final[Mapping[Rung, Action]] = {rung: "record" for rung in Rung if rung is not Rung.R5}
"""Raise nothing but what breaks a real deadlock: the program is to do what it always does."""


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

    def lock(self, kind: EventKind, grip: Grip) -> None:
        """Write down what became of a lock."""
        lock = grip.lock
        traced = TracedLock(lock.name, None if lock.key is None else str(lock.key), lock.policy)
        self._note(kind, lambda: lock.serial, grip.mode, grip.attempt, traced)

    def tell(self, kind: EventKind, thing: object) -> None:
        """Write down that something was signalled or awaited."""
        self._note(kind, lambda: self._token(thing))

    def joined(self, ended: Unit, *, endless: bool) -> None:
        """Write down that another unit has ended."""
        self._note(EventKind.JOIN, lambda: ended.serial, attempt="block" if endless else "timed")

    def close(self) -> None:
        """Write the end of the trace; what still runs is not heard from here on."""
        with self._mutex:
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def _note(
        self, kind: EventKind, number: Callable[[], int], mode: Mode = "W", attempt: Attempt = "block",
        lock: TracedLock | None = None,
    ) -> None:  # fmt: skip
        unit = local.unit
        if unit.inside or os.getpid() != self._process:
            return  # the checker itself, or a fork, which shares the file with us
        unit.inside = True
        try:
            with self._mutex:
                if self._writer is None:
                    return
                traced = TracedUnit(unit.name, role_of(unit.name))
                if unit not in self._begun:
                    self._begun.add(unit)
                    start = Event(EventKind.AWAIT, unit.serial, self._token(threading.current_thread()))
                    self._writer.event(start, traced, None, None)
                place, site = self._here()
                event = Event(kind, unit.serial, number(), mode, attempt, place)
                self._writer.event(event, traced, lock, site)
        finally:
            unit.inside = False

    def _token(self, thing: object) -> int:
        known = self._tokens.get(thing)
        if known is None:
            known = self._tokens[thing] = next(self._serials)
        return known

    def _here(self) -> tuple[int, Frame]:
        frame = caller()
        if frame is None:
            return 0, NOWHERE
        place = frame.f_code, frame.f_lasti
        known = self._sites.get(place)
        if known is None:
            (site,) = resolve(capture(frame)[:1])
            known = self._sites[place] = len(self._sites) + 1, site
        return known


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
