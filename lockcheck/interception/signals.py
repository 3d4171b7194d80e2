"""Events of a recording besides locks: starts, ends, results, and everything that wakes a thread.

Each is a *signal* on a thing before it happens, and what goes on after it is an *await* of all signals on
it so far. This may order more than is true, such as that a get from a queue needed every put before it, but
never less. So what is predicted can happen.

A wait without a limit, for an event, a future, an item of a queue or a notification, is noted as such, also
if it was over at once: in another order of the same events it is a wait. What it waits for inside, such as
the condition of an event, only orders.
"""

from __future__ import annotations

import concurrent.futures
import functools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ALL_COMPLETED
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar, cast, final

from ..findings.foreign import ByIdentity, name_of_work
from ..findings.terms import Mode
from ..holding.runtime import LATCH, EventSink, Interpreter, fails_open, runtime, this_thread
from ..traces.trace import ThingKind, TracedThing
from .hooks import IS_ALIVE, Hooks, guarded, passed_on

Result = TypeVar("Result")

_HEARD: Final[tuple[tuple[type, str, Mode | None, Mode | None], ...]] = (
    (threading.Thread, "start", "W", None),
    (threading.Event, "set", "W", None),
    (threading.Event, "clear", "R", None),
    (threading.Event, "wait", None, "W"),
    (threading.Event, "is_set", None, "W"),
    (threading.Condition, "notify", "W", None),
    (threading.Condition, "wait", None, "W"),
    (threading.Semaphore, "acquire", "R", "W"),
    (threading.Semaphore, "__enter__", "R", "W"),
    (threading.Semaphore, "release", "W", None),
    (threading.BoundedSemaphore, "release", "W", None),
    (threading.Barrier, "wait", "W", "W"),
    (queue.Queue, "put", "W", "W"),
    (queue.Queue, "get", "R", "R"),
    (queue.Queue, "task_done", "R", None),
    (queue.Queue, "join", None, "W"),
    (concurrent.futures.Future, "done", None, "W"),
)
"""The owner of a method, its name, the mode of what others wait for, and that of its own wait for others."""

_LIMITS: Final = {"wait": 0, "get": 1}
"""The methods that may wait without a limit, by name, and which argument is the limit."""

_WAIT_ARGUMENTS: Final = 3
"""How many arguments `concurrent.futures.wait` has; the last one chooses the end of the wait."""

_KINDS: Final[tuple[tuple[type, str, ThingKind], ...]] = (
    (threading.Event, "an event", "flag"),
    (threading.Condition, "a notification", "wakeups"),
    (queue.Queue, "an item of a queue", "items"),
    (concurrent.futures.Future, "a result", "flag"),
)
"""The methods that wait without a limit, by class."""


def _put_all() -> None:
    thread, future, pool = threading.Thread, concurrent.futures.Future, concurrent.futures.ThreadPoolExecutor
    for owner, name, signals, awaits in _HEARD:
        _HOOKS.wrap(owner, name, partial(_heard, signals, awaits))
    _HOOKS.wrap(thread, "join", _join)
    _HOOKS.wrap(thread, "is_alive", _is_alive)
    _HOOKS.wrap(future, "result", _result)
    _HOOKS.wrap(future, "exception", _result)
    _HOOKS.wrap(future, "add_done_callback", _add_done_callback)
    _HOOKS.wrap(future, "set_result", _ends)
    _HOOKS.wrap(future, "set_exception", _ends)
    _HOOKS.wrap(pool, "submit", _submit)
    _HOOKS.wrap(pool, "shutdown", _shutdown)
    _HOOKS.wrap(concurrent.futures, "wait", _wait)
    _HOOKS.wrap(concurrent.futures, "as_completed", _as_completed)


_HOOKS: Final = Hooks(_put_all)


@contextmanager
def signals_heard() -> Iterator[None]:
    """Record these events while the body runs."""
    _HOOKS.install()
    try:
        yield
    finally:
        _HOOKS.uninstall()


@fails_open(None)
def signalled(thing: object, mode: Mode = "W") -> None:
    """Record a signal, for which others may wait, if this process is recorded."""
    recorder = _recorder()
    if recorder is not None:
        recorder.signalled(thing, mode)


