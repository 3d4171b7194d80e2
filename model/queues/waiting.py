"""The applications of a leaf that have something waiting, in order: those to try, and those that rest.

An application that was tried rests if none of its asks has room, in the queues or on a node. Only these can
change the answer:

* One of its sizes fits the headroom of the leaf, and a node may have room for it: the size is no longer
  *closed* (`licorne.model.nodes.order`).
* One of its sizes fits the headroom, and a node may be reserved for an ask that has no reservation yet: the
  ask is old enough now, or the nodes have changed.
* It may preempt, no attempt for its size and priority has failed lately, and the walk may make one.
* One of its sizes that the limits of its user or group had no room for fits them.
* It has not started, and a place among the running applications is free, or no longer is.
* It is a gang that is placed whole, which fits the headroom, and a node has gained room since the last search
  for it.
* The application itself has changed: then it is placed in the order anew, and rests no longer.

Those that rest are kept by their kinds: an obstacle to one of a kind stops all of that kind, so that the walk
tries the first one only. A walk looks at the kinds in doubt alone: for each of the others it is known what
bars it, and that has not gained room since (`licorne.model.queues.bars`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

from ..resources.resource import EMPTY, Resource, fits_undefined_unlimited, total_of
from ..values.allocation import Ask
from ..values.domains import DomainTerms
from ..values.ordered_list import OrderedList
from .application_entry import ApplicationEntry, EntryKey
from .bars import Bar, Bars
from .users import UserLists, UserPlace

if TYPE_CHECKING:
    from .queue import Queue

_Entries: TypeAlias = OrderedList[ApplicationEntry] | UserLists


class PreemptingAsk(NamedTuple):
    """The key of an attempt to preempt for an ask, besides its leaf."""

    size: Resource
    priority: int
    reserved_node: str
    holder: tuple[str, str | None] | None = None
    """Its user and group, if their limits have no room for it; otherwise `None`."""


class RestKind(NamedTuple):
    """The kind of resting applications: the same changes may give all of one kind room."""

    sizes: tuple[Resource, ...]
    """The sizes of the asks that may be placed: an ask that waits for a placeholder to replace is not among
    them."""
    may_reserve: bool
    """A node may be reserved for one of the asks: it has no reservation, and is old enough or untried."""
    preempting: tuple[PreemptingAsk, ...] = ()
    """The asks for which an attempt to preempt is due; of equal ones, one."""
    over_limit: tuple[Resource, ...] = ()
    """The sizes of the asks that the limits of the user or the group have no room for."""
    may_run: tuple[bool, bool] | None = None
    """For those that have not started and may not: whether the queues let them, and whether the limits on
    applications of the user and the group do."""
    holder: tuple[str, str | None] | None = None
    """The user and the group, if their limits hold it; otherwise `None`."""
    gang: GangSizes | None = None
    """The sizes of a gang that is placed whole and has no room in the queues or on the nodes."""

    @property
    def waits_for_any_change(self) -> bool:
        """Whether more than room in the queues or on a node may give those of this kind something."""
        return bool(self.preempting) or self.holder is not None or self.gang is not None


def _never(_: GangSizes) -> bool:
    return False


class Conditions(NamedTuple):
    """The values that decide which resting applications are worth a try."""

    closed: Container[Resource]
    """Sizes for which no node has room; may grow during the walk."""
    headroom: Resource | None
    """The room of the queues, `None` without a limit."""
    changes: tuple[int, int]
    """The partition's counts of changes that put all that rests in doubt: the second one is of those after
    which a node may be reserved."""
    now_ns: int
    preemption_retry_ns: Callable[[PreemptingAsk], int | None]
    """Returns until when no attempt to preempt is made for such asks, `None` if one may be made now."""
    user_room: Callable[[ApplicationEntry], Resource | None] | None = None
    """Returns what the limits of the user and the group of an application have room for; `None` tells
    nothing of limits: then all that a limit holds are worth a try."""
    is_gang_closed: Callable[[GangSizes], bool] = _never
    """Returns whether it is known that no nodes have room for a gang."""
    may_run: Callable[[ApplicationEntry], tuple[bool, bool]] | None = None
    """Returns whether an application may start, as in `RestKind.may_run`, `None` included."""
    delaying: Mapping[Resource, int] | None = None
    """By the size of an ask: from which walltime on it would delay a promise; may fall during the walk."""


@final
class RestingKind:
    """The applications of one kind that rest in a leaf."""

    __slots__ = ("_waiting", "barred_by", "bars", "entries", "kind", "leaf", "shortest_ns")

    def __init__(self, kind: RestKind, leaf: Queue, entries: _Entries, waiting: WaitingApplications) -> None:
        self.kind = kind
        self.leaf = leaf
        self.entries = entries
        self._waiting = waiting
        """All that waits in the leaf."""
        self.bars: tuple[tuple[Bar, Resource], ...] = ()
        """Its bars, each with a size that has no room there."""
        self.barred_by: Bars | None = None
        """Where its bars are noted, if they are known."""
        self.shortest_ns: float = math.inf
        """No application of this kind has an ask with a shorter walltime, where walltimes matter."""

    def add(self, entry: ApplicationEntry) -> None:
        """Add an application."""
        self.entries.add(entry)
        self.shortest_ns = min(self.shortest_ns, entry.shortest_ns)

    def shorter(self, delaying: Mapping[Resource, int], after: EntryKey) -> Iterator[ApplicationEntry]:
        """Walk those behind a place that are not known to delay a promise, see `Conditions.delaying`."""
        shortest_ns, limit_ns = math.inf, _limit_ns(self.kind, delaying)
        for entry in self.entries:
            shortest_ns = min(shortest_ns, entry.shortest_ns)
            if entry.shortest_ns < limit_ns and after < entry.order:
                yield entry
                limit_ns = _limit_ns(self.kind, delaying)
        self.shortest_ns = shortest_ns

    def doubt(self) -> None:
        """Let the next walk try this kind."""
        self._waiting.doubtful[self] = None
        self.leaf.awake.wake(self.leaf)

    def end_doubt(self) -> None:
        """Let no walk try this kind: its bars have no room again."""
        self._waiting.doubtful.pop(self, None)

    def leave(self) -> None:
        """Remove it from the bars: none of it rests now, or another object takes its place."""
        self._waiting.doubtful.pop(self, None)
        if self.barred_by is not None:
            self.barred_by.gone.append(self)

    def is_in_doubt(self, changes: tuple[int, int]) -> bool:
        """Return whether the next walk looks at it, with those counts of changes (`Conditions`)."""
        return self in self._waiting.doubtful or self._waiting.changes != changes


@final
class WaitingApplications:
    """The applications of a leaf with something waiting, by their places in its order.

    Args:
        by_users: The leaf orders its users, and the places of applications begin with theirs.
    """

    __slots__ = (
        *("_awake", "_by_users", "_conditions", "_due", "_resting", "_unreservable"),
        *("changes", "doubtful"),
    )

    def __init__(self, *, by_users: bool = False) -> None:
        self._by_users = by_users
        self._awake = _new_list(by_users=by_users)
        self._resting: dict[RestKind, RestingKind] = {}
        self.doubtful: dict[RestingKind, None] = {}
        """Those of which it is not known what bars them."""
        self._due: list[tuple[int, int, ApplicationEntry]] = []
        """A heap of those that rest until some time, with others that no longer do.

        The second number tells entries of one time apart, also those of an application that came again.
        """
        self._unreservable: set[Resource] = set()
        """Sizes for which no node could be reserved since the nodes last changed."""
        self.changes = (-1, -1)
        """The partition's counts of changes when all that rested was last put in doubt."""
        self._conditions: Conditions | None = None
        """Those of the walk under way."""

    def __iter__(self) -> Iterator[ApplicationEntry]:
        """Walk all of them in order; the walk must end before the order changes."""
        if not self._resting:
            return iter(self._awake)
        return self._merged(self._resting.values(), (), all_of_them=True)

    def to_try(self, conditions: Conditions, after: EntryKey = ()) -> Iterator[ApplicationEntry]:
        """Walk those behind a place in order that are worth a try; it must end before the order changes."""
        if not self._resting:
            return self._awake.after(after) if after else iter(self._awake)
        self._conditions = conditions
        self.doubt_since(conditions.changes)
        while self._due and self._due[0][0] <= conditions.now_ns:
            due_ns, _, entry = heappop(self._due)
            if entry.rests_for is not None and entry.rests_until_ns == due_ns:
                self.wake(entry)
        open_kinds = [each for each in self.doubtful if self._is_open(each)]
        if not open_kinds:
            return self._awake.after(after) if after else iter(self._awake)
        return self._merged(open_kinds, after, all_of_them=False)

    def first_to_place(
        self, closed: Container[Resource], changes: tuple[int, int], now_ns: int
    ) -> ApplicationEntry | None:
        """Return the application that a walk tries first, `None` without one, or if a walk has to find it.

        The headroom of the leaf is not looked at: if it has no room for the first ask, a walk has to be made.

        Args:
            closed: Sizes for which no node has room.
            changes: The partition's counts, as in `Conditions`.
            now_ns: The time.
        """
        first = self._awake.head()
        if not self._resting:
            return first
        if self._due and self._due[0][0] <= now_ns:
            return None
        self.doubt_since(changes)
        for resting in self.doubtful:
            kind = resting.kind
            if kind.waits_for_any_change:
                return None
            for size in kind.sizes:
                if size not in closed:
                    head = resting.entries.head()
                    if first is None or (head is not None and head.order < first.order):
                        first = head
                    break
                if kind.may_reserve and size not in self._unreservable:
                    return None
        return first

    def move_users(self, moved: Iterable[UserPlace]) -> None:
        """Move users whose places have changed, with what they have waiting."""
        for place in moved:
            for entries in (self._awake, *[resting.entries for resting in self._resting.values()]):
                assert isinstance(entries, UserLists), "only a leaf that orders its users moves them"
                entries.move(place)

    def add(self, entry: ApplicationEntry) -> None:
        """Add an application at its place."""
        self._awake.add(entry)

    def remove(self, entry: ApplicationEntry) -> None:
        """Remove an application."""
        kind = entry.rests_for
        if kind is None:
            self._awake.remove(entry)
            return
        resting = self._resting[kind]
        resting.entries.remove(entry)
        if not resting.entries:
            del self._resting[kind]
            resting.leave()
        entry.rests_for = entry.rests_until_ns = None

    def leave_all(self) -> None:
        """Remove all resting kinds from the bars: another object takes its place."""
        for resting in self._resting.values():
            resting.leave()

    def doubt_since(self, changes: tuple[int, int]) -> None:
        """Look at all that rests if something has changed that may give anything room.

        Args:
            changes: The partition's counts, as in `Conditions`.
        """
        if changes != self.changes:
            if changes[1] != self.changes[1]:
                self._unreservable.clear()
            self.changes = changes
            self.doubtful.update(dict.fromkeys(self._resting.values()))

    @property
    def is_barred(self) -> bool:
        """Whether it is known of all that waits what bars it."""
        return not self.doubtful and not self._awake

    def wake(self, entry: ApplicationEntry) -> None:
        """Try a resting application again: what it rested for is not what it waits for."""
        if entry.rests_for is not None:
            self.remove(entry)
            self._awake.add(entry)

    def note_unreservable(self, size: Resource, node_changes: int) -> None:
        """Note that no node can be reserved for a size until the nodes change; also during a walk."""
        if node_changes == self.changes[1]:
            self._unreservable.add(size)

    def is_unreservable(self, size: Resource, node_changes: int) -> bool:
        """Return whether it is known that no node can be reserved for a size until the nodes change."""
        return node_changes == self.changes[1] and size in self._unreservable

    def rest(self, entry: ApplicationEntry, kind: RestKind, until_ns: int | None) -> None:
        """Have an application that was tried without result not tried before something changes.

        Args:
            entry: It has a place in the order.
            kind: Its kind, by the changes that may give it room.
            until_ns: When a node may be reserved for the first ask that is too young, if any.
        """
        self.remove(entry)
        resting = self._resting.get(kind)
        if resting is None:
            resting = RestingKind(kind, entry.queue, _new_list(by_users=self._by_users), self)
            self._resting[kind] = resting
            self.doubtful[resting] = None
        entry.rests_for, entry.rests_until_ns = resting.kind, until_ns
        resting.add(entry)
        if until_ns is not None:
            heappush(self._due, (until_ns, id(entry), entry))

    def next_due_ns(self) -> int | None:
        """Return when the next one that is too young for a reservation is old enough, if any."""
        due = self._due
        while due and (due[0][2].rests_for is None or due[0][2].rests_until_ns != due[0][0]):
            heappop(due)
        return due[0][0] if due else None

    def preempting(self) -> list[PreemptingAsk]:
        """Return the asks of those that rest until an attempt to preempt may be made."""
        return [ask for resting in self.doubtful for ask in resting.kind.preempting]

    def waits_for_any_change(self) -> bool:
        """Return whether any rests that more than room in the queues or on a node may give something."""
        return any(resting.kind.waits_for_any_change for resting in self.doubtful)

    def _is_open(self, resting: RestingKind) -> bool:
        """Return whether those of a kind may be placed, have a node reserved, preempt, or start."""
        conditions, kind = self._conditions, resting.kind
        assert conditions is not None, "a walk past those that rest has conditions: please report"
        if kind.holder is not None and self._is_released(kind, conditions):
            return True
        if kind.gang is not None and kind.gang is not NO_GANG and _has_gang_room(kind.gang, conditions):
            return True
        delaying = conditions.delaying
        for size in kind.sizes:
            has_way = size not in conditions.closed or (kind.may_reserve and size not in self._unreservable)
            if (
                has_way
                and fits_undefined_unlimited(conditions.headroom, size)
                and (delaying is None or resting.shortest_ns < delaying.get(size, math.inf))
            ):
                return True
        for ask in kind.preempting:  # noqa: SIM110 - a generator takes three times as long, and each walk asks
            if conditions.preemption_retry_ns(ask) is None:
                return True
        return False

    def _is_released(self, kind: RestKind, conditions: Conditions) -> bool:
        """Return whether limits that held those of a kind no longer do: one stands for all of them."""
        first = self._resting[kind].entries.head()
        assert first is not None, "a kind of which none rests is kept: please report"
        if kind.may_run is not None:
            return conditions.may_run is None or conditions.may_run(first) != kind.may_run
        if conditions.user_room is None:
            return True
        room = conditions.user_room(first)
        return any(fits_undefined_unlimited(room, size) for size in kind.over_limit)

    def _merged(
        self, kinds: Iterable[RestingKind], after: EntryKey, *, all_of_them: bool
    ) -> Iterator[ApplicationEntry]:
        """Merge what does not rest with kinds behind a place, each until it can no longer be placed."""
        delaying = None if all_of_them or self._conditions is None else self._conditions.delaying
        heap = []
        for resting in (None, *kinds):
            if resting is not None and delaying is not None:
                walk = resting.shorter(delaying, after)
            else:
                entries = self._awake if resting is None else resting.entries
                walk = entries.after(after) if after else iter(entries)
            first = next(walk, None)
            if first is not None:
                heap.append((first.order, first, walk, resting))
        heapify(heap)
        while heap:
            _, entry, walk, resting = heap[0]
            is_open = all_of_them or resting is None or self._is_open(resting)
            if is_open:
                yield entry
                is_open = all_of_them or resting is None or self._is_open(resting)
            following = next(walk, None) if is_open else None
            if following is None:
                heappop(heap)
            else:
                heapreplace(heap, (following.order, following, walk, resting))


