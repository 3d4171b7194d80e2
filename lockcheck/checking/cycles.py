"""Cycles: of the lock order, and of pools whose tasks wait for each other.

A cycle of the lock order is a chain of dependencies. Each wants a lock that the next one holds, and the last
one wants a lock that the first one holds. That is a deadlock if all of them can wait there at the same time:

* *strong*: at each lock one of the two writes, or both read and a writer may wait between them. Such a
  writer is part of the cycle like the others, but need not hold anything;
* *different executions*: one execution waits at one place only;
* *no gate*: no two of them hold a lock in modes that exclude each other, and they do not hold more permits
  of a semaphore than it has;
* *no permit left*: where one waits for a semaphore of several permits, others of them hold them all;
* *concurrent*: none must have ended before another one began, as far as is known of what is between them;
* *published*: each lock of the cycle was known to others when it was held and wanted;
* *blocking*: each waits for ever, it neither only tries nor gives up.

A cycle that meets all conditions is UNGUARDED (R2). Any other one is only a CYCLE (R1), with the reasons why
it is safe.

A pool begins its tasks in the order in which they were submitted. So a task may wait for those that were
submitted before it. If it waits for a later one, and as many tasks as the pool has threads do so at the same
time, no thread is left to run what they wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import PurePath
from typing import Final, final

from ..findings.findings import Edge, Finding, counted, fingerprint_of, place_text
from ..findings.terms import Kind, Level, Rung
from ..holding.chains import (
    Acquisition,
    Execution,
    LockIdentity,
    Segment,
    SemaphoreIdentity,
    cause_of_order,
    concurrent,
    held_names,
    held_nodes,
    may_be_ordered,
)
from ..holding.runtime import fails_open, local
from ..holding.stacks import caller, capture, line_of, resolve
from .graph import Dependency, Graph, HeldLock
from .watch import Watch, current

STEPS_MAX: Final = 50_000
"""A search that takes more steps is given up, and the session reports that."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle of dependencies that can all wait at the same time, or one that may be guarded."""

    path: tuple[Dependency, ...]
    exact: bool = True
    """Whether they can all wait at the same time; if not, the other fields tell how the cycle was found."""
    strong: bool = True
    """Whether its modes exclude each other, so that each really waits."""
    given_up: bool = False
    """Whether the search for an unguarded cycle was given up."""

    def reasons(self) -> tuple[str, ...]:
        """Return why the cycle is safe, or nothing if it is unguarded.

        This shows keys of locks, which is code of the program: do not call it under the latch.
        """
        if self.exact:
            return ()
        reasons = dict.fromkeys(_reasons(self.path, strong=self.strong))
        if self.given_up:
            return (*reasons, f"nothing was found in {STEPS_MAX} steps, and the search was given up")
        return tuple(reasons)


