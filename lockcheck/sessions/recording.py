"""Recording: a session at the level `record`, and the recorder that writes its events to a trace."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Final, TypeAlias, final

from ..checking.policy import NOTE_ALL
from ..findings.findings import role_of
from ..findings.foreign import ByIdentity
from ..findings.terms import Level, LockUsageError, Mode
from ..holding.chains import Acquisition, Attempt, Execution, LockIdentity, TrieNode
from ..holding.runtime import fails_open, local, note_fault, runtime, this_thread
from ..holding.stacks import caller, is_ours, resolve
from ..interception.signals import signals_heard, traced_thing
from ..order.order import Order
from ..traces.trace import Event, EventKind, TracedExecution, TracedLock
from ..traces.writer import SEGMENT_BYTES, SEGMENTS, Description, TraceWriter, Write
from .session import Session

_WITH_PLACE: Final = (EventKind.FAILED, EventKind.JOIN)
"""The events whose place is noted, besides acquisitions and waits: reports show no places of others."""
CodePlace: TypeAlias = "tuple[CodeType, int]"
"""Code and instruction."""


class _UnwordedError(Exception):
    """The trace does not have all names of an event yet: they have to be described, out of turn."""


@final
class TraceRecorder:
    """Writes the events of a process to a trace.

    A node of a trie keeps its record. So a lock that is taken or left there again writes the same record
    again without this class, as long as the segment of the trace lasts; everything else takes turns here.
    No thread has the turn while names are described: keys of locks are shown by the program, and lines of
    the code are read from its files.
    """

    def __init__(self, writer: TraceWriter) -> None:
        self._writer: TraceWriter | None = writer
        self._mutex = threading.RLock()
        self._serials = itertools.count(1)
        self._tokens = ByIdentity[int]()
        self._sites: dict[tuple[str, CodePlace], int] = {}
        """The file is part of the key: equal code on the same lines of two files compares equal."""
        self._begun: weakref.WeakSet[Execution] = weakref.WeakSet()

    @fails_open(None)
    def took(self, node: TrieNode) -> None:
        """Write that a lock was taken at a node, and keep the record there."""
        self._write_node(node, taken=True)

    @fails_open(None)
    def left(self, node: TrieNode) -> None:
        """Write that the lock of a node is released, and keep the record there."""
        self._write_node(node, taken=False)

    @fails_open(None)
    def failed(self, acquisition: Acquisition) -> None:
        """Write that an attempt to take a lock failed."""
        self._note(EventKind.FAILED, acquisition.lock, acquisition.mode, acquisition.attempt)

    @fails_open(None)
    def released(self, lock: LockIdentity, mode: Mode) -> None:
        """Write that a lock is released that is not the innermost."""
        self._note(EventKind.LEFT, lock, mode)

    def signalled(self, thing: object, mode: Mode, *, begins: bool = False) -> None:
        """Write a signal, for which others may wait, or that a wait begins."""
        self._note(EventKind.SIGNAL, thing, mode, "try" if begins else "block")

    def awaited(self, thing: object, mode: Mode, attempt: Attempt) -> None:
        """Write that the execution went on, maybe only because of earlier signals on a thing."""
        self._note(EventKind.AWAIT, thing, mode, attempt)

    def joined(self, ended: Execution, *, endless: bool) -> None:
        """Write that another execution has ended."""
        self._note(EventKind.JOIN, ended, attempt="block" if endless else "timed")

    @fails_open(None)
    def close(self) -> None:
        """Write the end of the trace; later events are not written."""
        execution = local.execution
        self._in_turn(execution, lambda writer, _: writer.close(), lambda: _in_words(execution, None, None))
        self._writer = None

    def forget(self) -> None:
        """Stop writing: this process was forked from the one that is recorded."""
        if self._writer is not None:
            self._writer.forget()
        self._writer = None
        self._mutex = threading.RLock()  # the thread that had the turn may not exist here

    def give_up(self) -> None:
        """Stop writing, and leave what is written: without the next event the rest would be meaningless."""
        runtime.recorder = None
        with self._mutex:
            if self._writer is not None:
                self._writer.abandon()
            self._writer = None

    def _note(self, kind: EventKind, thing: object, mode: Mode = "W", attempt: Attempt = "block") -> None:
        execution = local.execution
        waited = kind is EventKind.AWAIT and attempt == "block"
        place = _here() if waited or kind in _WITH_PLACE else None

        def write(writer: TraceWriter, words: Description | None) -> None:
            number = thing.serial if isinstance(thing, (LockIdentity, Execution)) else self._token(thing)
            event = Event(kind, execution.serial, number, mode, attempt, self._site(place))
            self._write(writer, execution, event, words)

        self._in_turn(execution, write, lambda: _in_words(execution, thing, place))

    def _in_turn(
        self,
        execution: Execution,
        write: Callable[[TraceWriter, Description | None], None],
        words: Callable[[], Description],
    ) -> None:
        """Write something, unless the checker itself runs on the execution.

        An event that cannot be written ends the trace: without it, the rest would be meaningless.

        Args:
            execution: what did it.
            write: writes it, in turn; raises `_UnwordedError` if it needs a description.
            words: describes it, out of turn.
        """
        if execution.inside:
            return
        execution.inside = True
        try:
            try:
                self._take_turn(write, None)
            except _UnwordedError:
                self._take_turn(write, words())
        except Exception as error:  # noqa: BLE001 - an error of the checker must not change the program
            self.give_up()
            note_fault(error)
        finally:
            execution.inside = False

    def _take_turn(
        self, write: Callable[[TraceWriter, Description | None], None], words: Description | None
    ) -> None:
        with self._mutex:
            if self._writer is not None:
                write(self._writer, words)

    def _write_node(self, node: TrieNode, *, taken: bool) -> None:
        execution, acquisition = node.execution, node.acquisition
        assert acquisition is not None, "please report: nothing is held at the root"
        known = (node.code, node.instruction) if node.code is not None and not is_ours(node.code) else None
        lock, place = acquisition.lock, known or _here()

        def write(writer: TraceWriter, words: Description | None) -> None:
            took = Event(
                EventKind.TOOK,
                execution.serial,
                lock.serial,
                acquisition.mode,
                acquisition.attempt,
                self._site(place),
            )
            left = Event(EventKind.LEFT, execution.serial, lock.serial, acquisition.mode)
            first, second = (took, left) if taken else (left, took)
            again, records = self._write(writer, execution, first, words, second)
            if known is not None:  # else the node is used for several places
                node.took, node.left = records if taken else reversed(records)
                node.write = again

        self._in_turn(execution, write, lambda: _in_words(execution, lock, place))

    def _write(
        self,
        writer: TraceWriter,
        execution: Execution,
        event: Event,
        words: Description | None,
        *others: Event,
    ) -> tuple[Write, list[bytes]]:
        def described() -> Description:
            if words is None:
                raise _UnwordedError
            return words

        if execution not in self._begun:
            start = Event(EventKind.AWAIT, execution.serial, self._token(this_thread()))
            writer.event(start, lambda: (described()[0], None, None))
            self._begun.add(execution)
        return writer.event(event, described, others)

    def _token(self, thing: object) -> int:
        known = self._tokens.get(thing)
        if known is None:
            known = next(self._serials)
            self._tokens.put(thing, known)
        return known

    def _site(self, place: CodePlace | None) -> int:
        """Return a place by number."""
        if place is None:
            return 0
        return self._sites.setdefault((place[0].co_filename, place), len(self._sites) + 1)


def _here() -> CodePlace | None:
    """Return the place at which the program is."""
    frame = caller()
    return (frame.f_code, frame.f_lasti) if frame is not None else None


def _in_words(execution: Execution, thing: object, place: CodePlace | None) -> Description:
    """Return the names of an event: the execution, the object and the place."""
    site = resolve((place,))[0] if place is not None else None
    if isinstance(thing, Execution):
        return _traced(execution), _traced(thing), site
    if isinstance(thing, LockIdentity):
        return _traced(execution), TracedLock(thing.name, thing.key_text, thing.policy), site
    return _traced(execution), traced_thing(thing), site


def _traced(execution: Execution) -> TracedExecution:
    return TracedExecution(execution.name, role_of(execution.name))


@contextmanager
def recording(
    path: Path, order: Order | None = None, *, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS
) -> Iterator[Session]:
    """Open a session that writes every event of its locks to a file, and raises only in real deadlocks.

    Args:
        path: the trace, which is overwritten.
        order: the declared order, if any.
        segment_bytes: the size of a segment of the file.
        segments: how many there are; when the last one is full the oldest is overwritten.

    Raises:
        LockUsageError: another recording goes on, or the sizes cannot be.
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
        LockUsageError: another recording goes on, or the sizes cannot be.
    """
    if runtime.recorder is not None:
        raise LockUsageError(f"{path}: another recording goes on")
    recorder = TraceRecorder(TraceWriter(path, segment_bytes, segments))
    try:
        with signals_heard():
            runtime.recorder = recorder
            try:
                yield
            finally:
                runtime.recorder = None
    finally:
        recorder.close()
