"""The users of a leaf that orders them: what each uses and has used there, and who goes first.

With `application.sort.policy: users` the user goes first whose use in the leaf, as a share of what the leaf
could have and divided by the weight of the user, is smaller; with a half-life of the leaf it is the mean use,
where what is past counts half after each half-life, and of equal ones the use of now decides. The
applications of a user are in the order of their submission. So there are two levels of order, and a change of
what a user uses moves the user alone, however many of their applications wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ..configuration.names import WILDCARD
from ..resources.comparisons import prune
from ..resources.decayed_use import (
    DecayedUse,
    decayed_means,
    decayed_share,
    grown_share,
    level_in_ns,
    no_use,
    raised_to,
    span_of,
    with_half_life,
    with_past,
)
from ..resources.resource import EMPTY, Resource, add, subtract
from ..values.ordered_list import OrderedList
from .application_entry import ApplicationEntry, EntryKey

if TYPE_CHECKING:
    from .queue import Queue

UserKey: TypeAlias = "tuple[float, float, str]"
"""The share that the user has used, the one in use now, and the name."""


@final
class UserPlace:
    """A user in a leaf: what they use and have used there, and their place among its users.

    It is a part of the places of their applications: these move with it.
    """

    __slots__ = ("applications", "decayed", "key", "name", "used")

    def __init__(self, name: str, decayed: DecayedUse | None) -> None:
        self.name = name
        self.applications = 0
        """How many of their applications are in the leaf."""
        self.used: Resource = EMPTY
        self.decayed = decayed
        """Their current and past use, where the leaf has a half-life."""
        self.key: UserKey = (0.0, 0.0, name)
        """The smallest goes first."""

    def __lt__(self, other: UserPlace) -> bool:
        return self.key < other.key

    def mean(self, now_ns: int) -> dict[str, float]:
        """Return what the user uses by resource type: the mean with a half-life, else what it is now."""
        if self.decayed is None:
            return {name: float(amount) for name, amount in self.used.items()}
        return decayed_means(self.decayed, now_ns)


@final
class LeafUsers:
    """The users with applications in a leaf.

    Args:
        leaf: The leaf.
        limits: Returns what the leaf could have at most.
    """

    def __init__(self, leaf: Queue, limits: Callable[[], Resource | None]) -> None:
        self._leaf = leaf
        self._limits = limits
        self.places: dict[str, UserPlace] = {}
        self._counted: dict[str, Resource] = {}
        """Application -> what of it is counted as used by its user."""
        self._stale: dict[str, UserPlace] = {}
        """Users whose use has changed since they were given their places."""
        self._moving: dict[str, UserPlace] = {}
        """Users whom time alone moves."""
        self._found_with: tuple[Resource | None, int] = (None, -1)
        """The limits and the span of the half-life that the places were found with."""
        self._found_ns = 0

    def take_over(self, before: LeafUsers) -> None:
        """Go on from what users have used before a reload: another half-life counts from now on."""
        for name, place in before.places.items():
            taken = self.places[name] = UserPlace(name, self._begun(place.decayed, place.used))
            taken.applications, taken.used = place.applications, place.used
        self._counted = dict(before._counted)
        self._stale.update(self.places)

    def _begun(self, use: DecayedUse | None, used: Resource = EMPTY) -> DecayedUse | None:
        """Return a use that counts with the half-life of the leaf; a new one begins without a past."""
        half_life_ns = self._leaf.settings.fair_half_life_ns
        if half_life_ns is None:
            return None
        now_ns = self._leaf.now_ns()
        begun = no_use(half_life_ns, now_ns) if use is None else with_half_life(use, half_life_ns, now_ns)
        return raised_to(begun, used.as_dict(), now_ns)

    def enter(self, entry: ApplicationEntry) -> None:
        """Take an application of a user; one who comes again goes on from what is kept of their past."""
        name = entry.user.name
        place = self.places.get(name)
        if place is None:
            kept = self._leaf.departed.take(path_of_user(self._leaf, name))
            place = self.places[name] = UserPlace(name, self._begun(kept))
        place.applications += 1
        self._counted[entry.application_id] = EMPTY
        self.count(entry)
        self._stale[name] = place

    def count(self, entry: ApplicationEntry) -> None:
        """Count what an application uses by now, its placeholders included."""
        facts = entry.facts
        self._count(entry, add(facts.allocated, facts.placeholder_allocated))

    def _count(self, entry: ApplicationEntry, used: Resource) -> None:
        before = self._counted[entry.application_id]
        if used == before:
            return
        self._counted[entry.application_id] = used
        place = self.places[entry.user.name]
        place.used = prune(subtract(add(place.used, used), before))
        if place.decayed is not None:
            place.decayed = raised_to(place.decayed, place.used.as_dict(), self._leaf.now_ns())
        self._stale[place.name] = place

    def count_past(self, name: str, runs: Sequence[tuple[int, Resource]], now_ns: int) -> None:
        """Let what runs of a user count since it began: each run is its beginning and what it uses."""
        place = self.places[name]
        if place.decayed is None:
            return
        for since_ns, resource in runs:
            place.decayed = with_past(place.decayed, resource.as_dict(), since_ns, now_ns)
        self._stale[name] = place

    def leave(self, entry: ApplicationEntry) -> None:
        """Let an application go; with the last one of a user their past is kept by the partition."""
        self._count(entry, EMPTY)
        del self._counted[entry.application_id]
        place = self.places[entry.user.name]
        place.applications -= 1
        if place.applications:
            return
        del self.places[place.name]
        self._stale.pop(place.name, None)
        self._moving.pop(place.name, None)
        if place.decayed is not None:
            self._leaf.departed.keep(path_of_user(self._leaf, place.name), place.decayed, self._leaf.now_ns())

    def find_places(self) -> list[UserPlace]:
        """Bring the places of the users up to date; return those that have moved.

        With a half-life those move with time that use something, otherwise those alone whose use has changed.
        """
        now_ns, half_life_ns = self._moment_ns(), self._leaf.settings.fair_half_life_ns
        limits = self._limits()
        found_with = limits, 0 if half_life_ns is None else span_of(now_ns, half_life_ns)
        if found_with != self._found_with:
            self._found_with = found_with
            self._stale.update(self.places)
        elif now_ns != self._found_ns:
            self._stale.update(self._moving)
        self._found_ns = now_ns
        if not self._stale:
            return []
        moved = []
        for place in self._stale.values():
            key, moves = self._key(place, limits, now_ns)
            if moves:
                self._moving[place.name] = place
            else:
                self._moving.pop(place.name, None)
            if key != place.key:
                place.key = key
                moved.append(place)
        self._stale.clear()
        return moved

    def key_now(self, name: str) -> UserKey:
        """Return the place that a user has or would have now, and change nothing."""
        return self._key(self.seen(name), self._limits(), self._moment_ns())[0]

    def share_now(self, name: str) -> float:
        """Return the share of the limits that a user uses, divided by their weight."""
        means = self.seen(name).mean(self._moment_ns())
        return decayed_share(means, self._limits(), self.weight_of(name))

    def seen(self, name: str) -> UserPlace:
        """Return a user of the leaf, or what would be one if they came now; changes nothing."""
        place = self.places.get(name)
        if place is not None:
            return place
        return UserPlace(name, self._begun(self._leaf.departed.find(path_of_user(self._leaf, name))))

    def weight_of(self, name: str) -> int:
        """Return the weight of a user: that of a limit of the leaf, 1 unless it is configured."""
        weights = self._leaf.user_weights
        return weights.get(name) or weights.get(WILDCARD, 1)

    def level_in_ns(self, name: str, other: str) -> int | None:
        """Return after how long two users are level if nothing changes; `None` if time does not make them."""
        uses = self.seen(name).decayed, self.seen(other).decayed
        if uses[0] is None or uses[1] is None:
            return None
        weights = self.weight_of(name), self.weight_of(other)
        return level_in_ns((uses[0], uses[1]), weights, self._limits(), self._leaf.now_ns())

    def _moment_ns(self) -> int:
        """Return the moment that the places depend on, 0 where time does not move them."""
        return 0 if self._leaf.settings.fair_half_life_ns is None else self._leaf.now_ns()

    def _key(self, place: UserPlace, limits: Resource | None, now_ns: int) -> tuple[UserKey, bool]:
        """Return a place, and whether time alone moves it."""
        weight = self.weight_of(place.name)
        used = decayed_share(place.used.as_dict(), limits, weight)
        if place.decayed is None:
            return (used, 0.0, place.name), False
        share, moves = grown_share(place.decayed, limits, now_ns)
        # The newest placements are not yet in a mean.
        return (share / weight, used, place.name), moves


def path_of_user(leaf: Queue, user: str) -> str:
    """Return the name under which the past of a user is kept; a path has no such sign in it."""
    return f"{leaf.path}|{user}"


def after_reload(leaf: Queue, limits: Callable[[], Resource | None]) -> None:
    """Make a leaf order its users, or stop it, by its current settings."""
    entries = leaf.entries
    before = entries.users
    if not leaf.application_order.takes_turns:
        entries.users = None
    else:
        entries.users = LeafUsers(leaf, limits)
        if before is not None:
            entries.users.take_over(before)
        else:
            for entry in (*entries.by_id.values(), *entries.suspended.values()):
                entries.users.enter(entry)
    if before is not None or entries.users is not None:
        entries.rebuild()


def user_place_of(entry: ApplicationEntry) -> UserPlace:
    """Return the user of an application in a leaf that orders its users."""
    users = entry.queue.entries.users
    assert users is not None, f"{entry.queue.path} does not order its users: please report"
    return users.places[entry.user.name]


def ranked_by_users(queue: Queue, entries: Iterable[ApplicationEntry]) -> Iterator[ApplicationEntry]:
    """Walk applications in the order that they have now; changes nothing, for explanations."""
    users = queue.entries.users
    assert users is not None, f"{queue.path} does not order its users: please report"
    keys = {name: users.key_now(name) for name in {entry.user.name: None for entry in entries}}
    by_priority = queue.settings.priority_sorting
    rows = []
    for entry in entries:
        facts = entry.facts
        priority = -facts.max_priority
        level = priority if by_priority else 0
        order = (level, keys[entry.user.name], facts.submitted_at_ns, priority, entry.application_id)
        rows.append((order, entry))
    return (entry for _, entry in sorted(rows, key=itemgetter(0)))


@final
class _Group:
    """Those applications of a user in a list that have one priority, where priorities come first."""

    __slots__ = ("entries", "order")

    def __init__(self, level: int, key: UserKey) -> None:
        self.order = (level, key)
        """The place of the user when the list was last brought up to date."""
        self.entries: OrderedList[ApplicationEntry] = OrderedList()


_LEVEL: Final = 0
_USER: Final = 1


@final
class UserLists:
    """Applications in the order of a leaf that orders its users: as an `OrderedList`, in two levels."""

    __slots__ = ("_by_user", "_in_order", "_size")

    def __init__(self) -> None:
        self._by_user: dict[str, dict[int, _Group]] = {}
        self._in_order: OrderedList[_Group] = OrderedList()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[ApplicationEntry]:
        """Walk all in order; the walk must end before the order changes."""
        for group in self._in_order:
            yield from group.entries

    def after(self, order: EntryKey) -> Iterator[ApplicationEntry]:
        """Walk those behind a place in order, at which there need not be one."""
        level, place = order[_LEVEL], order[_USER]
        assert isinstance(place, UserPlace), "the place of an application has its user: please report"
        own = self._in_order.find((level, place.key))
        if own is not None:
            yield from own.entries.after(order)
        for group in self._in_order.after((level, place.key)):
            yield from group.entries

    def head(self) -> ApplicationEntry | None:
        """Return the first application, if any."""
        first = self._in_order.head()
        return None if first is None else first.entries.head()

    def add(self, entry: ApplicationEntry) -> None:
        """Put an application in its place."""
        level, place = _level_and_user(entry)
        groups = self._by_user.setdefault(place.name, {})
        group = groups.get(level)
        if group is None:
            group = groups[level] = _Group(level, place.key)
            self._in_order.add(group)
        group.entries.add(entry)
        self._size += 1

    def remove(self, entry: ApplicationEntry) -> None:
        """Take out an application that is there."""
        level, place = _level_and_user(entry)
        groups = self._by_user[place.name]
        group = groups[level]
        group.entries.remove(entry)
        self._size -= 1
        if not group.entries:
            self._in_order.remove(group)
            del groups[level]
            if not groups:
                del self._by_user[place.name]

    def move(self, place: UserPlace) -> None:
        """Move a user whose place has changed, with all their applications."""
        for level, group in self._by_user.get(place.name, {}).items():
            self._in_order.remove(group)
            group.order = (level, place.key)
            self._in_order.add(group)


def _level_and_user(entry: ApplicationEntry) -> tuple[int, UserPlace]:
    level, place = entry.order[_LEVEL], entry.order[_USER]
    assert isinstance(level, int), "the place of an application begins with its priority: please report"
    assert isinstance(place, UserPlace), "the place of an application has its user: please report"
    return level, place
