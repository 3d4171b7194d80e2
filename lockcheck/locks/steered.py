"""The locks of the level `confirm`: checked ones at which a steered run can pause its threads."""

from __future__ import annotations

from typing import final

from ..findings.terms import Mode
from ..holding.chains import Acquisition, Execution
from ..holding.runtime import fails_open, local, runtime
from .checked import FullLock
from .checked_rw import FullGuard, FullRWLock, attempt_of

_enter, _enter_guard = FullLock.__enter__, FullGuard.__enter__


@fails_open(None)
def steer(execution: Execution, acquisition: Acquisition) -> None:
    """Wait where a steered run wants this acquisition to wait."""
    steering = runtime.steering
    if steering is not None:
        steering.wants(execution, acquisition)


class SteeredLock(FullLock):
    """A lock like `threading.Lock`, before which a steered run can pause."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> bool:
        steer(local.execution, self._acquisition)
        return _enter(self, depth + 1)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock, as `threading.Lock.acquire` does."""
        acquisition = self._asked(self._attempt(blocking, timeout))
        steer(local.execution, acquisition)
        return self._take(acquisition, timeout, 2)

    def _acquire_again(self) -> None:
        steer(local.execution, self._acquisition)
        super()._acquire_again()


class SteeredRLock(SteeredLock):
    """A lock like `threading.RLock`, before which a steered run can pause."""

    __slots__ = ()

    reentrant = True


@final
class _SteeredGuard(FullGuard):
    """The context manager of `with rw.read():`."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> None:
        steer(local.execution, self._acquisition)
        _enter_guard(self, depth + 1)


@final
class SteeredRWLock(FullRWLock):
    """A read/write lock, before which a steered run can pause."""

    __slots__ = ()

    guard = _SteeredGuard

    def _acquire(self, mode: Mode, timeout_seconds: float) -> bool:
        steer(local.execution, self._acquisition(mode, attempt_of(timeout_seconds)))
        return super()._acquire(mode, timeout_seconds)
