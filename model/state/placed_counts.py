"""How much is placed in a partition, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..marks import writes

if TYPE_CHECKING:
    from ..values.allocation import Ask

__all__ = ["PlacedCounts"]


@final
class PlacedCounts:
    """The allocations of a partition, and how many of them are placeholders."""

    def __init__(self) -> None:
        self.allocations = 0
        self.placeholders = 0

    @writes
    def count(self, ask: Ask) -> None:
        """Count an ask that was placed."""
        self.allocations += 1
        self.placeholders += ask.placeholder

    @writes
    def uncount(self, ask: Ask) -> None:
        """Count an ask no longer whose allocation has ended."""
        self.allocations -= 1
        self.placeholders -= ask.placeholder

    @writes
    def exchange(self) -> None:
        """Count a placeholder as what has taken its place."""
        self.placeholders -= 1