@final
class _CycleSearch:
    """A depth-first search over dependencies from a new one back to itself.

    Args:
        graph: where the dependencies are.
        start: the new one.
        strong: whether modes have to exclude each other.
        exact: whether all in the cycle must be able to wait at the same time.
    """

    def __init__(self, graph: Graph, start: Dependency, *, strong: bool, exact: bool) -> None:
        self._graph = graph
        self._start = start
        self._strong = strong
        self._exact = exact
        self.steps = 0

    def find(self) -> tuple[Dependency, ...] | None:
        """Return a cycle through the new dependency, if there is one."""
        if self._exact and not _waits_for_ever(self._start):
            return None
        return next(self._from([self._start]), None)

    @property
    def given_up(self) -> bool:
        """Whether the search took too long."""
        return self.steps > STEPS_MAX

    def _from(self, path: list[Dependency]) -> Iterator[tuple[Dependency, ...]]:
        if len(path) > 1 and any(one is self._start for one in self._after(path[-1])):
            yield from self._completed(path) if self._exact and any(map(_shares, path)) else [tuple(path)]
        for following in self._after(path[-1]):
            self.steps += 1
            if self.given_up:
                return
            if following not in path and self._fits(path, following):
                path.append(following)
                yield from self._from(path)
                path.pop()

    def _completed(self, members: list[Dependency]) -> Iterator[tuple[Dependency, ...]]:
        """Yield the cycle that a path makes, with those that hold the other permits it waits for."""
        for place, waiting in enumerate(members):
            blockers = list(self._after(waiting))
            if _is_stuck(waiting, members, blockers):
                continue
            for other in blockers:
                self.steps += 1
                if self.given_up:
                    return
                if other not in members and self._fits(members, other):
                    yield from self._completed([*members[: place + 1], other, *members[place + 1 :]])
            return
        yield tuple(members)

    def _fits(self, path: list[Dependency], following: Dependency) -> bool:
        if self._exact:
            return can_stand_together(path, following)
        # One guarded cycle is enough: no lock is requested twice, except by a waiting writer.
        return not following.held or all(
            one.wanted.lock is not following.wanted.lock for one in path if one.held
        )

    def _after(self, one: Dependency) -> Iterator[Dependency]:
        """Yield the dependencies that a waiting one may wait for: holders, and writers ahead of a reader."""
        lock = one.wanted.lock
        reads = one.wanted.mode == "R"
        for other in self._graph.holding.get(lock.serial, ()):
            if self._exact and other.held_fresh(lock):
                continue
            if not self._strong or not reads or other.mode_of(lock) == "W":
                yield other
        if self._strong and reads and lock.policy == "writer":
            yield from self._graph.writing.get(lock.serial, ())


def _shares(one: Dependency) -> bool:
    """Return whether a dependency waits for a semaphore that several may hold."""
    return (one.wanted.lock.permits or 1) > 1


def _is_stuck(waiting: Dependency, members: list[Dependency], blockers: list[Dependency]) -> bool:
    """Return whether members of a cycle hold all that one of them waits for."""
    lock = waiting.wanted.lock
    if _shares(waiting):
        return held_permits(members, lock) == lock.permits
    return any(one in blockers for one in members)


def find_cycle(graph: Graph, start: Dependency) -> tuple[Cycle | None, bool]:
    """Find a cycle through a new dependency, an unguarded one if there is any.

    Returns:
        The cycle, if any, and whether a search was given up.
    """
    wanted = start.wanted.lock
    targets = {held.acquisition.lock.serial for held in start.held}
    if wanted.policy == "writer" and start.wanted.mode == "W":
        targets.add(wanted.serial)
    if not targets or not graph.reaches(wanted.serial, targets):
        return None, False
    search = _CycleSearch(graph, start, strong=True, exact=True)
    found = search.find()
    if found is not None:
        return Cycle(found), False
    for strong in (True, False):
        found = _CycleSearch(graph, start, strong=strong, exact=False).find()
        if found is not None:
            return Cycle(found, exact=False, strong=strong, given_up=search.given_up), search.given_up
    return None, search.given_up


def can_stand_together(path: list[Dependency], following: Dependency) -> bool:
    """Return whether a dependency can wait at the same time as all of a path."""
    return (
        _waits_for_ever(following)
        and all(
            one.execution != following.execution
            and concurrent(one.segment, following.segment)
            and not may_be_ordered(one.segment, following.segment)
            and _gate(one, following) is None
            for one in path
        )
        and overdrawn([*path, following]) is None
    )


def _waits_for_ever(one: Dependency) -> bool:
    """Return whether a dependency may wait for ever, as far as it alone is concerned."""
    return one.wanted.attempt == "block" and not one.fresh


def _obstacles_alone(one: Dependency) -> list[str]:
    """Return why a dependency never waits for ever, whatever the others do."""
    reasons = []
    if one.wanted.attempt == "try":
        reasons.append(f"{one.execution_name} only tries {one.wanted} and does not wait")
    elif one.wanted.attempt == "timed":
        reasons.append(f"{one.execution_name} waits for {one.wanted} for a limited time")
    if one.fresh:
        reasons.append(f"{one.wanted} was known to {one.execution_name} alone when it was taken")
    return reasons


