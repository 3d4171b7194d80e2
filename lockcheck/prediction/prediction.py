"""Deadlocks that did not happen, but that the events of a trace, in another order, lead to.

A *reordering* takes the first events of each execution, up to some event. It is *sync-preserving* if it can
be run in the order of the trace: of two critical sections that exclude each other the first one is left
before the second one is taken, if both are there; and whatever an event waited for is there too. Such a
reordering can always be scheduled. If after it each of several executions is about to take a lock that the
next one holds, the reordering is a witness of a deadlock.

For executions that each wait before a given event, their scheduling point, there is a least reordering; it
is found by adding what is missing until nothing is. If it contains one of the points itself,
no reordering ends there, and none ends at an earlier one; so the next equal event of that execution is
tried. This makes the search linear for each pattern. The idea is that of "Sound Dynamic Deadlock Prediction
in Linear Time" (2023); readers, writers that wait between them, joins, failed attempts, and waits for events,
results, items and notifications are ours.

Only those that can lie on a cycle are kept. Edges lead from a lock that is held to the one that is requested,
from the end of an execution, for which others wait in a join, to all that the execution wants, and from a
thing that others wait for to all that an execution wants before it signals that. Most of
a trace lies on no cycle. So the cost of the search depends not on the length of the trace, but on how much
of it can be part of a cycle.

Events are added until it is *sync-preserving*: of two critical sections that exclude each other the first one
is left before the second one is taken, if both are there; and whatever an event waited for is there too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from ..findings.terms import Mode
from ..traces.trace import Event, EventKind, Trace
from .trace_index import Section, TraceIndex

PATTERNS_MAX: Final = 100_000
"""How many steps the search for patterns takes at most; a search that was cut off is reported."""
_Target: TypeAlias = "tuple[EventKind, int]"


@dataclass(frozen=True, slots=True)
class PredictedPoint:
    """A point at which an execution is stuck."""

    wanted: Event
    """The event that it never gets to."""
    held: tuple[Event, ...]
    """The events that took what it holds, outermost first."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A deadlock, and how to reach it."""

    points: tuple[PredictedPoint, ...]
    """Each waits for the next one, and the last one for the first."""
    witness: tuple[Event, ...]
    """All events that come before, in order; then come the points, writers first."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """All predictions of a trace."""

    found: tuple[Prediction, ...]
    given_up: bool
    """Whether the search was cut off at its bound."""


def predict(trace: Trace) -> Predictions:
    """Return the deadlocks that a trace predicts, one for each pattern of pending acquisitions."""
    search = _PredictionSearch(TraceIndex(trace))
    found = tuple(search.run())
    return Predictions(found, search.steps > PATTERNS_MAX)


@final
class _PredictionSearch:
    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._pending = PendingAcquisitions(index)
        self.steps = 0

    def run(self) -> Iterator[Prediction]:
        for start in self._pending.all:
            yield from self._deadlocks_from([start])

    def _deadlocks_from(self, path: list[PendingAcquisition]) -> Iterator[Prediction]:
        """Yield the predictions for cycles that begin with a path; each begins with its least number."""
        for other in self._pending.blockers(path[-1]):
            self.steps += 1
            if self.steps > PATTERNS_MAX:
                return
            if other is path[0]:
                found = self._reached(path) if any(one.kind is EventKind.TOOK for one in path) else None
                if found is not None:
                    yield found
            elif other.number > path[0].number and all(map(other.can_stand_beside, path)):
                yield from self._deadlocks_from([*path, other])

    def _reached(self, path: Sequence[PendingAcquisition]) -> Prediction | None:
        """Return a reordering after which all are at their pending acquisitions, if there is one."""
        places = [0] * len(path)
        reordering = Reordering(self._index)
        while True:
            for pending, place in zip(path, places, strict=True):
                reordering.include_before(pending.events[place])
            if not reordering.close():
                return None
            moved = self._later(path, places, reordering)
            if moved is None:
                return None
            if moved == places:
                break
            places = moved
        if not self._are_stuck(path, places, reordering):
            return None
        points = tuple(
            self._point(pending, pending.events[place]) for pending, place in zip(path, places, strict=True)
        )
        return Prediction(points, reordering.events())

    def _later(
        self, path: Sequence[PendingAcquisition], places: Sequence[int], reordering: Reordering
    ) -> list[int] | None:
        """Return the next places at which a path can wait; `None` if one of its steps has no place left."""
        later = []
        for pending, before in zip(path, places, strict=True):
            place = before
            while place < len(pending.events) and reordering.includes(pending.events[place]):
                place += 1
            if place == len(pending.events):
                return None
            later.append(place)
        if later != places:
            return later
        for which, (pending, place) in enumerate(zip(path, places, strict=True)):
            if pending.kind is EventKind.AWAIT and self._index.things.is_signalled(
                pending.object, pending.events[place], reordering.includes
            ):
                later[which] += 1
                if later[which] == len(pending.events):
                    return None
        return later

    def _are_stuck(
        self, path: Sequence[PendingAcquisition], places: Sequence[int], reordering: Reordering
    ) -> bool:
        """Return whether only the next of the path can signal what each waits for, and does so later."""
        things = self._index.things
        executions = {pending.execution for pending in path}
        following = [(other.execution, other.events[at]) for other, at in zip(path, places, strict=True)]
        return all(
            pending.kind is not EventKind.AWAIT
            or (
                things.is_due(pending.object, *after)
                and not things.may_be_signalled(pending.object, executions, reordering.includes)
            )
            for pending, after in zip(path, (*following[1:], following[0]), strict=True)
        )

    def _point(self, pending: PendingAcquisition, at: int) -> PredictedPoint:
        events = self._index.events
        wanted = self._index.waits[at] if pending.kind is EventKind.AWAIT else at
        return PredictedPoint(events[wanted], tuple(events[one] for one in self._index.held[at]))


@final
class PendingAcquisition:
    """The lock that an execution requests while it holds locks, and the events; equal events share one."""

    __slots__ = ("events", "execution", "held", "kind", "mode", "number", "object", "written")

    def __init__(
        self, execution: int, kind: EventKind, thing: int, mode: Mode, held: frozenset[tuple[int, Mode]]
    ) -> None:
        self.execution = execution
        self.kind = kind
        self.object = thing
        self.mode = mode
        self.held = frozenset(lock for lock, _ in held)
        self.written = frozenset(lock for lock, how in held if how == "W")
        """The locks of `held` that are held for writing."""
        self.events: list[int] = []
        self.number = 0

    @property
    def target(self) -> tuple[EventKind, int]:
        """The lock, the execution or the thing that is waited for."""
        return self.kind, self.object

    def can_stand_beside(self, other: PendingAcquisition) -> bool:
        """Return whether two executions can hold their locks at the same time."""
        return (
            self.execution != other.execution
            and self.written.isdisjoint(other.held)
            and other.written.isdisjoint(self.held)
        )


@final
class PendingAcquisitions:
    """All pending acquisitions that can lie on a cycle, in the order of their first events."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        every = _all_pending(index)
        awaited = {pending.target for pending in every if pending.kind is not EventKind.TOOK}
        blocked = {pending: set(self._blocked_by(pending, awaited)) for pending in every}
        on_cycles = _on_cycles(
            {(thing, pending.target) for pending, things in blocked.items() for thing in things}
        )
        self.all = [
            pending
            for pending in every
            if pending.target in on_cycles
            and (not on_cycles.isdisjoint(blocked[pending]) or self._may_stand_between(pending))
        ]
        self._holding: dict[int, list[PendingAcquisition]] = {}
        self._writing: dict[int, list[PendingAcquisition]] = {}
        self._of_execution: dict[int, list[PendingAcquisition]] = {}
        for number, pending in enumerate(self.all):
            pending.number = number
            self._of_execution.setdefault(pending.execution, []).append(pending)
            if self._may_stand_between(pending):
                self._writing.setdefault(pending.object, []).append(pending)
            for lock in pending.held:
                self._holding.setdefault(lock, []).append(pending)

    def blockers(self, pending: PendingAcquisition) -> Iterator[PendingAcquisition]:
        """Yield the pending acquisitions that block another one while their executions wait there."""
        if pending.kind is EventKind.JOIN:
            yield from (
                other
                for other in self._of_execution.get(pending.object, ())
                if other.execution != pending.execution
            )
            return
        if pending.kind is EventKind.AWAIT:
            for execution in self._index.things.signallers(pending.object):
                if execution != pending.execution:
                    yield from (
                        other
                        for other in self._of_execution.get(execution, ())
                        if self._index.things.is_due(pending.object, execution, other.events[0])
                    )
            return
        lock, reads = pending.object, pending.mode == "R"
        for other in self._holding.get(lock, ()):
            if other.execution != pending.execution and (not reads or lock in other.written):
                yield other
        if reads:
            yield from (
                other for other in self._writing.get(lock, ()) if other.execution != pending.execution
            )

    def _blocked_by(self, pending: PendingAcquisition, awaited: set[_Target]) -> Iterator[_Target]:
        """Yield the locks, ends and things that others cannot have while an execution waits."""
        yield from ((EventKind.TOOK, lock) for lock in pending.held)
        yield from {(EventKind.JOIN, pending.execution)} & awaited
        for kind, thing in awaited:
            if kind is EventKind.AWAIT and self._index.things.is_due(
                thing, pending.execution, pending.events[0]
            ):
                yield kind, thing

    def _may_stand_between(self, pending: PendingAcquisition) -> bool:
        """Return whether it is of a writer that makes readers wait while it waits."""
        return (
            pending.kind is EventKind.TOOK
            and pending.mode == "W"
            and self._index.policy(pending.object) == "writer"
        )


