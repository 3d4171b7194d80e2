"""Whether a unit of this run is at a stop of a witness, which another run or another program text made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..findings.witness import Ending, Grasp, class_text, role_of
from ..holding.chains import held_nodes
from ..holding.stacks import resolve

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from ..findings.evidence import Frame
    from ..findings.witness import Witness
    from ..holding.chains import Grip, Unit

__all__ = ["ATTEMPTS_MAX", "StopMatching"]

ATTEMPTS_MAX: Final = 3
"""How many attempts there are to confirm a witness; the last one compares least."""


@final
class StopMatching:
    """Compares units with the stops of a witness.

    Args:
        witness: whose stops.
        attempt: which attempt it is, from one. The last one compares neither keys, nor other locks that are
            held, nor what the line of a place says.
    """

    def __init__(self, witness: Witness, attempt: int) -> None:
        self._stops = witness.stops
        self._strict = attempt < ATTEMPTS_MAX
        self._roles: dict[int, str] = {}
        self._frames: dict[tuple[CodeType, int], Frame] = {}
        wanted = (stop.wanted for stop in witness.stops if isinstance(stop.wanted, Grasp))
        held = (grasp for stop in witness.stops for grasp in stop.held)
        self._classes = {class_text(grasp.lock) for grasp in (*wanted, *held)}

    def knows(self, grip: Grip) -> bool:
        """Tell whether the witness has locks of a class, taken for as long as it takes."""
        return class_text(grip.lock.name) in self._classes and grip.attempt == "block"

    def role(self, unit: Unit) -> str:
        """Return what a unit does."""
        role = self._roles.get(unit.serial)
        if role is None:
            role = self._roles[unit.serial] = role_of(unit.name)
        return role

    @property
    def roles(self) -> set[str]:
        """All roles of units that took locks of the witness."""
        return set(self._roles.values())

    def stops_at(self, unit: Unit, grip: Grip, frame: FrameType | None) -> list[int]:
        """Return the stops at which a unit is that is about to want a lock."""
        role = self.role(unit)
        return [
            place
            for place, stop in enumerate(self._stops)
            if stop.role == role
            and isinstance(stop.wanted, Grasp)
            and self._is(stop.wanted, grip, frame)
            and self._holds_as(place, unit)
        ]

    def joins_at(self, unit: Unit) -> list[int]:
        """Return the stops at which a unit is that waits for the end of a thread."""
        role = self.role(unit)
        return [
            place
            for place, stop in enumerate(self._stops)
            if stop.role == role and isinstance(stop.wanted, Ending) and self._holds_as(place, unit)
        ]

    def begins(self, unit: Unit, grip: Grip, frame: FrameType | None) -> list[int]:
        """Return the stops for which a unit is about to take the first lock that it will hold there."""
        if unit.node.grip is not None:
            return []
        role = self.role(unit)
        return [
            place
            for place, stop in enumerate(self._stops)
            if stop.role == role and stop.held and self._is(stop.held[0], grip, frame)
        ]

    def _holds_as(self, place: int, unit: Unit) -> bool:
        """Tell whether a unit holds what its stop says: everything, or at least what others wait for."""
        stop, before = self._stops[place], self._stops[place - 1]
        held = [node.grip for node in held_nodes(unit.node) if node.grip is not None]
        if self._strict:
            wanted = [(class_text(one.lock), one.key or "", one.mode) for one in stop.held]
            return sorted(wanted) == sorted(
                (class_text(one.lock.name), one.lock.key_text or "", one.mode) for one in held
            )
        joint = stop.joint(before)
        return joint is None or any(_is_alike(joint, one) for one in held)

    def _is(self, grasp: Grasp, grip: Grip, frame: FrameType | None) -> bool:
        if not _is_alike(grasp, grip):
            return False
        if self._strict and grasp.key != grip.lock.key_text:
            return False
        if frame is None:
            return not self._strict
        where = (frame.f_code, frame.f_lasti)
        if where not in self._frames:
            (self._frames[where],) = resolve((where,))
        return grasp.place.is_at(self._frames[where], same_source=self._strict)


def _is_alike(grasp: Grasp, grip: Grip) -> bool:
    """Tell whether locks are of one class and taken in one mode."""
    return (class_text(grasp.lock), grasp.mode) == (class_text(grip.lock.name), grip.mode)
