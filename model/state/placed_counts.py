"""How much is placed in a partition and its leaves, by number, and how long asks waited for it."""

from __future__ import annotations

from typing import Final, final

from ..marks import Marks
from ..values.allocation import Ask
from .histograms import Histogram

__all__ = ["PlacedCounts"]


@final
class PlacedCounts:
    """The allocations of a partition, and how many of them are placeholders."""

    MARKS: Final = Marks(writes=("count", "count_existing", "uncount", "exchange", "forget_queue"))

    def __init__(self) -> None:
        self.allocations = 0
        self.placeholders = 0
        self.waits = Histogram()
        """From the creation of an ask to its placement."""
        self.placed_in: dict[str, int] = {}
        """How many allocations have come to a leaf, by its path; until the leaf is removed."""
        self.ended_in: dict[str, int] = {}
        """How many have ended there."""

    def count(self, ask: Ask, queue_path: str, waited_ns: int | None = None) -> None:
        """Count an ask that was placed in a leaf; one that the RM has placed did not wait."""
        self.allocations += 1
        self.placeholders += ask.placeholder
        if waited_ns is not None:
            self.waits.add(waited_ns)
        self.placed_in[queue_path] = self.placed_in.get(queue_path, 0) + 1

    def count_existing(self, number: int, queue_path: str, *, placeholders: int) -> None:
        """Count allocations of a leaf that were recovered: nothing waited for them."""
        self.allocations += number
        self.placeholders += placeholders
        self.placed_in[queue_path] = self.placed_in.get(queue_path, 0) + number

    def uncount(self, ask: Ask, queue_path: str) -> None:
        """Count an ask no longer whose allocation has ended."""
        self.allocations -= 1
        self.placeholders -= ask.placeholder
        self.ended_in[queue_path] = self.ended_in.get(queue_path, 0) + 1

    def exchange(self) -> None:
        """Count a placeholder as what has taken its place."""
        self.placeholders -= 1

    def forget_queue(self, queue_path: str) -> None:
        """Forget what was counted for a leaf that is removed."""
        self.placed_in.pop(queue_path, None)
        self.ended_in.pop(queue_path, None)
