"""Answerers, such as actors, which answer one ask at a time: an ask counts as an acquisition of a lock.

So asks and locks are in one learned graph and one declared order. An execution that asks wants the answerer
while it holds its locks. The thread that runs the answerer holds it: the asking thread below all that it
holds already; a worker in a separate execution, since the messages of one actor come one after the other.
A message without an answer wants nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from types import FrameType
from typing import final

from ..findings.statistics import PENDING_MAX
from ..findings.terms import Kind, Level, Rung
from ..holding.chains import Acquisition, AnswererIdentity, Execution, TrieNode, held_nodes
from ..holding.runtime import go_on_as, local, next_segment, runtime
from ..holding.stacks import Runtimes, caller_outside, capture
from .blocking import asks
from .slow_path import fold, release_held, take_slow_path_at
from .waiting import wait_in_slices
from .watch import Watch, current

RANK_CLAUSE = "a blocking ask goes from a lower rank to a higher one"


class Answerer:
    """Something that answers asks, one at a time.

    As for locks, there is a fast path for what is nothing new: it creates no object, and inspects a frame
    only where the level learns places.

    Args:
        name: its class, as a declared order names it.
        runtimes: the files of the runtime that asks and answers; they do not count as places in the program.
        key: which of its class it is.
        rank: its place in the order of asks; an ask goes from a lower rank to a higher one. `None` is
            unchecked.
        serves: returns whether the calling thread only runs answerers: then this one is an execution of its
            own there, if nothing is held.
        under_lock: the rung of an ask under a lock: R0 if its runtime declares that to be wrong, else RB.
    """

    def __init__(
        self,
        name: str,
        runtimes: Runtimes,
        *,
        key: object = None,
        rank: int | None = None,
        serves: Callable[[], bool] = lambda: False,
        under_lock: Rung = Rung.R0,
    ) -> None:
        self.identity = AnswererIdentity(name, key, rank)
        self._runtimes = runtimes
        self._serves = serves
        self._under_lock = under_lock
        self._endless = Acquisition(self.identity, "W")
        self._limited = Acquisition(self.identity, "W", "timed")
        self._made_after = local.execution.segment
        next_segment(local.execution)
        self._execution: Execution | None = None
        self._at: TrieNode | None = None
        """The node at which the execution that runs it holds it."""
        self._before: Execution | None = None
        """The execution that this one replaces on the thread until `leave`, if this is a separate one."""

    def __del__(self) -> None:
        self.identity.alive = False

    def asked(self, *, limited: bool = False) -> None:
        """Check an ask that the calling execution is about to wait for; called by a function of the runtimes.

        Args:
            limited: whether the execution waits for a limited time.

        Raises:
            LockOrderError, DeadlockPossibleError: that is the policy for what was found; nothing was asked.
        """
        execution = local.execution
        if execution.node.acquisition is None:
            return
        acquisition = self._limited if limited else self._endless
        try:
            after = execution.node.next[acquisition]
        except KeyError:
            frame = caller_outside(self._runtimes, 2)
        else:
            if after.code is None:
                return  # it was checked before
            frame = caller_outside(self._runtimes, 2)
            if after.code is frame.f_code and after.instruction == frame.f_lasti:
                return  # likewise, from here
        watch = current()
        if watch is not None and not execution.inside:
            self._check(watch, execution, acquisition, frame)

    def enter(self) -> None:
        """Hold it while the calling thread answers, until `leave`."""
        execution = local.execution
        after = execution.node.next.get(self._endless)
        if after is None:
            if runtime.watch is None:
                return
            after = self._place(execution)
        if after.tally is not None:
            after.since = perf_counter_ns()
        self._at = after.execution.node = after

    def leave(self) -> None:
        """Release it; the common case, that it was taken last, is in line."""
        after = self._at
        if after is None:
            return
        self._at = None
        execution = after.execution
        if execution.node is after:
            execution.node = after.parent  # type: ignore[assignment] # a node that is held has a parent
            if after.tally is not None:
                after.holds.append(perf_counter_ns() - after.since)
                if len(after.holds) > PENDING_MAX:
                    fold(after)
        else:
            release_held(execution, self.identity, "W")
        if self._before is not None:
            go_on_as(self._before)
            self._before = None

    def _check(self, watch: Watch, execution: Execution, acquisition: Acquisition, frame: FrameType) -> None:
        may_wait = asks(self.identity, frame, self._under_lock)
        if self._goes_down(watch, execution, acquisition, frame):
            after = take_slow_path_at(execution, acquisition, frame)
            if may_wait and watch.policy.level < Level.FULL:
                after.code = None  # from wherever it is asked

    def _goes_down(
        self, watch: Watch, execution: Execution, acquisition: Acquisition, frame: FrameType
    ) -> bool:
        """Check an ask against the ranks, unless the declared order has both classes."""
        rank = self.identity.rank
        asking = next(
            (
                node
                for node in held_nodes(execution.node)
                if node.acquisition and node.acquisition.lock.rank is not None
            ),
            None,
        )
        if rank is None or asking is None or asking.acquisition is None:
            return True
        asker = asking.acquisition.lock
        if asker is self.identity or asker.rank is None or asker.rank < rank:
            return True
        order = watch.policy.order
        if order is not None and {asker.name, self.identity.name} <= set(order.ranks):
            return True
        node = TrieNode(execution, execution.node, acquisition, watch)
        node.stack = capture(frame)
        text = f"{self.identity} of rank {rank} is asked by {asker} of rank {asker.rank}: it may only be told"
        watch.guarded_on(
            execution,
            lambda: watch.report_step(Kind.ORDER, text, node, [asking], clause=RANK_CLAUSE),
            lambda: None,
        )
        return False

    def _own_execution(self) -> Execution:
        """Return the execution that answers on threads that do nothing else."""
        if self._execution is None or self._execution.node.owner is not runtime.watch:
            # Known only while it runs: there may be many, and nearly all of them hold nothing.
            self._execution = runtime.new_execution(str(self.identity), self._made_after, known=False)
        return self._execution

    def _place(self, execution: Execution) -> TrieNode:
        """Return the node at which it is held where no node is known yet, maybe in a separate execution."""
        if execution.node.acquisition is None and self._serves():
            self._before, execution = execution, self._own_execution()
            go_on_as(execution)
        after = execution.node.next.get(self._endless)
        if after is None and execution.node.acquisition is None:
            after = take_slow_path_at(execution, self._endless, caller_outside(self._runtimes, 2))
        if after is None:  # the ask breaks a rule, which was reported; so it is not remembered
            after = TrieNode(execution, execution.node, self._endless, execution.node.owner)
            after.stack = capture(caller_outside(self._runtimes, 2))
        return after


@final
class _AnswerWait:
    """The wait for an answer."""

    endless = True
    breakable = True

    def __init__(self, what: str, thread: Callable[[], int | None]) -> None:
        self.signal = f"the answer of {what}"
        self._thread = thread

    def needs(self, waiting: Execution) -> list[list[Execution]]:  # noqa: ARG002 - the same for all that wait
        """Return the execution that the answer depends on now."""
        return [runtime.executions_on([self._thread()])]

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return self.signal


def await_answer(
    what: str,
    thread: Callable[[], int | None],
    attempt: Callable[[float], bool],
    *,
    frame: FrameType | None = None,
    closes: bool = False,
) -> None:
    """Wait for an answer until an attempt succeeds, and look for deadlocks meanwhile.

    Args:
        what: the answerer, for messages.
        thread: returns the number of the thread that the answer depends on now, if there is one.
        attempt: waits for a number of seconds, and returns whether that was enough.
        frame: where the program asks; by default where it called lockcheck.
        closes: whether to check before the first attempt too, and to raise here if this wait would complete a
            deadlock.

    Raises:
        DeadlockError: there is a deadlock, and this wait was chosen to break it.
    """
    wait_in_slices(local.execution, _AnswerWait(what, thread), attempt, -1, frame=frame, closes=closes)
