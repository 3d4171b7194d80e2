"""The applications of a leaf that have something waiting, in order: those to try, and those that rest.

An application whose only waiting ask found no room on any node rests. Only these can change the answer:

* A node may have room for the size: the size is no longer *closed* (`licorne.model.nodes.order`).
* The ask has no reservation yet, and a node may be reserved for it: the ask is old enough now, or the nodes
  have changed.
* The application itself has changed: then it is placed in the order anew, and rests no longer.

Those that rest are kept by size, so that a walk past thousands of them costs a step for each size. What stops
one of a size stops all of that size, so that the walk tries the first one only.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, TypeAlias, final

from ..values.ordered_list import OrderedList

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ..resources.resource import Resource
    from .application_entry import ApplicationEntry

__all__ = ["WaitingApplications"]

_Kind: TypeAlias = "tuple[Resource, bool]"
"""A size, and whether a node may be reserved for the ask: it has none, and is old enough."""


@final
class WaitingApplications:
    """The applications of a leaf with something waiting, by their places in its order."""

    __slots__ = ("_awake", "_due", "_node_changes", "_resting", "_unreservable")

    def __init__(self) -> None:
        self._awake: OrderedList[ApplicationEntry] = OrderedList()
        self._resting: dict[_Kind, OrderedList[ApplicationEntry]] = {}
        self._due: list[tuple[int, str, ApplicationEntry]] = []
        """A heap of those that rest until some time, with others that no longer do."""
        self._unreservable: set[Resource] = set()
        """Sizes for which no node could be reserved since the nodes last changed."""
        self._node_changes = -1

    def __iter__(self) -> Iterator[ApplicationEntry]:
        """Walk all of them in order; the walk must end before the order changes."""
        if not self._resting:
            return iter(self._awake)
        return self._merged([(None, self._awake), *self._resting.items()], ())

    def to_try(
        self, closed: Container[Resource], node_changes: int, now_ns: int
    ) -> Iterator[ApplicationEntry]:
        """Walk those in order that may be placed; the walk must end before the order changes.

        Args:
            closed: Sizes for which no node has room; may grow during the walk.
            node_changes: The partition's count of changes after which a node may be reserved.
            now_ns: The time.
        """
        if not self._resting:
            return iter(self._awake)
        if node_changes != self._node_changes:
            self._node_changes = node_changes
            self._unreservable.clear()
        while self._due and self._due[0][0] <= now_ns:
            due_ns, _, entry = heappop(self._due)
            if entry.rests_for is not None and entry.rests_until_ns == due_ns:
                self.remove(entry)
                self._awake.add(entry)
        open_lists = [row for row in self._resting.items() if not self._is_closed(row[0], closed)]
        if not open_lists:
            return iter(self._awake)
        return self._merged([(None, self._awake), *open_lists], closed)

    def add(self, entry: ApplicationEntry) -> None:
        """Add an application at its place."""
        self._awake.add(entry)

    def remove(self, entry: ApplicationEntry) -> None:
        """Remove an application."""
        kind = entry.rests_for
        if kind is None:
            self._awake.remove(entry)
            return
        resting = self._resting[kind]
        resting.remove(entry)
        if not resting:
            del self._resting[kind]
        entry.rests_for = entry.rests_until_ns = None

    def note_unreservable(self, size: Resource, node_changes: int) -> None:
        """Note that no node can be reserved for a size until the nodes change; also during a walk."""
        if node_changes == self._node_changes:
            self._unreservable.add(size)

    def rest(self, entry: ApplicationEntry, size: Resource, until_ns: int | None) -> None:
        """Have an application that was tried without result not tried before something changes.

        Args:
            entry: It has a place in the order.
            size: The size of its only waiting ask.
            until_ns: When a node may be reserved for the ask, which is too young; otherwise `None`.
        """
        self.remove(entry)
        kind = (size, until_ns is None and not entry.facts.reserved)
        entry.rests_for, entry.rests_until_ns = kind, until_ns
        if kind not in self._resting:
            self._resting[kind] = OrderedList()
        self._resting[kind].add(entry)
        if until_ns is not None:
            heappush(self._due, (until_ns, entry.application_id, entry))

    def next_due_ns(self) -> int | None:
        """Return when the next one that is too young for a reservation is old enough, `None` if none is."""
        due = self._due
        while due and (due[0][2].rests_for is None or due[0][2].rests_until_ns != due[0][0]):
            heappop(due)
        return due[0][0] if due else None

    def _is_closed(self, kind: _Kind | None, closed: Container[Resource]) -> bool:
        if kind is None:
            return False
        size, may_reserve = kind
        return size in closed and (not may_reserve or size in self._unreservable)

    def _merged(
        self, lists: list[tuple[_Kind | None, OrderedList[ApplicationEntry]]], closed: Container[Resource]
    ) -> Iterator[ApplicationEntry]:
        """Merge lists in order, each until what is in it can no longer be placed."""
        heap = []
        for kind, entries in lists:
            walk = iter(entries)
            first = next(walk, None)
            if first is not None:
                heap.append((first.order, first, walk, kind))
        heapify(heap)
        while heap:
            _, entry, walk, kind = heap[0]
            if not self._is_closed(kind, closed):
                yield entry
            following = None if self._is_closed(kind, closed) else next(walk, None)
            if following is None:
                heappop(heap)
            else:
                heapreplace(heap, (following.order, following, walk, kind))
