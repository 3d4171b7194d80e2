"""Queues: what their first items order, what blocks, and waits under a lock for an item, room, or all tasks.

The first items of a queue with one producer come before the first gets of each consumer. The room that is
made for items is counted too: the third put into a queue for two waits for the first get. For waits under a
lock, only what one execution alone puts, or gets, counts; for the end of all tasks, everything that is done.
`checking/acquisition_checks.py` judges what was taken before.
"""

from __future__ import annotations

import queue
import weakref
from collections.abc import Callable
from typing import Final, TypeVar, final

from ..checking.acquisition_checks import End, advise_two
from ..checking.blocking import blocks, waits_with
from ..checking.graph import Dependency
from ..checking.knowledge import TAKEN_MAX, gets, gives, taken_by
from ..checking.watch import current
from ..findings.foreign import ByIdentity
from ..holding.chains import Execution, Segment, TrieNode, together
from ..holding.runtime import LATCH, fails_open, local, next_segment
from ..holding.stacks import caller, capture
from .hand_overs import HAND_OVERS_MAX, is_checked
from .hooks import Row, guarded

Result = TypeVar("Result")
_Queue = queue.Queue[object]

ITEM: Final = "an item of a queue"
ROOM: Final = "room in a queue"
ALL_DONE: Final = "the end of all tasks of a queue"


@final
class _Counted:
    """The first puts, or gets, of a queue by one execution, and what came before each of them."""

    def __init__(self, text: str, *, begun: bool) -> None:
        self._text = text
        self._by: int | None = None
        self._alone = not begun
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
        return end.come if end is not None else _nothing

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
    """What is known of a queue.

    Args:
        begun: whether items were put before it was known.
    """

    def __init__(self, *, begun: bool) -> None:
        self.is_over = False
        """Whether no further put counts, and for waits no further get."""
        self.producer: int | None = None
        self.ordered = not begun
        """Whether one execution alone puts items, as far as is known."""
        self.puts: list[Segment] = []
        self.gets: dict[int, int] = {}
        """How many each execution took."""
        self.done: dict[int, Segment] = {}
        """The last segment of each execution that marked an item as done."""
        self.items = _Counted(ITEM, begun=begun)
        self.room = _Counted(ROOM, begun=begun)
        self.taken: list[Dependency] = []
        """The locks that were taken before tasks were done, since all of them were waited for."""
        self.lent: dict[int, list[_Lent]] = {}
        """What each execution got, in this order, as far as it may be put back."""

    def orders_no_put(self) -> bool:
        """Return whether no further put counts: the first ones are by one producer, whatever follows."""
        return not self.ordered or len(self.puts) == HAND_OVERS_MAX

    def counts_no_more(self, maxsize: int) -> bool:
        """Return whether no further put or get counts for waits, for a queue of this size."""
        return self.items.count >= HAND_OVERS_MAX + max(maxsize, 0) and self.room.count >= HAND_OVERS_MAX

    def note_put(self, execution: Execution) -> None:
        """Note that an execution is about to put an item."""
        if self.orders_no_put():
            return
        if self.producer not in {None, execution.serial}:
            self.ordered = False
            return
        self.producer = execution.serial
        self.puts.append(execution.segment)
        next_segment(execution)

    def note_got(self, execution: Execution) -> None:
        """Note that an execution has got an item."""
        count = self.gets.get(execution.serial, 0)
        if self.ordered and count < len(self.puts):
            self.gets[execution.serial] = count + 1
            next_segment(execution, self.puts[count], "by a queue with one producer")

    @fails_open(None)
    def note_lent(self, execution: Execution, item: object) -> None:
        """Note that an execution has got an item, which it may put back."""
        mine = self.lent.setdefault(execution.serial, [])
        outer = next((one for one in reversed(mine) if not one.is_back), None)
        if type(item) is object:  # a token, which has no finalizer to wait for
            lent = _Lent(lambda: item, outer)
        elif type(item).__weakrefoffset__:
            lent = _Lent(weakref.ref(item), outer)
        else:  # a number or a text is no resource
            return
        if outer is not None:
            lent.node = TrieNode(execution, execution.node, None, None)
            lent.node.stack = capture(caller())
        mine.append(lent)

    @fails_open(None)
    def note_back(self, execution: Execution, item: object) -> None:
        """Note that an execution is about to put an item; advise if it had two that it puts back."""
        mine, watch = self.lent.get(execution.serial, ()), current()
        for lent in mine:
            lent.is_back = lent.is_back or lent.item() is item
        for lent in mine:
            outer, node = lent.outer, lent.node
            if (
                watch is not None
                and node is not None
                and outer is not None
                and lent.is_back
                and outer.is_back
            ):
                lent.node = None
                advise_two(watch, node, "an item of a queue, which it puts back,")


class _Lent:
    """An item that an execution got from a queue."""

    def __init__(self, item: Callable[[], object], outer: _Lent | None) -> None:
        self.item = item
        self.outer = outer
        """What the execution got before, and had not put back."""
        self.node: TrieNode | None = None
        """Where it got this one, if it had one before."""
        self.is_back = False


_queues: Final[ByIdentity[_Known]] = ByIdentity()


def _known(given: _Queue) -> _Known:
    with LATCH:
        found = _queues.get(given)
        if found is None:
            waiting = getattr(given, "queue", None)  # which no `SimpleQueue` has
            found = _Known(begun=bool(waiting) if waiting is not None else not given.empty())
            _queues.put(given, found)
        return found


