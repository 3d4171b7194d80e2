"""Sizes by their quantities: those that fit a room are found without a look at most of the others."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeAlias, final

from .resource import Resource, fits, fits_undefined_unlimited

_Row: TypeAlias = tuple[int, int]
"""The quantity of one type in a size, and the serial of the size."""


@final
class SizeIndex:
    """Sizes without room, in the order of the quantities of each resource type."""

    __slots__ = ("_columns", "_next", "_sizes", "serials")

    def __init__(self) -> None:
        self.serials: dict[Resource, int] = {}
        """The sizes, each with a number of its own; only to be read."""
        self._sizes: dict[int, Resource] = {}
        """The same by their numbers."""
        self._columns: dict[str, list[_Row]] = {}
        """Type -> all sizes, those first that need least of it; one that does not name it needs 0."""
        self._next = 0

    def add(self, size: Resource) -> None:
        """Add a size, which may be there already."""
        if size in self.serials:
            return
        for name in size:
            if name not in self._columns:
                self._columns[name] = [(0, serial) for serial in self._sizes]
        serial = self.serials[size] = self._next
        self._sizes[serial] = size
        self._next += 1
        for name, column in self._columns.items():
            insort(column, (size.get(name), serial))

    def remove(self, size: Resource) -> None:
        """Remove a size that is there."""
        serial = self.serials.pop(size)
        del self._sizes[serial]
        if not self.serials:
            self._columns.clear()
        for name, column in self._columns.items():
            del column[bisect_left(column, (size.get(name), serial))]

    def clear(self) -> None:
        """Remove all sizes."""
        self.serials.clear()
        self._sizes.clear()
        self._columns.clear()

    def take_fitting(self, room: Resource | None, *, undefined_unlimited: bool) -> list[Resource]:
        """Remove the sizes that fit a room, and return them."""
        sizes = self.fitting(room, undefined_unlimited=undefined_unlimited)
        for size in sizes:
            self.remove(size)
        return sizes

    def fitting(self, room: Resource | None, *, undefined_unlimited: bool) -> list[Resource]:
        """Return the sizes that fit a room; without a room all do.

        Only the sizes that need no more than the room has of one type are compared with it: the type is the
        one that leaves the fewest.
        """
        rows: list[_Row] | None = None
        for name, column in self._columns.items():
            if room is None or (undefined_unlimited and not room.has(name)):
                continue
            count = bisect_left(column, (max(room.get(name), 0) + 1, 0))
            if rows is None or count < len(rows):
                rows = column[:count]
        sizes = [*self.serials] if rows is None else [self._sizes[serial] for _, serial in rows]
        if undefined_unlimited:
            return [size for size in sizes if fits_undefined_unlimited(room, size)]
        return [size for size in sizes if fits(room, size)]
