"""The locks of the levels `record` and `confirm`: checked ones that also tell a recorder or are steered."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..checking.stepping import let_go
from ..holding.runtime import local, runtime
from .checked import FullLock
from .checked_rw import FullGuard, FullRWLock, attempt_of

if TYPE_CHECKING:
    from types import TracebackType

    from ..findings.evidence import Mode
    from ..holding.chains import Attempt, Grip, LockIdentity, TrieNode, Unit

__all__ = ["RecordedLock", "RecordedRLock", "RecordedRWLock"]

_enter, _enter_guard = FullLock.__enter__, FullGuard.__enter__


def _asks(unit: Unit, grip: Grip) -> None:
    steering = runtime.steering
    if steering is not None:
        steering.wants(unit, grip)


def _took(node: TrieNode) -> None:
    """Write down that a lock was taken, if somebody records."""
    recorder = runtime.recorder
    if recorder is not None and not node.unit.inside:
        try:
            node.write(node.took)
        except ValueError:
            recorder.took(node)


def _leaves(node: TrieNode) -> None:
    """Write down that a lock is let go of, before it is."""
    recorder = runtime.recorder
    if recorder is not None and not node.unit.inside:
        try:
            node.write(node.left)
        except ValueError:
            recorder.left(node)


def _failed(grip: Grip) -> None:
    if runtime.recorder is not None:
        runtime.recorder.failed(grip)


def _lets_go(lock: LockIdentity, mode: Mode) -> None:
    """Write down that a lock is let go of, wherever it stands among what is held."""
    recorder = runtime.recorder
    if recorder is not None:
        node = local.unit.node
        if node.grip is not None and node.grip.lock is lock and node.grip.mode == mode:
            _leaves(node)
        else:
            recorder.released(lock, mode)


class _Recording(FullLock):
    """What the exclusive locks have in common."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> bool:
        if runtime.steering is not None:
            _asks(local.unit, self._grip)
        _enter(self, depth + 1)
        _took(self._at)
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        after = self._at
        unit = after.unit
        if unit.node is after:
            _leaves(after)
            self._plain.release()
            unit.node = after.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            self.release()

    def _acquire(self, attempt: Attempt, timeout: float, *, breakable: bool = True) -> bool:
        unit, grip = local.unit, self._asked(attempt)
        _asks(unit, grip)
        taken = super()._acquire(attempt, timeout, breakable=breakable)
        if taken:
            _took(self._at)
        else:
            _failed(grip)
        return taken

    def release(self) -> None:
        _lets_go(self.identity, "W")
        super().release()


@final
class RecordedLock(_Recording):
    """A lock like `threading.Lock`, the events of which can be recorded."""

    __slots__ = ()


@final
class RecordedRLock(_Recording):
    """A lock like `threading.RLock`, the events of which can be recorded."""

    __slots__ = ()

    reentrant = True


@final
class _RecordedGuard(FullGuard):
    """What `with rw.read():` enters."""

    __slots__ = ()

    def __enter__(self, depth: int = 1) -> None:
        if runtime.steering is not None:
            _asks(local.unit, self._grip)
        _enter_guard(self, depth + 1)
        _took(local.unit.node)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unit = local.unit
        node = unit.node
        if node.grip is self._grip:
            _leaves(node)
            unit.node = node.parent  # type: ignore[assignment] # a node that is held has a parent
        else:
            _lets_go(self._grip.lock, self._grip.mode)
            let_go(unit, self._grip.lock, self._grip.mode)
        self._release()


@final
class RecordedRWLock(FullRWLock):
    """A read/write lock, the events of which can be recorded."""

    __slots__ = ()

    guard = _RecordedGuard

    def release_read(self) -> None:
        """Let go of the lock for reading."""
        _lets_go(self.identity, "R")
        super().release_read()

    def release_write(self) -> None:
        """Let go of the lock for writing."""
        _lets_go(self.identity, "W")
        super().release_write()

    def _acquire(self, mode: Mode, timeout_seconds: float) -> bool:
        unit, grip = local.unit, self._grip(mode, attempt_of(timeout_seconds))
        _asks(unit, grip)
        taken = super()._acquire(mode, timeout_seconds)
        if taken:
            _took(unit.node)
        else:
            _failed(grip)
        return taken
