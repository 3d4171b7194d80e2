"""What queues with a budget have lost to guarantees, and what they may lose still.

A queue counts what ends in it and below it when that is decided, and forgets it after its window: so what is
kept is bounded by the budgets.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from typing import NamedTuple, final

from ..queues.queue import Queue


class Overdraft(NamedTuple):
    """A queue that may not lose so many now."""

    queue: Queue
    until_ns: int | None
    """When it may, `None` if it never may lose so many at a time."""


@final
class DisruptionLog:
    """Until when victims of queues with a budget count."""

    def __init__(self) -> None:
        self._until_ns: dict[str, list[int]] = {}
        """By path, in order of time."""

    def note(self, leaves: Iterable[Queue], now_ns: int) -> None:
        """Note that one allocation of each of these leaves ends; a leaf may be there several times."""
        for path in list(self._until_ns):
            self._counting(path, now_ns)
        for leaf in leaves:
            for level in leaf.above:
                budget = level.settings.victims_max
                if budget is not None:
                    insort(self._until_ns.setdefault(level.path, []), now_ns + budget.within_ns)

    def overdraft(self, leaves: Iterable[Queue], now_ns: int) -> Overdraft | None:
        """Return which queue may not lose one allocation of each of these leaves, `None` if all may.

        Of several it is the one that may last; of these the first by its path.
        """
        wanted: dict[str, int] = {}
        queues: dict[str, Queue] = {}
        for leaf in leaves:
            for level in leaf.above:
                if level.settings.victims_max is not None:
                    queues[level.path] = level
                    wanted[level.path] = wanted.get(level.path, 0) + 1
        last: Overdraft | None = None
        for path in sorted(queues):
            found = self._overdraft_of(queues[path], wanted[path], now_ns)
            if found is not None and (last is None or _is_later(found, last)):
                last = found
        return last

    def _overdraft_of(self, queue: Queue, wanted: int, now_ns: int) -> Overdraft | None:
        budget = queue.settings.victims_max
        assert budget is not None, "the caller has looked"
        if wanted > budget.victims:
            return Overdraft(queue, None)
        counting = self._counting(queue.path, now_ns)
        too_many = len(counting) + wanted - budget.victims
        return Overdraft(queue, counting[too_many - 1]) if too_many > 0 else None

    def _counting(self, path: str, now_ns: int) -> list[int]:
        """Return until when the victims of a queue count that do so still; the others are forgotten."""
        counting = self._until_ns.get(path)
        if counting is None:
            return []
        del counting[: bisect_right(counting, now_ns)]
        if not counting:
            del self._until_ns[path]
        return counting


def _is_later(one: Overdraft, other: Overdraft) -> bool:
    if one.until_ns is None or other.until_ns is None:
        return one.until_ns is None and other.until_ns is not None
    return one.until_ns > other.until_ns
