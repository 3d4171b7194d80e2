"""What answers asks, one at a time, such as an actor: it is asked as a lock is taken, and held while it runs.

So asks and locks are one learned graph and one declared order. Who asks wants the answerer while it holds
what it holds. What answers holds it: on the asking thread below all that this one holds, on a worker as a
unit of its own, since the messages of one actor come one after the other. Who tells wants nothing.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, final

from .blocking import asks
from .findings import Kind
from .holding import Grip, LockIdentity, Node, held_nodes
from .runtime import go_on_as, local, next_segment, runtime
from .stacks import capture
from .statistics import PENDING_MAX
from .stepping import fold, let_go, step_from
from .waiting import wait_in_slices

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from .holding import Unit
    from .sessions import Session

__all__ = ["Answerer", "await_answer"]

RANK_CLAUSE = "a blocking ask goes from a lower rank to a higher one"


@final
class Answerer:
    """Something that answers asks, one at a time.

    Args:
        name: its class, as a declared order names it.
        key: which of its class it is.
        rank: where it stands in the order of asks, the top lowest; none is unchecked.
    """

    def __init__(self, name: str, key: object = None, *, rank: int | None = None) -> None:
        self.identity = LockIdentity(name, key, reentrant=False, policy=None)
        self.identity.answers = True
        self.identity.rank = rank
        self._endless = Grip(self.identity, "W")
        self._limited = Grip(self.identity, "W", "timed")
        self._made_after = local.unit.segment
        next_segment(local.unit)
        self._unit: Unit | None = None
        self._entered: tuple[Unit, Unit, Node] | None = None
        """What ran on the thread before, what runs now, and where it holds this."""

    def __del__(self) -> None:
        self.identity.alive = False

    def asked(self, frame_of: Callable[[], FrameType], *, limited: bool) -> None:
        """Judge an ask that the calling unit is about to wait for.

        Args:
            frame_of: tells where the program asks; asked for only where it matters, since it takes time.
            limited: whether the unit waits for a limited time.

        Raises:
            LockOrderError, DeadlockPossibleError: that is the policy for what was found; nothing was asked.
        """
        unit, session = local.unit, runtime.session
        if session is None or unit.inside or unit.node.grip is None:
            return
        frame = frame_of()
        grip = self._limited if limited else self._endless
        after = unit.node.next.get(grip)
        if after is not None and after.code is frame.f_code and after.instruction == frame.f_lasti:
            return  # it was judged before
        asks(self.identity, frame)
        if self._goes_down(session, unit, grip, frame):
            step_from(unit, grip, frame)

    def enter(self, frame_of: Callable[[], FrameType], *, as_unit: bool) -> None:
        """Hold it while the calling thread answers, until `leave`.

        Args:
            frame_of: tells where the program asked, or what answers for it; likewise.
            as_unit: whether a thread that holds nothing runs it as a unit of its own.
        """
        if runtime.session is None:
            return
        before = local.unit
        if as_unit and before.node.grip is None:
            go_on_as(self._own_unit())
        unit = local.unit
        after = self._place(unit, frame_of)
        after.since = perf_counter_ns()
        unit.node = after
        self._entered = before, unit, after

    def leave(self) -> None:
        """Let go of it; in line where it is in turn, since `let_go` adds a quarter to the check of an ask."""
        if self._entered is None:
            return
        before, unit, after = self._entered
        self._entered = None
        if unit.node is after and after.parent is not None:
            unit.node = after.parent
            after.holds.append(perf_counter_ns() - after.since)
            if len(after.holds) > PENDING_MAX:
                fold(after)
        else:
            let_go(unit, self.identity, "W")
        if unit is not before:
            go_on_as(before)
            runtime.forget(unit)

    def _goes_down(self, session: Session, unit: Unit, grip: Grip, frame: FrameType) -> bool:
        """Hold an ask against the ranks, where the declared order says nothing of both."""
        rank = self.identity.rank
        asking = next(
            (node for node in held_nodes(unit.node) if node.grip and node.grip.lock.rank is not None), None
        )
        if rank is None or asking is None or asking.grip is None:
            return True
        asker = asking.grip.lock
        if asker is self.identity or asker.rank is None or asker.rank < rank:
            return True
        if session.order is not None and {asker.name, self.identity.name} <= set(session.order.ranks):
            return True
        node = Node(unit, unit.node, grip, session)
        node.stack = capture(frame)
        text = f"{self.identity} of rank {rank} is asked by {asker} of rank {asker.rank}: it may only be told"
        session.guarded_on(
            unit,
            lambda: session.report_step(Kind.ORDER, text, node, [asking], clause=RANK_CLAUSE),
            lambda: None,
        )
        return False

    def _own_unit(self) -> Unit:
        """Return the unit that answers on threads which have nothing else to do."""
        if self._unit is None or self._unit.node.owner is not runtime.session:
            self._unit = runtime.new_unit(str(self.identity), self._made_after)
        else:
            runtime.remember(self._unit)
        return self._unit

    def _place(self, unit: Unit, frame_of: Callable[[], FrameType]) -> Node:
        after = unit.node.next.get(self._endless)
        if after is None and unit.node.grip is None:
            after = step_from(unit, self._endless, frame_of())
        if after is None:  # it was asked against a rule, which is told, and not remembered
            after = Node(unit, unit.node, self._endless, unit.node.owner)
            after.stack = capture(frame_of())
        return after


@final
class _AnswerWait:
    """The wait for an answer."""

    endless = True
    breakable = True
    steerable = False

    def __init__(self, what: str, thread: Callable[[], int | None]) -> None:
        self._what = what
        self._thread = thread

    def needs(self, waiting: Unit) -> list[list[Unit]]:  # noqa: ARG002 - whoever waits
        """Return the unit that the answer depends on now."""
        return [runtime.units_on([self._thread()])]

    def describe(self) -> str:
        """Say what is waited for."""
        return f"the answer of {self._what}"


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
        what: who is to answer.
        thread: tells the number of the thread that the answer depends on now, if there is one.
        attempt: waits for so many seconds, and tells whether that was enough.
        frame: where the program asks; where it called lockcheck if that is left out.
        closes: whether to look before the first attempt too, and to raise here if this wait would close a
            circle.

    Raises:
        DeadlockError: there is a deadlock, and this wait was chosen to break it.
    """
    wait_in_slices(local.unit, _AnswerWait(what, thread), attempt, -1, frame=frame, closes=closes)
