"""What checking costs: the time to take and release a lock, as a multiple of the unchecked one.

All kinds of lock are timed in turns, many short rounds of each, and the fastest round of each counts: what
else the machine does at the time then hits all alike or none. The ratio is the figure; the time is for
orientation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Final

from ... import lockcheck

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

__all__ = ["LockCost", "measure_lock_costs"]

_ORDER: Final = "partition < queue < application < node"
_LEVELS: Final = (lockcheck.Level.ORDER, lockcheck.Level.FULL)


@dataclass(frozen=True, slots=True)
class LockCost:
    """One kind of lock, taken and released once."""

    subject: str
    base: str
    nanoseconds: float
    ratio: float
    """How often the time of the base."""
    ratio_max: float | None
    """What is wanted at most; `None` for the bases themselves."""

    @property
    def is_met(self) -> bool:
        """Whether the ratio is as wanted."""
        return self.ratio_max is None or self.ratio <= self.ratio_max


@dataclass(frozen=True, slots=True)
class _Kind:
    subject: str
    base: str
    ratio_max: float | None
    level: lockcheck.Level
    make: Callable[[], AbstractContextManager[object]]


def _kinds() -> Sequence[_Kind]:
    plain, rw = "with threading.RLock()", "our read/write lock, unchecked"
    off = lockcheck.Level.OFF
    kinds = [
        _Kind(plain, plain, None, off, RLock),
        _Kind("RLock, off", plain, 1.05, off, partial(lockcheck.RLock, "queue")),
    ]
    for level, limit in zip(_LEVELS, (2.5, 6.0), strict=True):
        kinds.append(
            _Kind(f"RLock, {level.name.lower()}", plain, limit, level, partial(lockcheck.RLock, "queue"))
        )
    for mode in ("read", "write"):
        base = f"{rw}, {mode}"
        kinds.append(_Kind(base, base, None, off, partial(_guard, mode)))
        kinds.extend(
            _Kind(f"read/write lock, {level.name.lower()}, {mode}", base, 1.5, level, partial(_guard, mode))
            for level in _LEVELS
        )
    return kinds


def _guard(mode: str) -> AbstractContextManager[object]:
    lock = lockcheck.RWLock("queue")
    return lock.read() if mode == "read" else lock.write()


def measure_lock_costs(
    clock_seconds: Callable[[], float], *, times: int = 5_000, rounds: int = 30
) -> tuple[LockCost, ...]:
    """Time all kinds of lock in turns.

    Args:
        clock_seconds: The clock.
        times: How often a round takes and releases a lock.
        rounds: How many rounds each kind has; the fastest counts.

    Returns:
        A cost for each kind, each base before what is held against it.
    """
    assert times > 0, times
    assert rounds > 0, rounds
    kinds = _kinds()
    fastest: dict[str, float] = {}
    for _ in range(rounds):
        for kind in kinds:
            seconds = _round(kind, clock_seconds, times)
            fastest[kind.subject] = min(seconds, fastest.get(kind.subject, seconds))
    return tuple(
        LockCost(
            kind.subject,
            kind.base,
            fastest[kind.subject] / times * 1e9,
            fastest[kind.subject] / fastest[kind.base],
            kind.ratio_max,
        )
        for kind in kinds
    )


def _round(kind: _Kind, clock_seconds: Callable[[], float], times: int) -> float:
    if kind.level is lockcheck.Level.OFF:
        return _time(kind.make(), clock_seconds, times)
    with lockcheck.session(lockcheck.Order(_ORDER), level=kind.level):
        return _time(kind.make(), clock_seconds, times)


def _time(lock: AbstractContextManager[object], clock_seconds: Callable[[], float], times: int) -> float:
    with lock:  # What is done once for a new lock is not what a nesting costs.
        pass
    start = clock_seconds()
    for _ in range(times):
        with lock:
            pass
    return clock_seconds() - start
