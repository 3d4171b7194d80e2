"""Events of a recording besides locks: starts, ends, results, and everything that wakes a thread.

Each is a *signal* on a thing before it happens, and what goes on after it is an *await* of all signals on
it so far. This may order more than is true, such as that a get from a queue needed every put before it, but
never less. So what is predicted can happen.
"""

from __future__ import annotations

import concurrent.futures
import functools
import queue
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from ..holding.runtime import runtime
from .hooks import Hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..holding.runtime import EventSink

__all__ = ["awaited", "signalled", "signals_heard"]

Result = TypeVar("Result")

_HEARD: Final[tuple[tuple[type, str, bool, bool], ...]] = (
    (threading.Thread, "start", True, False),
    (threading.Event, "set", True, False),
    (threading.Event, "clear", True, False),
    (threading.Event, "wait", False, True),
    (threading.Event, "is_set", False, True),
    (threading.Condition, "notify", True, False),
    (threading.Condition, "wait", False, True),
    (threading.Semaphore, "acquire", True, True),
    (threading.Semaphore, "__enter__", True, True),
    (threading.Semaphore, "release", True, False),
    (threading.BoundedSemaphore, "release", True, False),
    (threading.Barrier, "wait", True, True),
    (queue.Queue, "put", True, True),
    (queue.Queue, "get", True, True),
    (queue.Queue, "task_done", True, False),
    (queue.Queue, "join", False, True),
    (concurrent.futures.Future, "result", False, True),
    (concurrent.futures.Future, "exception", False, True),
    (concurrent.futures.Future, "done", False, True),
)
"""The owner of a method, its name, whether others wait for it, and whether it waits for others."""


def _put_all() -> None:
    thread, future, pool = threading.Thread, concurrent.futures.Future, concurrent.futures.ThreadPoolExecutor
    for owner, name, signals, awaits in _HEARD:
        _HOOKS.put(owner, name, _heard(getattr(owner, name), signals=signals, awaits=awaits))
    _HOOKS.put(thread, "join", _join(thread.join))
    _HOOKS.put(future, "set_result", _ends(future.set_result))
    _HOOKS.put(future, "set_exception", _ends(future.set_exception))
    _HOOKS.put(pool, "submit", _submit(pool.submit))
    _HOOKS.put(concurrent.futures, "wait", _wait(concurrent.futures.wait))
    _HOOKS.put(concurrent.futures, "as_completed", _as_completed(concurrent.futures.as_completed))


_HOOKS: Final = Hooks(_put_all)


@contextmanager
def signals_heard() -> Iterator[None]:
    """Record these events while the body runs."""
    _HOOKS.install()
    try:
        yield
    finally:
        _HOOKS.uninstall()


def signalled(thing: object) -> None:
    """Record a signal, for which others may wait, if this process is recorded."""
    recorder = _recorder()
    if recorder is not None:
        recorder.signalled(thing)


def awaited(thing: object) -> None:
    """Record that the current execution went on after earlier signals, if this process is recorded."""
    recorder = _recorder()
    if recorder is not None:
        recorder.awaited(thing)


def _recorder() -> EventSink | None:
    # A new thread wakes its starter before it is known: it has no execution yet that could signal.
    known = threading.get_ident() in threading._active  # type: ignore[attr-defined] # noqa: SLF001
    return runtime.recorder if known else None


def _heard(method: Callable[..., Result], *, signals: bool, awaits: bool) -> Callable[..., Result]:
    @functools.wraps(method)
    def recorded(self: object, *given: object, **named: object) -> Result:
        if signals:
            signalled(self)
        try:
            return method(self, *given, **named)
        finally:
            if awaits:
                awaited(self)

    return recorded


def _join(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def join(self: threading.Thread, timeout: float | None = None) -> None:
        method(self, timeout)
        recorder = runtime.recorder
        ended = runtime.threads.get(self)
        if recorder is not None and ended is not None and not self.is_alive():
            recorder.joined(ended, endless=timeout is None)

    return join


def _ends(method: Callable[..., None]) -> Callable[..., None]:
    """Wrap a method that sets the result of a future: its task, an execution of its own, came before."""

    @functools.wraps(method)
    def ends(self: concurrent.futures.Future[object], *given: object, **named: object) -> None:
        awaited(threading.current_thread())
        signalled(self)
        method(self, *given, **named)

    return ends


def _wait(
    function: Callable[..., concurrent.futures._base.DoneAndNotDoneFutures[object]],
) -> Callable[..., concurrent.futures._base.DoneAndNotDoneFutures[object]]:
    """Wrap `concurrent.futures.wait`: a done future is not waited for, but comes before all the same."""

    @functools.wraps(function)
    def wait(*given: object, **named: object) -> concurrent.futures._base.DoneAndNotDoneFutures[object]:
        futures = function(*given, **named)
        for future in futures.done:
            awaited(future)
        return futures

    return wait


def _as_completed(function: Callable[..., Iterator[object]]) -> Callable[..., Iterator[object]]:
    @functools.wraps(function)
    def as_completed(*given: object, **named: object) -> Iterator[object]:
        for future in function(*given, **named):
            awaited(future)
            yield future

    return as_completed


class _Handed:
    """A task that is being submitted to a pool."""


def _submit(method: Callable[..., object]) -> Callable[..., object]:
    """Wrap `submit`: a task comes after its submitter, and after the tasks that its thread ran before.

    The latter keeps predictions within the number of threads in the pool.
    """

    @functools.wraps(method)
    def submit(self: object, work: Callable[..., object], /, *given: object, **named: object) -> object:
        handed = _Handed()
        signalled(handed)

        @functools.wraps(work)
        def run() -> object:
            awaited(handed)
            try:
                return work(*given, **named)
            finally:
                signalled(threading.current_thread())

        return method(self, run)

    return submit
