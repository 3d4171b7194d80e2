"""The locks of the levels `record` and `confirm`: checked ones that also tell a recorder or are steered."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from .checked import CheckedLock, FullLock, FullRLock
from .checked_rw import CheckedGuard, FullRWLock, attempt_of
from .runtime import local, runtime
from .trace import EventKind

if TYPE_CHECKING:
    from types import TracebackType

    from .findings import Mode
    from .holding import Attempt, Grip, LockIdentity

__all__ = ["RecordedLock", "RecordedRLock", "RecordedRWLock"]

_TOOK, _FAILED, _LEFT = EventKind.TOOK, EventKind.FAILED, EventKind.LEFT
"""Looked up once: the members of an enumeration are slow to reach."""


def _asks(grip: Grip) -> None:
    steering = runtime.steering
    if steering is not None:
        steering.wants(local.unit, grip)


def _answered(grip: Grip, *, taken: bool) -> None:
    recorder = runtime.recorder
    if recorder is not None:
        recorder.lock(_TOOK if taken else _FAILED, grip.lock, grip.mode, grip.attempt)


def _leaves(lock: LockIdentity, mode: Mode) -> None:
    recorder = runtime.recorder
    if recorder is not None:
        recorder.lock(_LEFT, lock, mode)


class _Recording(CheckedLock):
    """What the exclusive locks have in common: every way in and out is one of two."""

    __slots__ = ()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _acquire(self, attempt: Attempt, timeout: float, *, breakable: bool = True) -> bool:
        grip = self._asked(attempt)
        _asks(grip)
        taken = super()._acquire(attempt, timeout, breakable=breakable)
        _answered(grip, taken=taken)
        return taken

    def release(self) -> None:
        _leaves(self.identity, "W")
        super().release()


@final
class RecordedLock(_Recording, FullLock):
    """A lock like `threading.Lock`, the events of which can be recorded."""

    __slots__ = ()


@final
class RecordedRLock(_Recording, FullRLock):
    """A lock like `threading.RLock`, the events of which can be recorded."""

    __slots__ = ()


@final
class _RecordedGuard(CheckedGuard):
    """What `with rw.read():` enters."""

    __slots__ = ()

    def __enter__(self) -> None:
        (self._lock.acquire_read if self._grip.mode == "R" else self._lock.acquire_write)()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        (self._lock.release_read if self._grip.mode == "R" else self._lock.release_write)()


@final
class RecordedRWLock(FullRWLock):
    """A read/write lock, the events of which can be recorded."""

    __slots__ = ()

    guard = _RecordedGuard

    def release_read(self) -> None:
        """Let go of the lock for reading."""
        _leaves(self.identity, "R")
        super().release_read()

    def release_write(self) -> None:
        """Let go of the lock for writing."""
        _leaves(self.identity, "W")
        super().release_write()

    def _acquire(self, mode: Mode, timeout_seconds: float) -> bool:
        grip = self._grip(mode, attempt_of(timeout_seconds))
        _asks(grip)
        taken = super()._acquire(mode, timeout_seconds)
        _answered(grip, taken=taken)
        return taken
