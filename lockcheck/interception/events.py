"""Events, barriers and conditions: what they order, what blocks, and the locks taken before a notification.

Only what holds in every run orders: what set an event that is set once comes before what waited for it
without a limit, and all that is done before a barrier of that many threads comes before all that is done
after it.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, TypeVar, final

from ..checking.acquisition_checks import End
from ..checking.blocking import blocks, waits_with
from ..checking.knowledge import gets, gives, publish, taken_by
from ..findings.foreign import ByIdentity
from ..holding.chains import LockIdentity, Segment, together
from ..holding.runtime import LATCH, fails_open, local, next_segment
from ..holding.stacks import is_of_checker
from .hand_overs import HAND_OVERS_MAX, is_checked, may_get, may_give
from .hooks import IS_SET, Row
from .task_ends import last, note_callback_tells

Result = TypeVar("Result")

NOTIFICATION: Final = "a notification"
"""The object of a wait on a condition; a steered run waits for the same."""

# ----------------------------------------------------------------------------------------------- events


@final
class _Setting:
    """How an event was set: by whom first, and whether that alone can have ended a wait for it."""

    def __init__(self, segment: Segment | None, *, cleared: bool = False) -> None:
        self.cleared = cleared
        """Whether it was cleared, so that it may be set again."""
        self.segment = segment
        """`None` if the order does not count."""
        taken = taken_by(local.execution) if segment is not None else ()
        self.end = End("an event", "an event", taken) if taken else None
        """The locks that come before it, for those that wait for it under a lock."""


_events: Final[ByIdentity[_Setting]] = ByIdentity()


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
        elif known.cleared:
            may_give(self)
    setting = _events.get(self)
    if setting is not None and setting.end is not None:
        setting.end.come()
    gives(self)
    method(self)


def _clear(method: Callable[[threading.Event], None], self: threading.Event) -> None:
    if is_checked():
        _events.put(self, _Setting(None, cleared=True))
    method(self)


def _wait(
    method: Callable[[threading.Event, float | None], bool],
    self: threading.Event,
    timeout: float | None = None,
) -> bool:
    if waits_with(timeout) and not IS_SET(self):
        blocks("event")
    done = method(self, timeout)
    known = _events.get(self) if timeout is None else None
    if known is not None and known.segment is not None and is_checked():
        if known.end is not None:
            known.end.awaited()
        next_segment(local.execution, known.segment, "by an event that is set once")
    if done:
        may_get(self)
    gets(self)
    return done


def _is_set(method: Callable[[threading.Event], bool], self: threading.Event) -> bool:
    """Wrap the question whether an event is set: a thread that knows that does not wait for it."""
    known = _events.get(self)
    found = method(self)
    if found and known is not None and known.end is not None:
        known.end.noticed()
    if found:
        may_get(self)
    gets(self)
    return found


# --------------------------------------------------------------------------------------------- barriers


@final
class _Rounds:
    """The rounds of a barrier, and who has come to the present one."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.arrived: list[Segment] = []
        self.count = 0


_barriers: Final[ByIdentity[_Rounds]] = ByIdentity()


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
    gives(self)
    place = method(self, timeout)
    gets(self)
    if noted and len(rounds.lines) <= self.parties == len(mine):
        next_segment(execution, together(mine), "by a barrier")
    return place


# ------------------------------------------------------------------------------------------- conditions


@final
class _Notifications:
    """The notifiers of a condition, and the locks that each took before it last notified."""

    __slots__ = ("end", "line", "number")

    def __init__(self, line: int) -> None:
        self.line: int | None = line
        """The only execution that does so, `None` if there are several."""
        self.number = 0
        self.end: End | None = None


_notifications: Final[ByIdentity[_Notifications]] = ByIdentity()


class _Waited(threading.local):
    waited = False
    """Whether the calling thread has waited on a condition since this was last set."""


_here: Final = _Waited()


def _notify(method: Callable[..., None], self: threading.Condition, n: int = 1) -> None:
    """Wrap the notification of a condition: who looks at what it tells is not seen, except in libraries."""
    if is_checked() and not _is_of_queue():
        _note_notification(self)
        publish()
    note_callback_tells()
    method(self, n)


