"""Futures and pools: what blocks, what the ends of tasks order, and the locks that were taken before them."""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures._base import FINISHED
from typing import Final, TypeVar, cast

from ..checking.acquisition_checks import End
from ..checking.blocking import blocks, waits_with
from ..checking.knowledge import Counts, gets, gives, known_here, taken_by
from ..findings.foreign import name_of_work
from ..holding.chains import Segment, together
from ..holding.runtime import fails_open, forget_order, hand_over, local, next_segment, this_thread
from . import joins
from .hand_overs import end_of, note_end
from .hooks import DONE, Row, guarded, passed_on
from .task_ends import TASKS_MAX, as_task, awaited, awaited_tasks, ends, last, noticed, task_ends, task_taken
from .threads import learn_of

Result = TypeVar("Result")
_Future = concurrent.futures.Future[object]


def _result(method: Callable[..., Result], self: _Future, timeout: float | None = None) -> Result:
    """Wrap a wait for a future: what its task did comes before what follows here."""
    if waits_with(timeout) and not DONE(self):
        blocks("future")
    try:
        return joins.result(method, self, timeout)
    finally:
        _looked_at(self, endless=timeout is None)


@fails_open(None)
def _looked_at(future: _Future, *, endless: bool) -> None:
    """Note that the calling execution goes on after the end of a task, for which it may have waited."""
    end = ends.get(future) if endless else None
    if end is not None:
        end.awaited()
    gets(future)
    _follows_task(future)


def _light_result(original: Callable[..., Result], hooked: Callable[..., Result]) -> Callable[..., Result]:
    """Return `result` without its hook where it is there, no lock is held, and no task of a pool asks."""

    def result(self: _Future, timeout: float | None = None) -> Result:
        if self._state != FINISHED or local.execution.node.acquisition is not None or joins.is_in_task():
            return hooked(self, timeout)
        _looked_at(self, endless=timeout is None)
        return original(self, timeout)

    return result


def _done(method: Callable[[_Future], bool], self: _Future) -> bool:
    over = method(self)
    if over:
        noticed(ends.get(self))
        gets(self)
    return over


def _snapshot(method: Callable[..., tuple[bool, ...]], self: _Future) -> tuple[bool, ...]:
    """Wrap a look at a future, which tells first whether it is done."""
    found = method(self)
    if found[0]:
        _follows_task(self)
    return found


def _follows_task(future: _Future) -> None:
    """Note that the calling execution goes on after the end of a task."""
    ended = end_of(future)
    if ended is not None:
        next_segment(local.execution, ended, "by the result of a task")


def _resolves(method: Callable[..., None], self: _Future, /, *given: object, **named: object) -> None:
    note_end(self, local.finished or local.execution.segment)
    local.finished = None
    promise = _resolved(self)
    if promise is not None:
        promise.come()
    gives(self)
    method(self, *given, **named)


@fails_open(cast("End | None", None))
def _resolved(future: _Future) -> End | None:
    """Note what the calling thread took before it sets a result; return the end of a promise."""
    task = task_taken()
    taken = taken_by(local.execution) if task is None else task
    if not taken:
        return None
    text = joins.result_text(future) if task is None else f"the result of {last.name}"
    end = End(text, text, taken)
    ends.put(future, end)
    if task is None:
        return end
    ran = task_ends.get(this_thread()) or deque(maxlen=TASKS_MAX)
    task_ends.put(this_thread(), ran)
    ran.append(end)
    return None


def _wait(
    function: Callable[..., Result],
    fs: Iterable[_Future],
    timeout: float | None = None,
    return_when: str = concurrent.futures.ALL_COMPLETED,
) -> Result:
    """Wrap `concurrent.futures.wait`: for all it is a wait for each; else it tells which are done."""
    futures, knew = list(fs), known_here()
    found = joins.wait(function, futures, timeout, return_when)
    whole = timeout is None and (return_when == concurrent.futures.ALL_COMPLETED or len(futures) == 1)
    done: Iterable[_Future] = found.done  # type: ignore[attr-defined] # of the named tuple
    for future in done:
        _came(future, knew if whole else None)
    _follows_all(map(end_of, done))
    return found


