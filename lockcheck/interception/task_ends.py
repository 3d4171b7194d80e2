"""Tasks of pools: each is an execution; what it took, and what comes after its end."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast

from ..checking.acquisition_checks import End
from ..checking.graph import Dependency
from ..checking.knowledge import Counts, count_here, known_by, learn_here, taken_by
from ..findings.foreign import ByIdentity
from ..holding.chains import Execution, Segment
from ..holding.runtime import fails_open, go_on_as, local, next_segment, runtime, this_thread

SEGMENTS_MAX: Final = 10_000
"""How many tasks of a thread are remembered, which end before the thread does."""
TASKS_MAX: Final = 64
"""The ends of how many tasks of a thread are known to who joins it."""

ends: Final[ByIdentity[End]] = ByIdentity()
"""The ends of threads that took locks, and of what sets the results of futures."""
task_ends: Final[ByIdentity[deque[End]]] = ByIdentity()
"""The ends of the last tasks that each thread of a pool ran: a thread that joins it waits for them too."""
_segments: Final[ByIdentity[deque[Segment]]] = ByIdentity()
"""The last segments of the tasks that ran on each thread."""


class Last(threading.local):
    """The task that ended last on the calling thread, until its result is set."""

    taken: Sequence[Dependency] | None = None
    name = ""
    callback_of: object = None
    """The future of which a callback runs on the calling thread."""
    ends_pool = False
    """Whether the calling thread ends a pool."""


last: Final = Last()


@fails_open(None)
def awaited(end: End | None, knew: Counts | None = None) -> None:
    """Note that the calling execution waited for an end, if known, without a limit: see `End.awaited`."""
    if end is not None:
        end.awaited(knew=knew)


def noticed(end: End | None) -> None:
    """Note that the calling execution knows that an end is over, if it is known."""
    if end is not None:
        end.noticed()


def note_callback_tells() -> None:
    """Note that the calling thread tells others something, maybe that the task of its callback is over."""
    if last.callback_of is not None:
        noticed(ends.get(last.callback_of))


def awaited_tasks(thread: threading.Thread) -> None:
    """Note that the calling execution waited for the tasks that a thread ran."""
    for end in tuple(task_ends.get(thread) or ()):
        awaited(end)


def segments_of_tasks(thread: threading.Thread) -> Sequence[Segment]:
    """Return the last segments of the tasks that ran on a thread."""
    return tuple(_segments.get(thread) or ())


@fails_open(None)
def _note_taken(name: str, taken: Sequence[Dependency]) -> None:
    """Note what the task took that ends on the calling thread."""
    last.name, last.taken = name, taken


@fails_open(cast("Sequence[Dependency] | None", None))
def task_taken() -> Sequence[Dependency] | None:
    """Return what the task took that ended last on the calling thread, once; `None` if there is none."""
    taken, last.taken = last.taken, None
    return taken


def _note_task(segment: Segment) -> None:
    """Note the end of a task on the calling thread."""
    thread = this_thread()
    noted = _segments.get(thread)
    if noted is None:
        noted = deque(maxlen=SEGMENTS_MAX)
        _segments.put(thread, noted)
    noted.append(segment)


@contextmanager
def as_task(name: str, after: Segment, known: Counts, *, alone: bool) -> Iterator[None]:
    """Run a task of a pool: as a separate execution, or on the pool's only thread after its submitter."""
    before = _begin_task(name, after, alone=alone)
    learn_here(known)
    begun = count_here()
    try:
        yield
    finally:
        _note_taken(name, [one for one in taken_by(local.execution) if one.count > begun])
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
    known = known_by(task)
    try:
        local.finished = task.segment
        if not task.segment.silent:
            _note_task(task.segment)
        if runtime.ended is not None:
            runtime.ended(task)
        runtime.forget(task)
    finally:
        go_on_as(before)
        learn_here(known)