def _notify_all(method: Callable[[threading.Condition], None], self: threading.Condition) -> None:
    if is_checked():
        _note_notification(self)
    method(self)


@fails_open(None)
def _note_notification(condition: threading.Condition) -> None:
    """Note that the calling execution notifies a condition of the program, and what it took before."""
    execution = local.execution
    known = _notifications.get(condition)
    if known is None:
        known = _Notifications(execution.serial)
        _notifications.put(condition, known)
    known.line = execution.serial if known.line == execution.serial else None
    known.number += 1
    taken = [one for one in taken_by(execution) if one.wanted.lock is not _own_lock(condition)]
    known.end = End(NOTIFICATION, NOTIFICATION, taken) if taken else None


def _own_lock(condition: threading.Condition) -> LockIdentity | None:
    return getattr(getattr(condition, "_lock", None), "identity", None)


def _condition_wait(
    method: Callable[..., bool], self: threading.Condition, timeout: float | None = None
) -> bool:
    """Wrap the wait of a condition: without a limit, for the last notification if one thread makes all."""
    checked = is_checked()
    if checked:
        _condition_blocks(self, timeout)
    notified = method(self, timeout)
    _here.waited = True
    if checked and timeout is None and not _is_of_queue():
        _awaited_notification(self)
    return notified


def _condition_wait_for(
    method: Callable[..., Result],
    self: threading.Condition,
    predicate: Callable[[], object],
    timeout: float | None = None,
) -> Result:
    """Wrap the wait for a predicate: it counts also if the only notification there was came before."""
    checked = is_checked()
    if checked:
        _condition_blocks(self, timeout)
    _here.waited = False
    result = method(self, predicate, timeout)
    if checked and timeout is None:
        _awaited_notification(self, came_before=not _here.waited)
    return result


def _condition_blocks(condition: threading.Condition, timeout: float | None) -> None:
    """Check a wait of a condition of `threading`, which releases its own lock and no other one."""
    if type(condition) is threading.Condition and waits_with(timeout):
        blocks("condition", except_for=_own_lock(condition))


def _awaited_notification(condition: threading.Condition, *, came_before: bool = False) -> None:
    """Note a wait for the last notification, which is known; one of several that came before is not."""
    known = _notifications.get(condition)
    if known is None or known.line is None or known.end is None or (came_before and known.number > 1):
        return
    known.end.awaited(besides=_own_lock(condition))


def _is_of_queue() -> bool:
    """Return whether a queue calls a hook: what its conditions order is known by its items."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller
    while frame is not None and is_of_checker(frame.f_code):
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == queue.__name__


_FUTURES: Final = "concurrent.futures._base"
_LIBRARIES: Final = frozenset({"queue", "threading", _FUTURES})
"""Modules with conditions of their own, which order nothing: what they tell is known by their own methods."""


def _light(original: Callable[..., object], hooked: Callable[..., object]) -> Callable[..., object]:
    """Return a method of conditions that has no hook where such a module calls it, but in a callback."""

    def either(self: threading.Condition, *given: object, **named: object) -> object:
        caller = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001 - the documented way
        if caller in _LIBRARIES and last.callback_of is None:
            return original(self, *given, **named)
        return hooked(self, *given, **named)

    return either


def _light_wait(original: Callable[..., object], hooked: Callable[..., object]) -> Callable[..., object]:
    """Return the wait of a condition that has no hook where a future calls it: its own method has one."""

    def either(self: threading.Condition, timeout: float | None = None) -> object:
        wait = original if sys._getframe(1).f_globals.get("__name__") == _FUTURES else hooked  # noqa: SLF001 - as above
        return wait(self, timeout)

    return either


LIGHT: Final = (
    *((threading.Condition, name, _light) for name in ("notify", "notify_all")),
    (threading.Condition, "wait", _light_wait),
)
ROWS: Final[tuple[Row, ...]] = (
    (threading.Event, "set", _set),
    (threading.Event, "clear", _clear),
    (threading.Event, "wait", _wait),
    (threading.Event, "is_set", _is_set),
    (threading.Barrier, "wait", _pass),
    (threading.Condition, "notify", _notify),
    (threading.Condition, "notify_all", _notify_all),
    (threading.Condition, "wait", _condition_wait),
    (threading.Condition, "wait_for", _condition_wait_for),
)
