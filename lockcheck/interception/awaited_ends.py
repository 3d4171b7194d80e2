"""The locks that threads and tasks took before their ends, for those that wait for these ends under a lock.

`checking/acquisition_checks.py` judges that. These hooks are installed before those that learn the order of
threads: what comes after an end is known only once the wait is over.
"""

from __future__ import annotations

import concurrent.futures
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar, cast, final

from ..checking.acquisition_checks import End
from ..checking.graph import Dependency
from ..checking.watch import forget_taken, note_come, taken_by
from ..findings.foreign import ByIdentity
from ..holding.runtime import fails_open, local, runtime, this_thread
from .hand_overs import is_checked
from .hooks import Hooks, guarded, passed_on
from .joins import result_text

Result = TypeVar("Result")

NOTIFICATION: Final = "a notification"
"""The object of a wait on a condition; a steered run waits for the same."""
TASKS_MAX: Final = 64
"""The ends of how many tasks of a thread are known to who joins it."""
_Future = concurrent.futures.Future[object]

_ends: Final[ByIdentity[End]] = ByIdentity()
"""The ends of threads that took locks, and of what sets the results of futures."""


class _Last(threading.local):
    """The task that ended last on the calling thread, until its result is set."""

    taken: Sequence[Dependency] | None = None
    name = ""
    callback_of: _Future | None = None
    """The future of which a callback runs on the calling thread."""
    ends_pool = False
    """Whether the calling thread ends a pool."""
    waited = False
    """Whether the calling thread has waited on a condition since it was last set."""


_last: Final = _Last()

_task_ends: Final[ByIdentity[deque[End]]] = ByIdentity()
"""The ends of the last tasks that each thread of a pool ran: a thread that joins it waits for them too."""
_notifications: Final[ByIdentity[_Notifications]] = ByIdentity()


@final
class _Notifications:
    """The notifiers of a condition, and the locks that each took before it last notified."""

    __slots__ = ("end", "line", "number")

    def __init__(self, line: int) -> None:
        self.line: int | None = line
        """The only execution that does so, `None` if there are several."""
        self.number = 0
        self.end: End | None = None


@fails_open(None)
def note_task_end(name: str, taken: Sequence[Dependency]) -> None:
    """Note that a task ends on the calling thread, and what it took."""
    _last.name, _last.taken = name, taken


@fails_open(cast("End | None", None))
def _resolved(future: _Future) -> End | None:
    """Note what the calling thread took before it sets a result; return the end of a promise."""
    task, _last.taken = _last.taken, None
    taken = taken_by(local.execution) if task is None else task
    if not taken:
        return None
    text = result_text(future) if task is None else f"the result of {_last.name}"
    end = End(text, text, taken)
    _ends.put(future, end)
    if task is None:
        return end
    ran = _task_ends.get(this_thread()) or deque(maxlen=TASKS_MAX)
    _task_ends.put(this_thread(), ran)
    ran.append(end)
    return None


@fails_open(cast("End | None", None))
def _end_of(thread: threading.Thread) -> End | None:
    """Return the end of a thread that is over, if the thread took locks."""
    end, execution = _ends.get(thread), runtime.threads.get(thread)
    taken = taken_by(execution) if end is None and execution is not None else ()
    if taken:
        end = End(f"the end of {thread.name}", None, taken)
        _ends.put(thread, end)
    return end


def _awaited(end: End | None) -> None:
    if end is not None:
        end.awaited()


def _noticed(end: End | None) -> None:
    if end is not None:
        end.noticed()


def _join(method: Callable[..., None], self: threading.Thread, timeout: float | None = None) -> None:
    method(self, timeout)
    if timeout is None:
        _awaited(_end_of(self))
        if not _last.ends_pool:
            _awaited_tasks(self)


def _awaited_tasks(thread: threading.Thread) -> None:
    for end in tuple(_task_ends.get(thread) or ()):
        _awaited(end)


def _shutdown(
    method: Callable[..., None],
    self: concurrent.futures.ThreadPoolExecutor,
    wait: bool = True,  # noqa: FBT001, FBT002 - as in concurrent.futures
    **named: object,
) -> None:
    """Wrap the end of a pool, which waits for all its tasks together: which thread runs which is chance.

    So what is known by the end of one of its threads, before the others are waited for, does not count.
    """
    execution, outer = local.execution, _last.ends_pool
    before, _last.ends_pool = execution.segment, True
    try:
        method(self, wait, **named)
    finally:
        _last.ends_pool = outer
    if wait and not outer:
        after, execution.segment = execution.segment, before
        try:
            for thread in tuple(self._threads):
                _awaited_tasks(thread)
        finally:
            execution.segment = after


def _is_alive(method: Callable[[threading.Thread], bool], self: threading.Thread) -> bool:
    alive = method(self)
    if not alive:
        _noticed(_end_of(self))
    return alive


