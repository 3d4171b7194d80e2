"""Predictions as findings at R3."""

from __future__ import annotations

from typing import Final

from ..checking.scheduling_points import WitnessLocks, place_of
from ..findings.evidence import ClassEdge, Frame, Kind, Rung
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
from ..traces.trace import NOWHERE, Event, EventKind, Trace
from .prediction import PredictedPoint, Prediction, predict

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
