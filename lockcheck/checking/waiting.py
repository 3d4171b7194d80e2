"""Real deadlocks: executions of this run that wait for each other, found while they wait, and broken.

An acquisition that finds its lock free pays nothing for this. Any other one waits in slices, and between two
of them follows the wait-for graph from itself on (`deadlocks.py`). A deadlock is reported, and one execution
in it, the victim, raises where it waits.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, TypeAlias, final

from ..findings.findings import (
    Edge,
    Finding,
    SchedulingPoint,
    finding_text,
    fingerprint_of,
    fingerprint_of_steps,
)
from ..findings.foreign import shown
from ..findings.json_files import with_replay
from ..findings.terms import DeadlockError, Kind, LockUsageError, Rung
from ..holding.chains import (
    Acquisition,
    Execution,
    ExecutionWait,
    TrieNode,
    class_edge_text,
    held_names,
    held_nodes,
    holds_of,
    modes_held,
)
from ..holding.runtime import LATCH, Interpreter, fails_open, runtime
from ..holding.stacks import resolve
from .acquisition_checks import blocked_execution, points_of_participants, witness_of
from .knowledge import publish
from .policy import VictimPolicy, log_finding, youngest
from .watch import Watch, current

SLICE_SECONDS: Final = 0.02
"""How long a waiter sleeps between two checks: a deadlock is found within two of them."""


@final
class LockWait:
    """The wait for a lock that others hold."""

    __slots__ = ("acquisition", "breakable", "endless")
    signal = None

    def __init__(self, acquisition: Acquisition, *, endless: bool, breakable: bool = True) -> None:
        self.acquisition = acquisition
        self.endless = endless
        self.breakable = breakable

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return the executions that have to release the lock before it can be taken, each as a group.

        Of a semaphore any of those that have its permits, if all of them are known.
        """
        if self.acquisition.lock.permits is not None:
            return [self._with_permits(waiting, self.acquisition.lock.permits)]
        return [[execution] for execution in self.blockers(waiting)]

    def _with_permits(self, waiting: Execution, permits: int) -> list[Execution]:
        """Return the executions that have the permits; none if something else could release one.

        A steered run is one of many: that who has a permit releases it was seen in another one.
        """
        lock = self.acquisition.lock
        holds = {one: len(list(holds_of(lock, one.node))) for one in runtime.all_executions()}
        holders = [one for one, number in holds.items() if number]
        if not (lock.certain or runtime.steering is not None) or sum(holds.values()) < permits:
            return []
        return holders if holders != [waiting] or threading.active_count() == 1 else []

    def blockers(self, waiting: Execution) -> list[Execution]:
        """Return the executions whose holds exclude this wait, and writers that are ahead of a reader."""
        lock, mode = self.acquisition.lock, self.acquisition.mode
        found: list[Execution] = []
        for execution in runtime.all_executions():
            modes = modes_held(lock, execution.node)
            if mode == "W" or "W" in modes:
                found += [execution] if modes else []
            elif (
                execution is not waiting
                and lock.policy == "writer"
                and _wants_to_write(execution, lock.serial)
            ):
                found.append(execution)
        return found

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return str(self.acquisition)


def _wants_to_write(execution: Execution, serial: int) -> bool:
    wait = execution.wait
    return (
        isinstance(wait, LockWait) and wait.acquisition.mode == "W" and wait.acquisition.lock.serial == serial
    )


