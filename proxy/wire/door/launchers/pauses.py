"""How long the next worker of a partition is waited for, when those before it were lost soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from .....model.errors import LicorneError

_LASTING_SECONDS: Final = 10.0
"""A worker that was there so long did well: the next one does not wait."""
_FIRST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Tries:
    """The workers of one partition."""

    failures: int = 0
    """How many failed one after the other."""
    started_at: float | None = None
    """When the present one was there; `None` if there is none."""


@final
class GrowingPauses:
    """The pauses before the workers of partitions.

    The first worker after one that did well starts at once. Those after workers that were lost soon, or did
    not start, wait longer each time: 0.2 s, then twice as long, up to 5 s.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: dict[str, _Tries] = {}
        self._lock = threading.Lock()

    def started(self, partition: str) -> None:
        """Note that a partition has a worker."""
        with self._lock:
            self._tries.setdefault(partition, _Tries()).started_at = self._clock()

    def failed(self, partition: str) -> None:
        """Note that the worker of a partition is lost, or that it did not start."""
        with self._lock:
            tries = self._tries.setdefault(partition, _Tries())
            if tries.started_at is not None and self._clock() - tries.started_at >= _LASTING_SECONDS:
                tries.failures = 0
            tries.failures += 1
            tries.started_at = None

    def next_seconds(self, partition: str) -> float:
        """Return how long the next worker of a partition is to wait."""
        with self._lock:
            failures = self._tries.setdefault(partition, _Tries()).failures
        return min(_FIRST_SECONDS * 2.0 ** (failures - 2), _LONGEST_SECONDS) if failures > 1 else 0.0

    def wait(self, partition: str, given_up: threading.Event) -> None:
        """Wait as long as the next worker of a partition is to wait.

        Raises:
            LicorneError: It was given up.
        """
        if given_up.wait(self.next_seconds(partition)):
            raise LicorneError(f"the worker of partition {partition!r} was given up before it started")
