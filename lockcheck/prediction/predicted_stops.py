"""Where units would be stuck: of a deadlock that a trace predicts, and of what a witness tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..checking.stops import Grasps, place_of
from ..findings.evidence import Frame, Rung
from ..findings.findings import Edge, Finding
from ..findings.witness import Ending, Grasp, SourcePlace, Stop
from ..traces.trace import NOWHERE, EventKind

if TYPE_CHECKING:
    from ..findings.witness import Witness
    from ..traces.trace import Event, Trace
    from .prediction import Prediction

__all__ = ["finding_of", "stops_of_prediction"]


def finding_of(witness: Witness) -> Finding:
    """Return the finding that a witness is of, as far as it tells; what was confirmed is to be shown anew."""
    edges = tuple(
        _edge(stop, stop.joint(before))
        for stop, before in zip(witness.stops, (witness.stops[-1], *witness.stops), strict=False)
    )
    rung = Rung.R3 if witness.rung is Rung.R3 else Rung.R2
    return Finding(
        rung, witness.kind, witness.text, edges, fingerprint=witness.fingerprint, stops=witness.stops
    )


def _edge(stop: Stop, joint: Grasp | None) -> Edge:
    return Edge(
        unit=stop.unit,
        held=str(joint) if joint is not None else None,
        wanted=str(stop.wanted),
        all_held=tuple(map(str, stop.held)),
        hold_stack=(_frame(joint.place),) if joint is not None else (),
        want_stack=(_frame(stop.wanted.place),),
    )


def stops_of_prediction(trace: Trace, prediction: Prediction) -> tuple[Stop, ...]:
    """Return where the units of a prediction would be stuck."""
    grasps = Grasps()

    def grasp(event: Event) -> Grasp:
        lock = trace.locks[event.object]
        return grasps.of(event.object, lock.name, lock.key, event.mode, place(event))

    def place(event: Event) -> SourcePlace:
        return place_of(trace.sites.get(event.site, NOWHERE))

    def wanted(event: Event) -> Grasp | Ending:
        if event.kind is EventKind.JOIN:
            return Ending(trace.units[event.object].role, place(event))
        return grasp(event)

    return tuple(
        Stop(
            unit=trace.units[stop.wanted.unit].name,
            role=trace.units[stop.wanted.unit].role,
            held=tuple(grasp(event) for event in stop.held),
            wanted=wanted(stop.wanted),
            occurrence=1 + sum(_alike(event, stop.wanted) for event in prediction.witness),
        )
        for stop in prediction.stops
    )


def _alike(event: Event, wanted: Event) -> bool:
    """Tell whether somebody came to a place before, and got through."""
    return (event.kind, event.unit, event.object, event.mode, event.site) == (
        wanted.kind,
        wanted.unit,
        wanted.object,
        wanted.mode,
        wanted.site,
    )


def _frame(place: SourcePlace) -> Frame:
    return Frame(place.file, place.line, place.function, place.source)
