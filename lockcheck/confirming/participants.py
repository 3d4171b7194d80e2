"""Participants: executions at the scheduling points of a witness, and whether each blocks another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, final

from ..checking.blocked_execution import BlockedExecution
from ..checking.waiting import LockWait
from ..findings.findings import Edge
from ..holding.chains import Acquisition, Execution, ExecutionWait, class_edge_text, modes_held
from ..holding.interpreter import Interpreter
from ..holding.stacks import resolve


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
        """The executions that it waits for; none if anything may end the wait, then the witness says who."""
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
    """Return executions at all points, each of which holds what another one wants; the newest is one.

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
