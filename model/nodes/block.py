"""Some neighbouring nodes of a partition's order, with what a search needs to skip them.

A block knows, per resource type, the most that any usable node in it has available: a search skips the block
with one comparison. For a size whose search walked past many nodes it also knows how many of the first ones
have no room, and the next search for that size begins behind them.
"""
# ruff: noqa: SLF001 - a search compares some hundred nodes with an ask; the dicts of the resources are only read.

from __future__ import annotations

from bisect import bisect_left
from typing import Final, final

from ..resources.resource import Resource, fits
from .handle import NodeHandle

_LONG: Final = 8
"""After so many entries without room the next search is to begin behind them."""
_PASSED_MAX: Final = 16
"""For so many sizes a block knows how many entries to pass by; at the bound all are searched anew."""


@final
class NodeEntry:
    """What the partition knows of one node, from the answers that the node gave."""

    __slots__ = (
        "available",
        "capacity",
        "instance_type",
        "key",
        "node",
        "node_id",
        "reserved",
        "schedulable",
    )

    def __init__(
        self, node: NodeHandle, node_id: str, instance_type: str, capacity: Resource, *, schedulable: bool
    ) -> None:
        self.node = node
        """The handle: in the actors engine each call is an ask."""
        self.node_id = node_id
        self.instance_type = instance_type
        self.capacity = capacity
        self.available = capacity
        self.schedulable = schedulable
        self.reserved = False
        self.key: tuple[float, str] = (0.0, node_id)

    @property
    def usable(self) -> bool:
        """Whether asks without a reservation here may be placed here."""
        return self.schedulable and not self.reserved

    def has_room(self, resource: Resource) -> bool:
        """Return whether an ask of that size without a reservation here may be placed here."""
        return self.usable and fits(self.available, resource) and fits(self.capacity, resource)


@final
class NodeBlock:
    """Some neighbouring entries, in order."""

    __slots__ = ("entries", "is_exact", "keys", "passed", "room")

    def __init__(self, keys: list[tuple[float, str]], entries: list[NodeEntry]) -> None:
        self.keys = keys
        self.entries = entries
        self.room: dict[str, int] | None = None
        """Per type the most that a usable entry has, or more; `None` when it must be measured again."""
        self.is_exact = False
        """The room is exact: measuring it again after a search without result would change nothing."""
        self.passed: dict[Resource, int] = {}
        """Size -> how many of the first entries have no room for it; of the sizes with long searches."""

    def measure(self) -> dict[str, int]:
        """Return and keep the most that any usable entry has available, per type."""
        room: dict[str, int] = {}
        for entry in self.entries:
            if entry.schedulable and not entry.reserved:
                for name, quantity in entry.available.items():
                    if quantity > room.get(name, 0):
                        room[name] = quantity
        self.room = room
        self.is_exact = True
        return room

    def may_fit(self, resource: Resource) -> bool:
        """Return whether some node here may have room, `False` if none can."""
        room = self.room
        if room is None:
            room = self.measure()
        for name, quantity in resource._quantities.items():
            if quantity > 0 and (name not in room or room[name] < quantity):
                return False
        return True

    def first_fit(self, resource: Resource) -> NodeEntry | None:
        """Return the first usable entry with room, `None` if there is none."""
        wanted = resource._quantities.items()
        start = self.passed.get(resource, 0) if self.passed else 0
        for index, entry in enumerate(self.entries[start:] if start else self.entries, start):
            if entry.reserved or not entry.schedulable:
                continue
            have = entry.available._quantities
            for name, quantity in wanted:  # As `fits` does; here a call would take as long as the rest.
                if quantity > 0 and (name not in have or have[name] < quantity):
                    break
            else:
                have = entry.capacity._quantities
                for name, quantity in wanted:
                    if quantity > 0 and (name not in have or have[name] < quantity):
                        break
                else:
                    if index >= start + _LONG:
                        self._pass(resource, index)
                    return entry
        if not self.is_exact:
            self.room = None
        return None

    def _pass(self, resource: Resource, count: int) -> None:
        """Remember that the first entries have no room for a size."""
        if len(self.passed) >= _PASSED_MAX:
            self.passed.clear()
        self.passed[resource] = count

    def insert(self, entry: NodeEntry) -> None:
        """Insert an entry in its place; the room is raised rather than measured."""
        index = bisect_left(self.keys, entry.key)
        self.keys.insert(index, entry.key)
        self.entries.insert(index, entry)
        self._raise(entry)
        if self.passed:
            for size, count in self.passed.items():
                if index < count:
                    self.passed[size] = index if fits(entry.available, size) else count + 1

    def widen(self, entry: NodeEntry) -> None:
        """Take note of an entry in this block that may have more available; the room is raised to it."""
        self.passed.clear()
        self._raise(entry)

    def _raise(self, entry: NodeEntry) -> None:
        room = self.room
        if room is not None and entry.schedulable and not entry.reserved:
            for name, quantity in entry.available._quantities.items():
                if quantity > 0 and (name not in room or quantity > room[name]):
                    room[name] = quantity

    def forget(self) -> None:
        """Have everything measured again: which entries are usable has changed."""
        self.room = None
        self.passed.clear()

    def discard(self, key: tuple[float, str]) -> None:
        """Remove the entry with that key; the room may be too large until a search measures it again."""
        self.is_exact = False
        index = bisect_left(self.keys, key)
        assert self.keys[index] == key, f"node {key} is not where its key says: please report"
        del self.keys[index]
        del self.entries[index]
        if self.passed:
            for size, count in self.passed.items():
                if index < count:
                    self.passed[size] = count - 1

    def split(self) -> NodeBlock:
        """Cut the second half off, and return it."""
        half = len(self.keys) // 2
        right = NodeBlock(self.keys[half:], self.entries[half:])
        del self.keys[half:], self.entries[half:]
        self.forget()
        return right

    def validate(self) -> None:
        """Assert that the entries that searches pass by have no room."""
        for size, count in self.passed.items():
            for entry in self.entries[:count]:
                assert not entry.has_room(size), (
                    f"{size!r} fits node {entry.node_id}, which searches pass by: please report"
                )
