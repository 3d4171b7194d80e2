"""How many requests a program makes a second: tokens in a bucket that fills at a fixed rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import final

__all__ = ["TokenBucket"]


@final
class TokenBucket:
    """A bucket of tokens. Each request takes one, and waits until the bucket would have had it.

    Args:
        per_second: How many tokens come in a second.
        capacity: How many there are at most, and at the beginning.
        now: The clock, seconds.
    """

    def __init__(self, per_second: float, capacity: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._capacity = capacity
        self._now = now
        self._lock = threading.Lock()
        self._tokens = float(capacity)
        self._filled_at = now()

    def take(self) -> float:
        """Take a token, and return how many seconds the caller waits before it makes its request."""
        with self._lock:
            now = self._now()
            filled = self._tokens + (now - self._filled_at) * self._per_second
            self._tokens = min(float(self._capacity), filled) - 1.0
            self._filled_at = now
            return max(0.0, -self._tokens / self._per_second)
