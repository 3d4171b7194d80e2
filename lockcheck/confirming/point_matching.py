"""Executions at the scheduling points of a witness: which are there, and whether each blocks another."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Final, TypeAlias, final

from ..checking.acquisition_checks import BlockedExecution
from ..checking.waiting import LockWait
from ..findings.findings import Edge, Ending, Witness, WitnessLock, class_text, role_of
from ..findings.terms import Frame
from ..holding.chains import Acquisition, Execution, ExecutionWait, class_edge_text, held_nodes, modes_held
from ..holding.runtime import Interpreter
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


@final
class Paused:
    """An execution at a scheduling point, or at several that look the same, about to want a lock."""

    def __init__(self, execution: Execution, acquisition: Acquisition, times: dict[int, int]) -> None:
        self.execution = execution
        self.acquisition = acquisition
        self.times = times
        """The points, and how often it came to each of them, this time included."""
        self.began = Interpreter.seconds()

    @property
    def waits(self) -> bool:
        """Whether it is in the queue of the lock that it wants."""
        wait = self.execution.wait
        return isinstance(wait, LockWait) and wait.acquisition.lock is self.acquisition.lock


@final
class Joining:
    """An execution that waits for the end of a thread at its scheduling point: it need not be paused."""

    acquisition = None

    def __init__(self, execution: Execution, place: int, wait: ExecutionWait) -> None:
        self.execution = execution
        self.times = {place: 1}
        self.began = Interpreter.seconds()
        self.ends = _executions_awaited(execution, wait)
        """The executions that it waits for; empty if anything may end the wait, then the witness names
        them."""
        self._wait = wait

    @property
    def waits(self) -> bool:
        """Whether it still waits."""
        return self.execution.wait is self._wait


Participant: TypeAlias = "Paused | Joining"


def _executions_awaited(execution: Execution, wait: ExecutionWait) -> list[Execution]:
    """Return the executions that a wait is for; this may inspect the locks of others."""
    return [one for group in wait.needs(execution) for one in group]


def _blocks(following: Participant, one: Participant) -> bool:
    """Return whether an execution has to wait for the one that follows it, as its holder or in its queue."""
    if isinstance(one, Joining):
        return one.waits and (not one.ends or following.execution in one.ends)
    wanted = one.acquisition
    held = modes_held(wanted.lock, following.execution.node)
    if held:
        return "W" in {*held, wanted.mode}
    queued = following.acquisition
    writes_first = queued is not None and queued.lock is wanted.lock and queued.mode == "W"
    return writes_first and wanted.mode == "R" and wanted.lock.policy == "writer"


def chain_with(newest: Participant, here: Sequence[Participant], count: int) -> Sequence[Participant]:
    """Return executions at all points, each holding a lock that another one requests; the newest is one.

    Args:
        newest: what came to its point last.
        here: all that are at points.
        count: how many points there are.
    """

    def chain(start: int, participants: list[Participant]) -> list[Participant]:
        if len(participants) == count:
            return participants if _blocks(newest, participants[-1]) else []
        place = (start + len(participants)) % count
        for one in here:
            if place in one.times and one not in participants and _blocks(one, participants[-1]):
                found = chain(start, [*participants, one])
                if found:
                    return found
        return []

    for place in newest.times:
        found = chain(place, [newest])
        if found:
            return found[count - place :] + found[: count - place]
    return ()


def are_stuck(participants: Sequence[Participant]) -> bool:
    """Return whether each of the participants waits for the next one, whatever else they wait for."""
    following = (*participants[1:], participants[0])
    return all(one.waits and _blocks(other, one) for one, other in zip(participants, following, strict=True))


def way_to(paused: set[Execution], execution: Execution) -> list[Execution]:
    """Return a path in the wait-for graph, from an execution to one that waits for a paused one."""
    seen: set[int] = set()

    def walk(at: Execution) -> list[Execution]:
        wait = at.wait
        if wait is None or at.serial in seen:
            return []
        seen.add(at.serial)
        blockers = _executions_awaited(at, wait)
        if paused.intersection(blockers):
            return [at]
        for one in blockers:
            way = walk(one)
            if way:
                return [at, *way]
        return []

    return walk(execution)


def edges_of(participants: Sequence[BlockedExecution]) -> tuple[Edge, ...]:
    """Return the edges of executions that are stuck: the lock that each holds and the one before wants."""
    edges: list[Edge] = []
    for one, before in zip(participants, (participants[-1], *participants), strict=False):
        wanted = before.wanted
        shared_lock = next(
            (held for held in one.held if wanted is not None and held.acquisition.lock is wanted.lock), None
        )
        edges.append(
            Edge(
                execution=one.execution,
                held=str(shared_lock.acquisition) if shared_lock is not None else None,
                wanted=one.wait_text,
                all_held=tuple(str(held.acquisition) for held in one.held),
                hold_stack=resolve(shared_lock.stack) if shared_lock is not None else (),
                want_stack=resolve(one.stack),
                class_edge=class_edge_text(shared_lock.acquisition, one.wanted)
                if shared_lock and one.wanted
                else None,
            )
        )
    return tuple(edges)
