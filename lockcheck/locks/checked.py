"""The checked exclusive locks: `Lock` and `RLock`, at the levels `order` and `full`.

The fast path, for an edge that was checked before, is short: a few reads of attributes and one access to a
dictionary. A lock links to the node at which it is held, so that a release does not need the thread.
"""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns
from types import TracebackType
from typing import Final

from ..checking.forks import made_anew
from ..checking.slow_path import (
    entered,
    here,
    many_members,
    release_held,
    take_out,
    take_slow_path,
    take_slow_path_at,
)
from ..checking.waiting import wait_for_lock
from ..holding.chains import Acquisition, Attempt, Execution, LockIdentity, TrieNode, holds_of
from ..holding.runtime import NOBODY, local

_getframe: Final = sys._getframe  # noqa: SLF001 - the documented way to the caller, looked up once
FOREVER: Final = -1
"""The default timeout of `acquire`; other numbers are other objects, and just slower."""
AT_ONCE: Final = (False,)
"""The arguments of an attempt that does not wait; made once, as the interpreter would make them each time."""

_NOWHERE: Final = TrieNode(NOBODY, None, None, None)
"""The node of a lock that was never taken."""


class CheckedLock:
    """A lock like `threading.Lock`, the order of which is checked."""

    __slots__ = ("__weakref__", "_acquisition", "_asking", "_at", "_plain", "_try", "identity")

    identified_by = LockIdentity
    reentrant = False
    counts = False
    """Whether the lock counts how often it is taken, and which locks are taken one by one below it."""

    def __init__(self, name: str, *, key: object = None) -> None:
        self._plain = threading.RLock() if self.reentrant else threading.Lock()
        self._try = self._plain.acquire
        self.identity = self.identified_by(name, key, reentrant=self.reentrant, policy=None)
        self._acquisition = Acquisition(self.identity, "W")
        self._asking: dict[Attempt, Acquisition] | None = None
        """The acquisitions for other kinds of attempt."""
        self._at = _NOWHERE

    def __del__(self) -> None:
        self.identity.alive = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity}>"

    def __enter__(self) -> bool:
        execution = local.execution
        try:
            after = execution.node.next[self._acquisition]
        except KeyError:
            after = take_slow_path(execution, self._acquisition)
        if not self._try(*AT_ONCE):
            self._wait(execution, after, -1.0)
        self._at = execution.node = after
        return True

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock, as `threading.Lock.acquire` does."""
        if blocking is True and timeout is FOREVER:
            acquisition = self._acquisition
        else:
            acquisition = self._asked(self._attempt(blocking, timeout))
        execution = local.execution
        try:
            after = execution.node.next[acquisition]
        except KeyError:
            after = take_slow_path(execution, acquisition)
        if not self._try(*AT_ONCE) and not self._waited(execution, after, timeout):
            return False
        self._at = execution.node = after
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        after = self._at
        execution = after.execution
        if execution.node is after:
            self._plain.release()
            execution.node = after.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self.release()

    def release(self) -> None:
        """Release the lock.

        Raises:
            LockOrderError: the caller does not hold it.
        """
        after = self._at
        execution = after.execution
        node = execution.node
        # The plain lock does not refuse other threads.
        if (node is after or node.acquisition is self._acquisition) and local.execution is execution:
            try:
                self._plain.release()
            except RuntimeError:
                self._release_elsewhere()
            else:
                execution.node = node.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self._release_elsewhere()

    def _release_elsewhere(self) -> None:
        """Release the lock where it is not the innermost one, or not held."""
        release_held(local.execution, self.identity, "W")
        self._plain.release()

    @staticmethod
    def _attempt(blocking: bool, timeout: float) -> Attempt:  # noqa: FBT001 - as in threading
        """Return how long an acquisition with these arguments waits."""
        return "try" if not blocking or timeout == 0 else "block" if timeout < 0 else "timed"

    def _asked(self, attempt: Attempt) -> Acquisition:
        if attempt == "block":
            return self._acquisition
        if self._asking is None:
            self._asking = {}
        return self._asking.get(attempt) or self._asking.setdefault(
            attempt, Acquisition(self.identity, "W", attempt)
        )

    def locked(self) -> bool:
        """Return whether the lock is held."""
        if not self._try(False):
            return True
        self._plain.release()
        return self._is_owned()

    def _at_fork_reinit(self) -> None:
        """Be free again: `logging` and others call this in a forked process, which has no other threads."""
        self._plain._at_fork_reinit()  # type: ignore[union-attr] # noqa: SLF001 - as in threading
        made_anew(self.identity.serial)
        while take_out(local.execution, self.identity, "W"):
            pass

    def _waited(self, execution: Execution, after: TrieNode, timeout: float) -> bool:
        """Wait for the lock, unless it is only tried; return whether it was taken."""
        acquisition = after.acquisition
        assert acquisition is not None, "please report: a wait for nothing"
        return acquisition.attempt != "try" and self._wait(execution, after, timeout)

    def _wait(self, execution: Execution, after: TrieNode, timeout: float, *, breakable: bool = True) -> bool:
        return wait_for_lock(
            execution, after, lambda seconds: self._try(True, seconds), timeout, breakable=breakable
        )

    # The methods that threading.Condition needs of its lock.

    def _is_owned(self) -> bool:
        return any(holds_of(self.identity, local.execution.node))

    def _release_save(self) -> int:
        """Release the lock completely; return how often it was held."""
        times = 0
        while self._is_owned():
            self.release()
            times += 1
        return times

    def _acquire_restore(self, times: int) -> None:
        """Take the lock again, however long that takes: the program goes on to release it."""
        for _ in range(times):
            self._acquire_again()

    def _acquire_again(self) -> None:
        """Take the lock again after a condition was waited for: that cannot be given up."""
        execution, acquisition = local.execution, self._acquisition
        after = execution.node.next.get(acquisition)
        if after is None:
            after = take_slow_path(execution, acquisition)
        elif self.counts:
            after = here(execution, acquisition, after)
        if not self._try(*AT_ONCE):
            self._wait(execution, after, -1.0, breakable=False)
        if self.counts:
            entered(execution.node, after)
        self._at = execution.node = after


class CheckedRLock(CheckedLock):
    """A lock like `threading.RLock`, the order of which is checked."""

    __slots__ = ()

    reentrant = True

    def release(self) -> None:
        """Release the lock; errors as of `CheckedLock.release`."""
        after = self._at
        execution = after.execution
        node = execution.node
        if node is after or node.acquisition is self._acquisition:
            try:
                self._plain.release()
            except RuntimeError:  # which refuses other threads
                self._release_elsewhere()
            else:
                execution.node = node.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self._release_elsewhere()


class FullLock(CheckedLock):
    """A lock that also notes where it is taken, how often, and what is taken one by one below it."""

    __slots__ = ()

    counts = True

    def __enter__(self, depth: int = 1) -> bool:  # the number of frames up to the program
        execution = local.execution
        node = execution.node
        frame = _getframe(depth)
        try:
            after = node.next[self._acquisition]
            if after.code is not frame.f_code or after.instruction != frame.f_lasti:
                after = take_slow_path_at(execution, self._acquisition, frame)
        except KeyError:
            after = take_slow_path_at(execution, self._acquisition, frame)
        if not self._try(*AT_ONCE):
            self._wait(execution, after, -1.0)
        after.since = perf_counter_ns()
        after.visits = 0
        if after.parent_since is not node.since:
            after.parent_since = node.since
            node.visits += 1
            if node.visits > 2:
                many_members(node, after)
        self._at = execution.node = after
        return True

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock, as `threading.Lock.acquire` does."""
        if blocking is not True or timeout is not FOREVER:
            return self._take(self._asked(self._attempt(blocking, timeout)), timeout, 2)
        execution = local.execution
        node = execution.node
        frame = _getframe(1)
        try:
            after = node.next[self._acquisition]
            if after.instruction != frame.f_lasti or after.code is not frame.f_code:
                after = here(execution, self._acquisition, after)
        except KeyError:
            after = take_slow_path(execution, self._acquisition)
        if not self._try(*AT_ONCE):
            self._wait(execution, after, -1.0)
        after.since = perf_counter_ns()
        after.visits = 0
        if after.parent_since is not node.since:
            after.parent_since = node.since
            node.visits += 1
            if node.visits > 2:
                many_members(node, after)
        self._at = execution.node = after
        return True

    def _take(self, acquisition: Acquisition, timeout: float, depth: int) -> bool:
        """Take the lock, or try to, in the frame some calls up; the other ways have this code inline."""
        execution = local.execution
        node = execution.node
        own = node.acquisition is self._acquisition and not self.reentrant
        if own and acquisition.attempt == "try" and self._plain.locked():  # type: ignore[union-attr] # a plain one
            return False  # as a condition asks whether its lock is held
        frame = _getframe(depth)
        try:
            after = node.next[acquisition]
            if after.instruction != frame.f_lasti or after.code is not frame.f_code:
                after = here(execution, acquisition, after)
        except KeyError:
            after = take_slow_path(execution, acquisition)
        if not self._try(*AT_ONCE) and not self._waited(execution, after, timeout):
            return False
        after.since = perf_counter_ns()
        after.visits = 0
        if after.parent_since is not node.since:
            after.parent_since = node.since
            node.visits += 1
            if node.visits > 2:
                many_members(node, after)
        self._at = execution.node = after
        return True


class FullRLock(FullLock, CheckedRLock):
    """A re-entrant lock that also notes where it is taken."""

    __slots__ = ()
