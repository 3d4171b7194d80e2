"""Orders of threads that hold in every run, by what they hand over to each other.

Only what holds by construction counts, in whichever order threads run: what set an event that is set once
comes before what waited for it without a limit; the first items of a queue with one producer come before
the first gets of a consumer; all that is done before a barrier of that many threads comes before all that is
done after it; tasks come before what follows the end of their pool or a wait for all of them, and before the
callbacks of their futures. If a second thread sets the event, or puts an item, the order no longer counts.

Each hand-over begins a new segment, so only the first of each object are noted: programs hand over millions.
"""

from __future__ import annotations

import concurrent.futures
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Final, TypeVar, cast, final

from ..checking.acquisition_checks import End
from ..checking.watch import note_come, taken_by
from ..findings.foreign import ByIdentity
from ..holding.chains import Segment, together
from ..holding.runtime import LATCH, Interpreter, fails_open, forget_order, local, next_segment
from .hooks import IS_SET, Hooks, guarded, passed_on

Result = TypeVar("Result")
_Future = concurrent.futures.Future[object]

_ROOM: Final = __name__.rpartition(".")[0]
_OWN: Final = ("threading", "concurrent", "pykka")
"""Packages whose own events and queues order nothing here: which thread sets them is chance, or an ask."""

_PROGRAM: Final = "the program"
_CHECKER: Final = "the checker"
_LIBRARY: Final = "a library"


class _Kinds(dict[str, str]):
    """To what modules belong, by their names; each is looked at once, as calls of hooks are many."""

    def __missing__(self, module: str) -> str:
        if module.startswith(_ROOM):
            kind = _CHECKER
        else:
            kind = _LIBRARY if module.partition(".")[0] in _OWN else _PROGRAM
        self[module] = kind
        return kind


_kinds: Final = _Kinds()

HAND_OVERS_MAX: Final = 16
"""How many items of a queue, and rounds of a barrier, are noted."""

ends: Final[ByIdentity[Segment]] = ByIdentity()
"""The segment that comes before the result of each future."""
_events: Final[ByIdentity[_Setting]] = ByIdentity()
_queues: Final[ByIdentity[_Items]] = ByIdentity()
_barriers: Final[ByIdentity[_Rounds]] = ByIdentity()


@fails_open(cast("Segment | None", None))
def end_of(future: object) -> Segment | None:
    """Return the segment that comes before the result of a future, if it is known."""
    return ends.get(future)


@fails_open(None)
def note_end(future: object, segment: Segment) -> None:
    """Note the segment that comes before the result of a future."""
    ends.put(future, segment)


@fails_open(False)
def is_checked() -> bool:
    """Return whether the program calls a hook, on a thread that has an execution."""
    if Interpreter.thread_number() not in threading._active:  # type: ignore[attr-defined] # noqa: SLF001 - a new thread wakes its starter before it is known
        return False
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the documented way to the caller
    while frame is not None and (kind := _kinds[frame.f_globals.get("__name__", "")]) is not _PROGRAM:
        if kind is _LIBRARY:
            return False
        frame = frame.f_back
    return not local.execution.inside


# ----------------------------------------------------------------------------------------------- events


@final
class _Setting:
    """How an event was set: by whom first, and whether that alone can have ended a wait for it."""

    def __init__(self, segment: Segment | None) -> None:
        self.segment = segment
        """`None` if the order does not count."""
        taken = taken_by(local.execution) if segment is not None else ()
        self.end = End("an event", "an event", taken) if taken else None
        """The locks that come before it, for those that wait for it under a lock."""


def _set(method: Callable[[threading.Event], None], self: threading.Event) -> None:
    if is_checked():
        execution = local.execution
        with LATCH:
            known = _events.get(self)
            if known is None and not IS_SET(self):
                _events.put(self, _Setting(execution.segment))
            elif known is not None and known.segment and known.segment.line != execution.serial:
                known.segment = None
        if known is None:
            next_segment(execution)
    method(self)
    setting = _events.get(self)
    if setting is not None and setting.end is not None:
        note_come(local.execution, setting.end.noticed)


def _clear(method: Callable[[threading.Event], None], self: threading.Event) -> None:
    if is_checked():
        _events.put(self, _Setting(None))
    method(self)


def _wait(
    method: Callable[[threading.Event, float | None], bool],
    self: threading.Event,
    timeout: float | None = None,
) -> bool:
    done = method(self, timeout)
    known = _events.get(self) if timeout is None else None
    if known is not None and known.segment is not None and is_checked():
        if known.end is not None:
            known.end.awaited()
        next_segment(local.execution, known.segment, "by an event that is set once")
    return done


def _is_set(method: Callable[[threading.Event], bool], self: threading.Event) -> bool:
    """Wrap the question whether an event is set: a thread that knows that does not wait for it."""
    known = _events.get(self)
    found = method(self)
    if found and known is not None and known.end is not None:
        known.end.noticed()
    return found


# ----------------------------------------------------------------------------------------------- queues


@final
class _Items:
    """The first items of a queue with one producer."""

    def __init__(self, *, begun: bool) -> None:
        self.producer: int | None = None
        self.ordered = not begun
        self.puts: list[Segment] = []
        self.gets: dict[int, int] = {}
        """How many each execution took."""
        self.done: dict[int, Segment] = {}
        """The last segment of each execution that marked an item as done."""

    @property
    def over(self) -> bool:
        """Whether no further put counts: the first ones are by one producer, whatever follows."""
        return not self.ordered or len(self.puts) == HAND_OVERS_MAX


def _items(self: queue.Queue[object]) -> _Items:
    with LATCH:
        found = _queues.get(self)
        if found is None:
            found = _Items(begun=bool(self.queue))
            _queues.put(self, found)
        return found