def rests_on(entry: ApplicationEntry, sizes: Mapping[Resource, int]) -> bool:
    """Return whether an application still rests for its kind, though it has changed: no ask was added.

    It does if the kind waits for room alone and has all sizes that wait in the leaf: whichever asks are
    left, their sizes are among them.

    Args:
        entry: The application.
        sizes: All sizes that wait in the leaf, each with the number of its asks.
    """
    kind = entry.rests_for
    if kind is None or entry.rests_until_ns is not None or not kind.may_reserve:
        return False
    return kind == RestKind(kind.sizes, may_reserve=True) and sizes.keys() <= {*kind.sizes}


def move_resting(waiting: WaitingApplications, entry: ApplicationEntry, order: EntryKey) -> None:
    """Give a resting application that still rests another place."""
    assert entry.rests_for is not None, f"{entry.application_id} does not rest: please report"
    entries = waiting._resting[entry.rests_for].entries  # noqa: SLF001 - a function of its module
    entries.remove(entry)
    entry.order = order
    entries.add(entry)


def _limit_ns(kind: RestKind, delaying: Mapping[Resource, int]) -> float:
    """Return the walltime from which on each ask of a kind would delay a promise, as far as that is known."""
    return max((delaying.get(size, math.inf) for size in kind.sizes), default=math.inf)


