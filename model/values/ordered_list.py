"""A list in the order of its items' own places, for items that are mostly removed at the front.

An item's place is its attribute `order`; no two items have the same. To remove the first item, or to add one
after the last, costs a step; elsewhere it moves the items after it, which is one call into C and, for the
some thousand applications of a queue or asks of an application, less than one call into Python.
`sortedcontainers` does the same with a bound for millions of items, and takes five to ten times as long for
these.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar


class _HasOrder(Protocol):
    @property
    def order(self) -> tuple[Any, ...]:
        """The place among others of its kind."""


Item = TypeVar("Item", bound=_HasOrder)
_SLACK: Final = 64
"""How many removed items may stay at the front before the list is cut."""
_order: Final = attrgetter("order")


class OrderedList(Generic[Item]):
    """Items by their places. A walk must end before the list, or the place of an item in it, changes."""

    __slots__ = ("_items", "_start")

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._start = 0
        """Those before it have been removed."""

    def __len__(self) -> int:
        return len(self._items) - self._start

    def __iter__(self) -> Iterator[Item]:
        items = self._items
        for index in range(self._start, len(items)):
            yield items[index]

    def head(self) -> Item | None:
        """Return the first item, `None` if the list is empty."""
        items = self._items
        return items[self._start] if items else None

    @property
    def last(self) -> Item:
        """The last item; there must be one."""
        return self._items[-1]

    def find(self, order: tuple[Any, ...]) -> Item | None:
        """Return the item with that place, if any."""
        index = self._index(order)
        items = self._items
        return items[index] if index < len(items) and items[index].order == order else None

    def add(self, item: Item) -> None:
        """Put an item in its place."""
        items = self._items
        if len(items) == self._start or item.order > items[-1].order:
            items.append(item)
        else:
            insort(items, item, lo=self._start, key=_order)

    def remove(self, item: Item) -> None:
        """Take out an item that is there, and whose place has not changed since it was added."""
        items = self._items
        start = self._start
        if items[start] is not item:
            index = self._index(item.order)
            assert items[index] is item, f"{item!r} is not at the place of its order: please report"
            del items[index]
            return
        self._start = start + 1
        if self._start == len(items):
            items.clear()
            self._start = 0
        elif start > _SLACK and start * 2 > len(items):
            del items[: start + 1]
            self._start = 0

    def first_after(self, order: tuple[Any, ...]) -> Item | None:
        """Return the first item behind a place, which need not have an item; `None` without one."""
        items = self._items
        index = bisect_right(items, order, lo=self._start, key=_order)
        return items[index] if index < len(items) else None

    def after(self, order: tuple[Any, ...]) -> Iterator[Item]:
        """Walk the items behind a place, at which there need not be one."""
        items = self._items
        for index in range(bisect_right(items, order, lo=self._start, key=_order), len(items)):
            yield items[index]

    def _index(self, order: tuple[Any, ...]) -> int:
        """Return where the first item is that is not before the place."""
        items, start = self._items, self._start
        if start < len(items) and order <= items[start].order:
            return start
        return bisect_left(items, order, lo=start, key=_order)
