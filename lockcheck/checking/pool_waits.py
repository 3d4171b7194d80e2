"""Pools that wait for themselves: a task waits for another task of its pool, which needs a thread of it.

A pool begins its tasks in the order in which they were submitted. So a task may wait for those that were
submitted before it. If it waits for a later one, and as many tasks as the pool has threads do so at the same
time, no thread is left to run what they wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from ..findings.evidence import Kind, Rung
from ..findings.findings import Edge, Finding, fingerprint_of, place_text
from ..findings.levels import Level
from ..findings.text import counted
from ..holding.chains import (
    Acquisition,
    Execution,
    Segment,
    SemaphoreIdentity,
    concurrent,
    held_names,
    held_nodes,
)
from ..holding.runtime import fails_open, local
from ..holding.stacks import caller, capture, resolve
from .active import current
from .cycles import can_stand_together
from .graph import Dependency, HeldLock
from .watch import Watch

WAITS_MAX: Final = 64
"""How many waits of the tasks of a pool are remembered."""
STEPS_MAX: Final = 10_000
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
        """Return as many waits as the pool has threads, all possible at once; `None` if none are known."""
        if len(members) == self._threads:
            return members
        for place in range(start, len(self._waits)):
            self._steps += 1
            if self._steps > STEPS_MAX:
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
                "more threads than such tasks, or a pool of its own for what they wait for, would be safe",
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
