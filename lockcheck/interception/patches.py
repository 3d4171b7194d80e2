"""The hooks of a session at the level `full`: blocking calls, and calls that order threads.

Functions and methods of the standard library are replaced while such a session is open, and restored when
the last one ends. An audit hook was tried for files, sockets and subprocesses, and rejected: it can never
be removed, and with one it takes five times as long to find the calling frame, which the checked locks do
all the time. A function that was imported by name before the session, as by `from time import sleep`, is
not observed.
"""

from __future__ import annotations

import builtins
import concurrent.futures
import functools
import io
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar, cast

from ..checking.blocking import blocks, waits_with
from ..checking.watch import taken_by
from ..findings.foreign import ByIdentity, name_of_work
from ..holding.chains import Execution, Segment, together
from ..holding.runtime import Interpreter, fails_open, go_on_as, local, next_segment, runtime, this_thread
from .awaited_ends import note_task_end
from .hand_overs import end_of, is_checked, note_end
from .hooks import DONE, IS_ALIVE, IS_SET, Hooks

Result = TypeVar("Result")

_BLOCKING: Final[tuple[tuple[object, str, str], ...]] = (
    (builtins, "open", "file"),
    (io, "open", "file"),
    (os, "open", "file"),
    (socket, "getaddrinfo", "socket"),
    (subprocess.Popen, "__init__", "subprocess"),
    (os, "system", "subprocess"),
)
"""Functions that always block: owner, name, and the kind of blocking."""
_OF_SOCKETS: Final = ("connect", "accept", "recv", "sendall")
"""Methods that block unless the socket was set not to."""

_starts: Final[ByIdentity[Segment]] = ByIdentity()
"""The segment after which each thread was started."""
_tasks: Final[ByIdentity[deque[Segment]]] = ByIdentity()
"""The last segments of the tasks that ran on each thread, which end before the thread does."""
TASKS_MAX: Final = 10_000
"""How many tasks of a thread are remembered."""


def _put_all() -> None:
    thread, future, pool = threading.Thread, concurrent.futures.Future, concurrent.futures.ThreadPoolExecutor
    for owner, name, kind in _BLOCKING:
        HOOKS.wrap(owner, name, partial(_marked, kind))
    for name in _OF_SOCKETS:
        HOOKS.wrap(socket.socket, name, _of_socket)
    HOOKS.wrap(time, "sleep", _sleep)
    HOOKS.wrap(signal, "signal", _signal)
    HOOKS.wrap(thread, "start", _start)
    HOOKS.wrap(thread, "join", _join)
    HOOKS.wrap(thread, "is_alive", _is_alive)
    HOOKS.wrap(threading.Condition, "wait", _condition_wait)
    HOOKS.wrap(threading.Condition, "wait_for", _condition_wait_for)
    HOOKS.wrap(threading.Event, "wait", _event_wait)
    HOOKS.wrap(queue.Queue, "get", _get)
    HOOKS.wrap(queue.Queue, "put", _put)
    HOOKS.wrap(queue.Queue, "join", _queue_join)
    HOOKS.wrap(future, "result", _result)
    HOOKS.wrap(future, "exception", _result)
    HOOKS.wrap(future, "set_result", _resolves)
    HOOKS.wrap(future, "set_exception", _resolves)
    HOOKS.wrap(pool, "submit", _submit)


HOOKS: Final = Hooks(_put_all)


def started_after() -> Segment | None:
    """Return the segment after which the calling thread was started, if that was seen."""
    thread = threading._active.get(Interpreter.thread_number())  # type: ignore[attr-defined] # noqa: SLF001 - unlike current_thread(), it makes none
    return _starts.get(thread) if thread is not None else None


def _marked(kind: str, function: Callable[..., Result], /, *given: object, **named: object) -> Result:
    """Wrap a function that always blocks."""
    blocks(kind)
    return function(*given, **named)


def _signal(function: Callable[[int, object], Result], number: int, handler: object) -> Result:
    """Wrap `signal.signal`: what was taken before may now be taken in a handler, and is looked at again."""
    before = function(number, handler)
    cut = runtime.cut_tries()
    del cut  # keys of locks may have finalizers, which are not to run under the latch
    return before


def _sleep(function: Callable[[float], None], seconds: float) -> None:
    """Wrap `time.sleep`; to sleep for no time only lets others run."""
    if not isinstance(seconds, (int, float)) or seconds > 0:
        blocks("sleep")
    function(seconds)


def _of_socket(
    method: Callable[..., Result], self: socket.socket, /, *given: object, **named: object
) -> Result:
    if waits_with(self.gettimeout()):
        blocks("socket")
    return method(self, *given, **named)


def _event_wait(
    method: Callable[[threading.Event, float | None], bool],
    self: threading.Event,
    timeout: float | None = None,
) -> bool:
    if waits_with(timeout) and not IS_SET(self):
        blocks("event")
    return method(self, timeout)


def _condition_wait(
    method: Callable[..., bool], self: threading.Condition, timeout: float | None = None
) -> bool:
    """Wrap the wait of a condition of `threading`, which releases its own lock and no other one."""
    _condition_blocks(self, timeout)
    return method(self, timeout)


