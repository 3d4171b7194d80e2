"""Why a cycle need not try the reserved asks, as the last pass over them left it."""

from __future__ import annotations

from typing import final

__all__ = ["ReservedRest"]


@final
class ReservedRest:
    """Why the reserved asks need not be tried: nothing has changed since they were tried in vain.

    Args:
        version: What the pass depended on, as it is after the pass.
        look_ns: When time alone may change the answer, `None` if it cannot.
        restless: They are tried in every cycle all the same.
    """

    __slots__ = ("_restless", "_version", "look_ns")

    def __init__(self, version: tuple[int, int, int], look_ns: int | None, *, restless: bool) -> None:
        self._restless = restless
        self._version = version
        self.look_ns = look_ns

    def holds(self, version: tuple[int, int, int], now_ns: int) -> bool:
        """Return whether that is still so."""
        if self._restless or self._version != version:
            return False
        return self.look_ns is None or now_ns < self.look_ns
