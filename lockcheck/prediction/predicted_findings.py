"""Predictions as findings at R3, and where the recorded run contradicts them.

A run contradicts a cycle where what it waited for kept two of the threads apart, each time. That proves
nothing for other runs: a condition may have been notified by another thread, and two threads may have put
items into a queue. So it counts only for a finding that no steered run could reach either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Final, NamedTuple, final

from ..checking.acquisition_checks import WitnessLocks, place_of
from ..findings.findings import (
    Edge,
    Ending,
    Finding,
    SchedulingPoint,
    SourcePlace,
    Witness,
    WitnessLock,
    fingerprint_of_steps,
)
from ..findings.terms import ClassEdge, Frame, Kind, Rung
from ..traces.trace import NOWHERE, Event, EventKind, Trace
from .prediction import PredictedPoint, Prediction, predict
from .trace_index import TraceIndex

TIMES_MAX: Final = 64
"""How often a step may be taken in a run that is looked at."""


class _Step(NamedTuple):
    """One time that an execution took a step of a cycle: the events that took the held and requested lock."""

    held: int
    wanted: int


def contradictions_of(trace: Trace, findings: Iterable[Finding]) -> dict[str, str]:
    """Return, by fingerprint, why the cycles at R2 among some findings did not come about in a recorded run.

    Args:
        trace: the whole run; one whose beginning is missing contradicts nothing.
        findings: those of the same run, of which several may have the same fingerprint.

    Raises:
        TraceFileError: the trace contradicts itself.
    """
    cycles = [one for one in findings if one.rung is Rung.R2 and _is_of_locks(one.points)]
    if not cycles or trace.late:
        return {}
    search = _OrderSearch(trace, TraceIndex(trace))
    found: dict[str, str] = {}
    possible = set()
    for cycle in cycles:
        reason = search.reason(cycle.points)
        if reason is None:
            possible.add(cycle.fingerprint)
        else:
            found[cycle.fingerprint] = reason
    return {fingerprint: reason for fingerprint, reason in found.items() if fingerprint not in possible}


def _is_of_locks(points: Sequence[SchedulingPoint]) -> bool:
    return bool(points) and all(isinstance(point.wanted, WitnessLock) for point in points)


@final
class _OrderSearch:
    """The order in which executions took the steps of cycles, by what they waited for."""

    def __init__(self, trace: Trace, index: TraceIndex) -> None:
        self._trace = trace
        self._index = index
        self._known: dict[int, Mapping[int, int]] = {}
        """For each event that waited for others: how many events of each execution came before."""
        self._note_order()

    def _note_order(self) -> None:
        index = self._index
        now: dict[int, dict[int, int]] = {}
        at_signal: dict[int, Mapping[int, int]] = {}
        for at, event in enumerate(index.events):
            if event.kind is EventKind.SIGNAL:
                at_signal[at] = dict(now.get(event.execution, {}))
            elif event.kind in {EventKind.AWAIT, EventKind.JOIN}:
                mine = now.setdefault(event.execution, {})
                for need in index.needs[at] or ():
                    other = index.events[need].execution
                    before = at_signal.get(need, now.get(other, {}))
                    for execution, count in {**before, other: index.position[need] + 1}.items():
                        mine[execution] = max(mine.get(execution, 0), count)
                self._known[at] = dict(mine)

    def reason(self, points: Sequence[SchedulingPoint]) -> str | None:
        """Return what kept two of the steps apart; `None` if any two could be taken at a time."""
        steps = [
            self._steps(point, point.shared_lock(before))
            for point, before in zip(points, (points[-1], *points), strict=False)
        ]
        if not all(steps) or any(len(taken) > TIMES_MAX for taken in steps):
            return None
        return next(filter(None, (self._apart(one, other) for one, other in combinations(steps, 2))), None)

    def _steps(self, point: SchedulingPoint, held: WitnessLock | None) -> list[_Step]:
        wanted = point.wanted
        if held is None or not isinstance(wanted, WitnessLock):
            return []
        index = self._index
        return [
            _Step(outer, at)
            for at in index.sections
            if self._is(index.events[at], wanted)
            for outer in index.held[at]
            if self._is(index.events[outer], held)
        ]

    def _is(self, event: Event, lock: WitnessLock) -> bool:
        """Return whether an event takes a lock of this class, in this mode, at this place."""
        return (
            event.mode == lock.mode
            and self._trace.locks[event.object].name == lock.lock
            and lock.place.is_at(self._trace.sites.get(event.site, NOWHERE), same_source=True)
        )

    def _apart(self, one: Sequence[_Step], other: Sequence[_Step]) -> str | None:
        """Return what kept two steps apart, each time that two executions took them."""
        reason = None
        events = self._index.events
        for first, second in product(one, other):
            if events[first.wanted].execution == events[second.wanted].execution:
                continue
            found = self._between(first, second) or self._between(second, first)
            if found is None:
                return None
            reason = found
        return reason

    def _between(self, first: _Step, second: _Step) -> str | None:
        """Return what the second execution waited for, after which alone it could begin its step."""
        index = self._index
        earlier, later = index.events[first.wanted].execution, index.events[second.held].execution
        for at in index.needing.get(later, ()):
            if at > second.held:
                return None
            if self._known.get(at, {}).get(earlier, 0) > index.position[first.wanted]:
                return self._said(earlier, later, index.events[at])
        return None

    def _said(self, earlier: int, later: int, event: Event) -> str:
        first, second = (self._trace.executions[number].name for number in (earlier, later))
        thing = self._trace.things.get(event.object) if event.kind is EventKind.AWAIT else None
        what = thing.text if thing is not None else "what another thread did"
        return (
            f"in the recorded run {second} only began after {first} had done its part: it waited for {what} "
            f"at {self._trace.sites.get(event.site, NOWHERE)}"
        )


_NO_FILTER: Final = (
    "the events of the trace, in another order, lead to it: {} of them come first, and no lock, start, "
    "join or signal is in the way"
)


def findings_of(trace: Trace) -> tuple[tuple[Finding, ...], bool]:
    """Return the findings that a trace predicts, at R3, and whether the search was cut off.

    Raises:
        TraceFileError: the trace contradicts itself.
    """
    predictions = predict(trace)
    return tuple(_finding(trace, one) for one in predictions.found), predictions.given_up


def _finding(trace: Trace, prediction: Prediction) -> Finding:
    edges: list[Edge] = []
    before = prediction.points[-1]
    for point in prediction.points:
        edges.append(_edge(trace, point, before))
        before = point
    steps = [f"{edge.held or 'nothing'} -> {edge.wanted}" for edge in edges]
    return Finding(
        Rung.R3,
        Kind.DEADLOCK,
        f"{len(edges)} executions can wait for each other: " + ", then ".join(steps),
        tuple(edges),
        (_NO_FILTER.format(len(prediction.witness)),),
        fingerprint=fingerprint_of_steps(edges),
        points=points_of_prediction(trace, prediction),
    )


def _edge(trace: Trace, point: PredictedPoint, before: PredictedPoint) -> Edge:
    """Return the edge of an execution: the lock that the one before wants, and what it wants itself."""
    wanted = before.wanted.object if before.wanted.kind is EventKind.TOOK else None
    shared_lock = next((event for event in point.held if event.object == wanted), None)
    return Edge(
        execution=trace.executions[point.wanted.execution].name,
        held=_said(trace, shared_lock) if shared_lock is not None else None,
        wanted=_said(trace, point.wanted),
        all_held=tuple(_said(trace, event) for event in point.held),
        hold_stack=(trace.sites.get(shared_lock.site, NOWHERE),) if shared_lock is not None else (),
        want_stack=(trace.sites.get(point.wanted.site, NOWHERE),),
        class_edge=_class_edge(trace, shared_lock, point.wanted),
    )


def _class_edge(trace: Trace, held: Event | None, wanted: Event) -> str | None:
    """Return classes and modes of an edge between two locks."""
    if held is None or wanted.kind is not EventKind.TOOK:
        return None
    return str(
        ClassEdge(trace.locks[held.object].name, held.mode, trace.locks[wanted.object].name, wanted.mode)
    )


def _said(trace: Trace, event: Event) -> str:
    if event.kind is EventKind.JOIN:
        other = trace.executions.get(event.object)
        return f"the end of {other.name if other is not None else 'a thread'}"
    if event.kind is EventKind.AWAIT:
        return trace.things[event.object].text
    lock = trace.locks[event.object]
    return f"{lock} [{event.mode}]" if lock.policy is not None else str(lock)


def finding_of(witness: Witness) -> Finding:
    """Return the finding of a witness, as far as it has one; a confirmed one has to be confirmed anew."""
    edges = tuple(
        _witness_edge(point, point.shared_lock(before))
        for point, before in zip(witness.points, (witness.points[-1], *witness.points), strict=False)
    )
    rung = Rung.R3 if witness.rung is Rung.R3 else Rung.R2
    return Finding(
        rung, witness.kind, witness.text, edges, fingerprint=witness.fingerprint, points=witness.points
    )


def _witness_edge(point: SchedulingPoint, shared_lock: WitnessLock | None) -> Edge:
    return Edge(
        execution=point.execution,
        held=str(shared_lock) if shared_lock is not None else None,
        wanted=str(point.wanted),
        all_held=tuple(map(str, point.held)),
        hold_stack=(_frame(shared_lock.place),) if shared_lock is not None else (),
        want_stack=(_frame(point.wanted.place),),
    )


def points_of_prediction(trace: Trace, prediction: Prediction) -> tuple[SchedulingPoint, ...]:
    """Return the points at which the executions of a prediction would be stuck."""
    witness_locks = WitnessLocks()

    def witness_lock(event: Event) -> WitnessLock:
        lock = trace.locks[event.object]
        return witness_locks.of(event.object, lock.name, lock.key, event.mode, place(event))

    def place(event: Event) -> SourcePlace:
        return place_of(trace.sites.get(event.site, NOWHERE))

    def wanted(event: Event, following: Event) -> WitnessLock | Ending:
        if event.kind is EventKind.TOOK:
            return witness_lock(event)
        role = trace.executions[following.execution].role
        what = trace.things[event.object].text if event.kind is EventKind.AWAIT else None
        return Ending(role, place(event), what)

    points = prediction.points
    return tuple(
        SchedulingPoint(
            execution=trace.executions[point.wanted.execution].name,
            role=trace.executions[point.wanted.execution].role,
            held=tuple(witness_lock(event) for event in point.held),
            wanted=wanted(point.wanted, following.wanted),
            occurrence=1 + sum(_alike(event, point.wanted) for event in prediction.witness),
        )
        for point, following in zip(points, (*points[1:], points[0]), strict=True)
    )


def _alike(event: Event, wanted: Event) -> bool:
    """Return whether an event is an earlier one at the same place, which went through."""
    return (event.kind, event.execution, event.object, event.mode, event.site) == (
        wanted.kind,
        wanted.execution,
        wanted.object,
        wanted.mode,
        wanted.site,
    )


def _frame(place: SourcePlace) -> Frame:
    return Frame(place.file, place.line, place.function, place.source)
