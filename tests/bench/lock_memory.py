"""How much memory checked locks take beside plain ones."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from report import Figure

from licorne import lockcheck

_LEVELS: Final = (lockcheck.Level.ORDER, lockcheck.Level.FULL)
_KINDS: Final[dict[str, Callable[[lockcheck.Level], AbstractContextManager[object]]]] = {
    "RLock": lambda level: lockcheck.RLock("queue", check=level),
    "RWLock": lambda level: lockcheck.RWLock("queue", check=level).write(),
}


def bytes_per_lock(*, count: int = 20_000) -> tuple[Figure, ...]:
    """Return the bytes of a checked lock beyond those of a plain one: of so many, and once each was taken.

    At the level `full` the latter include the stack, up to twelve frames, and what the graph learns.
    """
    figures = []
    for kind, make in _KINDS.items():
        plain, _ = _bytes_of(make, lockcheck.Level.OFF, count)
        for level in _LEVELS:
            made, taken = _bytes_of(make, level, count)
            name = f"{kind}, {level.name.lower()}"
            figures.append(Figure(f"{name}, beyond a plain one", made - plain, "bytes", wanted_max=96))
            figures.append(Figure(f"{name}, the same, once taken", taken - plain, "bytes"))
    return tuple(figures)


def _bytes_of(
    make: Callable[[lockcheck.Level], AbstractContextManager[object]], level: lockcheck.Level, count: int
) -> tuple[float, float]:
    """Return how many bytes a lock has when it was made, and after it was taken once."""
    locks: list[AbstractContextManager[object] | None] = [None] * count
    with lockcheck.session(level=level), _tracing():
        none = _traced_bytes()
        for at in range(count):
            locks[at] = make(level)
        made = _traced_bytes()
        for lock in locks:
            assert lock is not None, "please report: a lock was not made"
            with lock:
                pass
        taken = _traced_bytes()
    return (made - none) / count, (taken - none) / count


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@contextmanager
def _tracing() -> Iterator[None]:
    """Trace memory allocations, unless they are traced already."""
    was_on = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        yield
    finally:
        if not was_on:
            tracemalloc.stop()