def _all_pending(index: TraceIndex) -> list[PendingAcquisition]:
    """Return all that executions waited for, or would have waited for if it had not been free."""
    events = index.events
    pending_acquisitions: dict[tuple[object, ...], PendingAcquisition] = {}
    for at, taken in index.held.items():
        event = events[at]
        if at < index.given or at in index.inner:
            continue
        held = frozenset([(events[one].object, events[one].mode) for one in taken])
        waits = [event] if event.kind in {EventKind.TOOK, EventKind.JOIN} else []
        if at in index.waits:
            waits.append(events[index.waits[at]])
        for one in waits:
            if one.attempt != "block":
                continue
            key = one.execution, one.kind, one.object, one.mode, held
            pending = pending_acquisitions.get(key)
            if pending is None:
                pending = pending_acquisitions[key] = PendingAcquisition(*key)
            pending.events.append(at)
    return list(pending_acquisitions.values())


def _on_cycles(edges: Iterable[tuple[_Target, _Target]]) -> set[_Target]:
    """Return what lies on a cycle of edges, or between two cycles: what has an edge on both sides."""
    left = set(edges)
    while True:
        inside = {before for before, _ in left} & {after for _, after in left}
        still = {(before, after) for before, after in left if before in inside and after in inside}
        if len(still) == len(left):
            return inside
        left = still


