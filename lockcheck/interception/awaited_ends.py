"""What threads and tasks took before their ends, given to those that wait for these ends under a lock.

`checking/ends.py` judges that. These hooks are installed before those that learn the order of threads: what
comes after an end is known only once the wait is over.
"""

from __future__ import annotations

import concurrent.futures
import functools
import threading
from typing import TYPE_CHECKING, Final, TypeVar, cast

from ..checking.ends import End
from ..checking.taken import forget_taken, note_come, taken_by
from ..findings.foreign import ByIdentity
from ..holding.runtime import fails_open, local, runtime
from .hooks import Hooks, guarded, passed_on
from .joins import result_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..checking.graph import Dependency

__all__ = ["HOOKS", "note_task_end"]

Result = TypeVar("Result")
_Future = concurrent.futures.Future[object]

_ends: Final[ByIdentity[End]] = ByIdentity()
"""The ends of threads that took locks, and of what sets the results of futures."""


class _Last(threading.local):
    """The task that ended last on the calling thread, until its result is set."""

    taken: Sequence[Dependency] | None = None
    name = ""
    callback_of: _Future | None = None
    """The future of which a callback runs on the calling thread."""


_last: Final = _Last()


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
    return end if task is None else None


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


def _join(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def join(self: threading.Thread, timeout: float | None = None) -> None:
        method(self, timeout)
        if timeout is None:
            _awaited(_end_of(self))

    return join


def _is_alive(method: Callable[[threading.Thread], bool]) -> Callable[[threading.Thread], bool]:
    @functools.wraps(method)
    def is_alive(self: threading.Thread) -> bool:
        alive = method(self)
        if not alive:
            _noticed(_end_of(self))
        return alive

    return is_alive


def _result(method: Callable[..., Result]) -> Callable[..., Result]:
    @functools.wraps(method)
    def result(self: _Future, timeout: float | None = None) -> Result:
        try:
            return method(self, timeout)
        finally:
            if timeout is None:
                _awaited(_ends.get(self))

    return result


def _done(method: Callable[[_Future], bool]) -> Callable[[_Future], bool]:
    @functools.wraps(method)
    def done(self: _Future) -> bool:
        over = method(self)
        if over:
            _noticed(_ends.get(self))
        return over

    return done


def _resolves(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def resolves(self: _Future, *given: object, **named: object) -> None:
        promise = _resolved(self)
        method(self, *given, **named)
        if promise is not None:
            note_come(local.execution, promise.noticed)

    return resolves


def _wait(function: Callable[..., Result]) -> Callable[..., Result]:
    """Wrap `concurrent.futures.wait`: for all it is a wait for each; else it tells which are done."""

    @functools.wraps(function)
    def wait(
        fs: Iterable[_Future],
        timeout: float | None = None,
        return_when: str = concurrent.futures.ALL_COMPLETED,
    ) -> Result:
        futures = list(fs)
        found = function(futures, timeout, return_when)
        whole = timeout is None and (return_when == concurrent.futures.ALL_COMPLETED or len(futures) == 1)
        for future in found.done:  # type: ignore[attr-defined] # of the named tuple
            (_awaited if whole else _noticed)(_ends.get(future))
        return found

    return wait


def _as_completed(function: Callable[..., Iterator[_Future]]) -> Callable[..., Iterator[_Future]]:
    @functools.wraps(function)
    def as_completed(fs: Iterable[_Future], timeout: float | None = None) -> Iterator[_Future]:
        note = _awaited if timeout is None else _noticed
        found = function(fs, timeout)
        del fs  # As in `hand_overs`.
        yield from passed_on(found, lambda future: note(_ends.get(future)))

    return as_completed


def _notify(method: Callable[..., None]) -> Callable[..., None]:
    """Wrap what events, queues, semaphores and all else that is made of conditions tell others by."""

    @functools.wraps(method)
    def notify(self: threading.Condition, n: int = 1) -> None:
        forget_taken()
        if _last.callback_of is not None:
            _noticed(_ends.get(_last.callback_of))
        method(self, n)

    return notify


def _add_done_callback(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def add_done_callback(self: _Future, fn: Callable[[_Future], object]) -> None:
        method(self, guarded(fn, _callback))

    return add_done_callback


def _callback(fn: Callable[[_Future], object]) -> Callable[[_Future], object]:
    """Wrap a callback after a task: it knows that the task is over, and may tell others."""

    def callback(future: _Future) -> object:
        outer, _last.callback_of = _last.callback_of, future
        try:
            return fn(future)
        finally:
            _last.callback_of = outer

    return callback


def _put_all() -> None:
    thread, future = threading.Thread, concurrent.futures.Future
    HOOKS.wrap(thread, "join", _join)
    HOOKS.wrap(thread, "is_alive", _is_alive)
    HOOKS.wrap(threading.Condition, "notify", _notify)
    HOOKS.wrap(future, "result", _result)
    HOOKS.wrap(future, "exception", _result)
    HOOKS.wrap(future, "done", _done)
    HOOKS.wrap(future, "add_done_callback", _add_done_callback)
    HOOKS.wrap(future, "set_result", _resolves)
    HOOKS.wrap(future, "set_exception", _resolves)
    HOOKS.wrap(concurrent.futures, "wait", _wait)
    HOOKS.wrap(concurrent.futures, "as_completed", _as_completed)


HOOKS: Final = Hooks(_put_all)
