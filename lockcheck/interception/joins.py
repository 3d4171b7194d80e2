"""Joins: waits for the end of a thread, and for futures of thread pools.

While a session is open, such a wait without a limit is made in slices, and is part of the wait-for graph like
a wait for a lock. A future that is not the result of a pool's task has no edge in it.
"""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED
from dataclasses import replace
from typing import Final, TypeAlias, TypeVar, final

from ..checking.cycles import PoolWaits
from ..checking.waiting import wait_in_slices
from ..findings.foreign import ByIdentity, name_of_work
from ..holding.chains import Execution, Segment
from ..holding.runtime import Interpreter, fails_open, local, runtime
from .hooks import DONE, IS_ALIVE, Hooks

Result = TypeVar("Result")
_Future: TypeAlias = "concurrent.futures.Future[object]"

_JOIN: Final = threading.Thread.join
_WAIT: Final = concurrent.futures.wait
_EXCEPTION: Final = concurrent.futures.Future.exception
"""The original functions, while nothing is checked; they wait with limits."""


@final
class _Task:
    """A task of a pool, and the thread that runs it, if one does."""

    __slots__ = ("name", "number", "over", "pool", "submitted", "thread")

    def __init__(self, name: str, pool: concurrent.futures.ThreadPoolExecutor, submitted: Segment) -> None:
        self.name = name
        self.number = next(_numbers)
        """In the order of submission."""
        self.submitted = submitted
        self.pool = weakref.ref(pool)
        self.thread: int | None = None
        self.over = False

    def workers(self) -> list[Execution]:
        """Return the executions of which one has to act before the task ends; none if that is not known."""
        if self.over:
            return []
        if self.thread is not None:
            return runtime.executions_on([self.thread])
        pool = self.pool()
        if pool is None:
            return []
        executions = runtime.executions_on([worker.ident for worker in tuple(pool._threads)])  # noqa: SLF001 - a pool has no public way
        return executions if len(executions) == pool._max_workers else []  # noqa: SLF001 - likewise


@final
class _LoopTask:
    """A coroutine that a thread left for an event loop, which the thread of the loop runs."""

    __slots__ = ("_loop", "name")

    def __init__(self, name: str, loop: object) -> None:
        self.name = name
        self._loop = weakref.ref(loop)

    def workers(self) -> list[Execution]:
        """Return the execution on the thread of the loop, if the loop runs."""
        return runtime.executions_on([getattr(self._loop(), "_thread_id", None)])


_tasks: Final[ByIdentity[_Task | _LoopTask]] = ByIdentity()
"""The task of each future."""


def note_task_of_loop(future: _Future, name: str, loop: object) -> None:
    """Note that the thread of an event loop runs what a future is the result of."""
    _tasks.put(future, _LoopTask(name, loop))


def result_text(future: _Future) -> str:
    """Return in words what a future gives to those that wait for it."""
    task = _tasks.get(future)
    return f"the result of {task.name}" if task is not None else "a result"


_pools: Final[ByIdentity[PoolWaits]] = ByIdentity()
"""How the tasks of each pool wait for later ones."""


class _Here(threading.local):
    task: _Task | None = None


_here: Final = _Here()
"""The task that the calling thread runs."""
_numbers: Final = itertools.count()


@fails_open(True)
def is_in_task() -> bool:
    """Return whether the calling thread runs a task of a pool."""
    return _here.task is not None


@fails_open(None)
def _note_waits(futures: Iterable[_Future]) -> None:
    """Note waits of a task for later tasks of its pool, also for those that happen to be done."""
    task = _here.task
    pool = task.pool() if task is not None else None
    if task is None or pool is None:
        return
    for future in futures:
        awaited = _tasks.get(future)
        if isinstance(awaited, _Task) and awaited.number > task.number and awaited.pool() is pool:
            _waits_of(pool).note(awaited.name, awaited.submitted)


def _waits_of(pool: concurrent.futures.ThreadPoolExecutor) -> PoolWaits:
    found = _pools.get(pool)
    if found is None:
        prefix = pool._thread_name_prefix or ""  # noqa: SLF001 - a pool has no public name
        name = prefix if not prefix.startswith("ThreadPoolExecutor-") else "ThreadPoolExecutor"
        found = PoolWaits(name, pool._max_workers)  # noqa: SLF001 - a pool has no public size
        _pools.put(pool, found)
    return found


@final
class _JoinWait:
    """The wait for the end of a thread."""

    endless = True
    breakable = True
    signal = None

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def needs(self, waiting: Execution) -> list[list[Execution]]:  # noqa: ARG002 - the same for all that wait
        """Return the execution that runs on the thread."""
        return [runtime.executions_on([self._thread.ident])] if IS_ALIVE(self._thread) else []

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return f"the end of {self._thread.name}"


