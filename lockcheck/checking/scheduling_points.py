"""Witnesses of findings: the scheduling points at which executions would be stuck, or are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ..findings.evidence import Frame, Mode, Rung
from ..findings.findings import Finding
from ..findings.witness import (
    Ending,
    SchedulingPoint,
    SourcePlace,
    Witness,
    WitnessLock,
    role_of,
    waiting_order,
)
from ..holding.chains import Acquisition
from ..holding.stacks import RawStack, resolve
from ..traces.trace import NOWHERE
from .blocked_execution import BlockedExecution
from .graph import Dependency, EndIdentity


def witness_of(finding: Finding) -> Witness | None:
    """Return the witness of a finding, if it has one: if it is unguarded, or stronger."""
    if not finding.points or finding.rung < Rung.R2:
        return None
    return Witness(
        finding.fingerprint,
        finding.rung,
        finding.kind,
        finding.text,
        finding.points,
        waiting_order(finding.points),
    )


def points_of_cycle(path: Sequence[Dependency]) -> tuple[SchedulingPoint, ...]:
    """Return the points at which the executions of a cycle would be stuck.

    Who asks waits for an answer, and others for an end, so a run is steered to that, not to a lock.
    """
    witness_lock = WitnessLocks().of_acquisition
    return tuple(
        SchedulingPoint(
            execution=one.execution_name,
            role=role_of(one.execution_name),
            held=tuple(witness_lock(held.acquisition, held.stack) for held in one.locks),
            wanted=_ending(one, following) or witness_lock(one.wanted, one.stack),
        )
        for one, following in zip(path, (*path[1:], path[0]), strict=True)
    )


def _ending(waiting: Dependency, following: Dependency) -> Ending | None:
    """Return what is waited for, if it is no lock."""
    lock = waiting.wanted.lock
    if not lock.answers and not isinstance(lock, EndIdentity):
        return None
    what = lock.signal if isinstance(lock, EndIdentity) else f"the answer of {lock.name}"
    return Ending(role_of(following.execution_name), _innermost(waiting.stack), what)


def points_of_participants(participants: Sequence[BlockedExecution]) -> tuple[SchedulingPoint, ...]:
    """Return the points at which executions are stuck."""
    witness_lock = WitnessLocks().of_acquisition
    return tuple(
        SchedulingPoint(
            execution=one.execution,
            role=role_of(one.execution),
            held=tuple(witness_lock(held.acquisition, held.stack) for held in one.held),
            wanted=witness_lock(one.wanted, one.stack)
            if one.wanted is not None
            else Ending(role_of(following.execution), _innermost(one.stack), one.signal),
            occurrence=one.times,
        )
        for one, following in zip(participants, (*participants[1:], participants[0]), strict=True)
    )


@final
class WitnessLocks:
    """The locks of one witness: equal locks have equal numbers, from zero."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def of_acquisition(self, acquisition: Acquisition, stack: RawStack) -> WitnessLock:
        """Return the witness lock of an acquisition in this process."""
        lock = acquisition.lock
        return self.of(lock.serial, lock.name, lock.key_text, acquisition.mode, _innermost(stack))

    def of(self, lock: int, name: str, key: str | None, mode: Mode, place: SourcePlace) -> WitnessLock:
        """Return the witness lock of a lock that has a number in its source, such as a trace."""
        return WitnessLock(self._numbers.setdefault(lock, len(self._numbers)), name, key, mode, place)


def _innermost(stack: RawStack) -> SourcePlace:
    frames = resolve(stack[:1])
    return place_of(frames[0] if frames else NOWHERE)


def place_of(frame: Frame) -> SourcePlace:
    """Return a frame as a place that another run can find again."""
    return SourcePlace(frame.file, frame.function, frame.source, frame.line)
