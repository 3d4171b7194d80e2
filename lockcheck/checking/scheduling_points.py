"""Witnesses of findings: the scheduling points at which executions would be stuck, or are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ..findings.findings import (
    Ending,
    Finding,
    SchedulingPoint,
    SourcePlace,
    Witness,
    WitnessLock,
    role_of,
    waiting_order,
)
from ..findings.terms import Frame, Mode, Rung
from ..holding.chains import Acquisition, Execution, held_nodes
from ..holding.stacks import RawStack, resolve
from ..traces.trace import NOWHERE
from .graph import Dependency, EndIdentity, HeldLock


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


@final
@dataclass(frozen=True, slots=True)
class BlockedExecution:
    """An execution that is stuck, with what it holds and waits for."""

    execution: str
    held: tuple[HeldLock, ...]
    """Outermost first."""
    wanted: Acquisition | None
    """`None` if it waits for the end of a thread."""
    wait_text: str
    """What it waits for, in words."""
    signal: str | None
    """What ends its wait, in words, if that is neither the release of a lock nor the end of a thread."""
    stack: RawStack
    times: int | None
    """How often it had come there, if that was counted."""


def blocked_execution(
    execution: Execution, wanted: Acquisition | None, times: int | None = None
) -> BlockedExecution:
    """Return what an execution holds and waits for now."""
    held = [
        HeldLock(node.acquisition, node.stack, fresh=False)
        for node in held_nodes(execution.node)
        if node.acquisition
    ]
    return BlockedExecution(
        execution=execution.name,
        held=tuple(reversed(held)),
        wanted=wanted,
        wait_text=execution.wait.describe() if execution.wait is not None else str(wanted),
        signal=execution.wait.signal if execution.wait is not None else None,
        stack=execution.stack,
        times=times,
    )