@final
class _FutureWait:
    """The wait for the results of tasks: for all of them, or for any."""

    endless = True
    breakable = True

    def __init__(self, futures: Iterable[_Future], return_when: str = ALL_COMPLETED) -> None:
        self._futures = list(futures)
        self._return_when = return_when

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return the executions that work for each task that is not over; for promises, who keeps them."""
        left = [future for future in self._futures if not DONE(future)]
        if self._return_when == FIRST_COMPLETED and len(left) < len(self._futures):
            return []  # it is over, and the waiter is about to notice
        tasks = [_tasks.get(future) for future in left]
        groups = [task.workers() if task is not None else [] for task in tasks]
        if not any(groups) and runtime.steering is not None:
            return [runtime.steering.following(waiting)]
        if self._return_when == ALL_COMPLETED:
            return [group for group in groups if group]
        return [[execution for group in groups for execution in group]] if all(groups) else []

    @property
    def signal(self) -> str:
        """The end of the wait, in words."""
        return self.describe()

    def describe(self) -> str:
        """Return what is waited for, in words."""
        tasks = [_tasks.get(future) for future in self._futures]
        names = list(dict.fromkeys(task.name if task is not None else "a promise" for task in tasks))
        if len(tasks) == 1:
            return f"the result of {names[0]}"
        which = "all" if self._return_when == ALL_COMPLETED else "the first"
        return f"{which} of {len(tasks)} results of {', '.join(names)}"


def join(
    method: Callable[[threading.Thread, float | None], None],
    self: threading.Thread,
    timeout: float | None = None,
) -> None:
    """Wrap `Thread.join`."""
    if timeout is None and IS_ALIVE(self) and self.ident != Interpreter.thread_number():
        wait_in_slices(local.execution, _JoinWait(self), lambda seconds: _ended(self, seconds), -1)
    method(self, timeout)


def _ended(thread: threading.Thread, seconds: float) -> bool:
    _JOIN(thread, seconds)
    return not IS_ALIVE(thread)


def result(method: Callable[..., Result], self: _Future, timeout: float | None = None) -> Result:
    """Wrap a wait for a future."""
    if timeout is None:
        _note_waits([self])
    if timeout is None and not DONE(self):
        wait_in_slices(local.execution, _FutureWait([self]), lambda seconds: _done(self, seconds), -1)
    return method(self, timeout)


def _done(future: _Future, seconds: float) -> bool:
    try:
        _EXCEPTION(future, seconds)
    except TimeoutError:
        return DONE(future)
    except concurrent.futures.CancelledError:
        return True
    return True


def wait(
    function: Callable[..., Result],
    fs: Iterable[_Future],
    timeout: float | None = None,
    return_when: str = ALL_COMPLETED,
) -> Result:
    """Wrap `concurrent.futures.wait`; with `FIRST_EXCEPTION` any of the tasks may end the wait."""
    futures = list(fs)
    if timeout is None and futures:
        if return_when == ALL_COMPLETED or len(futures) == 1:
            _note_waits(futures)
        waited = _FutureWait(futures, return_when)
        wait_in_slices(local.execution, waited, lambda seconds: _satisfied(futures, seconds, return_when), -1)
    return function(futures, timeout, return_when)


def _satisfied(futures: list[_Future], seconds: float, return_when: str) -> bool:
    done, left = _WAIT(futures, seconds, return_when)
    if not left or (done and return_when == FIRST_COMPLETED):
        return True
    failed = (one for one in done if not one.cancelled() and one.exception() is not None)
    return return_when == concurrent.futures.FIRST_EXCEPTION and any(failed)


def as_completed(
    function: Callable[..., Iterator[_Future]], fs: Iterable[_Future], timeout: float | None = None
) -> Iterator[_Future]:
    """Wrap `concurrent.futures.as_completed`."""
    left = set(fs)
    del fs  # As in `futures`.
    if timeout is None:
        _note_waits(left)
    found = function(list(left), timeout)
    while left:
        if timeout is None and not any(map(DONE, left)):
            _await_first(left)
        one = [next(found)]
        left.discard(one[0])
        yield one.pop()  # the program alone has it then, and may drop it


@fails_open(None)
def _await_first(left: set[_Future]) -> None:
    """Wait until any of some futures is done."""
    waited = _FutureWait(left, FIRST_COMPLETED)
    wait_in_slices(local.execution, waited, lambda seconds: _satisfied([*left], seconds, FIRST_COMPLETED), -1)


def submit(
    method: Callable[..., _Future],
    self: concurrent.futures.ThreadPoolExecutor,
    work: Callable[..., object],
    /,
    *given: object,
    **named: object,
) -> _Future:
    """Wrap `submit`, and note which thread runs the task."""
    execution = local.execution
    if _here.task is not None:  # what comes after the submission is to be known
        execution.segment = replace(execution.segment, silent=False)
    task = _Task(name_of_work(work), self, execution.segment)

    def run() -> object:
        task.thread = Interpreter.thread_number()
        outer, _here.task = _here.task, task
        try:
            return work(*given, **named)
        finally:
            _here.task = outer
            task.over = True

    future = method(self, run)
    _tasks.put(future, task)
    return future


def _put_all() -> None:
    future, pool = concurrent.futures.Future, concurrent.futures.ThreadPoolExecutor
    HOOKS.wrap(threading.Thread, "join", join)
    HOOKS.wrap(future, "result", result)
    HOOKS.wrap(future, "exception", result)
    HOOKS.wrap(concurrent.futures, "wait", wait)
    HOOKS.wrap(concurrent.futures, "as_completed", as_completed)
    HOOKS.wrap(pool, "submit", submit)


HOOKS: Final = Hooks(_put_all)
