"""Numbers as JSON of Go has them."""

from __future__ import annotations

__all__ = ["whole"]


def whole(number: float) -> float:
    """Return a number that has no fraction as an integer, others as they are."""
    return int(number) if number == int(number) else number