def _gate(one: Dependency, other: Dependency) -> LockIdentity | None:
    """Return a lock that both hold in modes that exclude each other."""
    for held in one.held:
        if (held.acquisition.lock.permits or 1) > 1:
            continue  # how many hold it together counts
        mode = other.mode_of(held.acquisition.lock)
        if mode is not None and "W" in {mode, held.acquisition.mode}:
            return held.acquisition.lock
    return None


def _cause(one: Dependency, other: Dependency) -> str:
    """Return what orders two dependencies, and where the later one waited for that, as far as is known."""
    cause = cause_of_order(one.segment, other.segment)
    if cause is None:
        return ""
    words, code, instruction = cause
    place = f" at {PurePath(code.co_filename).name}:{line_of(code, instruction)}" if code is not None else ""
    return f": {words}{place}"


def _obstacles_between(one: Dependency, other: Dependency) -> Iterator[str]:
    """Yield why two dependencies cannot wait at the same time, or may not be able to."""
    gate, names = _gate(one, other), f"{one.execution_name} and {other.execution_name}"
    if one.execution == other.execution:
        yield f"one execution does both: {one.execution_name}"
    elif gate is not None:
        yield f"guarded by {gate}, held in both"
    elif not concurrent(one.segment, other.segment):
        yield f"{names} do this one after the other, in every run{_cause(one, other)}"
    elif may_be_ordered(one.segment, other.segment):
        channel = "an event that is cleared, or a pair of sockets, is between them"
        yield f"{names} may do this one after the other: {channel}"


def _reasons(path: tuple[Dependency, ...], *, strong: bool) -> Iterator[str]:
    """Yield all reasons why a cycle is not a deadlock."""
    for one in path:
        yield from _obstacles_alone(one)
    for one, other in zip(path, (*path[1:], path[0]), strict=True):
        if other.held_fresh(one.wanted.lock):
            yield f"{one.wanted.lock} was known to {other.execution_name} alone while it was held"
    for one, other in combinations(path, 2):
        yield from _obstacles_between(one, other)
    yield from obstacles_of_permits(path)
    if not strong:
        locks = dict.fromkeys(str(one.wanted.lock) for one in path if one.wanted.mode == "R")
        yield f"only readers meet at {', '.join(locks)}, and no writer can come between them"


def held_permits(members: Sequence[Dependency], lock: LockIdentity) -> int:
    """Return how often dependencies hold a lock, all together."""
    return sum(held.acquisition.lock is lock for one in members for held in one.held)


def overdrawn(members: Sequence[Dependency]) -> LockIdentity | None:
    """Return a semaphore of several permits of which dependencies hold more than it has."""
    for one in members:
        for held in one.held:
            lock = held.acquisition.lock
            if (lock.permits or 1) > 1 and held_permits(members, lock) > (lock.permits or 1):
                return lock
    return None


def obstacles_of_permits(members: Sequence[Dependency]) -> Iterator[str]:
    """Yield why dependencies do not wait for semaphores of several permits, or never come so far together."""
    guarding = overdrawn(members)
    if guarding is not None:
        yield f"guarded by {guarding}, of which these would hold more than its {guarding.permits} permits"
    for lock in dict.fromkeys(one.wanted.lock for one in members if (one.wanted.lock.permits or 1) > 1):
        held = held_permits(members, lock)
        if held < (lock.permits or 1):
            are = "is" if held == 1 else "are"
            yield f"{lock} has {lock.permits} permits, and {held} of them {are} held here"


