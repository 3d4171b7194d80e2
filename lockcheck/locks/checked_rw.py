"""The checked read/write lock: the plain one, with checks before it is taken."""

from __future__ import annotations

import sys
from time import perf_counter_ns
from types import TracebackType
from typing import Final

from ..checking.slow_path import (
    entered,
    here,
    many_members,
    release_held,
    take_slow_path,
    take_slow_path_at,
)
from ..checking.waiting import LockWait, wait_in_slices
from ..findings.terms import Mode, RWPolicy
from ..holding.chains import Acquisition, Attempt, LockIdentity, TrieNode
from ..holding.runtime import local
from .rwlock import FOREVER, PlainRWLock, Waiter

_getframe: Final = sys._getframe  # noqa: SLF001 - the documented way to the caller, looked up once


def attempt_of(timeout_seconds: float) -> Attempt:
    """Return the kind of attempt for a timeout; zero only tries, a negative value waits for ever."""
    return "try" if timeout_seconds == 0 else "block" if timeout_seconds < 0 else "timed"


class CheckedGuard:
    """The context manager of `with rw.read():`."""

    __slots__ = ("_acquisition", "_lock", "_release", "_try", "identity")

    def __init__(self, lock: CheckedRWLock, acquisition: Acquisition) -> None:
        self.identity = acquisition.lock
        self._lock = lock
        self._acquisition = acquisition
        self._try = lock.plain_read if acquisition.mode == "R" else lock.plain_write
        self._release = lock.plain_release_read if acquisition.mode == "R" else lock.plain_release_write

    def __enter__(self) -> None:
        execution = local.execution
        try:
            after = execution.node.next[self._acquisition]
        except KeyError:
            after = take_slow_path(execution, self._acquisition)
        if not self._try(0):
            self._lock.wait_for(after, FOREVER)
        execution.node = after

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        execution = local.execution
        node = execution.node
        if node.acquisition is self._acquisition:
            execution.node = node.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            release_held(execution, self._acquisition.lock, self._acquisition.mode)
        self._release()


class FullGuard(CheckedGuard):
    """A guard that also notes where the lock is taken, how often, and what is taken one by one below it."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> None:  # the number of frames up to the program
        execution = local.execution
        node = execution.node
        frame = _getframe(depth)
        try:
            after = node.next[self._acquisition]
            if after.code is not frame.f_code or after.instruction != frame.f_lasti:
                after = take_slow_path_at(execution, self._acquisition, frame)
        except KeyError:
            after = take_slow_path_at(execution, self._acquisition, frame)
        if not self._try(0):
            self._lock.wait_for(after, FOREVER)
        after.since = perf_counter_ns()
        after.visits = 0
        if after.parent_since is not node.since:
            after.parent_since = node.since
            node.visits += 1
            if node.visits > 2:
                many_members(node, after)
        execution.node = after


class CheckedRWLock(PlainRWLock):
    """A read/write lock, the order of which is checked."""

    __slots__ = ("_asking", "_read", "_write", "identity")

    guard: type[CheckedGuard] = CheckedGuard
    counts = False
    """Whether the lock counts how often it is taken, and which locks are taken one by one below it."""

    def __init__(self, name: str = "rwlock", *, key: object = None, policy: RWPolicy = "writer") -> None:
        self.identity = LockIdentity(name, key, reentrant=False, policy=policy)
        super().__init__(name, key=key, policy=policy)
        self._read, self._write = Acquisition(self.identity, "R"), Acquisition(self.identity, "W")
        self._asking: dict[tuple[Mode, Attempt], Acquisition] | None = None
        """The acquisitions for other kinds of attempt."""
        self._reading = self.guard(self, self._read)  # type: ignore[assignment] # same use
        self._writing = self.guard(self, self._write)  # type: ignore[assignment] # same use

    def __del__(self) -> None:
        self.identity.alive = False

    def acquire_read(self, timeout_seconds: float = FOREVER) -> bool:
        """Take the lock for reading, after the checks; see `PlainRWLock.acquire_read`."""
        return self._acquire("R", timeout_seconds)

    def acquire_write(self, timeout_seconds: float = FOREVER) -> bool:
        """Take the lock for writing, after the checks; see `PlainRWLock.acquire_write`."""
        return self._acquire("W", timeout_seconds)

    def release_read(self) -> None:
        """Release the lock for reading; a wrong release is reported before."""
        release_held(local.execution, self.identity, "R")
        self.plain_release_read()

    def release_write(self) -> None:
        """Release the lock for writing; a wrong release is reported before."""
        release_held(local.execution, self.identity, "W")
        self.plain_release_write()

    plain_read = PlainRWLock.acquire_read
    plain_write = PlainRWLock.acquire_write
    plain_release_read = PlainRWLock.release_read
    plain_release_write = PlainRWLock.release_write

    def wait_for(self, after: TrieNode, timeout_seconds: float) -> bool:
        """Wait for the lock in its queue; `_await_gate` checks for deadlocks meanwhile."""
        reads = after.acquisition is not None and after.acquisition.mode == "R"
        return (self.plain_read if reads else self.plain_write)(timeout_seconds)

    def _await_gate(self, waiter: Waiter, timeout_seconds: float) -> bool:
        wait = LockWait(self._acquisition(waiter.mode, "block"), endless=timeout_seconds < 0)
        return wait_in_slices(
            local.execution, wait, lambda seconds: waiter.gate.acquire(timeout=seconds), timeout_seconds
        )

    def _acquisition(self, mode: Mode, attempt: Attempt) -> Acquisition:
        if attempt == "block":
            return self._read if mode == "R" else self._write
        if self._asking is None:
            self._asking = {}
        asked = mode, attempt
        return self._asking.get(asked) or self._asking.setdefault(
            asked, Acquisition(self.identity, mode, attempt)
        )

    def _acquire(self, mode: Mode, timeout_seconds: float) -> bool:
        attempt = attempt_of(timeout_seconds)
        acquisition = self._acquisition(mode, attempt)
        execution = local.execution
        after = execution.node.next.get(acquisition)
        if after is None:
            after = take_slow_path(execution, acquisition)
        elif self.counts:
            after = here(execution, acquisition, after)
        enter = self.plain_read if mode == "R" else self.plain_write
        if not enter(0) and (attempt == "try" or not self.wait_for(after, timeout_seconds)):
            return False
        if self.counts:
            entered(execution.node, after)
        execution.node = after
        return True


class FullRWLock(CheckedRWLock):
    """A checked read/write lock that also notes where it is taken."""

    __slots__ = ()

    guard: type[CheckedGuard] = FullGuard
    counts = True
