"""The orders that a queue keeps: its child queues, or its applications, the next one first.

Both orders hold only what has something waiting, and both are total: where the rules leave a tie, the
name decides, so that the same input gives the same decisions. They are re-keyed only where something
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, final

from ..policies.policies import PolicyKey
from ..resources.decayed_use import span_of
from ..resources.quantities import INT32_MIN
from ..resources.resource import EMPTY, Resource, is_any_positive
from ..values.ordered_list import OrderedList
from .application_entry import ApplicationEntry
from .sleep import Sleep
from .users import LeafUsers, ranked_by_users
from .waiting import WaitingApplications, move_resting, rests_on

if TYPE_CHECKING:
    from .queue import Queue
    from .tree import QueueTree

ChildKey: TypeAlias = "tuple[float | str | PolicyKey, ...]"
"""The place of a queue among its siblings, the smallest first; it ends with the name."""


class OrderStamp(NamedTuple):
    """The values that decide the places of children besides the children: a change of them moves places."""

    limits_version: int
    span: int = 0
    """That of the half-life: places of two spans cannot be compared."""
    now_ns: int = 0
    """The moment, 0 where time does not move them."""


NEVER_ORDERED: Final = OrderStamp(-1)


@final
class _ChildEntry:
    """The place of a child, which belongs to its parent's order: another thread may be using the child."""

    __slots__ = ("child", "order")

    def __init__(self, child: Queue, order: ChildKey) -> None:
        self.child = child
        self.order = order


_CHILD: Final = attrgetter("child")
_ORDER: Final = attrgetter("order")


@final
class ChildOrder:
    """The children of a parent queue that have something waiting."""

    def __init__(self) -> None:
        self._in_order: OrderedList[_ChildEntry] = OrderedList()
        self._entries: dict[str, _ChildEntry] = {}
        self.stale: dict[str, Queue] = {}
        """Children that changed since they were given their places: most change often between walks."""
        self.moving: dict[str, Queue] = {}
        """Children that time alone moves."""
        self.stamp = NEVER_ORDERED
        """The stamp with which the places were found."""

    def __iter__(self) -> Iterator[Queue]:
        """Walk the children in order; the walk must end before the order changes."""
        return map(_CHILD, self._in_order)

    def bring_up_to_date(
        self, parent: Queue, stamp: OrderStamp, place: Callable[[Queue, Queue], None]
    ) -> None:
        """Find the places of the children that have changed or that time moves, or of all if limits have."""
        if self.stamp != stamp:
            if self.stamp[:2] == stamp[:2]:
                self.stale.update(self.moving)
            else:
                # Anew: keys of another rule cannot be compared with those before.
                self._in_order, self._entries = OrderedList(), {}
                self.moving.clear()
                self.stale.update(parent.children)
            self.stamp = stamp
        if self.stale:
            for child in self.stale.values():
                place(parent, child)
            self.stale.clear()

    def place(self, child: Queue, order: ChildKey | None) -> None:
        """Give a child its place, `None` for one with nothing waiting."""
        entry = self._entries.get(child.name)
        if entry is not None:
            if entry.order == order:
                return
            self._in_order.remove(entry)
            if order is None:
                del self._entries[child.name]
                return
            entry.order = order
        elif order is not None:
            entry = self._entries[child.name] = _ChildEntry(child, order)
        else:
            return
        self._in_order.add(entry)

    def ranked(
        self, parent: Queue, stamp: OrderStamp, key: Callable[[Queue], ChildKey | None]
    ) -> Iterator[Queue]:
        """Walk the children in order, those that have changed at their new places; changes nothing.

        Args:
            parent: The queue.
            stamp: The values that decide the places besides the children.
            key: Returns the place of a child, `None` for one with nothing waiting.
        """
        changed = self.stale if self.stamp == stamp else parent.children
        kept = ((entry.order, entry.child) for entry in self._in_order if entry.child.name not in changed)
        moved = sorted((order, child.name) for child in changed.values() if (order := key(child)) is not None)
        found = merge(kept, ((order, changed[name]) for order, name in moved), key=itemgetter(0))
        return (child for _, child in found)

    def names(self) -> list[str]:
        """Return the names of the children that are in the order, in order."""
        return [child.name for child in self]


