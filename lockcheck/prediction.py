"""Deadlocks that did not happen, but that the events of a trace, in another order, lead to.

A *reordering* takes of each unit what it did first, up to some event. It is *sync-preserving* if it can be
run in the order of the trace: of two critical sections that exclude each other the first one is left before
the second one is taken, if both are there; and whatever an event waited for is there too. Such a reordering
can always be scheduled. If after it several units are about to take what they hold against each other, the
reordering is a witness of a deadlock.

For units that each stop before a given event there is a least reordering, found by adding what is missing
until nothing is (`_Prefix`). If that drags one of the stops itself in, no reordering stops there, and
none stops at an earlier one; so the next like event of that unit is tried. That makes the
search linear for each pattern. The idea is that of "Sound Dynamic Deadlock Prediction in Linear
Time" (2023); readers, writers that wait between them, joins and failed attempts are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from .trace import EventKind
from .trace_index import TraceIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .trace import Event, Trace
    from .trace_index import Section

__all__ = ["Prediction", "Predictions", "predict"]

PATTERNS_MAX: Final = 100_000
"""So many steps are taken in the search for patterns; what is left out then is said."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a unit is stuck."""

    wanted: Event
    """The event that it never gets to."""
    held: tuple[Event, ...]
    """Where it took what it holds, outermost first."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A deadlock, and how to get there."""

    stops: tuple[Stop, ...]
    """Each waits for the next one, and the last one for the first."""
    witness: tuple[Event, ...]
    """All events that come before, in order; then come the stops, writers first."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """All that was predicted."""

    found: tuple[Prediction, ...]
    given_up: bool
    """Whether the search was cut off at its bound."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What a unit wants while it holds something: events that are alike differ only in their place."""

    unit: int
    kind: EventKind
    object: int
    mode: str
    held: frozenset[tuple[int, str]]


def predict(trace: Trace) -> Predictions:
    """Return the deadlocks that a trace predicts, one for each pattern of wishes."""
    search = _Search(TraceIndex(trace))
    found = tuple(search.run())
    return Predictions(found, search.steps > PATTERNS_MAX)


@final
class _Search:
    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._wishes: dict[_Wish, list[int]] = {}
        self.steps = 0
        for at, event in enumerate(index.events):
            waits = event.kind in {EventKind.TOOK, EventKind.JOIN} and event.attempt == "block"
            held = index.held.get(at)
            if waits and at >= index.given and at not in index.inner and held is not None:
                modes = frozenset((index.events[one].object, index.events[one].mode) for one in held)
                wish = _Wish(event.unit, event.kind, event.object, event.mode, modes)
                self._wishes.setdefault(wish, []).append(at)

    def run(self) -> Iterator[Prediction]:
        wishes = list(self._wishes)
        number = {wish: place for place, wish in enumerate(wishes)}
        blockers = {wish: [other for other in wishes if self._blocks(other, wish)] for wish in wishes}
        for start in wishes:
            yield from self._closed([start], blockers, number)

    def _closed(
        self, path: list[_Wish], blockers: dict[_Wish, list[_Wish]], number: dict[_Wish, int]
    ) -> Iterator[Prediction]:
        """Yield what can be predicted of circles that a path begins; its first wish is the least of them."""
        for other in blockers[path[-1]]:
            self.steps += 1
            if self.steps > PATTERNS_MAX:
                return
            if other is path[0]:
                found = self._reached(path)
                if found is not None:
                    yield found
            elif number[other] > number[path[0]] and all(other.unit != one.unit for one in path):
                yield from self._closed([*path, other], blockers, number)

    def _blocks(self, other: _Wish, wish: _Wish) -> bool:
        """Tell whether a unit that stops at one wish keeps one that stops at another from going on."""
        if other.unit == wish.unit:
            return False
        if wish.kind is EventKind.JOIN:
            return wish.object == other.unit
        for lock, mode in other.held:
            if lock == wish.object and "W" in {mode, wish.mode}:
                return True
        return (  # a reader stands behind a writer that waits
            wish.mode == "R"
            and other.kind is EventKind.TOOK
            and other.object == wish.object
            and other.mode == "W"
            and self._index.policy(wish.object) == "writer"
        )

    def _reached(self, path: Sequence[_Wish]) -> Prediction | None:
        """Return a reordering after which all stop at their wishes, if there is one."""
        places = [0] * len(path)
        prefix = _Prefix(self._index)
        while True:
            for wish, place in zip(path, places, strict=True):
                prefix.include_before(self._wishes[wish][place])
            if not prefix.close():
                return None
            moved = False
            for which, wish in enumerate(path):
                events = self._wishes[wish]
                while prefix.includes(events[places[which]]):
                    moved = True
                    places[which] += 1
                    if places[which] == len(events):
                        return None
            if not moved:
                stops = [self._wishes[wish][place] for wish, place in zip(path, places, strict=True)]
                return Prediction(tuple(map(self._stop, stops)), prefix.events())

    def _stop(self, at: int) -> Stop:
        events = self._index.events
        return Stop(events[at], tuple(events[one] for one in self._index.held[at]))


@final
class _Prefix:
    """Of each unit how many of its events are in a reordering; only ever grows."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._counts = dict.fromkeys(index.of_unit, 0)
        self._wanted: dict[int, int] = {}
        self._open: dict[int, dict[int, Section]] = {}
        """Of each lock, by unit, the last section that is there."""
        self._last: dict[tuple[int, str], int] = {}
        """Of each lock and mode where it is taken last."""
        for at in range(index.given):
            self._want(at)

    def include_before(self, at: int) -> None:
        """Ask for all that the unit of an event did before it."""
        unit = self._index.events[at].unit
        self._wanted[unit] = max(self._wanted.get(unit, 0), self._index.position[at])

    def includes(self, at: int) -> bool:
        """Tell whether an event is there."""
        return self._index.position[at] < self._counts[self._index.events[at].unit]

    def events(self) -> tuple[Event, ...]:
        """Return all events that are there, in order, but for those that were given."""
        index = self._index
        places = sorted(at for unit, count in self._counts.items() for at in index.of_unit[unit][:count])
        return tuple(index.events[at] for at in places if at >= index.given)

    def close(self) -> bool:
        """Add what is missing; return False where something is that the trace does not have."""
        while self._wanted:
            unit, count = self._wanted.popitem()
            touched: set[int] = set()
            events = self._index.of_unit[unit]
            while self._counts[unit] < count:
                at = events[self._counts[unit]]
                self._counts[unit] += 1
                needs = self._index.needs.get(at, ())
                if needs is None:
                    return False
                for need in needs:
                    self._want(need)
                section = self._index.sections.get(at)
                if section is not None:
                    self._enter(section)
                    touched.add(section.lock)
            if not all(self._exclude(lock) for lock in touched):
                return False
        return True

    def _want(self, at: int) -> None:
        unit = self._index.events[at].unit
        if not self.includes(at):
            self._wanted[unit] = max(self._wanted.get(unit, 0), self._index.position[at] + 1)

    def _enter(self, section: Section) -> None:
        self._open.setdefault(section.lock, {})[section.unit] = section
        place = section.lock, section.mode
        self._last[place] = max(self._last.get(place, -1), section.taken)

    def _exclude(self, lock: int) -> bool:
        """Ask for the end of every section of a lock that one comes after which it excludes."""
        last_write = self._last.get((lock, "W"), -1)
        last_any = max(last_write, self._last.get((lock, "R"), -1))
        for section in self._open[lock].values():
            if section.taken < (last_any if section.mode == "W" else last_write):
                if section.left is None:
                    return False
                self._want(section.left)
        return True