def wait_in_slices(
    execution: Execution,
    wait: ExecutionWait,
    attempt: Callable[[float], bool],
    timeout_seconds: float,
    *,
    frame: FrameType | None = None,
    closes: bool = False,
) -> bool:
    """Wait until an attempt succeeds, and look for deadlocks meanwhile.

    Args:
        execution: what waits.
        wait: the object of the wait.
        attempt: tries for a number of seconds, and returns whether it succeeded.
        timeout_seconds: how long at most; negative for ever.
        frame: where the program waits; by default where it called lockcheck.
        closes: whether to check before the first attempt too: a wait that would complete a deadlock is its
            victim then.

    Raises:
        DeadlockError: there is a deadlock, and this execution was chosen to break it.
    """
    watch = current()
    began = Interpreter.seconds()
    stalls = isinstance(wait, LockWait) and watch is not None and watch.policy.timeout_seconds is not None
    outer = (
        execution.wait,
        execution.frame,
        execution.check_due,
    )  # a finalizer or a handler may wait in the middle of a wait
    execution.check_due = closes
    execution.wait, execution.frame = wait, frame or sys._getframe(1)  # noqa: SLF001 - the documented way
    try:
        if closes and watch is not None and not execution.inside and _may_close(execution, wait):
            _check_deadlock(watch, execution, lambda _: execution)
        execution.check_due = False
        slept = 0.0  # a test may have stopped the clock
        while True:
            waited = max(Interpreter.seconds() - began, slept)
            left = timeout_seconds - waited if timeout_seconds >= 0 else SLICE_SECONDS
            slice_seconds = max(0.0, min(SLICE_SECONDS, left))
            if attempt(slice_seconds):
                return True
            slept += slice_seconds
            if timeout_seconds >= 0 and left <= SLICE_SECONDS:
                return False
            if watch is not None and not execution.inside:
                _check_deadlock(watch, execution, watch.policy.victim)
                stalled = partial(_has_stalled, watch, execution, wait, waited)
                if stalls and watch.guarded(stalled, lambda: True):
                    stalls = False
    finally:
        execution.wait, execution.frame, execution.check_due = outer


@fails_open(False)
def _may_close(execution: Execution, wait: ExecutionWait) -> bool:
    """Return whether any execution that a wait is for waits itself; if not, there is nothing to search."""
    return any(other.wait is not None for group in wait.needs(execution) for other in group)


def refuse_own(execution: Execution, acquisition: Acquisition) -> None:
    """Refuse an endless wait for one of its locks that a program begins while the checker shows a key of it.

    Raises:
        LockUsageError: it is such a wait. Without the checker the program would not be there.
    """
    if execution.inside and _holds(execution, acquisition):
        raise LockUsageError(f"{acquisition.lock} is held and requested, each by an object that shows a key")


@fails_open(False)
def _holds(execution: Execution, acquisition: Acquisition) -> bool:
    return any(holds_of(acquisition.lock, execution.node))


def wait_for_lock(
    execution: Execution,
    after: TrieNode,
    attempt: Callable[[float], bool],
    timeout_seconds: float,
    *,
    breakable: bool = True,
) -> bool:
    """Wait for a lock as `wait_in_slices` does."""
    assert after.acquisition is not None, "please report: a wait for nothing"
    if timeout_seconds < 0:
        refuse_own(execution, after.acquisition)
    wait = LockWait(after.acquisition, endless=timeout_seconds < 0, breakable=breakable)
    return wait_in_slices(execution, wait, attempt, timeout_seconds)


@fails_open(None)
def _check_deadlock(watch: Watch, execution: Execution, policy: VictimPolicy) -> None:
    """Raise if the execution was chosen as a victim; choose one if it is in a deadlock."""
    if not _gives_way(execution):
        watch.guarded_on(execution, lambda: _break_deadlock(watch, execution, policy), lambda: None)
    if execution.victim_error is not None and _gives_way(execution):
        publish()  # its part is reported already
        raise execution.victim_error[1]


def _gives_way(execution: Execution) -> bool:
    """Return whether an execution is the victim in its present wait, not in an earlier one."""
    return execution.victim_error is not None and execution.victim_error[0] is execution.wait


def _break_deadlock(watch: Watch, execution: Execution, policy: VictimPolicy) -> None:
    """Report a deadlock of an execution, once, and choose a victim if that is the policy."""
    deadlock = deadlock_of(execution)
    waits = {member: member.wait for member in deadlock if member.wait is not None}
    if not deadlock or len(waits) < len(deadlock) or not _begins(watch, execution, waits):
        return
    try:
        finding = watch.note(_confirmed(deadlock) or _happened(deadlock, watch.policy.witnesses))
        can_give_way = [member for member, wait in waits.items() if wait.breakable]
        if watch.policy.breaks_deadlocks and can_give_way:
            victim = _victim(watch, policy, can_give_way)
            _make_victim(watch, victim, waits[victim], finding)
    finally:
        with LATCH:
            watch.breaking.difference_update(waits.values())
    watch.act_on(finding)