@fails_open(None)
def awaited(thing: object, mode: Mode = "W", *, endless: bool = False) -> None:
    """Record that the current execution went on after earlier signals, if this process is recorded."""
    recorder = _recorder()
    if recorder is not None:
        recorder.awaited(thing, mode, "block" if endless else "try")


def traced_thing(thing: object) -> TracedThing | None:
    """Return the description of what executions wait for without a limit; `None` if they do not."""
    if isinstance(thing, _TaskEnd):
        return TracedThing(f"the result of {thing.name}", "flag")
    return next((TracedThing(text, kind) for owner, text, kind in _KINDS if isinstance(thing, owner)), None)


class _Waits(threading.local):
    """Whether the thread is in a wait that is recorded, so that what is in it is not."""

    inside = False
    submits = False
    """Whether the thread submits a task: which threads of the pool are idle then is chance, and no order."""


_waits: Final = _Waits()


def _is_endless(method: str, given: tuple[object, ...], named: dict[str, object]) -> bool:
    """Return whether a call waits without a limit."""
    place = _LIMITS.get(method)
    if place is None or _waits.inside:
        return False
    blocks = place == 0 or named.get("block", given[0] if given else True)
    return bool(blocks) and named.get("timeout", given[place] if len(given) > place else None) is None


def _recorder() -> EventSink | None:
    # A new thread wakes its starter before it is known: it has no execution yet that could signal.
    known = Interpreter.thread_number() in threading._active  # type: ignore[attr-defined] # noqa: SLF001
    return runtime.recorder if known else None


def _heard(
    signals: Mode | None,
    awaits: Mode | None,
    method: Callable[..., Result],
    self: object,
    /,
    *given: object,
    **named: object,
) -> Result:
    if _waits.submits and isinstance(self, threading.Semaphore):
        return method(self, *given, **named)
    if signals is not None:
        signalled(self, signals)
    name = method.__name__ if awaits is not None else ""
    outer, endless = _waits.inside, _is_endless(name, given, named)
    _waits.inside = outer or name in _LIMITS
    if endless:
        _begins_to_wait(self)
    try:
        return method(self, *given, **named)
    finally:
        _waits.inside = outer
        if awaits is not None:
            awaited(self, awaits, endless=endless)


def _result(
    method: Callable[..., Result], self: concurrent.futures.Future[object], timeout: float | None = None
) -> Result:
    """Wrap a wait for a future: it is for its task, if it is known, and for what sets its result."""
    outer, endless = _waits.inside, timeout is None and not _waits.inside
    _waits.inside = True
    if endless:
        _begins_to_wait(_task_ends.get(self) or self)
    try:
        return method(self, timeout)
    finally:
        _waits.inside = outer
        _awaited_result(self, endless=endless)


@fails_open(None)
def _begins_to_wait(thing: object) -> None:
    """Record that a wait without a limit begins: what it does inside is part of it."""
    recorder = _recorder()
    if recorder is not None:
        recorder.signalled(thing, "R", begins=True)


def _begins_to_wait_for(futures: Iterable[concurrent.futures.Future[object]]) -> None:
    for future in futures:
        _begins_to_wait(_task_ends.get(future) or future)


def _awaited_result(future: concurrent.futures.Future[object], *, endless: bool) -> None:
    task = _task_ends.get(future)
    if task is not None:
        awaited(task, endless=endless)
    awaited(future, endless=endless and task is None)


def _join(method: Callable[..., None], self: threading.Thread, timeout: float | None = None) -> None:
    method(self, timeout)
    _joined(self, endless=timeout is None)


def _is_alive(method: Callable[[threading.Thread], bool], self: threading.Thread) -> bool:
    """Wrap the question whether a thread has ended: what follows the answer that it has comes after it."""
    alive = method(self)
    if not alive:
        _joined(self, endless=False)
    return alive


@fails_open(None)
def _joined(thread: threading.Thread, *, endless: bool) -> None:
    recorder, ended = runtime.recorder, runtime.threads.get(thread)
    if recorder is not None and ended is not None and not IS_ALIVE(thread):
        recorder.joined(ended, endless=endless)


def _add_done_callback(
    method: Callable[..., None],
    self: concurrent.futures.Future[object],
    fn: Callable[[concurrent.futures.Future[object]], object],
) -> None:
    """Wrap what is called after a task: it comes after it, on whichever thread it is called."""
    method(self, guarded(fn, _callback))