def _put(
    method: Callable[..., None],
    self: _Queue,
    item: object,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> None:
    """Wrap `Queue.put`: it blocks only if the queue has a limit."""
    if block and self.maxsize > 0 and waits_with(timeout):
        blocks("queue")
    known = _queues.get(self)
    if known is not None and known.orders_no_put() and known.counts_no_more(self.maxsize):
        known.is_over = True
    gives(self)
    if (known is not None and known.is_over) or not is_checked():
        method(self, item, block, timeout)
        return
    known = known or _known(self)
    known.note_back(local.execution, item)
    known.note_put(local.execution)
    number, has_come = known.items.count, known.items.begins()
    try:
        method(self, item, block, timeout)
    except queue.Full:
        known.ordered = False
        known.items.failed()
        raise
    has_come()
    if self.maxsize > 0:
        if block and timeout is None:
            known.room.awaited(number - self.maxsize)
        gets(self)


def _get(
    method: Callable[..., object],
    self: _Queue,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> object:
    if block and waits_with(timeout):
        blocks("queue")
    known, execution = _queues.get(self), local.execution
    is_over = known is not None and known.is_over
    if is_over and known is not None and known.ordered:
        is_over = known.gets.get(execution.serial) == HAND_OVERS_MAX
    gives(self)
    if is_over or not is_checked():
        found = method(self, block, timeout)
        gets(self)
        return found
    known = known or _known(self)
    number, has_come = known.room.count, known.room.begins()
    try:
        found = method(self, block, timeout)
    except queue.Empty:
        known.room.failed()
        raise
    has_come()
    if block and timeout is None:
        known.items.awaited(number)
        known.note_lent(execution, found)
    gets(self)
    known.note_got(execution)
    return found


def _looks(method: Callable[[_Queue], Result], self: _Queue) -> Result:
    """Wrap a method that returns the number of items."""
    found = method(self)
    if is_checked():
        known = _known(self)
        known.items.noticed()
        known.room.noticed()
    gets(self)
    return found


def _task_done(method: Callable[[_Queue], None], self: _Queue) -> None:
    known = _known(self) if is_checked() else None
    if known is not None:
        execution = local.execution
        if len(known.taken) < TAKEN_MAX:
            known.taken.extend(taken_by(execution))
        if not known.orders_no_put():
            known.done[execution.serial] = execution.segment
            next_segment(execution)
    gives(self)
    method(self)


def _join(method: Callable[[_Queue], None], self: _Queue) -> None:
    """Wrap the wait for all items: the one that has put all of them comes after what was done."""
    blocks("queue", "join")
    method(self)
    known = _known(self) if is_checked() else None
    if known is not None and known.taken:
        taken, known.taken = known.taken, []
        End(ALL_DONE, ALL_DONE, taken).awaited()
    gets(self)
    execution = local.execution
    if known is not None and not known.orders_no_put() and known.producer == execution.serial:
        done = together(list(known.done.values()))
        next_segment(execution, done, "by a queue of which all items are done")


def checked_simple_queue(plain: type) -> type:
    """Return a class that is checked in the place of `SimpleQueue`, which cannot be changed."""

    def put(method: Callable[..., None], self: _Queue, /, *given: object, **named: object) -> None:
        gives(self)
        known = _queues.get(self)
        if (known is None or not known.orders_no_put()) and is_checked():
            (known or _known(self)).note_put(local.execution)
        method(self, *given, **named)

    def get(method: Callable[..., object], self: _Queue, /, *given: object, **named: object) -> object:
        known = _queues.get(self)
        checked = (known is None or known.ordered) and is_checked()
        known = known or (_known(self) if checked else None)
        try:
            found = method(self, *given, **named)
        finally:
            gets(self)
        if checked and known is not None:
            known.note_got(local.execution)
        return found

    methods: dict[str, object] = {name: guarded(getattr(plain, name), put) for name in ("put", "put_nowait")}
    methods |= {name: guarded(getattr(plain, name), get) for name in ("get", "get_nowait")}
    methods |= {"__module__": plain.__module__, "__doc__": plain.__doc__}

    class Like(type):
        """One that was made before is an instance too."""

        def __instancecheck__(cls, instance: object) -> bool:
            return issubclass(type(instance), plain)

    return Like(plain.__name__, (plain,), methods)


def _light_put(original: Callable[..., None], hooked: Callable[..., None]) -> Callable[..., None]:
    """Return `put` without its hook where no lock is held and no further put counts."""

    def put(self: _Queue, item: object, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as in queue
        known = _queues.get(self)
        if known is None or not known.is_over or local.execution.node.acquisition is not None:
            hooked(self, item, block, timeout)
        else:
            gives(self)
            original(self, item, block, timeout)

    return put


def _light_get(original: Callable[..., object], hooked: Callable[..., object]) -> Callable[..., object]:
    """Return `get` without its hook where no lock is held and no further get counts."""

    def get(self: _Queue, block: bool = True, timeout: float | None = None) -> object:  # noqa: FBT001, FBT002 - as in queue
        known, execution = _queues.get(self), local.execution
        if (
            known is None
            or not known.is_over
            or (known.ordered and known.gets.get(execution.serial) != HAND_OVERS_MAX)
            or execution.node.acquisition is not None
        ):
            return hooked(self, block, timeout)
        gives(self)
        found = original(self, block, timeout)
        gets(self)
        return found

    return get


LIGHT: Final = ((queue.Queue, "put", _light_put), (queue.Queue, "get", _light_get))
ROWS: Final[tuple[Row, ...]] = (
    (queue.Queue, "put", _put),
    (queue.Queue, "get", _get),
    *((queue.Queue, name, _looks) for name in ("qsize", "empty", "full")),
    (queue.Queue, "task_done", _task_done),
    (queue.Queue, "join", _join),
)
