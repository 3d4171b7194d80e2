"""A share of the time for what concerns all resource managers, such as a snapshot."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BURST_SECONDS", "SHARE", "Budget"]

SHARE: Final = 0.1
"""How much of the time the steps take, in the long run."""
BURST_SECONDS: Final = 1.0
"""How much time they may take at once, after a while without any."""


@final
class Budget:
    """Has steps wait that would take more than their share of the time. They run one after the other.

    Args:
        now: Returns the time, in seconds.
        wait: Waits for so many seconds.
    """

    def __init__(
        self, now: Callable[[], float] = time.monotonic, wait: Callable[[float], object] = time.sleep
    ) -> None:
        self._now = now
        self._wait = wait
        self._lock = threading.Lock()
        self._left_seconds = BURST_SECONDS
        self._seen = now()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Wait until there is time left for a step, then count what it takes."""
        with self._lock:
            self._refill()
            if self._left_seconds < 0:
                self._wait(-self._left_seconds / SHARE)
                self._refill()
            begin = self._now()
            try:
                yield
            finally:
                self._left_seconds -= self._now() - begin

    def _refill(self) -> None:
        now = self._now()
        self._left_seconds = min(BURST_SECONDS, self._left_seconds + (now - self._seen) * SHARE)
        self._seen = now
