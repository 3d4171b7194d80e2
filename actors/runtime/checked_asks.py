"""The asks of actors as lockcheck checks them: asker, answerer, and the locks that the asker holds.

A dispatcher that is made while locks are checked has its asks checked; other dispatchers have no cost.

Asks and locks are in one learned graph and one declared order. An execution that asks wants the actor while
it holds its locks. The thread that runs the actor holds it: the asking thread below all that it holds
already; a worker in a separate execution, since the messages of one actor come one after the other. A message
without an answer wants nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import Final, final

import pykka

from ... import lockcheck
from ...lockcheck import DeadlockError
from ...lockcheck.checking.blocking import asks
from ...lockcheck.checking.slow_path import release_held, take_slow_path_at
from ...lockcheck.checking.waiting import wait_in_slices
from ...lockcheck.checking.watch import Watch, current
from ...lockcheck.findings.terms import Kind, Level
from ...lockcheck.holding.chains import Acquisition, AnswererIdentity, Execution, TrieNode, held_nodes
from ...lockcheck.holding.runtime import go_on_as, local, next_segment, runtime
from ...lockcheck.holding.stacks import capture
from .pool import on_worker
from .waiting import AskRule, OpenWait

RANK_CLAUSE: Final = "a blocking ask goes from a lower rank to a higher one"


@final
class Runtimes(dict[str, bool]):
    """The files of some runtimes, which are not the program's; each file is checked once.

    Args:
        starts: what the names of such files start with.
    """

    def __init__(self, *starts: str) -> None:
        super().__init__()
        self._starts = starts

    def __missing__(self, file: str) -> bool:
        known = self[file] = file.startswith(self._starts)
        return known


def _caller_outside(runtimes: Runtimes, depth: int) -> FrameType:
    """Return the innermost frame that belongs to no runtime; if all do, the first one that was checked.

    It is never the caller itself: a frame that refers to itself would keep all others.

    Args:
        runtimes: the files of the runtimes.
        depth: how many callers are skipped, one at least: to check a frame costs time.
    """
    try:
        first = sys._getframe(depth + 1)  # noqa: SLF001 - likewise
    except ValueError:  # they have no caller
        first = sys._getframe(depth)  # noqa: SLF001 - likewise
    frame: FrameType | None = first
    while frame is not None and runtimes[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame if frame is not None else first


_RUNTIMES: Final = Runtimes(
    *(
        os.path.dirname(file) + os.sep  # noqa: PTH120 - compared as text
        for file in (__file__, pykka.__file__, lockcheck.__file__)
    ),
    threading.__file__,
)


def checked_asks(name: str, key: object, rank: int | None, direction: AskRule | None) -> AskRule:
    """Return the rule that reports the asks of one actor to lockcheck.

    Args:
        name: the class of the actor, as a declared order names it.
        key: the actor's key in its class.
        rank: the actor's place in the order of asks.
        direction: the rule that refuses asks of it that go up, if the dispatcher has one.
    """
    asks = CheckedAsks(name, key=key, rank=rank)
    return asks if direction is None else DirectedCheckedAsks(direction, asks)


class CheckedAsks:
    """The asks of one actor, which answers one at a time: an ask counts as an acquisition of a lock.

    As for locks, there is a fast path for what is nothing new: it creates no object, and inspects a frame
    only where the level learns places.

    Args:
        name: the class of the actor, as a declared order names it.
        key: the actor's key in its class.
        rank: its place in the order of asks; an ask goes from a lower rank to a higher one. `None` is
            unchecked.
        runtimes: the files of the runtime that asks and answers; they do not count as places in the program.
    """

    def __init__(
        self,
        name: str,
        *,
        key: object = None,
        rank: int | None = None,
        runtimes: Runtimes = _RUNTIMES,
    ) -> None:
        self.identity = AnswererIdentity(name, key, rank)
        self._runtimes = runtimes
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
            frame = _caller_outside(self._runtimes, 2)
        else:
            if after.code is None:
                return  # it was checked before
            frame = _caller_outside(self._runtimes, 2)
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
        else:
            release_held(execution, self.identity, "W")
        if self._before is not None:
            go_on_as(self._before)
            self._before = None

    def _check(self, watch: Watch, execution: Execution, acquisition: Acquisition, frame: FrameType) -> None:
        may_wait = asks(self.identity, frame)
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
        if execution.node.acquisition is None and on_worker():
            self._before, execution = execution, self._own_execution()
            go_on_as(execution)
        after = execution.node.next.get(self._endless)
        if after is None and execution.node.acquisition is None:
            after = take_slow_path_at(execution, self._endless, _caller_outside(self._runtimes, 2))
        if after is None:  # the ask breaks a rule, which was reported; so it is not remembered
            after = TrieNode(execution, execution.node, self._endless, execution.node.owner)
            after.stack = capture(_caller_outside(self._runtimes, 2))
        return after

    def sleep(self, wait: OpenWait) -> None:
        """Sleep until woken, and look for deadlocks over locks and asks meanwhile.

        Raises:
            DeadlockError: there is one, and this wait is its victim. If the wait is the ask itself, its
                message is withdrawn while all threads that could handle it are known to wait.
        """
        try:
            wait_in_slices(local.execution, _AnswerWait(wait), wait.woken, -1)
        except DeadlockError as error:
            if wait.withdraws:
                wait.future.withdraw(error)
            raise


@final
class _AnswerWait:
    """The wait for an answer."""

    endless = True
    breakable = True

    def __init__(self, wait: OpenWait) -> None:
        self.signal = f"the answer of {wait.future}"
        self._thread = wait.future.answerer

    def needs(self, waiting: Execution) -> list[list[Execution]]:  # noqa: ARG002 - the same for all that wait
        """Return the execution that the answer depends on now."""
        return [runtime.executions_on([self._thread()])]

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return self.signal


class DirectedCheckedAsks:
    """The rule that refuses asks that go up and reports the others to lockcheck."""

    def __init__(self, direction: AskRule, asks: AskRule) -> None:
        self._direction = direction
        self._asks = asks
        self.sleep = asks.sleep

    def asked(self, *, limited: bool = False) -> None:
        """Pass an ask that is about to be waited for, or raise; see both."""
        self._direction.asked(limited=limited)
        self._asks.asked(limited=limited)

    def enter(self) -> None:
        """Count the thread as running the actor, until `leave`."""
        self._asks.enter()
        self._direction.enter()

    def leave(self) -> None:
        """Note that the thread no longer runs the actor."""
        self._direction.leave()
        self._asks.leave()