def _begins(watch: Watch, execution: Execution, waits: Mapping[Execution, ExecutionWait]) -> bool:
    """Return whether an execution is to report a deadlock, and note that it does.

    The report itself is made without the latch. A member that has not checked its own wait yet comes first:
    the execution that completes a deadlock is its victim. While a deadlock is reported, no other one with a
    wait in common is: one victim may break both.
    """
    deadlock = frozenset(waits.values())
    with LATCH:
        if deadlock in watch.deadlocks or deadlock & watch.breaking or any(map(_gives_way, waits)):
            return False
        if not execution.check_due and any(member.check_due for member in waits):
            return False
        watch.deadlocks.add(deadlock)
        watch.breaking |= deadlock
        return True


def _victim(watch: Watch, policy: VictimPolicy, executions: Sequence[Execution]) -> Execution:
    """Return the execution that a policy chooses; the youngest if it fails, since the deadlock has to end."""
    chosen = watch.guarded(lambda: policy(executions), lambda: youngest(executions))
    if any(chosen is execution for execution in executions):
        return chosen
    watch.note_fault(
        LockUsageError(f"the victim {shown(chosen, repr)} is not one of those that can give way")
    )
    return youngest(executions)


def _make_victim(watch: Watch, victim: Execution, wait: ExecutionWait, finding: Finding) -> None:
    """Set the error that a victim raises where it waits."""
    error = DeadlockError(f"{finding.text}; {victim.name} gives way", finding)
    if watch.tell is log_finding:
        error.add_note(finding_text(finding, watch.graph.site_counts()))
    victim.victim_error = wait, error


def _confirmed(deadlock: Sequence[Execution]) -> Finding | None:
    """Return the finding at R4, if the executions were steered into this deadlock."""
    return runtime.steering.finding(deadlock) if runtime.steering is not None else None


def _happened(deadlock: Sequence[Execution], folder: Path | None) -> Finding:
    """Return the finding: each execution with what it holds, what it waits for, and both stacks."""
    edges = tuple(_edge(deadlock, place) for place in range(len(deadlock)))
    names = " -> ".join([execution.name for execution in deadlock] + [deadlock[0].name])
    finding = Finding(
        Rung.R5,
        Kind.DEADLOCK,
        f"these wait for each other: {names}",
        edges,
        fingerprint=fingerprint_of_steps(edges),
        points=_points(deadlock),
    )
    return with_replay(finding, witness_of(finding), folder)


def wanted_lock(execution: Execution) -> Acquisition | None:
    """Return what an execution waits to take; `None` if it waits for something else than a lock."""
    return execution.wait.acquisition if isinstance(execution.wait, LockWait) else None


def _points(deadlock: Sequence[Execution]) -> tuple[SchedulingPoint, ...]:
    """Return the points at which executions are stuck, if a run can be steered there."""
    known = all(
        execution.wait is not None and all(node.stack for node in held_nodes(execution.node))
        for execution in deadlock
    )
    if not known or len(deadlock) == 1 or not any(map(wanted_lock, deadlock)):
        return ()
    return points_of_participants(
        [blocked_execution(execution, wanted_lock(execution)) for execution in deadlock]
    )


def _edge(deadlock: Sequence[Execution], place: int) -> Edge:
    execution, blocker = deadlock[place], deadlock[(place + 1) % len(deadlock)]
    wait, before = execution.wait, deadlock[place - 1].wait
    held = list(held_nodes(execution.node))
    if isinstance(before, LockWait):  # the lock that the one before wants comes first
        held.sort(
            key=lambda node: node.acquisition is None or node.acquisition.lock is not before.acquisition.lock
        )
    holds = held[0].acquisition if held else None
    wanted = wait.describe() if wait is not None else "nothing"
    return Edge(
        execution=execution.name,
        held=", ".join(str(node.acquisition) for node in held) or None,
        wanted=f"{wanted}, in the way is {blocker.name}",
        all_held=held_names(execution.node),
        hold_stack=resolve(held[0].stack) if held else (),
        want_stack=resolve(execution.stack),
        class_edge=class_edge_text(holds, wait.acquisition)
        if holds is not None and isinstance(wait, LockWait)
        else None,
    )


