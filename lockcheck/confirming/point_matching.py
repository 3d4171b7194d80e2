"""Whether an execution is at a scheduling point of a witness, which another run or version may have made."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Final, final

from ..checking.waiting import LockWait
from ..findings.evidence import Frame
from ..findings.witness import Ending, Witness, WitnessLock, class_text, role_of
from ..holding.chains import Acquisition, Execution, held_nodes
from ..holding.stacks import resolve

ATTEMPTS_MAX: Final = 3
"""How many attempts there are to confirm a witness; the last one compares least."""


@final
class PointMatching:
    """Compares executions with the scheduling points of a witness.

    Args:
        witness: has the points.
        attempt: the number of the attempt, from one. The last one compares neither keys, nor other locks that
            are held, nor the text of a line.
    """

    def __init__(self, witness: Witness, attempt: int) -> None:
        self._points = witness.points
        self._strict = attempt < ATTEMPTS_MAX
        self._roles: dict[int, str] = {}
        self._frames: dict[tuple[CodeType, int], Frame] = {}
        wanted = (point.wanted for point in witness.points if isinstance(point.wanted, WitnessLock))
        held = (witness_lock for point in witness.points for witness_lock in point.held)
        self._classes = {class_text(witness_lock.lock) for witness_lock in (*wanted, *held)}

    def knows(self, acquisition: Acquisition) -> bool:
        """Return whether the witness has locks of this class, and the acquisition has no limit of time."""
        return class_text(acquisition.lock.name) in self._classes and acquisition.attempt == "block"

    def role(self, execution: Execution) -> str:
        """Return the role of an execution."""
        role = self._roles.get(execution.serial)
        if role is None:
            role = self._roles[execution.serial] = role_of(execution.name)
        return role

    @property
    def roles(self) -> set[str]:
        """All roles of executions that took locks of the witness."""
        return set(self._roles.values())

    def points_at(self, execution: Execution, acquisition: Acquisition, frame: FrameType | None) -> list[int]:
        """Return the points at which an execution is that is about to want a lock."""
        role = self.role(execution)
        return [
            place
            for place, point in enumerate(self._points)
            if point.role == role
            and isinstance(point.wanted, WitnessLock)
            and self._is(point.wanted, acquisition, frame)
            and self._holds_as(place, execution)
        ]

    def joins_at(self, execution: Execution) -> list[int]:
        """Return the points at which an execution is that waits for the end of a thread."""
        role = self.role(execution)
        return [
            place
            for place, point in enumerate(self._points)
            if point.role == role and isinstance(point.wanted, Ending) and self._holds_as(place, execution)
        ]

    def in_order(self, deadlock: Sequence[Execution]) -> list[Execution]:
        """Return the executions of a deadlock in the order of the points, if they are stuck there.

        Which threads they are does not matter, nor which locks of a class: the places and classes do. This
        reads files for the lines, so do not call it under the latch.
        """
        if len(deadlock) != len(self._points):
            return []
        for first in range(len(deadlock)):
            turned = [*deadlock[first:], *deadlock[:first]]
            if all(self._is_stuck_at(place, execution) for place, execution in enumerate(turned)):
                return turned
        return []

    def _is_stuck_at(self, place: int, execution: Execution) -> bool:
        point, wait = self._points[place], execution.wait
        shared_lock = point.shared_lock(self._points[place - 1])
        held = [node.acquisition for node in held_nodes(execution.node) if node.acquisition is not None]
        if shared_lock is not None and not any(_is_alike(shared_lock, one) for one in held):
            return False
        if isinstance(point.wanted, Ending) or not isinstance(wait, LockWait):
            return isinstance(point.wanted, Ending) and not isinstance(wait, LockWait)
        frames = resolve(execution.stack[:1])
        return _is_alike(point.wanted, wait.acquisition) and (
            not frames or point.wanted.place.is_at(frames[0], same_source=self._strict)
        )

    def begins(self, execution: Execution, acquisition: Acquisition, frame: FrameType | None) -> list[int]:
        """Return the points for which an execution is about to take the first lock that it holds there."""
        if execution.node.acquisition is not None:
            return []
        role = self.role(execution)
        return [
            place
            for place, point in enumerate(self._points)
            if point.role == role and point.held and self._is(point.held[0], acquisition, frame)
        ]

    def _holds_as(self, place: int, execution: Execution) -> bool:
        """Return whether an execution holds the locks of a point: all, or the one that others wait for."""
        point, before = self._points[place], self._points[place - 1]
        held = [node.acquisition for node in held_nodes(execution.node) if node.acquisition is not None]
        if self._strict:
            wanted = [(class_text(one.lock), one.key or "", one.mode) for one in point.held]
            return sorted(wanted) == sorted(
                (class_text(one.lock.name), one.lock.key_text or "", one.mode) for one in held
            )
        shared_lock = point.shared_lock(before)
        return shared_lock is None or any(_is_alike(shared_lock, one) for one in held)

    def _is(self, witness_lock: WitnessLock, acquisition: Acquisition, frame: FrameType | None) -> bool:
        if not _is_alike(witness_lock, acquisition):
            return False
        if self._strict and witness_lock.key != acquisition.lock.key_text:
            return False
        if frame is None:
            return not self._strict
        where = (frame.f_code, frame.f_lasti)
        if where not in self._frames:
            (self._frames[where],) = resolve((where,))
        return witness_lock.place.is_at(self._frames[where], same_source=self._strict)


def _is_alike(witness_lock: WitnessLock, acquisition: Acquisition) -> bool:
    """Return whether two locks have the same class and mode."""
    return (class_text(witness_lock.lock), witness_lock.mode) == (
        class_text(acquisition.lock.name),
        acquisition.mode,
    )
