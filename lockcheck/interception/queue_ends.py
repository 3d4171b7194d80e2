"""Waits on a queue under a lock: for an item, for room, and for the end of all tasks.

The first items of a queue are counted, and so is the room that is made for them: the third get waits
for the third put, and the third put into a queue for two waits for the first get. Only what
one execution alone puts, or gets, counts there; for the end of all tasks, everything that is done.
`checking/acquisition_checks.py` judges what was taken before.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar, final

from ..checking.acquisition_checks import End
from ..checking.graph import Dependency
from ..checking.watch import TAKEN_MAX, note_come, taken_by
from ..findings.foreign import ByIdentity
from ..holding.runtime import LATCH, local
from .hand_overs import HAND_OVERS_MAX, is_checked
from .hooks import Hooks

Result = TypeVar("Result")

ITEM: Final = "an item of a queue"
ROOM: Final = "room in a queue"
ALL_DONE: Final = "the end of all tasks of a queue"


@final
class _Counted:
    """The first puts, or gets, of a queue by one execution, and what came before each of them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._by: int | None = None
        self._alone = True
        self._ends: list[End | None] = []
        self.count = 0

    def begins(self) -> Callable[[], None]:
        """Note one that is about to come; return what is to be called when it has."""
        execution, end = local.execution, None
        with LATCH:
            self._alone = self._alone and self._by in {None, execution.serial}
            self._by = execution.serial
            noted = self._alone and self.count == len(self._ends) < HAND_OVERS_MAX
            self.count += 1
        if noted:
            taken = taken_by(execution)
            end = End(self._text, self._text, taken) if taken else None
            self._ends.append(end)
        return partial(note_come, execution, end.noticed) if end is not None else _nothing

    def failed(self) -> None:
        """Forget one that does not come, and all about the later ones."""
        self._alone = False

    def awaited(self, number: int) -> None:
        """Note that the calling execution waited for one of them."""
        end = self._ends[number] if self._alone and 0 <= number < len(self._ends) else None
        if end is not None:
            end.awaited()

    def noticed(self) -> None:
        """Note that an execution knows which have come."""
        for end in self._ends:
            if end is not None:
                end.noticed()


def _nothing() -> None:
    pass


@final
class _Known:
    """The counts of a queue."""

    def __init__(self) -> None:
        self.items = _Counted(ITEM)
        self.room = _Counted(ROOM)
        self.done: list[Dependency] = []
        """The locks that were taken before tasks were done, since all of them were waited for."""

    def is_over(self, maxsize: int) -> bool:
        """Return whether no further put or get counts, for a queue of this size."""
        return self.items.count >= HAND_OVERS_MAX + max(maxsize, 0) and self.room.count >= HAND_OVERS_MAX


_queues: Final[ByIdentity[_Known]] = ByIdentity()
_Queue = queue.Queue[object]


def _known(given: _Queue) -> _Known | None:
    """Return what is known of a queue, if the program uses it and did so from its beginning."""
    if not is_checked():
        return None
    with LATCH:
        found = _queues.get(given)
        if found is None and not given.queue:
            found = _Known()
            _queues.put(given, found)
        return found


def _counted(given: _Queue) -> _Known | None:
    """Return what is known of a queue of which the next put or get may count."""
    found = _queues.get(given)
    return None if found is not None and found.is_over(given.maxsize) else _known(given)


def _put(
    method: Callable[..., None],
    self: _Queue,
    item: object,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> None:
    known = _counted(self)
    if known is None:
        method(self, item, block, timeout)
        return
    number = known.items.count
    has_come = known.items.begins()
    try:
        method(self, item, block, timeout)
    except queue.Full:
        known.items.failed()
        raise
    has_come()
    if block and timeout is None and self.maxsize > 0:
        known.room.awaited(number - self.maxsize)


def _get(
    method: Callable[..., object],
    self: _Queue,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> object:
    known = _counted(self)
    if known is None:
        return method(self, block, timeout)
    number = known.room.count
    has_come = known.room.begins()
    try:
        found = method(self, block, timeout)
    except queue.Empty:
        known.room.failed()
        raise
    has_come()
    if block and timeout is None:
        known.items.awaited(number)
    return found


def _looks(method: Callable[[_Queue], Result], self: _Queue) -> Result:
    """Wrap a method that returns the number of items."""
    found, known = method(self), _known(self)
    if known is not None:
        known.items.noticed()
        known.room.noticed()
    return found


def _task_done(method: Callable[[_Queue], None], self: _Queue) -> None:
    known = _known(self)
    if known is not None and len(known.done) < TAKEN_MAX:
        known.done.extend(taken_by(local.execution))
    method(self)


def _join(method: Callable[[_Queue], None], self: _Queue) -> None:
    method(self)
    known = _known(self)
    if known is not None and known.done:
        done, known.done = known.done, []
        End(ALL_DONE, ALL_DONE, done).awaited()


def _put_all() -> None:
    HOOKS.wrap(queue.Queue, "put", _put)
    HOOKS.wrap(queue.Queue, "get", _get)
    for name in ("qsize", "empty", "full"):
        HOOKS.wrap(queue.Queue, name, _looks)
    HOOKS.wrap(queue.Queue, "task_done", _task_done)
    HOOKS.wrap(queue.Queue, "join", _join)


HOOKS: Final = Hooks(_put_all)
