"""The pools of threads of `multiprocessing`: what their tasks do comes before what follows their results.

A call, such as `map`, is a job of one or several tasks, each a separate execution as in `concurrent.futures`.
Its result waits for all of them; an iterator over its results is taken to follow those that are over.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast, final

from ..checking.acquisition_checks import End
from ..checking.knowledge import Counts, known_here, learn_here
from ..findings.foreign import ByIdentity, name_of_work
from ..holding.chains import Segment, together
from ..holding.runtime import fails_open, forget_order, local, next_segment
from .hooks import IS_SET, Hooks, passed_on
from .task_ends import as_task, task_taken

if TYPE_CHECKING:
    from multiprocessing.pool import ApplyResult, Pool

Result = TypeVar("Result")
_Callback: TypeAlias = "Callable[[object], object]"


@final
class _Job:
    """The tasks of one call, and what comes before its results."""

    def __init__(self, pool: Pool) -> None:
        self._alone = pool._processes == 1  # type: ignore[attr-defined] # noqa: SLF001 - a pool has no public size
        self._after = local.execution.segment
        self._known = known_here()
        self._over: list[Segment] = []
        self._ends: list[End] = []
        next_segment(local.execution)

    def task(self, work: Callable[..., Result]) -> Callable[..., Result]:
        """Return a function that does some work as a task."""
        name = name_of_work(work)

        @functools.wraps(work)
        def run(*given: object, **named: object) -> Result:
            try:
                with as_task(name, self._after, self._known, alone=self._alone):
                    return work(*given, **named)
            finally:
                self._note_over(name)

        return run

    def called_back(self, callback: _Callback | None) -> _Callback | None:
        """Return a callback that follows the tasks; its thread need not be later."""
        if callback is None:
            return None

        def call(result: object) -> None:
            execution = local.execution
            before = execution.segment
            self.over()
            try:
                callback(result)
            finally:
                forget_order(execution, before)

        return call

    @fails_open(None)
    def _note_over(self, name: str) -> None:
        self._over.append(local.finished or local.execution.segment)
        local.finished = None
        self._known = {**self._known, **known_here()}
        if taken := task_taken():
            self._ends.append(End(f"the result of {name}", f"the result of {name}", taken))

    @fails_open(None)
    def over(self) -> None:
        """Note that the calling execution goes on after all tasks that are over."""
        next_segment(local.execution, together(list(self._over)), "by the results of a pool")
        learn_here(self._known)

    @fails_open(None)
    def awaited(self, knew: Counts) -> None:
        """Note that the calling execution waited for all tasks without a limit, and what it knew before."""
        for end in self._ends:
            end.awaited(knew=knew)


_jobs: Final[ByIdentity[_Job]] = ByIdentity()
"""The job of each result."""


def find_thread_pools(hooks: Hooks) -> None:
    """Hook into these pools, if the program has imported them."""
    module = sys.modules.get("multiprocessing.pool")
    if not hasattr(module, "ThreadPool"):
        return
    pool = module.Pool  # type: ignore[union-attr] # it is there

    def put() -> None:
        for name in ("_map_async", "apply_async"):
            hooks.wrap(pool, name, partial(_async, _after_function(getattr(pool, name))))
        for name in ("imap", "imap_unordered"):
            hooks.wrap(pool, name, _imap)
        hooks.wrap(module.ApplyResult, "wait", _wait)  # type: ignore[union-attr] # likewise
        hooks.wrap(module.ApplyResult, "ready", _ready)  # type: ignore[union-attr] # likewise
        for name in ("next", "__next__"):
            hooks.wrap(module.IMapIterator, name, _next)  # type: ignore[union-attr] # likewise

    hooks.put_late(pool, "_map_async", put)


def _after_function(method: Callable[..., object]) -> Sequence[str]:
    """Return the names of the arguments of a method that come after `self` and the function."""
    return tuple(inspect.signature(method).parameters)[2:]


def _has_threads(pool: Pool) -> bool:
    return isinstance(pool, sys.modules["multiprocessing.pool"].ThreadPool)


def _async(
    names: Sequence[str],
    method: Callable[..., ApplyResult[object]],
    self: Pool,
    func: Callable[..., object],
    /,
    *given: object,
    **named: object,
) -> ApplyResult[object]:
    """Wrap `apply_async` or `_map_async`; `names` are those of the arguments after the function."""
    if not _has_threads(self):
        return method(self, func, *given, **named)
    job = _Job(self)
    arguments = {**dict(zip(names, given, strict=False)), **named}
    for name in ("callback", "error_callback"):
        arguments[name] = job.called_back(cast("_Callback | None", arguments.get(name)))
    result = method(self, job.task(func), **arguments)
    _jobs.put(result, job)
    return result


def _imap(
    method: Callable[..., Iterator[object]],
    self: Pool,
    func: Callable[..., object],
    iterable: Iterable[object],
    chunksize: int = 1,
) -> Iterator[object]:
    if not _has_threads(self):
        return method(self, func, iterable, chunksize)
    job = _Job(self)
    found = method(self, job.task(func), iterable, chunksize)
    if chunksize != 1:  # it is a generator over the results of chunks
        return _followed(found, job)
    _jobs.put(found, job)
    return found


def _followed(found: Iterator[object], job: _Job) -> Iterator[object]:
    yield from passed_on(found, lambda _: job.over())
    job.over()


def _wait(method: Callable[..., None], self: ApplyResult[object], timeout: float | None = None) -> None:
    knew = known_here()
    method(self, timeout)
    job = _jobs.get(self)
    if job is not None and IS_SET(self._event):  # type: ignore[attr-defined]
        if timeout is None:
            job.awaited(knew)
        job.over()


def _ready(method: Callable[[object], bool], self: ApplyResult[object]) -> bool:
    ready, job = method(self), _jobs.get(self)
    if ready and job is not None:
        job.over()
    return ready


def _next(method: Callable[..., object], self: Iterator[object], timeout: float | None = None) -> object:
    try:
        return method(self, timeout)
    finally:
        job = _jobs.get(self)
        if job is not None:
            job.over()