@final
class Reordering:
    """How many events of each execution are there; events are only added."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._counts = dict.fromkeys(index.of_execution, 0)
        self._wanted: dict[int, int] = {}
        self._open: dict[int, dict[int, Section]] = {}
        """For each lock and execution the last section that is there."""
        self._last: dict[tuple[int, str], int] = {}
        """For each lock and mode the last event that takes it."""
        for at in range(index.given):
            self._want(at)

    def include_before(self, at: int) -> None:
        """Require all events of an execution before a given one."""
        execution = self._index.events[at].execution
        self._wanted[execution] = max(self._wanted.get(execution, 0), self._index.position[at])

    def includes(self, at: int) -> bool:
        """Return whether an event is there."""
        return self._index.position[at] < self._counts[self._index.events[at].execution]

    def events(self) -> tuple[Event, ...]:
        """Return all events that are there, in order, except for the `given` ones of the index."""
        index = self._index
        places = sorted(
            at for execution, count in self._counts.items() for at in index.of_execution[execution][:count]
        )
        return tuple(index.events[at] for at in places if at >= index.given)

    def close(self) -> bool:
        """Add what is missing; return `False` if the trace does not have it."""
        while self._wanted:
            execution, count = self._wanted.popitem()
            before = self._counts[execution]
            if count <= before:
                continue
            self._counts[execution] = count
            mine = self._index.of_execution[execution]
            end = mine[count] if count < len(mine) else len(self._index.events)
            if not self._add_needs(execution, mine[before], end):
                return False
            if not all(self._exclude(lock) for lock in self._enter_sections(execution, mine[before], end)):
                return False
        return True

    def _want(self, at: int) -> None:
        execution = self._index.events[at].execution
        if not self.includes(at):
            self._wanted[execution] = max(self._wanted.get(execution, 0), self._index.position[at] + 1)

    def _add_needs(self, execution: int, start: int, end: int) -> bool:
        """Require what the events of an execution between two places waited for."""
        index = self._index
        waited = index.needing.get(execution, ())
        for at in waited[bisect_left(waited, start) : bisect_left(waited, end)]:
            needs = index.needs[at]
            if needs is None:
                return False
            for need in needs:
                self._want(need)
        return True

    def _enter_sections(self, execution: int, start: int, end: int) -> set[int]:
        """Note the last sections of an execution between two places, by lock and mode; return their locks.

        They are searched from the end, until one of each lock and mode is found: the execution left all
        earlier ones itself.
        """
        index = self._index
        taken = index.taken.get(execution, ())
        kinds = index.kinds_of_sections.get(execution, ())
        seen: set[tuple[int, str]] = set()
        locks: set[int] = set()
        for place in range(bisect_left(taken, end) - 1, bisect_left(taken, start) - 1, -1):
            section = index.sections[taken[place]]
            kind = section.lock, section.mode
            if kind in seen:
                continue
            seen.add(kind)
            if section.lock not in locks:
                locks.add(section.lock)
                self._open.setdefault(section.lock, {})[execution] = section
            self._last[kind] = max(self._last.get(kind, -1), section.taken)
            if len(seen) == len(kinds):
                break
        return locks

    def _exclude(self, lock: int) -> bool:
        """Require the end of every section of a lock that is followed by one that it excludes."""
        last_write = self._last.get((lock, "W"), -1)
        last_any = max(last_write, self._last.get((lock, "R"), -1))
        for section in self._open[lock].values():
            if section.taken < (last_any if section.mode == "W" else last_write):
                if section.left is None:
                    return False
                self._want(section.left)
        return True