def _as_completed(
    function: Callable[..., Iterator[_Future]], fs: Iterable[_Future], timeout: float | None = None
) -> Iterator[_Future]:
    """Wrap `as_completed`: all tasks come before what follows its end."""
    known: list[Segment | None] = []
    found = joins.as_completed(function, fs, timeout)
    del fs  # The program may drop them. Without a global lock a used iterator has its list still.
    knew = known_here() if timeout is None else None

    def came(future: _Future) -> None:
        _came(future, knew)
        known.append(end_of(future))

    yield from passed_on(found, came)
    _follows_all(known)


def _came(future: _Future, knew: Counts | None) -> None:
    """Note that one of several futures is done.

    Args:
        future: it.
        knew: what the calling execution knew before it waited for all; `None` if it waited for some.
    """
    if knew is None:
        noticed(ends.get(future))
    else:
        awaited(ends.get(future), knew)
    gets(future)


@fails_open(None)
def _follows_all(segments: Iterable[Segment | None]) -> None:
    known = [segment for segment in segments if segment is not None]
    if known:
        next_segment(local.execution, together(known), "by the end of all tasks")


def _add_done_callback(method: Callable[..., None], self: _Future, fn: Callable[[_Future], object]) -> None:
    method(self, guarded(fn, _callback))


def _callback(fn: Callable[[_Future], object], future: _Future) -> object:
    """Wrap a callback after a task: it knows that the task is over, and may tell others.

    Its thread is chance: what follows there need not be later.
    """
    ended, execution = end_of(future), local.execution
    before, outer = execution.segment, last.callback_of
    last.callback_of = future
    gets(future)
    if ended is not None:
        next_segment(execution, ended, "by a callback after a task")
    try:
        return fn(future)
    finally:
        last.callback_of = outer
        if ended is not None:
            forget_order(execution, before)


def _submit(
    method: Callable[..., _Future],
    self: concurrent.futures.ThreadPoolExecutor,
    work: Callable[..., object],
    /,
    *given: object,
    **named: object,
) -> object:
    """Wrap `submit`: each task is a separate execution, unless one thread runs them all."""
    name = name_of_work(work)
    after, known = hand_over(local.execution), known_here()
    alone = self._max_workers == 1

    def run() -> object:
        with as_task(name, after, known, alone=alone):
            return work(*given, **named)

    run.__qualname__ = name
    return joins.submit(method, self, run)


def _shutdown(
    method: Callable[..., None],
    self: concurrent.futures.ThreadPoolExecutor,
    wait: bool = True,  # noqa: FBT001, FBT002 - as in concurrent.futures
    **named: object,
) -> None:
    """Wrap the end of a pool, which waits for all its tasks together: which thread runs which is chance.

    So what is known by the end of one of its threads, before the others are waited for, does not count.
    """
    execution, outer = local.execution, last.ends_pool
    before, last.ends_pool = execution.segment, True
    try:
        method(self, wait, **named)
    finally:
        last.ends_pool = outer
    if wait and not outer:
        after, execution.segment = execution.segment, before
        try:
            for thread in tuple(self._threads):
                awaited_tasks(thread)
        finally:
            execution.segment = after
        for thread in tuple(self._threads):
            learn_of(thread)


LIGHT: Final = tuple((concurrent.futures.Future, name, _light_result) for name in ("result", "exception"))
_OF_FUTURE: Final[dict[str, Callable[..., object]]] = {
    "result": _result,
    "exception": _result,
    "done": _done,
    "_get_snapshot": _snapshot,  # by which asyncio takes a result from Python 3.14 on
    "set_result": _resolves,
    "set_exception": _resolves,
    "add_done_callback": _add_done_callback,
}


def rows() -> tuple[Row, ...]:
    """Return the hooks. The class of pools is loaded late, so that the locks of its module are adopted."""
    pool = concurrent.futures.ThreadPoolExecutor
    return (
        *((concurrent.futures.Future, name, hook) for name, hook in _OF_FUTURE.items()),
        (concurrent.futures, "wait", _wait),
        (concurrent.futures, "as_completed", _as_completed),
        (pool, "submit", _submit),
        (pool, "shutdown", _shutdown),
    )
