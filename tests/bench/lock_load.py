"""What checking costs a program of eight threads that do the work of allocations, each under four locks.

The work is that of the light: what no scheduler can avoid for an allocation. The threads share no lock, so
what they lose against unchecked locks is the check itself, and what threads share inside of the checker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from light import Light
from lock_costs import CLASSES, ORDER
from report import Figure

from licorne import lockcheck
from licorne.proxy.si import si_pb2 as si

THREADS: Final = 8
_NODES: Final = 50


def checked_throughput(
    clock_seconds: Callable[[], float], *, allocations: int = 25, rounds: int = 40
) -> tuple[Figure, ...]:
    """Return the throughput with checked locks as a share of that with unchecked ones, in turns.

    Args:
        clock_seconds: The clock.
        allocations: How many each thread makes in a round.
        rounds: How many rounds there are; the fastest counts.
    """
    levels = (lockcheck.Level.ORDER, lockcheck.Level.FULL)
    unchecked = float("inf")
    checked = dict.fromkeys(levels, float("inf"))
    for _ in range(rounds):
        unchecked = min(unchecked, _seconds(allocations, clock_seconds))
        for level in levels:
            with lockcheck.session(lockcheck.Order(ORDER), level=level):
                checked[level] = min(checked[level], _seconds(allocations, clock_seconds))
    return tuple(
        Figure(
            f"throughput of {THREADS} threads, {level.name.lower()}",
            unchecked / checked[level],
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
    light = Light(allocations=allocations + 1, nodes=_NODES)
    locks = [lockcheck.RLock(name) for name in CLASSES]
    first, *others = light.requests
    _place(light, locks, [first])  # What is done once for new locks and places is not what is measured.
    begin.wait()
    _place(light, locks, others)


def _place(
    light: Light, locks: Sequence[AbstractContextManager[object]], messages: Iterable[si.Allocation]
) -> None:
    partition, queue, application, node = locks
    for message in messages:
        with partition, queue, application, node:
            light.place(message)
