"""Predictions as findings at R3."""

from __future__ import annotations

from typing import Final

from ..findings.class_edges import ClassEdge
from ..findings.evidence import Kind, Rung
from ..findings.findings import Edge, Finding, fingerprint_of_steps
from ..traces.trace import NOWHERE, Event, EventKind, Trace
from .predicted_points import points_of_prediction
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
