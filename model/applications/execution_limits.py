"""How long the allocations of an application may run, and which of them have run too long.

The older generation of `si.v1` sets such limits, one an ask; so does a queue that ends what runs longer than
its walltime. Where an ask has both, that of the RM counts. The time begins when the allocation is there
(placed, taken over, or swapped in for a placeholder), not while its ask waits.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

_STALE_MAX: Final = 64
"""How many stale entries are kept in addition to as many as there are valid ones."""


@final
class ExecutionLimits:
    """The limits of one application's allocations. Owned by the application.

    One timer serves all of them: it is due when the first time is over. A timer that has been set is not
    cancelled when its allocation ends early; it finds nothing to end then, and sets the next one.
    """

    __slots__ = ("_allowed_ns", "_by_walltime", "_due_ns", "_order", "timer_due_ns")

    def __init__(self) -> None:
        self._allowed_ns: dict[str, int] = {}
        """How long the allocation of an ask may run, by its key."""
        self._by_walltime: set[str] = set()
        """The asks whose limits are their walltimes."""
        self._due_ns: dict[str, int] = {}
        """When the allocations that run now have run long enough."""
        self._order: list[tuple[int, str]] = []
        """The same as a heap; stale entries are skipped."""
        self.timer_due_ns: int | None = None
        """When the timer that runs is due."""

    def allow(self, allocation_key: str, allowed_ns: int) -> None:
        """Limit the allocation of an ask by the terms of its RM; an earlier limit is replaced."""
        self._allowed_ns[allocation_key] = allowed_ns
        self._by_walltime.discard(allocation_key)

    def allow_walltime(self, allocation_key: str, walltime_ns: int | None) -> None:
        """Limit the allocation of an ask by its walltime, or not any more; a limit of its RM stays."""
        if allocation_key in self._allowed_ns and allocation_key not in self._by_walltime:
            return
        if walltime_ns is None:
            self.forget(allocation_key)
            return
        self._allowed_ns[allocation_key] = walltime_ns
        self._by_walltime.add(allocation_key)

    def begin(self, allocation_key: str, bound_at_ns: int) -> None:
        """Start the time of an allocation, if its ask is limited."""
        allowed_ns = self._allowed_ns.get(allocation_key)
        if allowed_ns is None or self._due_ns.get(allocation_key) == bound_at_ns + allowed_ns:
            return
        due_ns = bound_at_ns + allowed_ns
        self._due_ns[allocation_key] = due_ns
        heappush(self._order, (due_ns, allocation_key))
        if len(self._order) > 2 * len(self._due_ns) + _STALE_MAX:
            self._order = sorted((due_ns, key) for key, due_ns in self._due_ns.items())

    def end(self, allocation_key: str) -> None:
        """Note that an allocation runs no longer; its ask stays limited."""
        self._due_ns.pop(allocation_key, None)

    def end_all(self) -> None:
        """Note that no allocation runs any longer; the asks stay limited."""
        self._due_ns.clear()

    def forget(self, allocation_key: str) -> None:
        """Drop the limit of an ask."""
        self._by_walltime.discard(allocation_key)
        self._allowed_ns.pop(allocation_key, None)
        self._due_ns.pop(allocation_key, None)

    def is_limited(self, allocation_key: str) -> bool:
        """Return whether an ask is limited."""
        return allocation_key in self._allowed_ns

    def is_by_walltime(self, allocation_key: str) -> bool:
        """Return whether the limit of an ask is its walltime."""
        return allocation_key in self._by_walltime

    def running(self) -> frozenset[str]:
        """Return the allocations whose time runs."""
        return frozenset(self._due_ns)

    def first_due_ns(self) -> int | None:
        """Return when the next allocation has run long enough, `None` if no time runs."""
        order = self._order
        while order:
            due_ns, allocation_key = order[0]
            if self._due_ns.get(allocation_key) == due_ns:
                return due_ns
            heappop(order)
        return None

    def take_over(self, now_ns: int) -> tuple[str, ...]:
        """Return the allocations that have run long enough, by time and then by key; their time is over."""
        keys = []
        while (due_ns := self.first_due_ns()) is not None and due_ns <= now_ns:
            _, allocation_key = heappop(self._order)
            del self._due_ns[allocation_key]
            keys.append(allocation_key)
        return tuple(keys)