def _condition_wait_for(
    method: Callable[..., object],
    self: threading.Condition,
    predicate: Callable[[], object],
    timeout: float | None = None,
) -> object:
    _condition_blocks(self, timeout)
    return method(self, predicate, timeout)


def _condition_blocks(condition: threading.Condition, timeout: float | None) -> None:
    if type(condition) is threading.Condition and waits_with(timeout) and is_checked():
        own = getattr(condition, "_lock", None)
        blocks("condition", except_for=getattr(own, "identity", None))


def _get(
    method: Callable[..., object],
    self: queue.Queue[object],
    block: bool = True,  # noqa: FBT001, FBT002
    timeout: float | None = None,
) -> object:
    if block and waits_with(timeout):
        blocks("queue")
    return method(self, block, timeout)


def _put(
    method: Callable[..., None],
    self: queue.Queue[object],
    item: object,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> None:
    """Wrap `Queue.put`: it blocks only if the queue has a limit."""
    if block and waits_with(timeout) and self.maxsize > 0:
        blocks("queue")
    method(self, item, block, timeout)


def _queue_join(method: Callable[[queue.Queue[object]], None], self: queue.Queue[object]) -> None:
    blocks("queue", "join")
    method(self)


def _start(method: Callable[[threading.Thread], None], self: threading.Thread) -> None:
    execution = local.execution
    _starts.put(self, execution.segment)
    next_segment(execution)
    inside, execution.inside = (
        execution.inside,
        True,
    )  # it waits for the new thread to come up, which takes no lock
    try:
        method(self)
    finally:
        execution.inside = inside


def _join(
    method: Callable[[threading.Thread, float | None], None],
    self: threading.Thread,
    timeout: float | None = None,
) -> None:
    if waits_with(timeout) and IS_ALIVE(self):
        blocks("join", self.name)
    method(self, timeout)
    if not IS_ALIVE(self):
        _follows(self)


def _is_alive(method: Callable[[threading.Thread], bool], self: threading.Thread) -> bool:
    """Wrap the question whether a thread runs: a thread that knows that it does not comes after it."""
    alive = method(self)
    if not alive:
        _follows(self)
    return alive


def _follows(thread: threading.Thread) -> None:
    """Note that the calling execution goes on after the end of a thread."""
    ended = runtime.segment_of_ended(thread)
    if ended is not None:
        tasks = _tasks.get(thread) or ()
        next_segment(local.execution, together([ended, *tasks]), "by the end of a thread")


def _result(
    method: Callable[..., Result], self: concurrent.futures.Future[object], timeout: float | None = None
) -> Result:
    """Wrap a wait for a future: what its task did comes before what follows here."""
    if waits_with(timeout) and not DONE(self):
        blocks("future")
    try:
        return method(self, timeout)
    finally:
        ended = end_of(self)
        if ended is not None:
            next_segment(local.execution, ended, "by the result of a task")


def _resolves(
    method: Callable[..., None], self: concurrent.futures.Future[object], /, *given: object, **named: object
) -> None:
    note_end(self, local.finished or local.execution.segment)
    local.finished = None
    method(self, *given, **named)


def _submit(
    method: Callable[..., concurrent.futures.Future[object]],
    self: concurrent.futures.ThreadPoolExecutor,
    work: Callable[..., object],
    /,
    *given: object,
    **named: object,
) -> object:
    """Wrap `submit`: each task is a separate execution, unless one thread runs them all."""
    after = local.execution.segment
    next_segment(local.execution)
    alone = self._max_workers == 1

    @functools.wraps(work)
    def run() -> object:
        with _as_task(name_of_work(work), after, alone=alone):
            return work(*given, **named)

    return method(self, run)


def _note_task(segment: Segment) -> None:
    """Note the end of a task on the calling thread."""
    thread = this_thread()
    noted = _tasks.get(thread)
    if noted is None:
        noted = deque(maxlen=TASKS_MAX)
        _tasks.put(thread, noted)
    noted.append(segment)


@contextmanager
def _as_task(name: str, after: Segment, *, alone: bool) -> Iterator[None]:
    """Run a task of a pool: as a separate execution, or on the pool's only thread after its submitter."""
    before = _begin_task(name, after, alone=alone)
    begun = len(taken_by(local.execution))
    try:
        yield
    finally:
        note_task_end(name, taken_by(local.execution)[begun:])
        if before is not None:
            _end_task(before)


@fails_open(cast("Execution | None", None))
def _begin_task(name: str, after: Segment, *, alone: bool) -> Execution | None:
    """Begin a task on the calling thread; return what the thread is when the task ends, if that is other."""
    before = local.execution
    if alone:
        next_segment(before, after, "by the submission of a task")
        return None
    go_on_as(runtime.new_execution(f"task {name}", after))
    return before


@fails_open(None)
def _end_task(before: Execution) -> None:
    """End the task on the calling thread, which is what it was before again."""
    task = local.execution
    try:
        local.finished = task.segment
        if not task.segment.silent:
            _note_task(task.segment)
        if runtime.ended is not None:
            runtime.ended(task)
        runtime.forget(task)
    finally:
        go_on_as(before)
