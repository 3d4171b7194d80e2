"""Real deadlocks: who waits for whom in this run, found while they wait, and broken.

An acquisition that finds its lock free pays nothing for this. One that does not, waits in slices, and
between two of them looks along the waits: from itself to whom it waits for, and on (`circles.py`). A
circle is reported, and one of those in it is made to raise where it waits.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, final

from ..findings.errors import DeadlockError, LockUsageError
from ..findings.evidence import Kind, Rung
from ..findings.findings import Edge, Finding, fingerprint_of
from ..findings.foreign import shown
from ..findings.text import finding_text
from ..findings.witness_file import with_replay
from ..holding.chains import held_names, held_nodes, modes_held, nesting_of
from ..holding.runtime import LATCH, runtime
from ..holding.stacks import caller, capture, resolve
from .active import current
from .circles import circle_of
from .policy import youngest
from .standing import standing_of
from .stops import stops_of_crew, witness_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

    from ..findings.witness import Stop
    from ..holding.chains import Grip, TrieNode, Unit, UnitWait
    from .policy import VictimPolicy
    from .watch import Watch

__all__ = ["LockWait", "wait_in_slices", "wait_noted"]

SLICE_SECONDS: Final = 0.02
"""How long a waiter sleeps between two looks: a deadlock is found within two of them."""


@final
class LockWait:
    """The wait for a lock that others hold."""

    __slots__ = ("breakable", "endless", "grip")
    steerable = True

    def __init__(self, grip: Grip, *, endless: bool, breakable: bool = True) -> None:
        self.grip = grip
        self.endless = endless
        self.breakable = breakable

    def needs(self, waiting: Unit) -> list[list[Unit]]:
        """Return each that has to let go before the lock can be had."""
        return [[unit] for unit in self.blockers(waiting)]

    def blockers(self, waiting: Unit) -> list[Unit]:
        """Return all that hold the lock against this wait, and writers that a reader stands behind."""
        lock, mode = self.grip.lock, self.grip.mode
        found: list[Unit] = []
        for unit in runtime.all_units():
            modes = modes_held(lock, unit.node)
            if mode == "W" or "W" in modes:
                found += [unit] if modes else []
            elif unit is not waiting and lock.policy == "writer" and _wants_to_write(unit, lock.serial):
                found.append(unit)
        return found

    def describe(self) -> str:
        """Say what is waited for."""
        return str(self.grip)


def _wants_to_write(unit: Unit, serial: int) -> bool:
    wait = unit.wait
    return isinstance(wait, LockWait) and wait.grip.mode == "W" and wait.grip.lock.serial == serial


def wait_in_slices(
    unit: Unit,
    wait: UnitWait,
    attempt: Callable[[float], bool],
    timeout_seconds: float,
    *,
    frame: FrameType | None = None,
    closes: bool = False,
) -> bool:
    """Wait until an attempt succeeds, and look for deadlocks meanwhile.

    Args:
        unit: who waits.
        wait: for what.
        attempt: tries for so many seconds, and tells whether it succeeded.
        timeout_seconds: how long at most; negative for ever.
        frame: where the program waits; where it called lockcheck if that is left out.
        closes: whether to look before the first attempt too: who would close a circle is its victim then.

    Raises:
        DeadlockError: there is a deadlock, and this unit was chosen to break it.
    """
    watch = current()
    began = time.monotonic()
    stalls = isinstance(wait, LockWait) and watch is not None and watch.policy.timeout_seconds is not None
    outer = unit.wait, unit.stack, unit.looks  # a finalizer or a handler may wait in the middle of a wait
    unit.looks = closes
    unit.wait, unit.stack = wait, capture(frame or caller())
    try:
        if closes and watch is not None and not unit.inside and _may_close(unit, wait):
            _look(watch, unit, lambda _: unit)
        unit.looks = False
        while True:
            waited = time.monotonic() - began
            left = timeout_seconds - waited if timeout_seconds >= 0 else SLICE_SECONDS
            if attempt(max(0.0, min(SLICE_SECONDS, left))):
                return True
            if timeout_seconds >= 0 and left <= SLICE_SECONDS:
                return False
            if watch is not None and not unit.inside:
                _look(watch, unit, watch.policy.victim)
                stalled = partial(_has_stalled, watch, unit, wait, waited)
                if stalls and watch.guarded(stalled, lambda: True):
                    stalls = False
    finally:
        unit.wait, unit.stack, unit.looks = outer


def _may_close(unit: Unit, wait: UnitWait) -> bool:
    """Tell whether anybody waits whom a wait is for: as a rule nobody does, and there is no need to look."""
    return any(other.wait is not None for group in wait.needs(unit) for other in group)


def wait_noted(
    unit: Unit,
    after: TrieNode,
    attempt: Callable[[float], bool],
    timeout_seconds: float,
    *,
    breakable: bool = True,
) -> bool:
    """Wait for a lock as `wait_in_slices` does, and note how long it took."""
    assert after.grip is not None, "please report: a wait for nothing"
    wait = LockWait(after.grip, endless=timeout_seconds < 0, breakable=breakable)
    began = time.perf_counter_ns()
    try:
        return wait_in_slices(unit, wait, attempt, timeout_seconds)
    finally:
        if after.tally is not None:
            after.tally.waits.append(time.perf_counter_ns() - began)


def _look(watch: Watch, unit: Unit, policy: VictimPolicy) -> None:
    """Raise if the unit was chosen as a victim, or choose one if it stands in a circle."""
    if not _gives_way(unit):
        watch.guarded_on(unit, lambda: _break_circle(watch, unit, policy), lambda: None)
    if unit.doomed is not None and _gives_way(unit):
        raise unit.doomed[1]


def _gives_way(unit: Unit) -> bool:
    """Tell whether a unit was chosen to give up the wait in which it is now, not an earlier one."""
    return unit.doomed is not None and unit.doomed[0] is unit.wait


def _break_circle(watch: Watch, unit: Unit, policy: VictimPolicy) -> None:
    """Report a circle that a unit stands in, once, and choose a victim if that is the policy."""
    circle = circle_of(unit)
    waits = {member: member.wait for member in circle if member.wait is not None}
    if not circle or len(waits) < len(circle) or not _begins(watch, unit, waits):
        return
    try:
        finding = watch.note(_confirmed(circle) or _happened(circle, watch.policy.witnesses))
        can_give_way = [member for member, wait in waits.items() if wait.breakable]
        if watch.policy.breaks_deadlocks and can_give_way:
            victim = _victim(watch, policy, can_give_way)
            _doom(watch, victim, waits[victim], finding)
    finally:
        with LATCH:
            watch.breaking.difference_update(waits.values())
    watch.react(finding)


def _begins(watch: Watch, unit: Unit, waits: Mapping[Unit, UnitWait]) -> bool:
    """Have a unit report a circle, if nobody does or did; what may take long is done without the latch.

    One of the circle that has yet to look for itself comes first: who closes a circle is its victim. And
    while a circle is reported, no other one is that has a wait in common with it: one victim may do for both.
    """
    circle = frozenset(waits.values())
    with LATCH:
        if circle in watch.circles or circle & watch.breaking or any(map(_gives_way, waits)):
            return False
        if not unit.looks and any(member.looks for member in waits):
            return False
        watch.circles.add(circle)
        watch.breaking |= circle
        return True


def _victim(watch: Watch, policy: VictimPolicy, units: Sequence[Unit]) -> Unit:
    """Return the unit that a policy chooses; where it fails the youngest, since the deadlock has to end."""
    chosen = watch.guarded(lambda: policy(units), lambda: youngest(units))
    if any(chosen is unit for unit in units):
        return chosen
    watch.note_fault(LockUsageError(f"the victim {shown(chosen, repr)} is none of those that can give way"))
    return youngest(units)


def _doom(watch: Watch, victim: Unit, wait: UnitWait, finding: Finding) -> None:
    """Have a unit raise where it waits."""
    error = DeadlockError(f"{finding.text}; {victim.name} gives way", finding)
    error.add_note(finding_text(finding, watch.graph.site_counts()))
    victim.doomed = wait, error


def _confirmed(circle: Sequence[Unit]) -> Finding | None:
    """Return the finding at R4, if the units were steered into this deadlock."""
    return runtime.steering.finding(circle) if runtime.steering is not None else None


def _happened(circle: Sequence[Unit], folder: Path | None) -> Finding:
    """Say the deadlock: each unit with what it holds, what it waits for, and both stacks."""
    edges = tuple(_edge(circle, place) for place in range(len(circle)))
    names = " -> ".join([unit.name for unit in circle] + [circle[0].name])
    wants = sorted(unit.wait.describe() for unit in circle if unit.wait is not None)
    finding = Finding(
        Rung.R5,
        Kind.DEADLOCK,
        f"these wait for each other: {names}",
        edges,
        fingerprint=fingerprint_of("deadlock", *wants),
        stops=_stops(circle),
    )
    return with_replay(finding, witness_of(finding), folder)


def _wanted(unit: Unit) -> Grip | None:
    return unit.wait.grip if isinstance(unit.wait, LockWait) else None


def _stops(circle: Sequence[Unit]) -> tuple[Stop, ...]:
    """Return where units are stuck, if others can be steered there: over locks and joins, at known places."""
    known = all(
        unit.wait is not None and unit.wait.steerable and all(node.stack for node in held_nodes(unit.node))
        for unit in circle
    )
    if not known or len(circle) == 1 or not any(map(_wanted, circle)):
        return ()
    return stops_of_crew([standing_of(unit, _wanted(unit)) for unit in circle])


def _edge(circle: Sequence[Unit], place: int) -> Edge:
    unit, blocker = circle[place], circle[(place + 1) % len(circle)]
    wait, before = unit.wait, circle[place - 1].wait
    held = list(held_nodes(unit.node))
    if isinstance(before, LockWait):  # what is held in the way of the one before stands first
        held.sort(key=lambda node: node.grip is None or node.grip.lock is not before.grip.lock)
    holds = held[0].grip if held else None
    wanted = wait.describe() if wait is not None else "nothing"
    return Edge(
        unit=unit.name,
        held=", ".join(str(node.grip) for node in held) or None,
        wanted=f"{wanted}, in the way is {blocker.name}",
        all_held=held_names(unit.node),
        hold_stack=resolve(held[0].stack) if held else (),
        want_stack=resolve(unit.stack),
        nesting=nesting_of(holds, wait.grip) if holds is not None and isinstance(wait, LockWait) else None,
    )


def _has_stalled(watch: Watch, unit: Unit, wait: UnitWait, waited: float) -> bool:
    """Report a wait for a lock that takes too long; tell whether it does."""
    if watch.policy.timeout_seconds is None or waited <= watch.policy.timeout_seconds:
        return False
    blockers = [other for group in wait.needs(unit) for other in group]
    holders = ", ".join(other.name for other in blockers) or "nobody that is known"
    edge = Edge(
        unit.name,
        None,
        wait.describe(),
        held_names(unit.node),
        resolve(next(held_nodes(blockers[0].node)).stack) if blockers and blockers[0].node.grip else (),
        resolve(unit.stack),
    )
    text = f"{unit.name} has waited {waited:.1f} s for {wait.describe()}, which is held by {holders}"
    watch.report(
        Finding(Rung.R0, Kind.STALL, text, (edge,), fingerprint=fingerprint_of("stall", wait.describe()))
    )
    return True
