"""Steering: threads of a run are paused at the scheduling points of a witness, until they are all there.

An execution at its scheduling point holds its first lock and is about to want the second one. It is paused
there, before it is in the queue of a lock. As soon as executions are at all points, and each holds what
another one wants, they are the *participants*. They go on one by one, each when the one before waits in the
queue of its lock, in the order of the witness: so a writer is there before the readers that have to wait
behind it. Whether they are really stuck is found by `waiting`, which examines the locks themselves. So
nothing is confirmed that did not happen.

Every pause has a limit, and all pauses without result together have one. A pause ends at once where it cannot
help: if no other thread could come, or those that should come wait for what the paused one holds. In the
next attempt that one comes *late*: it is paused before it takes what it holds, until the others are there.
If other threads blocked them, these are kept *aside*: off the locks of the witness until all participants
are there.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, final

from ..checking.acquisition_checks import BlockedExecution, blocked_execution
from ..checking.waiting import LockWait, wanted_lock
from ..findings.findings import Ending, Finding, Witness
from ..holding.chains import Acquisition, Execution, holds_of
from ..holding.runtime import LATCH, Interpreter, runtime
from ..holding.stacks import caller
from .point_matching import Joining, Participant, Paused, PointMatching, are_stuck, chain_with, way_to

PAUSE_SECONDS: Final = 0.5
"""How long an execution is paused in the first attempt; twice as long in each further one."""
PAUSES_MAX: Final = 4
"""After this many full pauses without result, a run continues unsteered."""
STANDSTILL_SECONDS: Final = 0.2
"""How long all participants wait before a wait counts that anything might end, such as one for an event."""
POLL_SECONDS: Final = 0.001
"""How often a paused execution checks whether it may go on, or whether its pause cannot help."""


@final
class Steering:
    """Steers the threads of one run.

    Args:
        witness: the deadlock to reach.
        make_finding: returns the finding of executions that are stuck at their points, and is called once.
        attempt: the number of the attempt, from one. In the first one an execution is paused no sooner than
            the witness says, by how often it comes to its point; for the last one see `PointMatching`.
        pause_seconds: how long an execution is paused in the first attempt.
    """

    def __init__(
        self,
        witness: Witness,
        make_finding: Callable[[Steering], Finding],
        *,
        attempt: int = 1,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self.witness = witness
        self.attempt = attempt
        self.confirmed: Finding | None = None
        self.stuck: tuple[BlockedExecution, ...] = ()
        """The executions that got stuck at their points, in the order of the points."""
        self.seconds = 0.0
        """The time from the first pause of any of them until they were found to be stuck."""
        self.late: set[int] = set()
        """Points that should come late in the next attempt."""
        self.aside: set[str] = set()
        """Roles of others that should be kept aside in the next attempt."""
        self.obstacles: Counter[str] = Counter()
        """The obstacles, and how often each was met."""
        self.came: Counter[tuple[int, int]] = Counter()
        """How often each execution came to each point."""
        self.matching = PointMatching(witness, attempt)
        self._make_finding = make_finding
        self._pause_seconds = pause_seconds * 2 ** (attempt - 1)
        self._left = self._pause_seconds * PAUSES_MAX
        self._came_true = False
        self._paused: list[Paused] = []
        self._joining: list[Joining] = []
        """Executions that wait for the end of a thread at their points."""
        self._joins = any(isinstance(point.wanted, Ending) for point in witness.points)
        self._held_back: list[Execution] = []
        """Executions that wait before their first lock."""
        self._still_since: float | None = None
        """Since when all participants wait."""
        self._beginning: list[int] = []
        """Points of those that come late and are before their first lock."""
        self.participants: Sequence[Participant] = ()
        """Executions that were at their points at the same time, and may go on."""

    def wants(self, execution: Execution, acquisition: Acquisition) -> None:
        """Pause an execution that is about to want a lock, if that is a scheduling point of the witness."""
        if (
            execution.inside
            or self.participants
            or not self.matching.knows(acquisition)
            or any(holds_of(acquisition.lock, execution.node))
        ):
            return
        execution.inside = True
        try:
            frame = caller()
            if execution.node.acquisition is None and self.matching.role(execution) in self.witness.aside:
                self._wait_until(lambda: False, "was kept aside, but the others did not come", execution)
            late = [
                place
                for place in self.matching.begins(execution, acquisition, frame)
                if self.witness.points[place].late
            ]
            if late:
                self._let_others_come(execution, late)
            places = self.matching.points_at(execution, acquisition, frame)
            if places:
                self._pause(execution, places, acquisition)
        finally:
            execution.inside = False

    def following(self, waiting: Execution) -> list[Execution]:
        """Return the participant that one waits for by the witness, if all have stood still for a while."""
        participants = list(self.participants)
        now = Interpreter.seconds()
        if not participants or not all(one.waits for one in participants):
            self._still_since = None
            return []
        self._still_since = self._still_since or now
        executions = [one.execution for one in participants]
        if now - self._still_since < STANDSTILL_SECONDS or waiting not in executions:
            return []
        return [executions[(executions.index(waiting) + 1) % len(executions)]]

    def finding(self, deadlock: Sequence[Execution]) -> Finding | None:
        """Return the finding of a deadlock, if its executions are stuck as in the witness.

        They need not be those that were paused: a pause may have let others come. More of them may get
        stuck so after the first ones, which is the same deadlock.
        """
        others = self.matching.in_order(deadlock)
        with LATCH:
            if self._came_true:
                return self.confirmed if others else None
            if self.participants and are_stuck(self.participants):
                stuck: list[tuple[Execution, Acquisition | None, int | None]] = [
                    (one.execution, one.acquisition, one.times[place])
                    for place, one in enumerate(self.participants)
                ]
                began = min(one.began for one in self.participants)
            elif others:
                stuck = [(one, wanted_lock(one), None) for one in others]
                began = min((one.began for one in self._paused), default=Interpreter.seconds())
            else:
                if not self.participants:
                    names = ", ".join(execution.name for execution in deadlock)
                    self.obstacles[f"another deadlock came first, of {names}"] += 1
                    self._keep_aside_next(deadlock)
                return None
            self._came_true = True
            self._left = 0.0
            self.seconds = Interpreter.seconds() - began
        self.stuck = tuple(blocked_execution(*one) for one in stuck)
        self.confirmed = self._make_finding(self)
        return self.confirmed

    # ------------------------------------------------------------------------------------- pausing

    def _pause(self, execution: Execution, places: Sequence[int], acquisition: Acquisition) -> None:
        self._find_joins()
        with LATCH:
            self.came.update((execution.serial, place) for place in places)
            if self.participants or self._left <= 0:
                return
            paused = Paused(
                execution, acquisition, {place: self.came[execution.serial, place] for place in places}
            )
            self.participants = chain_with(paused, self._here(), len(self.witness.points))
            if not self.participants and not any(self._is_time(execution, place) for place in places):
                return
            self._paused.append(paused)
        try:
            self._keep(paused)
        finally:
            with LATCH:
                self._paused.remove(paused)

    def _is_time(self, execution: Execution, place: int) -> bool:
        """Return whether an execution came to a point often enough; the last participant need not have."""
        occurrence = self.witness.points[place].occurrence
        return self.attempt > 1 or occurrence is None or self.came[execution.serial, place] >= occurrence

    def _keep(self, paused: Paused) -> None:
        """Pause an execution until it may go on with the others, or its pause cannot help or is over."""
        gate = _shut_gate()
        deadline = paused.began + min(self._pause_seconds, self._left)
        while True:
            self._find_joins()
            with LATCH:
                if self._joining and not self.participants:
                    self.participants = chain_with(paused, self._here(), len(self.witness.points))
                if self.participants and (paused not in self.participants or self._has_turn(paused)):
                    return
                if Interpreter.seconds() >= deadline:
                    self._give_up(paused)
                    return
            if not self.participants and self._cannot_help(paused):
                return
            gate.acquire(timeout=POLL_SECONDS)

    def _give_up(self, paused: Paused) -> None:
        self._left -= Interpreter.seconds() - paused.began
        role = self.matching.role(paused.execution)
        if self.participants:
            self.obstacles[f"{role} stood at its place, but those before it did not begin to wait"] += 1
            return
        self.late.update(paused.times)
        missing = [str(self.witness.points[place]) for place in self._missing()]
        missing_text = "; ".join(f"nobody came to where {one}" for one in missing)
        self.obstacles[f"{role} waited at its place: {missing_text or 'the others had other locks'}"] += 1

    def _let_others_come(self, execution: Execution, places: Sequence[int]) -> None:
        """Keep an execution from its first lock until the others are at their points, or before theirs."""
        with LATCH:
            self._beginning += places
        self._wait_until(
            lambda: set(self._missing()) <= set(self._beginning),
            "waited before its first lock, but the others did not come",
            execution,
        )

    def _wait_until(self, ready: Callable[[], bool], failure: str, execution: Execution) -> None:
        """Keep an execution from a lock until it may go on, or all or none can come, or its pause is over."""
        with LATCH:
            self._held_back.append(execution)
        gate, began = _shut_gate(), Interpreter.seconds()
        try:
            while not (self.participants or self._left <= 0 or ready() or self._nobody_comes()):
                if Interpreter.seconds() - began >= self._pause_seconds:
                    with LATCH:
                        self._left -= Interpreter.seconds() - began
                        self.obstacles[f"{self.matching.role(execution)} {failure}"] += 1
                    return
                gate.acquire(timeout=POLL_SECONDS)
        finally:
            with LATCH:
                self._held_back.remove(execution)

    # --------------------------------------------------------------------------- who is not there yet

    def _here(self) -> list[Participant]:
        """Return the executions that are at points."""
        return [*self._paused, *self._joining]

    def _missing(self) -> list[int]:
        """Return the points at which no execution is."""
        here = {place for one in self._here() for place in one.times}
        return [place for place in range(len(self.witness.points)) if place not in here]

    def _cannot_help(self, paused: Paused) -> bool:
        """Return whether it cannot help to keep an execution paused, and note why."""
        obstacle = self._obstacle(paused)  # inspects locks of others, which may wait for the latch
        with LATCH:
            if self.participants or obstacle is None:
                return False
            self.obstacles[obstacle] += 1
            return True

    def _obstacle(self, paused: Paused) -> str | None:
        """Return why it cannot help to keep an execution paused; `None` if it may."""
        points = self.witness.points
        missing = [{points[place].role} for place in self._missing()] or [{point.role for point in points}]
        for roles in missing:
            obstacle = self._kept_away(roles, paused)
            if obstacle is not None:
                return obstacle
        if self._nobody_comes():
            self.late.update(paused.times)
            return "nobody else could come: there was no other thread, or all waited for paused ones"
        return None

    def _nobody_comes(self) -> bool:
        """Return whether all other threads that run are paused too, or wait for one that is."""
        kept = {*self._held_back, *(one.execution for one in self._here())}
        for thread in threading.enumerate():
            execution = runtime.running.get(thread.ident or 0)
            if execution is None or (execution not in kept and not way_to(kept, execution)):
                return False
        return True

    def _kept_away(self, roles: set[str], paused: Paused) -> str | None:
        """Return why none of some roles can come, if all of them wait for a paused execution."""
        here = {one.execution for one in self._here()}
        coming = [
            execution
            for execution in runtime.all_executions()
            if execution not in here and self.matching.role(execution) in roles
        ]
        ways = [way_to({paused.execution}, execution) for execution in coming]
        if not ways or not all(ways):
            return None
        self.late.update(paused.times)
        if self.attempt > 1:
            self._keep_aside_next(execution for way in ways for execution in way)
        last = ways[0][-1]
        waits = last.wait.describe() if last.wait is not None else "it"
        who, holder = self.matching.role(last), self.matching.role(paused.execution)
        return f"{who} waited for {waits}, which {holder} held at its place"

    def _keep_aside_next(self, executions: Iterable[Execution]) -> None:
        """Keep those of some executions aside in the next attempt that have no point."""
        self.aside |= {self.matching.role(execution) for execution in executions}
        self.aside -= {point.role for point in self.witness.points}

    # ------------------------------------------------------------------------------------ participants

    def _find_joins(self) -> None:
        """Note which executions wait for the end of a thread at their points; they need not be paused."""
        if not self._joins or self.participants:
            return
        found = [
            Joining(execution, place, wait)  # inspects locks of others, which may wait for the latch
            for execution in runtime.all_executions()
            if (wait := execution.wait) is not None and wait.endless and not isinstance(wait, LockWait)
            for place in self.matching.joins_at(execution)
        ]
        with LATCH:
            self._joining = found
            for one in found:
                for place in one.times:
                    self.came[one.execution.serial, place] = 1

    def _has_turn(self, paused: Paused) -> bool:
        """Return whether an execution may begin to wait: those before it in the order do."""
        order = self.witness.order
        before = order[: order.index(list(self.participants).index(paused))]
        return all(self.participants[place].waits for place in before)


def _shut_gate() -> threading.Lock:
    """Return a lock that is never released: to wait for a moment, without the hooks."""
    gate = threading.Lock()
    gate.acquire()
    return gate
