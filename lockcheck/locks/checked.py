"""The checked exclusive locks: `Lock` and `RLock`, at the levels `order` and `full`.

The way of a nesting that was judged before is kept short: a few reads of attributes and one look into a
dictionary. A lock links to the node at which it is held, so that letting go needs no look at the thread.
"""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from ..checking.stepping import entered, fold, here, let_go, many_members, step, step_from
from ..checking.waiting import wait_noted
from ..findings.statistics import PENDING_MAX
from ..holding.chains import Grip, LockIdentity, TrieNode, Unit, holds_of
from ..holding.happens_before import begin
from ..holding.runtime import local

if TYPE_CHECKING:
    from types import TracebackType

    from ..holding.chains import Attempt

__all__ = ["CheckedLock", "CheckedRLock", "FullLock", "FullRLock"]

_getframe: Final = sys._getframe  # noqa: SLF001 - the documented way to the caller, looked up once
_AT_ONCE: Final = (False,)
"""The arguments of an attempt that does not wait; made once, as the interpreter would make them each time."""

_NOWHERE: Final = Unit("nobody", begin(0), None).node
"""Where a lock is held that was never taken."""
_NOWHERE.unit.node = TrieNode(_NOWHERE.unit, None, None, None)


class CheckedLock:
    """A lock like `threading.Lock`, the order of which is checked."""

    __slots__ = ("__weakref__", "_asking", "_at", "_grip", "_plain", "_try", "identity")

    reentrant = False
    counts = False
    """Whether it is noted how often the lock is taken, and what is taken one by one below it."""

    def __init__(self, name: str, *, key: object = None) -> None:
        self._plain = threading.RLock() if self.reentrant else threading.Lock()
        self._try = self._plain.acquire
        self.identity = LockIdentity(name, key, reentrant=self.reentrant, policy=None)
        self._grip = Grip(self.identity, "W")
        self._asking: dict[Attempt, Grip] | None = None
        """How else it was asked for."""
        self._at = _NOWHERE

    def __del__(self) -> None:
        self.identity.alive = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"

    def __enter__(self) -> bool:
        unit = local.unit
        try:
            after = unit.node.next[self._grip]
        except KeyError:
            after = step(unit, self._grip)
        if not self._try(*_AT_ONCE):
            self._wait(unit, after, -1.0)
        self._at = unit.node = after
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        after = self._at
        unit = after.unit
        if unit.node is after:
            self._plain.release()
            unit.node = after.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self.release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock, as `threading.Lock.acquire` does."""
        return self._acquire(
            "try" if not blocking or timeout == 0 else "block" if timeout < 0 else "timed", timeout
        )

    def _acquire(self, attempt: Attempt, timeout: float, *, breakable: bool = True) -> bool:
        grip = self._asked(attempt)
        unit = local.unit
        after = unit.node.next.get(grip)
        if after is None:
            after = step(unit, grip)
        elif self.counts:
            after = here(unit, grip, after)
        if not self._try(False) and (
            attempt == "try" or not self._wait(unit, after, timeout, breakable=breakable)
        ):
            return False
        if self.counts:
            entered(unit.node, after)
        self._at = unit.node = after
        return True

    def _asked(self, attempt: Attempt) -> Grip:
        if attempt == "block":
            return self._grip
        if self._asking is None:
            self._asking = {}
        return self._asking.get(attempt) or self._asking.setdefault(
            attempt, Grip(self.identity, "W", attempt)
        )

    def release(self) -> None:
        """Let go of the lock.

        Raises:
            LockOrderError: it is not held by who releases it.
        """
        unit = local.unit
        let_go(unit, self.identity, "W")
        self._plain.release()

    def locked(self) -> bool:
        """Tell whether anybody holds the lock."""
        if not self._try(False):
            return True
        self._plain.release()
        return self._is_owned()

    def _wait(self, unit: Unit, after: TrieNode, timeout: float, *, breakable: bool = True) -> bool:
        return wait_noted(unit, after, lambda seconds: self._try(True, seconds), timeout, breakable=breakable)

    # What threading.Condition asks of its lock.

    def _is_owned(self) -> bool:
        return any(holds_of(self.identity, local.unit.node))

    def _release_save(self) -> int:
        """Let go of the lock wholly; return how often it was held."""
        times = 0
        while self._is_owned():
            self.release()
            times += 1
        return times

    def _acquire_restore(self, times: int) -> None:
        """Take the lock again, however long it takes: who waited on a condition is to let go of it."""
        for _ in range(times):
            self._acquire("block", -1, breakable=False)


class CheckedRLock(CheckedLock):
    """A lock like `threading.RLock`, the order of which is checked."""

    __slots__ = ()

    reentrant = True


class FullLock(CheckedLock):
    """A lock that also notes where it is taken, how often, and what is taken one by one below it."""

    __slots__ = ()

    counts = True

    def __enter__(self, depth: int = 1) -> bool:  # how many frames out the program is
        unit = local.unit
        node = unit.node
        frame = _getframe(depth)
        try:
            after = node.next[self._grip]
            if after.code is not frame.f_code or after.instruction != frame.f_lasti:
                after = step_from(unit, self._grip, frame)
        except KeyError:
            after = step_from(unit, self._grip, frame)
        if not self._try(*_AT_ONCE):
            self._wait(unit, after, -1.0)
        after.since = perf_counter_ns()
        after.visits = 0
        if after.parent_since != node.since:
            after.parent_since = node.since
            node.visits += 1
            if node.visits > 2:
                many_members(node, after)
        self._at = unit.node = after
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        after = self._at
        unit = after.unit
        if unit.node is after:
            now = perf_counter_ns()
            self._plain.release()
            unit.node = after.parent  # type: ignore[assignment] # a node that is held has a parent
            holds = after.holds
            holds.append(now - after.since)
            if len(holds) > PENDING_MAX:
                fold(after)
        else:
            self.release()


class FullRLock(FullLock):
    """A re-entrant lock that also notes where it is taken."""

    __slots__ = ()

    reentrant = True