def _result(method: Callable[..., Result], self: _Future, timeout: float | None = None) -> Result:
    try:
        return method(self, timeout)
    finally:
        if timeout is None:
            _awaited(_ends.get(self))


def _done(method: Callable[[_Future], bool], self: _Future) -> bool:
    over = method(self)
    if over:
        _noticed(_ends.get(self))
    return over


def _resolves(method: Callable[..., None], self: _Future, /, *given: object, **named: object) -> None:
    promise = _resolved(self)
    method(self, *given, **named)
    if promise is not None:
        note_come(local.execution, promise.noticed)


def _wait(
    function: Callable[..., Result],
    fs: Iterable[_Future],
    timeout: float | None = None,
    return_when: str = concurrent.futures.ALL_COMPLETED,
) -> Result:
    """Wrap `concurrent.futures.wait`: for all it is a wait for each; else it tells which are done."""
    futures = list(fs)
    found = function(futures, timeout, return_when)
    whole = timeout is None and (return_when == concurrent.futures.ALL_COMPLETED or len(futures) == 1)
    for future in found.done:  # type: ignore[attr-defined] # of the named tuple
        (_awaited if whole else _noticed)(_ends.get(future))
    return found


def _as_completed(
    function: Callable[..., Iterator[_Future]], fs: Iterable[_Future], timeout: float | None = None
) -> Iterator[_Future]:
    note = _awaited if timeout is None else _noticed
    found = function(fs, timeout)
    del fs  # As in `hand_overs`.
    yield from passed_on(found, lambda future: note(_ends.get(future)))


def _notify(method: Callable[..., None], self: threading.Condition, n: int = 1) -> None:
    """Wrap what events, queues, semaphores and all else that is made of conditions tell others by."""
    if is_checked() and not _is_of_queue():
        _note_notification(self)
    forget_taken()
    if _last.callback_of is not None:
        _noticed(_ends.get(_last.callback_of))
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


def _own_lock(condition: threading.Condition) -> object:
    return getattr(getattr(condition, "_lock", None), "identity", None)


def _condition_wait(
    method: Callable[..., bool], self: threading.Condition, timeout: float | None = None
) -> bool:
    """Wrap the wait of a condition: without a limit, for the last notification if one thread makes all."""
    notified = method(self, timeout)
    _last.waited = True
    if timeout is None and is_checked() and not _is_of_queue():
        _awaited_notification(self)
    return notified


def _condition_wait_for(
    method: Callable[..., Result],
    self: threading.Condition,
    predicate: Callable[[], object],
    timeout: float | None = None,
) -> Result:
    """Wrap the wait for a predicate: it counts also if the only notification there was came before."""
    _last.waited = False
    result = method(self, predicate, timeout)
    if timeout is None and is_checked():
        _awaited_notification(self, came_before=not _last.waited)
    return result


def _awaited_notification(condition: threading.Condition, *, came_before: bool = False) -> None:
    """Note a wait for the last notification, which is known; one of several that came before is not."""
    known = _notifications.get(condition)
    if known is None or known.line is None or known.end is None or (came_before and known.number > 1):
        return
    known.end.awaited(besides=_own_lock(condition))


def _is_of_queue() -> bool:
    """Return whether a queue calls a hook: what its conditions order is known by its items."""
    return sys._getframe(2).f_globals.get("__name__") == queue.__name__  # noqa: SLF001 - the documented way to the caller


def _add_done_callback(method: Callable[..., None], self: _Future, fn: Callable[[_Future], object]) -> None:
    method(self, guarded(fn, _callback))


def _callback(fn: Callable[[_Future], object], future: _Future) -> object:
    """Wrap a callback after a task: it knows that the task is over, and may tell others."""
    outer, _last.callback_of = _last.callback_of, future
    try:
        return fn(future)
    finally:
        _last.callback_of = outer


def _put_all() -> None:
    thread, future = threading.Thread, concurrent.futures.Future
    HOOKS.wrap(thread, "join", _join)
    HOOKS.wrap(thread, "is_alive", _is_alive)
    HOOKS.wrap(concurrent.futures.ThreadPoolExecutor, "shutdown", _shutdown)
    HOOKS.wrap(threading.Condition, "notify", _notify)
    HOOKS.wrap(threading.Condition, "notify_all", _notify_all)
    HOOKS.wrap(threading.Condition, "wait", _condition_wait)
    HOOKS.wrap(threading.Condition, "wait_for", _condition_wait_for)
    HOOKS.wrap(future, "result", _result)
    HOOKS.wrap(future, "exception", _result)
    HOOKS.wrap(future, "done", _done)
    HOOKS.wrap(future, "add_done_callback", _add_done_callback)
    HOOKS.wrap(future, "set_result", _resolves)
    HOOKS.wrap(future, "set_exception", _resolves)
    HOOKS.wrap(concurrent.futures, "wait", _wait)
    HOOKS.wrap(concurrent.futures, "as_completed", _as_completed)


HOOKS: Final = Hooks(_put_all)
