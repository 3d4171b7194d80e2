"""Witnesses of what was found: of a closed path that was learned, and of a deadlock that a trace predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..findings.findings import Edge, Finding, Frame, Rung
from ..findings.witness import Ending, Grasp, Place, Stop, Witness, role_of, standing_order
from ..holding.stacks import resolve
from ..traces.trace import NOWHERE, EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..holding.chains import Grip
    from ..holding.stacks import RawStack
    from ..prediction.prediction import Prediction
    from ..traces.trace import Event, Trace
    from .graph import Dependency
    from .standing import Standing

__all__ = ["finding_of", "stops_of_crew", "stops_of_path", "stops_of_prediction", "witness_of"]


def witness_of(finding: Finding) -> Witness | None:
    """Return the witness of a finding, if there is one: what nothing guards, or what was predicted."""
    if not finding.stops or finding.rung < Rung.R2:
        return None
    return Witness(
        finding.fingerprint,
        finding.rung,
        finding.kind,
        finding.text,
        finding.stops,
        standing_order(finding.stops),
    )


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


def stops_of_path(path: Sequence[Dependency]) -> tuple[Stop, ...]:
    """Return where the units of a closed path would be stuck."""
    grasp = _Grasps().of_grip
    return tuple(
        Stop(
            unit=one.unit_name,
            role=role_of(one.unit_name),
            held=tuple(grasp(held.grip, held.stack) for held in one.held),
            wanted=grasp(one.wanted, one.stack),
        )
        for one in path
    )


def stops_of_crew(crew: Sequence[Standing]) -> tuple[Stop, ...]:
    """Return where units are stuck."""
    grasp = _Grasps().of_grip
    return tuple(
        Stop(
            unit=one.unit,
            role=role_of(one.unit),
            held=tuple(grasp(held.grip, held.stack) for held in one.held),
            wanted=grasp(one.wanted, one.stack)
            if one.wanted is not None
            else Ending(role_of(following.unit), _place_of(one.stack)),
            occurrence=one.times,
        )
        for one, following in zip(crew, (*crew[1:], crew[0]), strict=True)
    )


def stops_of_prediction(trace: Trace, prediction: Prediction) -> tuple[Stop, ...]:
    """Return where the units of a prediction would be stuck."""
    grasps = _Grasps()

    def wanted(event: Event) -> Grasp | Ending:
        if event.kind is EventKind.JOIN:
            return Ending(trace.units[event.object].role, _place(trace.sites.get(event.site, NOWHERE)))
        return grasps.of_event(trace, event)

    return tuple(
        Stop(
            unit=trace.units[stop.wanted.unit].name,
            role=trace.units[stop.wanted.unit].role,
            held=tuple(grasps.of_event(trace, event) for event in stop.held),
            wanted=wanted(stop.wanted),
            occurrence=1 + sum(_alike(event, stop.wanted) for event in prediction.witness),
        )
        for stop in prediction.stops
    )


@final
class _Grasps:
    """Grasps of one witness: equal locks have equal numbers, from zero."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of_grip(self, grip: Grip, stack: RawStack) -> Grasp:
        """Return that of a lock of this process."""
        return Grasp(
            self._number(grip.lock.serial),
            grip.lock.name,
            grip.lock.key_text,
            grip.mode,
            _place_of(stack),
        )

    def of_event(self, trace: Trace, event: Event) -> Grasp:
        """Return that of a lock of a trace."""
        lock = trace.locks[event.object]
        place = _place(trace.sites.get(event.site, NOWHERE))
        return Grasp(self._number(event.object), lock.name, lock.key, event.mode, place)

    def _number(self, lock: int) -> int:
        return self._numbers.setdefault(lock, len(self._numbers))


def _place_of(stack: RawStack) -> Place:
    frames = resolve(stack[:1])
    return _place(frames[0] if frames else NOWHERE)


def _alike(event: Event, wanted: Event) -> bool:
    """Tell whether somebody came to a place before, and got through."""
    return (event.kind, event.unit, event.object, event.mode, event.site) == (
        wanted.kind,
        wanted.unit,
        wanted.object,
        wanted.mode,
        wanted.site,
    )


def _place(frame: Frame) -> Place:
    return Place(frame.file, frame.function, frame.source, frame.line)


def _frame(place: Place) -> Frame:
    return Frame(place.file, place.line, place.function, place.source)