def _put(method: Callable[..., None], self: queue.Queue[object], /, *given: object, **named: object) -> None:
    items = _queues.get(self)
    if (items is not None and items.over) or not is_checked():
        method(self, *given, **named)
        return
    items, execution = items or _items(self), local.execution
    if items.producer not in {None, execution.serial}:
        items.ordered = False
    items.producer = execution.serial
    if items.ordered and len(items.puts) < HAND_OVERS_MAX:
        items.puts.append(execution.segment)
        next_segment(execution)
    try:
        method(self, *given, **named)
    except queue.Full:
        items.ordered = False
        raise


def _get(
    method: Callable[..., object], self: queue.Queue[object], /, *given: object, **named: object
) -> object:
    items, execution = _queues.get(self), local.execution
    if (items is not None and not items.ordered) or not is_checked():
        return method(self, *given, **named)
    items = items or _items(self)
    found = method(self, *given, **named)
    count = items.gets.get(execution.serial, 0)
    if items.ordered and count < len(items.puts):
        items.gets[execution.serial] = count + 1
        next_segment(execution, items.puts[count], "by a queue with one producer")
    return found


def _task_done(method: Callable[[queue.Queue[object]], None], self: queue.Queue[object]) -> None:
    items, execution = _queues.get(self), local.execution
    if items is not None and not items.over and is_checked():
        items.done[execution.serial] = execution.segment
        next_segment(execution)
    method(self)


def _join(method: Callable[[queue.Queue[object]], None], self: queue.Queue[object]) -> None:
    """Wrap the wait for all items: the one that has put all of them comes after what was done."""
    method(self)
    items, execution = _queues.get(self), local.execution
    if items is not None and not items.over and items.producer == execution.serial and is_checked():
        done = together(list(items.done.values()))
        next_segment(execution, done, "by a queue of which all items are done")


# --------------------------------------------------------------------------------------------- barriers


@final
class _Rounds:
    """The rounds of a barrier, and who has come to the present one."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.arrived: list[Segment] = []
        self.count = 0


def _pass(
    method: Callable[[threading.Barrier, float | None], int],
    self: threading.Barrier,
    timeout: float | None = None,
) -> int:
    if not is_checked():
        return method(self, timeout)
    execution = local.execution
    with LATCH:
        rounds = _barriers.get(self)
        if rounds is None:
            rounds = _Rounds()
            _barriers.put(self, rounds)
        rounds.lines.add(execution.serial)
        mine = rounds.arrived
        mine.append(execution.segment)
        if len(mine) == self.parties:
            rounds.arrived, rounds.count = [], rounds.count + 1
        noted = rounds.count <= HAND_OVERS_MAX
    if noted:
        next_segment(execution)
    place = method(self, timeout)
    if noted and len(rounds.lines) <= self.parties == len(mine):
        next_segment(execution, together(mine), "by a barrier")
    return place


# ---------------------------------------------------------------------------------------------- futures


def _wait_all(
    function: Callable[..., Result],
    fs: Iterable[_Future],
    timeout: float | None = None,
    return_when: str = concurrent.futures.ALL_COMPLETED,
) -> Result:
    """Wrap `concurrent.futures.wait`: all tasks come before what follows, if it waited for all."""
    futures = list(fs)
    done = function(futures, timeout, return_when)
    if timeout is None and (return_when == concurrent.futures.ALL_COMPLETED or len(futures) == 1):
        _learn(map(ends.get, futures))
    return done


def _as_completed(
    function: Callable[..., Iterator[_Future]], fs: Iterable[_Future], timeout: float | None = None
) -> Iterator[_Future]:
    """Wrap `as_completed`: all tasks come before what follows its end."""
    known: list[Segment | None] = []
    found = function(fs, timeout)
    del fs  # The program may drop them. Without a global lock a used iterator has its list still.
    yield from passed_on(found, lambda future: known.append(end_of(future)))
    _learn(known)


@fails_open(None)
def _learn(segments: Iterable[Segment | None]) -> None:
    known = [segment for segment in segments if segment is not None]
    if known:
        next_segment(local.execution, together(known), "by the end of all tasks")


def _add_done_callback(method: Callable[..., None], self: _Future, fn: Callable[[_Future], object]) -> None:
    method(self, guarded(fn, _callback))


def _callback(fn: Callable[[_Future], object], future: _Future) -> object:
    """Wrap a callback after a task. Its thread is chance: what follows there need not be later."""
    ended, execution = end_of(future), local.execution
    before = execution.segment
    if ended is not None:
        next_segment(execution, ended, "by a callback after a task")
    try:
        return fn(future)
    finally:
        if ended is not None:
            forget_order(execution, before)


def _put_all() -> None:
    event, future = threading.Event, concurrent.futures.Future
    HOOKS.wrap(event, "set", _set)
    HOOKS.wrap(event, "clear", _clear)
    HOOKS.wrap(event, "wait", _wait)
    HOOKS.wrap(event, "is_set", _is_set)
    HOOKS.wrap(queue.Queue, "put", _put)
    HOOKS.wrap(queue.Queue, "get", _get)
    HOOKS.wrap(queue.Queue, "task_done", _task_done)
    HOOKS.wrap(queue.Queue, "join", _join)
    HOOKS.wrap(threading.Barrier, "wait", _pass)
    HOOKS.wrap(future, "add_done_callback", _add_done_callback)
    HOOKS.wrap(concurrent.futures, "wait", _wait_all)
    HOOKS.wrap(concurrent.futures, "as_completed", _as_completed)


HOOKS: Final = Hooks(_put_all)
