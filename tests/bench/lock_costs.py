"""What checking costs: the time to take and release a lock, as a multiple of the unchecked one.

All kinds of lock are timed in turns, many short rounds of each, and the fastest round of each counts: what
else the machine does at the time then hits all alike or none. The ratio is the figure; the time is for
orientation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from threading import Lock, RLock
from typing import Any, Final, final

from condition_lock import ConditionRWLock
from report import Figure

from licorne import lockcheck
from licorne.lockcheck.adoption.adopted import LOCKS, RLOCKS
from licorne.lockcheck.locks.factories import ExclusiveLock

CLASSES: Final = ("partition", "queue", "application", "node")
ORDER: Final = " < ".join(CLASSES)
TIMES: Final = 1000
"""How often a round takes and releases a lock."""
_LEVELS: Final = (lockcheck.Level.ORDER, lockcheck.Level.FULL)
_NAMED_LEVELS: Final = (*_LEVELS, lockcheck.Level.CONFIRM)
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
    is_named: bool = False
    """Whether it is taken by `acquire` and released by `release`, not by `with`."""


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
    kinds.extend(_named_kinds())
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


def _named_kinds() -> Iterator[_Kind]:
    """Yield the locks that are taken by name: our own, and those that take the place of plain ones."""
    for name, plain, own, adopted in (
        ("Lock", Lock, lockcheck.Lock, LOCKS),
        ("RLock", RLock, lockcheck.RLock, RLOCKS),
    ):
        base = f"threading.{name}, by name"
        yield _base(base, plain, is_named=True)
        for level, limit, adopted_at in zip(_NAMED_LEVELS, (3.0, 6.0, 8.0), adopted, strict=True):
            for how, make in (("", own), ("adopted, ", adopted_at)):
                subject = f"{name}, {how}{level.name.lower()}, by name"
                yield _Kind(subject, level, partial(make, "queue"), ((base, limit),), is_named=True)


def _base(
    subject: str, make: Callable[[], AbstractContextManager[object]], *, is_named: bool = False
) -> _Kind:
    return _Kind(subject, lockcheck.Level.OFF, make, ((subject, None),), is_named=is_named)


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
            with _checking(kind.level):
                take = _take_by_name if kind.is_named else _take
                seconds = time_taking(kind.make(), clock_seconds, times, take=take)
            fastest[kind.subject] = min(seconds, fastest.get(kind.subject, seconds))
    return fastest


def _checking(level: lockcheck.Level) -> AbstractContextManager[object]:
    """Return the session in which locks of a level are timed."""
    return (
        nullcontext()
        if level is lockcheck.Level.OFF
        else lockcheck.session(lockcheck.Order(ORDER), level=level)
    )


def time_taking(
    lock: AbstractContextManager[object],
    clock_seconds: Callable[[], float],
    times: int,
    *,
    take: Callable[[Any, int], None] | None = None,
) -> float:
    """Return how many seconds it takes to take and release a lock so often, by default by `with`."""
    take = take or _take
    take(lock, 2)  # What is done once for a new lock and place is not what a nesting costs.
    start = clock_seconds()
    take(lock, times)
    return clock_seconds() - start


def _take(lock: AbstractContextManager[object], times: int) -> None:
    for _ in range(times):
        with lock:
            pass


def _take_by_name(lock: ExclusiveLock, times: int) -> None:
    for _ in range(times):
        lock.acquire()
        lock.release()
