"""The asks of one application that wait, in order, and the nodes that are reserved for them.

The order is priority (highest first), then age (oldest first), then a serial that decides ties: an ask as
old as the last one goes after it, an ask as old as an earlier one goes before the first of that age.
That is the order of the recorded core, kept because an RM that sends asks in one message sees it.

Asks of one *shape* (size, priority, constraints) form a group: where one of a group finds no room, no
other one of it does, so that a walk over a backlog costs one step a group instead of one an ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from ..marks import Marks
from ..resources.resource import EMPTY, Resource
from ..values.allocation import Ask
from ..values.ordered_list import OrderedList

if TYPE_CHECKING:
    from .core import ApplicationCore
    from .effects import Answer

AskOrder: TypeAlias = tuple[int, int, int]
"""(negative priority, creation in ns, serial): the smallest goes first."""
CHECK_INTERVAL_NS: Final = 15_000_000_000
"""How long an ask waits for the next attempt to preempt for it."""
QUEUE_CHECK: Final = 1
USER_CHECK: Final = 2
"""The checks that an ask may have failed: the headroom of its queue or of its user; bits of
`failed_checks`."""
EVER_NS: Final = 2**64
"""Later than any ask is created."""
_new: Final = tuple.__new__


class AskShape(NamedTuple):
    """The properties that decide the answer for an ask, apart from its age and unclassed predicates."""

    resource: Resource
    priority: int
    required_node: str
    task_group_name: str
    placeholder: bool
    allow_preempt_other: bool
    predicate_class: str


@final
class AskRecord:
    """An ask and what its application notes about it. Owned by the application."""

    __slots__ = (
        "ask",
        "attempted",
        "failed_checks",
        "group",
        "has_own_answer",
        "log",
        "order",
        "placed",
        "preemption_checked_ns",
        "preemption_triggered",
        "released",
        "scale_up_triggered",
    )

    def __init__(self, ask: Ask, order: AskOrder) -> None:
        self.ask = ask
        self.order = order
        self.group: AskGroup | None = None
        """Where it waits."""
        self.has_own_answer = False
        """The answer to others of its shape about preemption may not hold for it: see `AskGroup.apart`."""
        self.placed = False
        """It has an allocation, or one that replaces a placeholder in a swap under way."""
        self.attempted = False
        """Scheduling has searched room for it in its queue and on the nodes."""
        self.failed_checks = 0
        """The checks that failed when it was last tried: `QUEUE_CHECK`, `USER_CHECK`, both or none."""
        self.released = False
        """The core asked the RM to end it while it waited (placeholder timeout)."""
        self.scale_up_triggered = False
        self.preemption_triggered = False
        self.preemption_checked_ns: int | None = None
        self.log: dict[str, tuple[int, int]] | None = None
        """Text -> (how often, when last in ns)."""

    def note(self, text: str, now_ns: int, times: int = 1) -> None:
        """Count refusals with this text."""
        if self.log is None:
            self.log = {}
        before, _ = self.log.get(text, (0, 0))
        self.log[text] = (before + times, now_ns)


def shape_of(ask: Ask) -> AskShape:
    """Return the shape of an ask."""
    # Not by its constructor, which is slower, and each ask comes here: a function in Python that calls this.
    return _new(
        AskShape,
        (
            ask.resource,
            ask.priority,
            ask.required_node,
            ask.task_group_name,
            ask.placeholder,
            ask.allow_preempt_other,
            ask.predicate_class,
        ),
    )


_NOBODY: Final[OrderedList[AskRecord]] = OrderedList()
"""Shared by all groups that set none apart; nothing is ever added to it."""


@final
class AskGroup(OrderedList[AskRecord]):
    """The waiting asks of one shape, in order. Its own place is that of its first ask."""

    __slots__ = ("_apart", "attempted_until", "order", "reserved", "shape")

    attempted_until: AskOrder | None
    """All asks up to this one count as attempted, because they shared the answer of one before them."""
    reserved: tuple[AskOrder, AskOrder] | None
    """All asks behind the first place, up to the second one, are known to have reservations."""
    _apart: OrderedList[AskRecord] | None

    def __init__(self, shape: AskShape, order: AskOrder) -> None:
        super().__init__()
        self.shape = shape
        self.order = order
        self.attempted_until = self.reserved = self._apart = None

    @property
    def apart(self) -> OrderedList[AskRecord]:
        """Those for which preemption was tried, or a node reserved: they share no answer of others."""
        return _NOBODY if self._apart is None else self._apart

    def set_apart(self, record: AskRecord) -> None:
        """Have this ask share no answer of others."""
        if self._apart is None:
            self._apart = OrderedList()
        self._apart.add(record)

    def share(self, record: AskRecord) -> None:
        """Have an ask share the answers of others of its shape again."""
        record.has_own_answer = False
        self.apart.remove(record)

    def was_attempted(self, record: AskRecord) -> bool:
        """Return whether scheduling searched room for the ask or for one whose answer it shared."""
        return record.attempted or (self.attempted_until is not None and record.order <= self.attempted_until)

    def mark_attempted(self, until: AskOrder | None) -> None:
        """Count its asks as attempted that shared an answer: all, or those before a place in the order."""
        if not self:
            return
        last = self.last.order
        mark = last if until is None else min(last, until)
        if self.attempted_until is None or mark > self.attempted_until:
            self.attempted_until = mark


@final
class _Ages:
    """Serials for asks of equal priority and age, placed ones included."""

    __slots__ = ("_ages", "_last")

    def __init__(self) -> None:
        self._ages: dict[tuple[int, int], tuple[int, int, int]] = {}
        """(negative priority, creation) -> (lowest serial, highest serial, how many).

        The collector of garbage follows no tuples of numbers."""
        self._last: tuple[int, int] | None = None
        """The one that goes last, `None` if it has to be found again."""

    def enter(self, ask: Ask) -> AskOrder:
        age = (-ask.priority, ask.created_at_ns)
        serials = self._ages.get(age)
        if serials is None:
            if self._last is not None and age > self._last:
                self._last = age
            self._ages[age] = (0, 0, 1)
            return (*age, 0)
        lowest, highest, count = serials
        if self._last is None:
            self._last = max(self._ages)
        if age == self._last:
            self._ages[age] = (lowest, highest + 1, count + 1)
            return (*age, highest + 1)
        self._ages[age] = (lowest - 1, highest, count + 1)
        return (*age, lowest - 1)

    def leave(self, order: AskOrder) -> None:
        age = order[:2]
        lowest, highest, count = self._ages[age]
        if count > 1:
            self._ages[age] = (lowest, highest, count - 1)
            return
        del self._ages[age]
        if age == self._last:
            self._last = None


@final
class PendingAsks:
    """All asks of an application by key, and the waiting ones in order."""

    def __init__(self) -> None:
        self.records: dict[str, AskRecord] = {}
        self.groups: dict[AskShape, AskGroup] = {}
        self._in_order: OrderedList[AskGroup] = OrderedList()
        """The groups by their first asks."""
        self._ages = _Ages()

    def __contains__(self, allocation_key: str) -> bool:
        return allocation_key in self.records

    def get(self, allocation_key: str) -> AskRecord | None:
        """Return the record of an ask, waiting or placed."""
        return self.records.get(allocation_key)

    def waiting(self) -> Iterator[AskRecord]:
        """Walk the waiting asks in order."""
        rows = [record for group in self.groups.values() for record in group]
        rows.sort(key=lambda record: record.order)
        return iter(rows)

    @property
    def has_waiting(self) -> bool:
        """Whether any ask waits."""
        return bool(self.groups)

    def first_group(self) -> AskGroup | None:
        """Return the group whose first ask goes first, `None` if nothing waits."""
        return self._in_order.head()

    def walk(self) -> list[tuple[AskOrder, AskGroup]]:
        """Return the groups by the order of their first asks."""
        return [(group.order, group) for group in self._in_order]

    # ---------------------------------------------------------------------------------- changes

    def add(self, ask: Ask, *, placed: bool = False) -> AskRecord:
        """Add an ask, as waiting or as placed already."""
        assert ask.allocation_key not in self.records, f"ask {ask.allocation_key} is known: please report"
        record = AskRecord(ask, self._ages.enter(ask))
        self.records[ask.allocation_key] = record
        record.placed = placed
        if not placed:
            self._queue(record)
        return record

    def remove(self, allocation_key: str) -> AskRecord | None:
        """Remove an ask; return its record if it was there."""
        record = self.records.pop(allocation_key, None)
        if record is None:
            return None
        if not record.placed:
            self._unqueue(record)
        self._ages.leave(record.order)
        return record

    def place(self, record: AskRecord) -> None:
        """Note that an ask waits no longer."""
        assert not record.placed, f"ask {record.ask.allocation_key} is placed twice: please report"
        self._unqueue(record)
        record.placed = True

    def displace(self, record: AskRecord) -> None:
        """Note that an ask waits again, in its old place."""
        assert record.placed, f"ask {record.ask.allocation_key} waits already: please report"
        record.placed = False
        self._queue(record)

    def resize(self, record: AskRecord, resource: Resource) -> None:
        """Give an ask another size."""
        if record.placed:
            record.ask = record.ask.resized(resource)
            return
        self._unqueue(record)
        record.ask = record.ask.resized(resource)
        self._queue(record)

    def set_apart(self, record: AskRecord) -> None:
        """Have this ask share no answer of others about preemption."""
        if record.has_own_answer:
            return
        record.has_own_answer = True
        if record.group is not None:
            record.group.set_apart(record)

    def _queue(self, record: AskRecord) -> None:
        shape = shape_of(record.ask)
        group = self.groups.get(shape)
        if group is None:
            group = self.groups[shape] = AskGroup(shape, record.order)
            self._in_order.add(group)
        elif record.order < group.order:
            self._move(group, record.order)
        group.add(record)
        if group.reserved is not None and record.order <= group.reserved[1]:
            group.reserved = None
        record.group = group
        if record.has_own_answer:
            group.set_apart(record)

    def _unqueue(self, record: AskRecord) -> None:
        group = record.group
        assert group is not None, f"ask {record.ask.allocation_key} does not wait: please report"
        record.attempted = group.was_attempted(record)
        record.group = None
        group.remove(record)
        if record.has_own_answer:
            group.apart.remove(record)
        first = group.head()
        if first is None:
            self._in_order.remove(group)
            del self.groups[group.shape]
        elif record.order == group.order:
            self._move(group, first.order)

    def _move(self, group: AskGroup, order: AskOrder) -> None:
        if len(self.groups) == 1:
            group.order = order
            return
        self._in_order.remove(group)
        group.order = order
        self._in_order.add(group)

    def validate(self) -> None:
        """Assert that the groups hold exactly the waiting asks, each in the place of its first one."""
        waiting = {key for key, record in self.records.items() if not record.placed}
        grouped = {r.ask.allocation_key for g in self.groups.values() for r in g}
        assert waiting == grouped, f"waiting asks {waiting ^ grouped} are lost or doubled"
        for group in self.groups.values():
            first = group.head()
            place = None if first is None else first.order
            assert group.order == place, "the place of a group is not that of its first ask"
            apart = [record for record in group if record.has_own_answer]
            assert apart == list(group.apart), "an ask with a separate answer is lost or doubled"
        assert len(self._in_order) == len(self.groups), "a group has no place in the order"


def has_own_answer(record: AskRecord, reserved_node: str, now_ns: int) -> bool:
    """Return whether an ask may get another answer than one for which preemption was never tried."""
    checked_ns = record.preemption_checked_ns
    recent = checked_ns is not None and now_ns < checked_ns + CHECK_INTERVAL_NS
    return recent or record.preemption_triggered or bool(reserved_node)


class Reservation(NamedTuple):
    """A node that waits for an ask."""

    allocation_key: str
    node_id: str
    created_at_ns: int
    required: bool
    """Whether the ask can run on no other node."""
    resource: Resource = EMPTY
    """The request of the ask when the reservation was made."""


@final
class Reservations:
    """One reservation an ask at most, in the order they were made. Owned by the application."""

    def __init__(self) -> None:
        self.by_key: dict[str, Reservation] = {}
        """The reservations by the keys of their asks, the oldest first."""

    def __len__(self) -> int:
        return len(self.by_key)

    def all(self) -> tuple[Reservation, ...]:
        """Return the reservations, the oldest first."""
        return tuple(self.by_key.values())

    def node_of(self, allocation_key: str) -> str:
        """Return the node reserved for an ask, the empty text without one."""
        reservation = self.by_key.get(allocation_key)
        return reservation.node_id if reservation is not None else ""

    def add(self, reservation: Reservation) -> None:
        """Note a reservation."""
        assert reservation.allocation_key not in self.by_key, (
            f"{reservation.allocation_key} has a reservation: please report"
        )
        self.by_key[reservation.allocation_key] = reservation

    def remove(self, allocation_key: str) -> Reservation | None:
        """Forget a reservation; return it if there was one."""
        return self.by_key.pop(allocation_key, None)


@final
class ApplicationReservations:
    """The reservations of one application, as its partition changes them."""

    __slots__ = ("_core",)

    MARKS: Final = Marks(reads=("with_asks",), writes=("try_add", "remove"))

    def __init__(self, core: ApplicationCore) -> None:
        self._core = core

    def try_add(self, allocation_key: str, node_id: str, now_ns: int, *, required: bool) -> Answer | None:
        """Note a node as reserved for a waiting ask; `None` if the ask is gone, placed or has a node."""
        core = self._core
        record = core.asks.get(allocation_key)
        if record is None or record.placed or core.reservations.node_of(allocation_key):
            return None
        core.reservations.add(Reservation(allocation_key, node_id, now_ns, required, record.ask.resource))
        core.asks.set_apart(record)
        return core.answer()

    def remove(self, allocation_key: str) -> Answer | None:
        """Forget the reservation of an ask; `None` without one."""
        reservation = self._core.reservations.remove(allocation_key)
        record = self._core.asks.get(allocation_key)
        if record is not None and record.group is not None:
            record.group.reserved = None
        return None if reservation is None else self._core.answer(reservations=(reservation,))

    def with_asks(self, only_key: str = "") -> tuple[tuple[Reservation, AskRecord | None], ...]:
        """Return all reservations, or that of one ask, with the asks, `None` for one that no longer waits."""
        rows = []
        by_key = self._core.reservations.by_key
        only = by_key.get(only_key)
        for reservation in by_key.values() if only is None else (only,):
            record = self._core.asks.get(reservation.allocation_key)
            rows.append((reservation, None if record is None or record.placed else record))
        return tuple(rows)
