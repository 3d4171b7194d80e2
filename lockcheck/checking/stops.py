"""Witnesses of what was found: where units would be stuck, or are."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..findings.evidence import Rung
from ..findings.witness import Ending, Grasp, SourcePlace, Stop, Witness, role_of, standing_order
from ..holding.stacks import resolve
from ..traces.trace import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..findings.evidence import Frame, Mode
    from ..findings.findings import Finding
    from ..holding.chains import Grip
    from ..holding.stacks import RawStack
    from .graph import Dependency
    from .standing import Standing

__all__ = ["Grasps", "place_of", "stops_of_crew", "stops_of_path", "witness_of"]


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


def stops_of_path(path: Sequence[Dependency]) -> tuple[Stop, ...]:
    """Return where the units of a closed path would be stuck."""
    grasp = Grasps().of_grip
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
    grasp = Grasps().of_grip
    return tuple(
        Stop(
            unit=one.unit,
            role=role_of(one.unit),
            held=tuple(grasp(held.grip, held.stack) for held in one.held),
            wanted=grasp(one.wanted, one.stack)
            if one.wanted is not None
            else Ending(role_of(following.unit), _innermost(one.stack)),
            occurrence=one.times,
        )
        for one, following in zip(crew, (*crew[1:], crew[0]), strict=True)
    )


@final
class Grasps:
    """Grasps of one witness: equal locks have equal numbers, from zero."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of_grip(self, grip: Grip, stack: RawStack) -> Grasp:
        """Return that of a lock of this process."""
        lock = grip.lock
        return self.of(lock.serial, lock.name, lock.key_text, grip.mode, _innermost(stack))

    def of(self, lock: int, name: str, key: str | None, mode: Mode, place: SourcePlace) -> Grasp:
        """Return that of a lock which has a number of its own where it comes from."""
        return Grasp(self._numbers.setdefault(lock, len(self._numbers)), name, key, mode, place)


def _innermost(stack: RawStack) -> SourcePlace:
    frames = resolve(stack[:1])
    return place_of(frames[0] if frames else NOWHERE)


def place_of(frame: Frame) -> SourcePlace:
    """Return a line of a stack as another run can find it again."""
    return SourcePlace(frame.file, frame.function, frame.source, frame.line)
