"""The locks of the levels `record` and `confirm`: checked ones that are also recorded or steered."""

from __future__ import annotations

import sys
from time import perf_counter_ns
from types import TracebackType
from typing import Final, final

from ..checking.slow_path import many_members, release_held, take_slow_path_at
from ..findings.terms import Mode
from ..holding.chains import Acquisition, Execution, LockIdentity, TrieNode
from ..holding.runtime import fails_open, local, runtime
from .checked import AT_ONCE, FOREVER, FullLock
from .checked_rw import FullGuard, FullRWLock, attempt_of

_getframe: Final = sys._getframe  # noqa: SLF001 - the documented way to the caller, looked up once
_enter, _enter_guard = FullLock.__enter__, FullGuard.__enter__


@fails_open(None)
def steer(execution: Execution, acquisition: Acquisition) -> None:
    """Wait where a steered run wants this acquisition to wait."""
    steering = runtime.steering
    if steering is not None:
        steering.wants(execution, acquisition)


def record_taken(node: TrieNode) -> None:
    """Write that a lock was taken, if a recorder is there."""
    recorder = runtime.recorder
    if recorder is not None and not node.execution.inside:
        try:
            node.write(node.took)
        except ValueError:
            recorder.took(node)


def _leaves(node: TrieNode) -> None:
    """Write that a lock is released, before it is."""
    recorder = runtime.recorder
    if recorder is not None and not node.execution.inside:
        try:
            node.write(node.left)
        except ValueError:
            recorder.left(node)


def record_failed(acquisition: Acquisition) -> None:
    """Write that an acquisition failed, if a recorder is there."""
    if runtime.recorder is not None:
        runtime.recorder.failed(acquisition)


def record_release(lock: LockIdentity, mode: Mode) -> None:
    """Write that a lock is released, wherever it is among the held ones."""
    recorder = runtime.recorder
    if recorder is not None:
        node = local.execution.node
        if node.acquisition is not None and node.acquisition.lock is lock and node.acquisition.mode == mode:
            _leaves(node)
        else:
            recorder.released(lock, mode)


class _Recording(FullLock):
    """The common methods of the exclusive locks."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> bool:
        if runtime.steering is not None:
            steer(local.execution, self._acquisition)
        _enter(self, depth + 1)
        record_taken(self._at)
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        after = self._at
        execution = after.execution
        if execution.node is after:
            _leaves(after)
            self._plain.release()
            execution.node = after.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self.release()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock, as `threading.Lock.acquire` does."""
        if blocking is not True or timeout is not FOREVER:
            return self._take_or_try(self._asked(self._attempt(blocking, timeout)), timeout)
        execution, acquisition = local.execution, self._acquisition
        if runtime.steering is not None:
            steer(execution, acquisition)
        node = execution.node
        frame = _getframe(1)
        try:
            after = node.next[acquisition]
            if after.instruction != frame.f_lasti or after.code is not frame.f_code:
                after = take_slow_path_at(execution, acquisition, frame)
        except KeyError:
            after = take_slow_path_at(execution, acquisition, frame)
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
        recorder = runtime.recorder
        if recorder is not None and not execution.inside:  # `record_taken` in line
            try:
                after.write(after.took)
            except ValueError:
                recorder.took(after)
        return True

    def _take_or_try(self, acquisition: Acquisition, timeout: float) -> bool:
        """Take the lock, or try to, for the caller of the caller; the other way has this code in line."""
        if runtime.steering is not None:
            steer(local.execution, acquisition)
        taken = self._take(acquisition, timeout, 3)
        if taken:
            record_taken(self._at)
        else:
            record_failed(acquisition)
        return taken

    def release(self) -> None:
        """Release the lock; errors as of `CheckedLock.release`."""
        after = self._at
        execution = after.execution
        node = execution.node
        if (node is after or node.acquisition is self._acquisition) and local.execution is execution:
            recorder = runtime.recorder
            if recorder is not None and not execution.inside:  # `_leaves` in line
                try:
                    node.write(node.left)
                except ValueError:
                    recorder.left(node)
            self._plain.release()
            execution.node = node.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self._release_elsewhere()

    def _release_elsewhere(self) -> None:
        record_release(self.identity, "W")
        super()._release_elsewhere()

    def _acquire_again(self) -> None:
        steer(local.execution, self._acquisition)
        super()._acquire_again()
        record_taken(self._at)


class RecordedLock(_Recording):
    """A lock like `threading.Lock`, the events of which can be recorded."""

    __slots__ = ()


class RecordedRLock(_Recording):
    """A lock like `threading.RLock`, the events of which can be recorded."""

    __slots__ = ()

    reentrant = True


@final
class _RecordedGuard(FullGuard):
    """The context manager of `with rw.read():`."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> None:
        if runtime.steering is not None:
            steer(local.execution, self._acquisition)
        _enter_guard(self, depth + 1)
        record_taken(local.execution.node)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        execution = local.execution
        node = execution.node
        if node.acquisition is self._acquisition:
            _leaves(node)
            execution.node = node.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            record_release(self._acquisition.lock, self._acquisition.mode)
            release_held(execution, self._acquisition.lock, self._acquisition.mode)
        self._release()


@final
class RecordedRWLock(FullRWLock):
    """A read/write lock, the events of which can be recorded."""

    __slots__ = ()

    guard = _RecordedGuard

    def release_read(self) -> None:
        """Release the lock for reading."""
        record_release(self.identity, "R")
        super().release_read()

    def release_write(self) -> None:
        """Release the lock for writing."""
        record_release(self.identity, "W")
        super().release_write()

    def _acquire(self, mode: Mode, timeout_seconds: float) -> bool:
        execution, acquisition = local.execution, self._acquisition(mode, attempt_of(timeout_seconds))
        steer(execution, acquisition)
        taken = super()._acquire(mode, timeout_seconds)
        if taken:
            record_taken(execution.node)
        else:
            record_failed(acquisition)
        return taken
