"""The bounds of priorities: signed 32-bit numbers, as on the wire."""

from __future__ import annotations

from typing import Final

__all__ = ["INT32_MAX", "INT32_MIN"]

INT32_MIN: Final = -(2**31)
"""The lowest priority; also that of a queue or an application in which nothing waits."""
INT32_MAX: Final = 2**31 - 1
