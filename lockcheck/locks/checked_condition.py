"""The checked condition: its user has to hold its lock, once, and no other lock while it waits.

Code that waited has to check its condition again afterwards, as a loop does. A notification means that
something has changed, not that the condition holds: another thread may have been first, and a notification
that came before the wait is missed. The check passes if there is any decision between the wait and the end of
the function that took the lock: a branch, or the jump back to the beginning of a loop. Nothing is reported
for code that uses nothing, that keeps the result of `wait`, or that took the lock otherwise than by `with`:
the release would look like a use. Decisions in called functions are not seen.
"""

from __future__ import annotations

import dis
import inspect
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Final, cast, final

from ..checking.blocking import blocks, waits_with
from ..checking.watch import Watch, current
from ..findings.terms import Kind, Level
from ..holding.chains import TrieNode, held_nodes, holds_of
from ..holding.runtime import fails_open, local
from ..holding.stacks import caller
from .contracts import identity_of
from .factories import ExclusiveLock

_DECIDE: Final = ("POP_JUMP", "JUMP_IF", "JUMP_BACKWARD", "FOR_ITER", "SEND", "YIELD")
_END: Final = ("RETURN", "RAISE", "RERAISE")
_USE: Final = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF")


def waits_in_loop(frame: FrameType | None, holding: TrieNode) -> bool:
    """Return whether a wait is followed by a decision, or by no use that would need one.

    Args:
        frame: where the program waits.
        holding: where it took the lock; if that function has ended, the answer is true.
    """
    if frame is None or holding.code is None or _keeps_result(frame.f_code, frame.f_lasti):
        return True
    if not _enters_with(holding.code, holding.instruction):
        return True
    used = False
    at: FrameType | None = frame
    while at is not None:
        decides, uses = what_follows(at.f_code, at.f_lasti)
        used = used or uses
        if decides or at.f_code is holding.code:
            return decides or not used
        at = at.f_back
    return True


@lru_cache(maxsize=1024)
def what_follows(code: CodeType, instruction: int) -> tuple[bool, bool]:
    """Return whether a function decides anything after an instruction, and whether it uses anything.

    Only the code up to its end counts, if nothing is raised.
    """
    following = {one.offset: one for one in dis.get_instructions(code) if one.offset > instruction}
    at = min(following, default=None)
    uses = False
    while at is not None and at in following:
        one = following.pop(at)
        if one.opname.startswith(_DECIDE):
            return True, uses
        if one.opname.startswith(_END):
            break
        uses = uses or one.opname.startswith(_USE)
        jumps = one.opname.startswith("JUMP")
        at = one.argval if jumps else min((offset for offset in following if offset > at), default=None)
    return False, uses


@lru_cache(maxsize=1024)
def _keeps_result(code: CodeType, instruction: int) -> bool:
    after = (one.opname for one in dis.get_instructions(code) if one.offset > instruction)
    return next(after, "") != "POP_TOP"


@lru_cache(maxsize=1024)
def _enters_with(code: CodeType, instruction: int) -> bool:
    """Return whether an instruction enters a `with`, as Python writes it up to 3.13, and from 3.14 on."""
    before, here = "", ""
    for one in dis.get_instructions(code):
        if one.offset > instruction:
            break
        before, here = here, one.opname
    return here == "BEFORE_WITH" or (here == "CALL" and before == "LOAD_SPECIAL")


_WAIT_FOR: Final = inspect.unwrap(threading.Condition.wait_for).__code__  # it may be hooked already
NO_PREDICATE: Final = "wait without a predicate"
LOST_LOCK: Final = "lost lock"
"""Kinds that a session may allow for a class of locks, as it allows blocking calls."""


@final
class CheckedCondition(threading.Condition):
    """A condition like `threading.Condition`, the use of which is checked."""

    def __init__(self, lock: ExclusiveLock) -> None:
        super().__init__(cast("threading.Lock", lock))
        self.identity = identity_of(lock)

    def __enter__(self) -> bool:
        """Take the lock; the place is that of the `with` statement."""
        return self.acquire()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait to be notified, as `threading.Condition.wait` does; no other lock may be held."""
        self._check_wait(timeout, by_wait_for=sys._getframe(1).f_code is _WAIT_FOR)  # noqa: SLF001 - the documented way to the caller
        return super().wait(timeout)

    @fails_open(None)
    def _check_wait(self, timeout: float | None, *, by_wait_for: bool) -> None:
        holds = self._held()
        if not holds:
            self._report(
                "is waited on by {}, which does not hold its lock", list(held_nodes(local.execution.node))
            )
        if waits_with(timeout):
            blocks("condition", str(self.identity), except_for=self.identity)
        if len(holds) > 1:
            self._check_depth(holds)
        elif holds and timeout is None and not by_wait_for:
            self._check_predicate(holds[0])

    def notify(self, n: int = 1) -> None:
        """Wake some who wait, as `threading.Condition.notify` does."""
        self._check_notification()
        super().notify(n)

    @fails_open(None)
    def _check_notification(self) -> None:
        if not self._held():
            self._report(
                "is notified by {}, which does not hold its lock", list(held_nodes(local.execution.node))
            )

    def _held(self) -> list[TrieNode]:
        return list(holds_of(self.identity, local.execution.node)) if self.identity is not None else []

    def _check_depth(self, holds: Sequence[TrieNode]) -> None:
        """Report an outer block that loses its lock: to wait releases it completely."""
        if not self._allows(LOST_LOCK):
            times = f"is waited on by {{}}, which holds its lock {len(holds)} times"
            self._report(times, holds[-1:], "waiting releases all of them, also that of the outer block")

    def _check_predicate(self, holding: TrieNode) -> None:
        """Report a wait without a predicate; only the level `full` knows where the lock was taken."""
        watch = current()
        if watch is None or watch.policy.level < Level.FULL or self._allows(NO_PREDICATE):
            return
        if not watch.guarded(lambda: waits_in_loop(caller(), holding), lambda: True):
            self._report(
                "is waited on by {}, which does not check again what it waits for",
                [holding],
                "another thread may have been first, or the notification came before: wait in a loop",
            )

    def _allows(self, what: str) -> bool:
        watch, name = current(), self.identity.name if self.identity is not None else ""
        return watch is None or watch.policy.allows(what, name)

    def _report(self, what: str, holders: Sequence[TrieNode], *why: str) -> None:
        execution, watch = local.execution, current()
        if self.identity is None or watch is None or execution.inside:
            return
        watch.guarded_on(execution, lambda: self._report_use(watch, what, holders[:1], why), lambda: None)

    def _report_use(self, watch: Watch, what: str, holders: Sequence[TrieNode], why: tuple[str, ...]) -> None:
        text = f"the condition over {self.identity} {what.format(local.execution.name)}"
        watch.report_use(Kind.CONDITION, text, holders, why=why)
