"""What checking costs: the time to take and release a lock, as a multiple of the unchecked one.

All kinds of lock are timed in turns, many short rounds of each, and the fastest round of each counts: what
else the machine does at the time then hits all alike or none. The ratio is the figure; the time is for
orientation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Final, final

from condition_lock import ConditionRWLock
from figure import Figure

from licorne import lockcheck
from licorne.lockcheck.findings.statistics import PENDING_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

__all__ = ["CLASSES", "ORDER", "LockCost", "added_by_chain", "measure_lock_costs", "time_taking"]

CLASSES: Final = ("partition", "queue", "application", "node")
ORDER: Final = " < ".join(CLASSES)
TIMES: Final = PENDING_MAX + 1
"""How often a round takes and releases a lock: so often that the checker sorts the times of a place once."""
_LEVELS: Final = (lockcheck.Level.ORDER, lockcheck.Level.FULL)
_CHAIN: Final = "a chain of four locks"


@final
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


@final
@dataclass(frozen=True, slots=True)
class _Kind:
    subject: str
    level: lockcheck.Level
    make: Callable[[], AbstractContextManager[object]]
    limits: tuple[tuple[str, float | None], ...]
    """The kind it is compared with, and the largest ratio that is wanted."""


@final
class _Chain:
    """Four locks, each taken while the ones before it are held."""

    def __init__(self) -> None:
        self._locks = [lockcheck.RLock(name) for name in CLASSES]

    def __enter__(self) -> None:
        for lock in self._locks:
            lock.__enter__()

    def __exit__(self, *_: object) -> None:
        for lock in reversed(self._locks):
            lock.__exit__(None, None, None)


def _kinds() -> Sequence[_Kind]:
    plain = "threading.RLock"
    lock = partial(lockcheck.RLock, "queue")
    kinds = [_base(plain, RLock), _Kind("RLock, off", lockcheck.Level.OFF, lock, ((plain, 1.05),))]
    for level, limit in zip(_LEVELS, (2.5, 6.0), strict=True):
        kinds.append(_Kind(f"RLock, {level.name.lower()}", level, lock, ((plain, limit),)))
    for mode in ("read", "write"):
        ours = f"RWLock, {mode}"
        theirs = f"on a condition, {mode}"
        kinds.append(_base(ours, partial(_guard, mode)))
        kinds.append(_base(theirs, partial(_condition_guard, mode)))
        kinds.extend(
            _Kind(
                f"RWLock, {level.name.lower()}, {mode}",
                level,
                partial(_guard, mode),
                ((ours, 1.5), (theirs, 1.3)),
            )
            for level in _LEVELS
        )
    return kinds


def _base(subject: str, make: Callable[[], AbstractContextManager[object]]) -> _Kind:
    return _Kind(subject, lockcheck.Level.OFF, make, ((subject, None),))


def _guard(mode: str) -> AbstractContextManager[object]:
    lock = lockcheck.RWLock("queue")
    return lock.read() if mode == "read" else lock.write()


def _condition_guard(mode: str) -> AbstractContextManager[object]:
    lock = ConditionRWLock()
    return lock.read() if mode == "read" else lock.write()


def measure_lock_costs(
    clock_seconds: Callable[[], float], *, times: int = TIMES, rounds: int = 60
) -> tuple[LockCost, ...]:
    """Time all kinds of lock in turns.

    Args:
        clock_seconds: The clock.
        times: How often a round takes and releases a lock.
        rounds: How many rounds each kind has; the fastest counts.

    Returns:
        The costs of each kind, each base before what is compared with it.
    """
    kinds = _kinds()
    seconds = _fastest(kinds, clock_seconds, times, rounds)
    return tuple(
        LockCost(
            kind.subject,
            base,
            seconds[kind.subject] / times * 1e9,
            seconds[kind.subject] / seconds[base],
            limit,
        )
        for kind in kinds
        for base, limit in kind.limits
    )


def added_by_chain(
    clock_seconds: Callable[[], float], *, times: int = TIMES, rounds: int = 60
) -> tuple[Figure, ...]:
    """Return what the check adds to four locks that are taken one below the other."""
    kinds = [
        _Kind(f"{_CHAIN}, {level.name.lower()}", level, _Chain, ())
        for level in (lockcheck.Level.OFF, *_LEVELS)
    ]
    unchecked, *checked = _fastest(kinds, clock_seconds, times, rounds).values()
    return tuple(
        Figure(f"{kind.subject} adds", (seconds - unchecked) / times * 1e6, "µs", wanted_max=limit)
        for kind, seconds, limit in zip(kinds[1:], checked, (1.0, None), strict=True)
    )


def _fastest(
    kinds: Sequence[_Kind], clock_seconds: Callable[[], float], times: int, rounds: int
) -> dict[str, float]:
    """Return of each kind how long its fastest round took."""
    assert times > 0, times
    assert rounds > 0, rounds
    fastest: dict[str, float] = {}
    for _ in range(rounds):
        for kind in kinds:
            seconds = _round(kind, clock_seconds, times)
            fastest[kind.subject] = min(seconds, fastest.get(kind.subject, seconds))
    return fastest


def _round(kind: _Kind, clock_seconds: Callable[[], float], times: int) -> float:
    if kind.level is lockcheck.Level.OFF:
        return time_taking(kind.make(), clock_seconds, times)
    with lockcheck.session(lockcheck.Order(ORDER), level=kind.level):
        return time_taking(kind.make(), clock_seconds, times)


def time_taking(
    lock: AbstractContextManager[object], clock_seconds: Callable[[], float], times: int
) -> float:
    """Return how many seconds it takes to take and release a lock so often."""
    _take(lock, 2)  # What is done once for a new lock and place is not what a nesting costs.
    start = clock_seconds()
    _take(lock, times)
    return clock_seconds() - start


def _take(lock: AbstractContextManager[object], times: int) -> None:
    for _ in range(times):
        with lock:
            pass
