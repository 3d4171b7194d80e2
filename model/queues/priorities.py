"""The highest priority among named members, kept while their own priorities come, change and go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from ..resources.quantities import INT32_MIN

__all__ = ["PriorityCounts"]


@final
class PriorityCounts:
    """How many members have which priority.

    A member in which nothing waits has the lowest possible one, and is not counted.
    """

    def __init__(self) -> None:
        self.highest = INT32_MIN
        """The highest priority of all members, the lowest possible one if none has another."""
        self._counts: dict[int, int] = {}
        self._by_name: dict[str, int] = {}

    def recount(self, members: Iterable[tuple[str, int]]) -> None:
        """Count these members and no others."""
        self._counts.clear()
        self._by_name.clear()
        self.highest = INT32_MIN
        for name, priority in members:
            self.note(name, priority)

    def note(self, name: str, priority: int) -> None:
        """Count a member with the priority that it has now, in place of the one noted before."""
        old = self._by_name.get(name, INT32_MIN)
        if old == priority:
            return
        counts = self._counts
        if old != INT32_MIN:
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if priority == INT32_MIN:
            del self._by_name[name]
        else:
            counts[priority] = counts.get(priority, 0) + 1
            self._by_name[name] = priority
        self.highest = max(counts, default=INT32_MIN)