def _new_list(*, by_users: bool) -> _Entries:
    return UserLists() if by_users else OrderedList()


def _has_gang_room(gang: GangSizes, conditions: Conditions) -> bool:
    """Return whether a whole gang may have room in the queues and on the nodes."""
    return fits_undefined_unlimited(conditions.headroom, gang.total) and not conditions.is_gang_closed(gang)


class GangSizes(NamedTuple):
    """The members of a gang as far as the search for their room depends on them."""

    counts: frozenset[tuple[Resource, str, int]]
    """Sizes, the node that members of that size need or the empty text, and how many there are of each."""
    total: Resource
    domains: DomainTerms | None = None

    @classmethod
    def of(cls, members: Iterable[Ask], domains: DomainTerms | None = None) -> GangSizes:
        """Return the sizes of members."""
        counts = Counter((ask.resource, ask.required_node) for ask in members)
        total = total_of(size for (size, _), count in counts.items() for _ in range(count))
        return cls(frozenset((size, node, count) for (size, node), count in counts.items()), total, domains)


NO_GANG = GangSizes(frozenset(), EMPTY)
"""Of a gang that is not complete: no change but one of the application itself gives it room."""


@final
class ClosedGangs:
    """Gangs for which no room was found since a node last gained room.

    Room that is taken gives no gang room. For several sizes the search proves nothing, and might by chance
    find room after some was taken: this is not waited for.
    """

    __slots__ = ("_gains", "_sizes")

    def __init__(self) -> None:
        self._gains = -1
        self._sizes: set[GangSizes] = set()

    def has(self, sizes: GangSizes, gains: int) -> bool:
        """Return whether it is known that no room will be found; `gains` are those of the node order."""
        return gains == self._gains and sizes in self._sizes

    def note(self, sizes: GangSizes, gains: int) -> None:
        """Note that no room was found."""
        if gains != self._gains:
            self._gains = gains
            self._sizes.clear()
        self._sizes.add(sizes)