WAITS_MAX: Final = 64
"""How many waits of the tasks of a pool are remembered."""
POOL_STEPS_MAX: Final = 10_000
"""How many steps a search for waits at the same time takes at most."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """A wait of a task for a later one of its pool."""

    dependency: Dependency
    submitted: Segment
    """In which segment the later task was submitted."""
    edge: Edge


@final
class PoolWaits:
    """The waits of the tasks of one pool for later tasks of it.

    Args:
        name: the pool, for findings.
        threads: how many it has at most.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self._threads = threads
        self._thread = Acquisition(SemaphoreIdentity(f"a thread of {name}", threads), "W")
        self._waits: list[_Wait] = []
        self._steps = 0

    @fails_open(None)
    def note(self, awaited: str, submitted: Segment) -> None:
        """Note that the calling task is about to wait without a limit for a task that was submitted later.

        Args:
            awaited: the later task.
            submitted: in which segment it was submitted.

        Raises:
            DeadlockPossibleError: that is the policy for what was found.
        """
        watch, execution = current(), local.execution
        if watch is None or execution.inside or watch.policy.level < Level.FULL:
            return
        if watch.policy.order_disabled or len(self._waits) >= WAITS_MAX:
            return
        watch.guarded_on(execution, lambda: self._check(watch, execution, awaited, submitted), lambda: None)

    def _check(self, watch: Watch, execution: Execution, awaited: str, submitted: Segment) -> None:
        stack = capture(caller())
        execution.segment = replace(execution.segment, silent=False)
        dependency = Dependency(
            execution=execution.serial,
            execution_name=execution.name,
            segment=execution.segment,
            held=tuple(
                HeldLock(node.acquisition, node.stack, node.acquisition.lock.fresh_for is not None)
                for node in held_nodes(execution.node)
                if node.acquisition is not None
            ),
            wanted=self._thread,
            stack=stack,
            fresh=False,
        )
        place = resolve(stack)
        wanted = f"the result of {awaited}"
        edge = Edge(execution.name, None, wanted, held_names(execution.node), (), place)
        wait = _Wait(dependency, submitted, edge)
        self._steps = 0
        together = self._at_once([wait])
        self._waits.append(wait)
        watch.report(self._finding(together or [wait], unguarded=together is not None))

    def _at_once(self, members: list[_Wait], start: int = 0) -> list[_Wait] | None:
        """Return as many waits as the pool has threads, all possible at once; `None` if fewer are known."""
        if len(members) == self._threads:
            return members
        for place in range(start, len(self._waits)):
            self._steps += 1
            if self._steps > POOL_STEPS_MAX:
                return None
            if _fits(members, self._waits[place]):
                found = self._at_once([*members, self._waits[place]], place + 1)
                if found is not None:
                    return found
        return None

    def _finding(self, waits: Sequence[_Wait], *, unguarded: bool) -> Finding:
        edges = tuple(wait.edge for wait in waits)
        first = edges[0]
        task = f"{first.execution} of {self.name}"
        threads = counted(self._threads, "thread")
        if unguarded:
            why: tuple[str, ...] = (
                f"then none of its {threads} is left to run what they wait for",
                "they are different executions, and none must have ended before another one begins",
                "more threads than such tasks, or a separate pool for what they wait for, would be safe",
            )
        else:
            why = (f"{self.name} has {threads}, and not as many such tasks were seen at the same time",)
        return Finding(
            Rung.R2 if unguarded else Rung.R1,
            Kind.CYCLE,
            f"a pool waits for itself: {task} waits for {first.wanted}, a later one",
            edges,
            why,
            fingerprint=fingerprint_of("pool", self.name, place_text(first.want_stack)),
        )


def _fits(members: Sequence[_Wait], other: _Wait) -> bool:
    """Return whether a wait is possible while all others are, with none of the later tasks begun."""
    return can_stand_together([one.dependency for one in members], other.dependency) and all(
        concurrent(one.submitted, other.dependency.segment)
        and concurrent(other.submitted, one.dependency.segment)
        for one in members
    )
