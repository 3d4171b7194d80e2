"""The scheduling points of a predicted deadlock, and the finding of a witness."""

from __future__ import annotations

from ..checking.scheduling_points import WitnessLocks, place_of
from ..findings.evidence import Frame, Rung
from ..findings.findings import Edge, Finding
from ..findings.witness import Ending, SchedulingPoint, SourcePlace, Witness, WitnessLock
from ..traces.trace import NOWHERE, Event, EventKind, Trace
from .prediction import Prediction


def finding_of(witness: Witness) -> Finding:
    """Return the finding of a witness, as far as it has one; a confirmed one has to be confirmed anew."""
    edges = tuple(
        _edge(point, point.shared_lock(before))
        for point, before in zip(witness.points, (witness.points[-1], *witness.points), strict=False)
    )
    rung = Rung.R3 if witness.rung is Rung.R3 else Rung.R2
    return Finding(
        rung, witness.kind, witness.text, edges, fingerprint=witness.fingerprint, points=witness.points
    )


def _edge(point: SchedulingPoint, shared_lock: WitnessLock | None) -> Edge:
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
