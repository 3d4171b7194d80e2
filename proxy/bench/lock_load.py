"""What checking costs a program of eight threads that do the work of allocations, each under four locks.

The work is that of the light: what no scheduler can avoid for an allocation. The threads share no lock, so
what they lose against unchecked locks is the check itself, and what threads share inside of the checker.
"""

from __future__ import annotations

import threading
from statistics import median
from typing import TYPE_CHECKING, Final

from ... import lockcheck
from .light import Light
from .lock_costs import CLASSES, ORDER
from .lock_figure import LockFigure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked_throughput"]

THREADS: Final = 8
_NODES: Final = 50


def checked_throughput(
    clock_seconds: Callable[[], float], *, allocations: int = 100, rounds: int = 15
) -> tuple[LockFigure, ...]:
    """Return the throughput with checked locks as a share of that with unchecked ones, in turns.

    Args:
        clock_seconds: The clock.
        allocations: How many each thread makes in a round.
        rounds: How many rounds there are; the one in the middle counts.
    """
    levels = (lockcheck.Level.ORDER, lockcheck.Level.FULL)
    shares: dict[lockcheck.Level, list[float]] = {level: [] for level in levels}
    for _ in range(rounds):
        unchecked = _seconds(allocations, clock_seconds)
        for level in levels:
            with lockcheck.session(lockcheck.Order(ORDER), level=level):
                shares[level].append(unchecked / _seconds(allocations, clock_seconds))
    return tuple(
        LockFigure(
            f"throughput of {THREADS} threads, {level.name.lower()}",
            median(shares[level]),
            "x unchecked",
            wanted_min=0.9 if level is lockcheck.Level.ORDER else None,
        )
        for level in levels
    )


def _seconds(allocations: int, clock_seconds: Callable[[], float]) -> float:
    """Return how long all threads take together."""
    begin = threading.Barrier(THREADS + 1)
    threads = [threading.Thread(target=_work, args=(allocations, begin)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = clock_seconds()
    for thread in threads:
        thread.join()
    return clock_seconds() - start


def _work(allocations: int, begin: threading.Barrier) -> None:
    light = Light(allocations=allocations, nodes=_NODES)
    partition, queue, application, node = (lockcheck.RLock(name) for name in CLASSES)
    with partition, queue, application, node:
        pass
    begin.wait()
    for message in light.requests:
        with partition, queue, application, node:
            light.place(message)