@final
class ApplicationOrder:
    """The applications of a leaf: all by id, those with something waiting in order."""

    def __init__(self) -> None:
        self.by_id: dict[str, ApplicationEntry] = {}
        self.suspended: dict[str, ApplicationEntry] = {}
        """Applications that broke: they still count here, and no walk visits them."""
        self._waiting = WaitingApplications()
        self._stale: dict[str, ApplicationEntry] = {}
        """Applications that changed since they were given their places."""
        self._priorities = PriorityCounts()
        self.sizes: dict[Resource, int] = {}
        """Size -> how many waiting asks in this leaf have it."""
        self.sleep: Sleep | None = None
        """Why it may be skipped, after a visit without result."""
        self.sleep_before_question: Sleep | None = None
        """The value of `sleep` before a visit that waits for the RM's answer, and will be repeated."""
        self.placeholder_entries: dict[str, ApplicationEntry] = {}
        """Applications that have placeholders placed."""
        self.reserved_entries: dict[str, ApplicationEntry] = {}
        """Applications that have reservations."""
        self.unreported: dict[str, ApplicationEntry] = {}
        """Applications that may have an ask to be reported to an autoscaler."""
        self.users: LeafUsers | None = None
        """The users of the leaf, where it orders them."""

    def end_visit(self, *, is_pending: bool) -> None:
        """Keep how the leaf may be skipped after a visit that placed something or waits for the RM's answer.

        A visit that waits will be repeated, and then changes nothing about that if it places something.
        """
        before = self.sleep or self.sleep_before_question
        self.sleep, self.sleep_before_question = (None, before) if is_pending else (before, None)

    def __len__(self) -> int:
        return len(self.by_id) + len(self.suspended)

    def __iter__(self) -> Iterator[ApplicationEntry]:
        """Walk the applications in order; the walk must end before the order changes."""
        return iter(self.waiting)

    @property
    def waiting(self) -> WaitingApplications:
        """Those with something waiting, each at its place."""
        if self._stale or self.users is not None:
            self._find_places()
        return self._waiting

    def _find_places(self) -> None:
        if self.users is not None:
            self._waiting.move_users(self.users.find_places())
        for entry in self._stale.values():
            self._place(entry)
        self._stale.clear()

    def in_order(self, some: Mapping[str, ApplicationEntry]) -> list[ApplicationEntry]:
        """Return those of some applications that have something waiting, in order."""
        self._find_places()
        return sorted([entry for entry in some.values() if entry.order], key=_ORDER)

    def get(self, application_id: str) -> ApplicationEntry | None:
        """Return the entry of an application."""
        return self.by_id.get(application_id)

    def add(self, entry: ApplicationEntry) -> None:
        """Add an application; `refresh` finds its place."""
        self.by_id[entry.application_id] = entry
        if self.users is not None:
            self.users.enter(entry)

    def remove(self, entry: ApplicationEntry) -> None:
        """Remove an application."""
        self._take_out(entry)
        if self.users is not None:
            self.users.leave(entry)

    def _take_out(self, entry: ApplicationEntry) -> None:
        del self.by_id[entry.application_id]
        self._stale.pop(entry.application_id, None)
        self._unplace(entry)
        self._priorities.note(entry.application_id, INT32_MIN)
        self.placeholder_entries.pop(entry.application_id, None)
        self.reserved_entries.pop(entry.application_id, None)
        self.unreported.pop(entry.application_id, None)

    def ranked(self, queue: Queue, *others: ApplicationEntry) -> Iterator[ApplicationEntry]:
        """Walk the applications with something waiting in order; changes nothing, for explanations.

        Args:
            queue: The leaf.
            others: Applications that are not here, ranked as if they were.
        """
        if self.users is not None:
            some = (*self.by_id.values(), *others)
            waiting = [entry for entry in some if _has_place(entry)]
            return ranked_by_users(queue, waiting)
        changed = {entry.application_id: entry for entry in (*self._stale.values(), *others)}
        kept = ((entry.order, entry) for entry in self._waiting if entry.application_id not in changed)
        moved = sorted(
            (queue.application_order.key(entry, queue), name)
            for name, entry in changed.items()
            if _has_place(entry)
        )
        found = merge(kept, ((order, changed[name]) for order, name in moved), key=itemgetter(0))
        return (entry for _, entry in found)

    def suspend(self, entry: ApplicationEntry) -> None:
        """Keep an application out of all orders."""
        self._take_out(entry)
        self.suspended[entry.application_id] = entry

    def drop_suspended(self, entry: ApplicationEntry) -> None:
        """Drop a suspended application."""
        del self.suspended[entry.application_id]
        if self.users is not None:
            self.users.leave(entry)

    def max_priority(self) -> int:
        """Return the highest priority of all waiting asks, the lowest possible one if nothing waits."""
        return self._priorities.highest

    def refresh(self, entry: ApplicationEntry, *, anew: bool = False) -> None:
        """Have the place of an application found by its facts before the next walk.

        With `anew` more than its facts has changed: it begins or ceases to wait for others.
        """
        facts = entry.facts
        name = entry.application_id
        self._priorities.note(name, facts.max_priority if entry.waits is None else INT32_MIN)
        if self.users is not None:
            self.users.count(entry)
        # Most have no placeholders: this is that object then.
        if facts.placeholder_allocated is not EMPTY or self.placeholder_entries:
            _keep(self.placeholder_entries, entry, present=bool(facts.placeholder_allocated))
        if facts.reserved or self.reserved_entries:
            _keep(self.reserved_entries, entry, present=bool(facts.reserved))
        self.unreported[name] = entry
        order = entry.order
        if facts.first is None or not order or entry.rests_for is not None or anew:
            self._stale[name] = entry
            if entry.rests_for is not None and entry.queue not in entry.queue.awake.leaves:
                entry.queue.awake.wake(entry.queue)
            return
        rule = entry.queue.application_order
        if not rule.is_steady or rule.key(entry, entry.queue) != order:
            self._stale[name] = entry

    def _place(self, entry: ApplicationEntry) -> None:
        pending = entry.facts.pending
        rule = entry.queue.application_order
        order = rule.key(entry, entry.queue) if is_any_positive(pending) and entry.waits is None else ()
        if rule.policy is not None and order and isinstance(order[0], tuple):
            entry.policy_key = order[0]
        if order == entry.order and entry.rests_for is None:
            return
        if order and self.sleep is not None and rests_on(entry, self.sizes):
            if order != entry.order:
                move_resting(self._waiting, entry, order)
            return
        self._unplace(entry)
        if order:
            entry.order = order
            self._waiting.add(entry)

    def rebuild(self) -> None:
        """Order everything anew: the policy of the queue may have changed."""
        by_users = self.users is not None
        self._waiting.leave_all()
        self._waiting = WaitingApplications(
            by_users=by_users
        )  # Anew: what this may be undoing broke off at any point.
        for entry in self.by_id.values():
            entry.order = ()
            entry.policy_key = entry.rests_for = entry.rests_until_ns = None
        self._stale.update(self.by_id)

    def _unplace(self, entry: ApplicationEntry) -> None:
        if entry.order:
            self._waiting.remove(entry)
            entry.order = ()

    def count_size(self, resource: Resource, change: int) -> None:
        """Count waiting asks of a size that came (positive) or went (negative)."""
        count = self.sizes.get(resource, 0) + change
        assert count >= 0, f"{resource!r} waits {count} times: please report"
        if count:
            self.sizes[resource] = count
        else:
            self.sizes.pop(resource, None)


