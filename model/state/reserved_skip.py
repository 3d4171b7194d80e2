"""Why a cycle may skip the reserved asks, as the last pass over them left it."""

from __future__ import annotations

from typing import final

__all__ = ["ReservedSkip"]


@final
class ReservedSkip:
    """Why the reserved asks may be skipped: nothing has changed since they were tried without result.

    Args:
        version: What the pass depended on, as it is after the pass.
        retry_ns: When time alone may change the answer, `None` if it cannot.
        placed: The partition's count of placements: what is placed may forbid a reserved ask by a quota.
        always_retry: They are tried in every cycle all the same.
    """

    __slots__ = ("_always_retry", "_version", "placed", "retry_ns")

    def __init__(
        self, version: tuple[int, int, int], retry_ns: int | None, placed: int, *, always_retry: bool
    ) -> None:
        self._always_retry = always_retry
        self._version = version
        self.retry_ns = retry_ns
        self.placed = placed

    def holds(self, version: tuple[int, int, int], now_ns: int) -> bool:
        """Return whether the reserved asks may still be skipped."""
        if self._always_retry or self._version != version:
            return False
        return self.retry_ns is None or now_ns < self.retry_ns