def _has_stalled(watch: Watch, execution: Execution, wait: ExecutionWait, waited: float) -> bool:
    """Report a wait for a lock that takes too long; return whether it does."""
    if watch.policy.timeout_seconds is None or waited <= watch.policy.timeout_seconds:
        return False
    blockers = [other for group in wait.needs(execution) for other in group]
    holders = ", ".join(other.name for other in blockers) or "nobody that is known"
    edge = Edge(
        execution.name,
        None,
        wait.describe(),
        held_names(execution.node),
        resolve(next(held_nodes(blockers[0].node)).stack)
        if blockers and blockers[0].node.acquisition
        else (),
        resolve(execution.stack),
    )
    text = f"{execution.name} has waited {waited:.1f} s for {wait.describe()}, which is held by {holders}"
    watch.report(
        Finding(Rung.R0, Kind.STALL, text, (edge,), fingerprint=fingerprint_of("stall", wait.describe()))
    )
    return True


_Groups: TypeAlias = "list[list[Execution]]"


def deadlock_of(execution: Execution) -> list[Execution]:
    """Return a deadlock that begins with a given execution, or nothing if it is not in one.

    A waiting execution does not change what it holds. So a deadlock that is seen twice, with the same waits,
    existed as a whole in between.
    """
    first = _find_deadlock(execution)
    if not first:
        return []
    waits = [member.wait for member in first]
    again = _find_deadlock(execution)
    return first if first == again and all(m.wait is w for m, w in zip(first, waits, strict=True)) else []


def _find_deadlock(start: Execution) -> list[Execution]:
    stuck = _stuck(_waiting(start))
    path = _way_back(start, stuck)
    return _with_stand_ins(path, stuck) if path else []


def _waiting(start: Execution) -> dict[Execution, _Groups]:
    """Return an execution and all that it waits for, directly or not, with the groups of each."""
    found: dict[Execution, _Groups] = {}
    pending = [start]
    while pending:
        execution = pending.pop()
        wait: ExecutionWait | None = execution.wait
        if execution in found or wait is None or not wait.endless:
            continue
        found[execution] = [group for group in wait.needs(execution) if group]
        pending += [other for group in found[execution] for other in group]
    return found


def _stuck(waiting: dict[Execution, _Groups]) -> dict[Execution, _Groups]:
    """Return the executions that can never go on, each with those of its groups in which none can act."""
    stuck = waiting
    while True:
        left = {
            execution: blocked
            for execution, groups in stuck.items()
            if (blocked := [group for group in groups if all(other in stuck for other in group)])
        }
        if left == stuck:
            return left
        stuck = left


def _way_back(start: Execution, stuck: dict[Execution, _Groups]) -> list[Execution]:
    """Return a shortest path in the wait-for graph from an execution to itself; empty without one."""
    paths: dict[Execution, list[Execution]] = {start: [start]} if start in stuck else {}
    pending = list(paths)
    for execution in pending:
        for other in _blockers(stuck[execution]):
            if other is start:
                return paths[execution]
            if other not in paths:
                paths[other] = [*paths[execution], other]
                pending.append(other)
    return []


def _with_stand_ins(path: list[Execution], stuck: dict[Execution, _Groups]) -> list[Execution]:
    """Return a deadlock and the executions that could act instead of its members, but are stuck too."""
    deadlock = list(path)
    for place, execution in enumerate(deadlock):
        groups = (
            stuck[execution][:1] if place >= len(path) else [one for one in stuck[execution] if len(one) > 1]
        )
        deadlock += dict.fromkeys(other for other in _blockers(groups) if other not in deadlock)
    return deadlock


def _blockers(groups: _Groups) -> Iterator[Execution]:
    return (other for group in groups for other in group)
