"""Threads: what their starts and ends order, what they took before, and waits for their ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, cast

from ..checking.acquisition_checks import End
from ..checking.blocking import blocks, waits_with
from ..checking.finalizers import collects
from ..checking.knowledge import gives, known_by, learn_here, taken_by
from ..findings.foreign import ByIdentity
from ..holding.chains import Segment, together
from ..holding.runtime import Interpreter, fails_open, hand_over, local, next_segment, runtime
from . import joins
from .hooks import IS_ALIVE, Row
from .task_ends import awaited, awaited_tasks, ends, last, noticed, segments_of_tasks, task_ends

_starts: Final[ByIdentity[Segment]] = ByIdentity()
"""The segment after which each thread was started."""


def started_after() -> Segment | None:
    """Return the segment after which the calling thread was started, if that was seen."""
    thread = threading._active.get(Interpreter.thread_number())  # type: ignore[attr-defined] # noqa: SLF001 - unlike current_thread(), it makes none
    return _starts.get(thread) if thread is not None else None


def _start(method: Callable[[threading.Thread], None], self: threading.Thread) -> None:
    execution = local.execution
    gives(self)
    _starts.put(self, hand_over(execution))
    inside, execution.inside = (
        execution.inside,
        True,
    )  # it waits for the new thread to come up, which takes no lock
    try:
        method(self)
    finally:
        execution.inside = inside


def _join(method: Callable[..., None], self: threading.Thread, timeout: float | None = None) -> None:
    """Wrap `Thread.join`.

    The garbage collector runs under any lock, and the program cannot release that first. So a join in it is
    judged when it is over: a thread that was never seen, since it took nothing and waited for nothing that is
    checked, has ended without whatever is held here.
    """
    waits, collecting = waits_with(timeout) and IS_ALIVE(self), collects()
    if waits and not collecting:
        blocks("join", self.name)
    joins.join(method, self, timeout)
    if waits and collecting and (IS_ALIVE(self) or runtime.threads.get(self) is not None):
        blocks("join", self.name)
    if timeout is None:
        awaited(_end_of(self))
        if not last.ends_pool:
            awaited_tasks(self)
    if not IS_ALIVE(self):
        learn_of(self)
        _follows(self)


def _is_alive(method: Callable[[threading.Thread], bool], self: threading.Thread) -> bool:
    """Wrap the question whether a thread runs: a thread that knows that it does not comes after it."""
    alive = method(self)
    if not alive:
        noticed(_end_of(self))
        learn_of(self)
        _follows(self)
    return alive


@fails_open(cast("End | None", None))
def _end_of(thread: threading.Thread) -> End | None:
    """Return the end of a thread that is over, if the thread took locks."""
    end, execution = ends.get(thread), runtime.threads.get(thread)
    taken = taken_by(execution) if end is None and execution is not None else ()
    of_tasks = {one for task in tuple(task_ends.get(thread) or ()) for one in task.taken}
    taken = [one for one in taken if one not in of_tasks]
    if taken:
        end = End(f"the end of {thread.name}", None, taken)
        ends.put(thread, end)
    return end


def learn_of(ended: threading.Thread) -> None:
    """Let the calling execution know what a thread knew that has ended."""
    execution = runtime.threads.get(ended)
    if execution is not None and not last.ends_pool:
        learn_here(known_by(execution))


def _follows(thread: threading.Thread) -> None:
    """Note that the calling execution goes on after the end of a thread."""
    ended = runtime.segment_of_ended(thread)
    if ended is not None:
        segments = [ended, *segments_of_tasks(thread)]
        next_segment(local.execution, together(segments), "by the end of a thread")


ROWS: Final[tuple[Row, ...]] = (
    (threading.Thread, "start", _start),
    (threading.Thread, "join", _join),
    (threading.Thread, "is_alive", _is_alive),
)
