"""Deadlocks that did not happen, but that the events of a trace, in another order, lead to.

A *reordering* takes the first events of each execution, up to some event. It is *sync-preserving* if it can
be run in the order of the trace: of two critical sections that exclude each other the first one is left
before the second one is taken, if both are there; and whatever an event waited for is there too. Such a
reordering can always be scheduled. If after it each of several executions is about to take a lock that the
next one holds, the reordering is a witness of a deadlock.

For executions that each wait before a given event, their scheduling point, there is a least reordering; it
is found by adding what is missing until nothing is (`reordering`). If it contains one of the points itself,
no reordering ends there, and none ends at an earlier one; so the next equal event of that execution is
tried. This makes the search linear for each pattern. The idea is that of "Sound Dynamic Deadlock Prediction
in Linear Time" (2023); readers, writers that wait between them, joins, failed attempts, and waits for events,
results, items and notifications (`things`) are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from ..traces.trace import Event, EventKind, Trace
from .pending import PendingAcquisition, PendingAcquisitions
from .reordering import Reordering
from .trace_index import TraceIndex

PATTERNS_MAX: Final = 100_000
"""How many steps the search for patterns takes at most; a search that was cut off is reported."""


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
        """Return the next places at which a path can wait; `None` if one of it has none left."""
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