def _has_place(entry: ApplicationEntry) -> bool:
    """Return whether something of an application waits for room alone."""
    return entry.waits is None and is_any_positive(entry.facts.pending)


def _keep(entries: dict[str, ApplicationEntry], entry: ApplicationEntry, *, present: bool) -> None:
    if present:
        entries[entry.application_id] = entry
    elif entries:
        entries.pop(entry.application_id, None)


def stamp_of(tree: QueueTree, parent: Queue) -> OrderStamp:
    """Return what the places below a queue depend on now: with a half-life they move with time."""
    half_life_ns = parent.settings.fair_half_life_ns
    return OrderStamp(tree.version) if half_life_ns is None else _stamp_of_moment(tree, parent, half_life_ns)


def _stamp_of_moment(tree: QueueTree, parent: Queue, half_life_ns: int) -> OrderStamp:
    now_ns = parent.now_ns()
    return OrderStamp(tree.version, span_of(now_ns, half_life_ns), now_ns)


@final
class PriorityCounts:
    """How many members have which priority.

    A member in which nothing waits has the lowest possible one, and is not counted.
    """

    def __init__(self) -> None:
        self.highest = INT32_MIN
        """The highest priority of all members, the lowest possible one without members."""
        self._counts: dict[int, int] = {}
        self._by_name: dict[str, int] = {}

    def recount(self, members: Iterable[tuple[str, int]]) -> None:
        """Count these members and no others."""
        self._counts.clear()
        self._by_name.clear()
        self.highest = INT32_MIN
        for name, priority in members:
            self.note(name, priority)

    def note(self, name: str, priority: int) -> None:
        """Count a member with the priority that it has now, in place of the one noted before."""
        old = self._by_name.get(name, INT32_MIN)
        if old == priority:
            return
        counts = self._counts
        if old != INT32_MIN:
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if priority == INT32_MIN:
            del self._by_name[name]
        else:
            counts[priority] = counts.get(priority, 0) + 1
            self._by_name[name] = priority
        self.highest = max(counts, default=INT32_MIN)