def _callback(
    fn: Callable[[concurrent.futures.Future[object]], object], future: concurrent.futures.Future[object]
) -> object:
    _awaited_result(future, endless=False)
    return fn(future)


def _ends(
    method: Callable[..., None], self: concurrent.futures.Future[object], /, *given: object, **named: object
) -> None:
    """Wrap a method that sets the result of a future: its task, a separate execution, came before."""
    awaited(this_thread())
    signalled(self)
    method(self, *given, **named)


def _wait(
    function: Callable[..., concurrent.futures._base.DoneAndNotDoneFutures[object]],
    /,
    *given: object,
    **named: object,
) -> concurrent.futures._base.DoneAndNotDoneFutures[object]:
    """Wrap `concurrent.futures.wait`: a done future is not waited for, but comes before all the same."""
    futures = function(*given, **named)
    limit = named.get("timeout", given[1] if len(given) > 1 else None)
    which = named.get("return_when", given[2] if len(given) == _WAIT_ARGUMENTS else ALL_COMPLETED)
    endless = limit is None and which == ALL_COMPLETED and not _waits.inside
    for future in futures.done:
        _awaited_result(future, endless=endless)
    return futures


def _as_completed(
    function: Callable[..., Iterator[concurrent.futures.Future[object]]],
    fs: Iterable[concurrent.futures.Future[object]],
    timeout: float | None = None,
) -> Iterator[concurrent.futures.Future[object]]:
    """Wrap `as_completed`: from its beginning on each of the futures is waited for until it is yielded."""
    futures = list(fs)
    endless = timeout is None and not _waits.inside
    if endless:
        _begins_to_wait_for(futures)
    found = function(iter(futures), timeout)
    del futures, fs  # the program alone has them then, and may drop them
    yield from passed_on(found, lambda future: _awaited_result(future, endless=endless))


class _Handed:
    """A task that is being submitted to a pool."""


@final
class _TaskEnd:
    """The end of a task, of which the result of its future is a consequence."""

    def __init__(self, name: str) -> None:
        self.name = name


_task_ends: Final[ByIdentity[_TaskEnd]] = ByIdentity()
"""The end of the task of each future."""
_pool_ends: Final[ByIdentity[deque[_TaskEnd]]] = ByIdentity()
"""The ends of the last tasks of each pool."""
TASKS_MAX: Final = 1_000
"""How many tasks of a pool are remembered: those that ran earlier on the same threads come before these."""


def _submit(
    method: Callable[..., object],
    self: object,
    work: Callable[..., object],
    /,
    *given: object,
    **named: object,
) -> object:
    """Wrap `submit`: a task comes after its submitter, and after the tasks that its thread ran before.

    The latter keeps predictions within the number of threads in the pool.
    """
    handed, end = _Handed(), _TaskEnd(name_of_work(work))
    signalled(handed)

    @functools.wraps(work)
    def run() -> object:
        awaited(handed)
        try:
            return work(*given, **named)
        finally:
            signalled(end)
            signalled(this_thread())

    outer, _waits.submits = _waits.submits, True
    try:
        future = method(self, run)
    finally:
        _waits.submits = outer
    _note_task(self, future, end)
    return future


@fails_open(None)
def _note_task(pool: object, future: object, end: _TaskEnd) -> None:
    """Note the end of a task by its future, and among the tasks of its pool."""
    _task_ends.put(future, end)
    with LATCH:
        ends = _pool_ends.get(pool) or deque(maxlen=TASKS_MAX)
        _pool_ends.put(pool, ends)
        ends.append(end)


@fails_open(cast("tuple[_TaskEnd, ...]", ()))
def _tasks_of(pool: object) -> tuple[_TaskEnd, ...]:
    """Return the ends of the last tasks of a pool."""
    return tuple(_pool_ends.get(pool) or ())


def _shutdown(method: Callable[..., None], self: object, wait: bool = True, **named: object) -> None:  # noqa: FBT001, FBT002 - as in concurrent.futures
    """Wrap the end of a pool: it is a wait for the ends of all tasks."""
    ends, outer = _tasks_of(self), _waits.inside
    if wait and not outer:
        for end in ends:
            _begins_to_wait(end)
    try:
        method(self, wait, **named)
    finally:
        if wait:
            for end in ends:
                awaited(end, endless=not outer)
