"""The partition's view of its nodes: an order by a rule, kept while nodes change, that skips full nodes.

Nodes are ordered by (key, node id), lowest first; `licorne.model.nodes.node_orders` has the rules.
They are in blocks of about a hundred. A block knows the most that any usable node in it has of each type: one
comparison skips it; for a size whose search was long, also how many of its first nodes have no room. A size
without room is `closed` until a node gains some: the next search is one look-up.

Rejected: no blocks (binpacking walks all full nodes for each ask); a list of fitting nodes for each size.
"""

from __future__ import annotations

# ruff: noqa: SLF001 - a search compares some hundred nodes with an ask; the dicts of the resources are only read.
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, final

from ..marks import Marks
from ..resources.comparisons import fit_score, prune
from ..resources.resource import Resource, add, fits, subtract
from ..resources.size_index import SizeIndex
from .entry import NodeEntry

if TYPE_CHECKING:
    from .node_orders import NodeOrderRule

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {"vcore": 1.0, "memory": 1.0}
_BLOCK_SPLIT: Final = 192
_CLOSED_MIN: Final = 256
"""With fewer resources that have no room it is not looked up which of them wait no longer."""
_SIZES_MAX: Final = 16
"""Sizes whose ranking is kept; at the bound the oldest is forgotten and made again."""
_LONG: Final = 8
"""After this many entries without room the next search is to begin behind them."""
_PASSED_MAX: Final = 16
"""For this many sizes a block knows how many entries to pass by; at the bound all are searched anew."""


@final
class NodeOrder:
    """The entries of a partition's nodes in scheduling order."""

    MARKS: Final = Marks(
        writes=(
            "set_rule",
            "add",
            "remove",
            "take",
            "give",
            "give_unscored",
            "set_reserved",
            "set_schedulable",
            *("first_fit", "take_first_fit", "give_back"),
        )
    )

    def __init__(self, rule: NodeOrderRule, weights: Mapping[str, float]) -> None:
        self._blocks: list[NodeBlock] = []
        self._last_keys: list[tuple[float, str]] = []
        self._entries: dict[str, NodeEntry] = {}
        self.changes = 0
        """Counts the changes of nodes, and of their order."""
        self.gains = 0
        """Counts the changes after which some node may have room that had none."""
        self._lacking = SizeIndex()
        self.closed: Mapping[Resource, int] = self._lacking.serials
        """Resources for which no usable node has room: all that wait; `forget_closed` removes the others."""
        self.opened: set[Resource] = set()
        """Those closed no longer since what waits for them was last woken."""
        self.closed_max = _CLOSED_MIN
        """With more of them `forget_closed` is due."""
        self.reserved_gains: dict[str, NodeEntry] = {}
        """Reserved nodes that may have gained room since the pass over reserved asks looked, by id."""
        self.ask_class: Final = ""
        self.ranked: dict[Resource, list[NodeEntry]] = {}
        """Filled by searches for a node to reserve; empty after a change of a node that is not reserved."""
        self._order_by(rule, weights)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[NodeEntry]:
        """Walk all entries in order, usable or not."""
        for block in self._blocks:
            yield from block.entries

    def get(self, node_id: str) -> NodeEntry | None:
        """Return the entry of a node, if it is known."""
        return self._entries.get(node_id)

    def by_name(self) -> list[NodeEntry]:
        """Return all entries ordered by node id."""
        return [self._entries[name] for name in sorted(self._entries)]

    def set_rule(self, rule: NodeOrderRule, weights: Mapping[str, float]) -> None:
        """Order by a rule, and find all places anew; an empty map of weights means the default ones."""
        self.changes += 1
        self.gains += 1
        self._order_by(rule, weights)

    def _order_by(self, rule: NodeOrderRule, weights: Mapping[str, float]) -> None:
        self.rule = rule.begun(self._entries.values())
        self.weights = dict(weights) or dict(DEFAULT_WEIGHTS)
        self.weighted = [(name, weight) for name, weight in self.weights.items() if weight]
        self._rebuild()

    # ---------------------------------------------------------------------------------- changes

    def add(self, entry: NodeEntry) -> None:
        """Add a node."""
        assert entry.node_id not in self._entries, f"node {entry.node_id} is known: please report"
        self._entries[entry.node_id] = entry
        entry.key = (self.rule.score(self, entry), entry.node_id)
        self._insert(entry)
        self._open(entry)

    def remove(self, node_id: str) -> NodeEntry:
        """Remove a node."""
        entry = self._entries.pop(node_id)
        self.changes += 1
        self.ranked.clear()
        self.reserved_gains.pop(node_id, None)
        self._discard(entry)
        self.rule.removed(self, entry)
        return entry

    def take(self, entry: NodeEntry, available: Resource) -> None:
        """Note that a node has less available than before."""
        entry.available = available
        self._reinsert(entry)

    def give(self, entry: NodeEntry, available: Resource) -> None:
        """Note that a node may have more available than before."""
        entry.available = available
        self._reinsert(entry)
        self._open(entry)

    def give_unscored(self, entry: NodeEntry, available: Resource) -> None:
        """Note the available room of a node after a change that does not move it.

        Foreign allocations and changes of size do not move a node: the next placement or release there
        does. The recorded core orders so, and what an RM sees placed where follows from the order.
        """
        entry.available = available
        block = self._blocks[self._block_index(entry.key)]
        block.is_exact = False
        block.widen(entry)
        self._open(entry)

    def set_reserved(self, entry: NodeEntry, *, reserved: bool) -> None:
        """Note that a node is reserved, or that it no longer is."""
        entry.reserved = reserved
        self._usability_changed(entry)

    def set_schedulable(self, entry: NodeEntry, *, schedulable: bool) -> None:
        """Note that a node is cordoned, or that it no longer is."""
        entry.schedulable = schedulable
        self._reinsert(entry)
        self._usability_changed(entry)

    def _usability_changed(self, entry: NodeEntry) -> None:
        self._blocks[self._block_index(entry.key)].forget()
        self._open(entry)

    def _open(self, entry: NodeEntry) -> None:
        self.changes += 1
        self.gains += 1
        if entry.reserved:
            self.reserved_gains[entry.node_id] = entry
        else:
            self.ranked.clear()
        if self.closed and entry.usable:
            self.opened.update(self._lacking.take_fitting(entry.available, undefined_unlimited=False))

    # --------------------------------------------------------------------------------- searching

    def first_fit(self, resource: Resource) -> NodeEntry | None:
        """Return the first usable node with room; remember the resource as closed without one."""
        if self.closed and resource in self.closed:
            return None
        for block in self._blocks:
            if block.may_fit(resource):
                entry = block.first_fit(resource)
                if entry is not None:
                    return entry
        self._lacking.add(resource)
        return None

    def take_first_fit(self, resource: Resource) -> NodeEntry | None:
        """Return the first usable node with room, and count the resource as taken there; one step."""
        entry = NodeOrder.first_fit(self, resource)
        if entry is not None:
            NodeOrder.take(self, entry, prune(subtract(entry.available, resource)))
        return entry

    def give_back(self, entry: NodeEntry, resource: Resource) -> None:
        """Count a resource as available again that `take_first_fit` took for a placement which was undone."""
        NodeOrder.give(self, entry, prune(add(entry.available, resource)))

    def fitting(self, resource: Resource, unchecked: Container[str] = ()) -> Iterator[NodeEntry]:
        """Walk the usable nodes with room, in order; the walk ends when the order is changed.

        Nodes that are `unchecked` may be walked without room: to check it takes most of the time.
        """
        for block in self._blocks:
            if not block.may_fit(resource):
                continue
            missed = True
            for entry in block.entries:
                if unchecked and entry.node_id in unchecked:
                    yield entry
                elif (
                    entry.schedulable
                    and not entry.reserved
                    and fits(entry.available, resource)
                    and fits(entry.capacity, resource)
                ):
                    missed = False
                    yield entry
            if missed and not block.is_exact:
                block.room = None

    # --------------------------------------------------------------------------------- the order

    def _reinsert(self, entry: NodeEntry) -> None:
        """Find the place of a node anew; one that is cordoned keeps its place until it is no longer."""
        self.changes += 1
        if not entry.reserved:
            self.ranked.clear()
        if not entry.schedulable:
            return  # No search takes it. While an RM recovers all its nodes are cordoned.
        if (score := self.rule.score(self, entry)) != entry.key[0]:
            self._discard(entry)
            entry.key = (score, entry.node_id)
            self._insert(entry)
            return
        block = self._blocks[self._block_index(entry.key)]
        block.is_exact = False
        block.widen(entry)

    def _block_index(self, key: tuple[float, str]) -> int:
        index = bisect_left(self._last_keys, key)
        return index if index < len(self._blocks) else index - 1

    def _insert(self, entry: NodeEntry) -> None:
        if not self._blocks:
            self._blocks.append(NodeBlock([], []))
            self._last_keys.append(entry.key)
        index = self._block_index(entry.key)
        block = self._blocks[index]
        block.insert(entry)
        self._last_keys[index] = block.keys[-1]
        if len(block.keys) > _BLOCK_SPLIT:
            right = block.split()
            self._blocks.insert(index + 1, right)
            self._last_keys[index : index + 1] = [block.keys[-1], right.keys[-1]]

    def _discard(self, entry: NodeEntry) -> None:
        index = self._block_index(entry.key)
        block = self._blocks[index]
        block.discard(entry.key)
        if block.keys:
            self._last_keys[index] = block.keys[-1]
        else:
            del self._blocks[index], self._last_keys[index]

    def _rebuild(self) -> None:
        entries = list(self._entries.values())
        for entry in entries:
            entry.key = (self.rule.score(self, entry), entry.node_id)
        entries.sort(key=lambda entry: entry.key)
        half = _BLOCK_SPLIT // 2
        chunks = [entries[start : start + half] for start in range(0, len(entries), half)]
        self._blocks = [NodeBlock([entry.key for entry in chunk], chunk) for chunk in chunks]
        self._last_keys = [block.keys[-1] for block in self._blocks]
        self._lacking.clear()
        self.ranked.clear()

    def validate(self) -> None:
        """Assert that the order is sorted and complete, and that `closed` is right."""
        walked = list(self)
        assert len(walked) == len(self._entries), "nodes are missing from the order"
        keys = [entry.key for entry in walked]
        assert keys == sorted(keys), "nodes are out of order"
        for entry in walked:
            for resource in self.closed:
                assert not entry.has_room(resource), (
                    f"{resource!r} fits node {entry.node_id} but is remembered as having no room"
                )
        for block in self._blocks:
            block.validate()


def find_places(order: NodeOrder, entries: Iterable[NodeEntry]) -> None:
    """Find the places of some nodes anew, whose keys have changed with those of others."""
    for entry in entries:
        order._reinsert(entry)


def forget_closed(order: NodeOrder, waiting: Container[Resource]) -> None:
    """Forget the resources without room that wait no longer: a node that gains compares all that are kept."""
    for resource in [each for each in order.closed if each not in waiting]:
        order._lacking.remove(resource)
    order.closed_max = max(_CLOSED_MIN, 2 * len(order.closed))


def node_ids(order: NodeOrder) -> tuple[str, ...]:
    """Return the ids of all nodes, in the order in which they came."""
    return tuple(order._entries)


def first_to_reserve(order: NodeOrder, resource: Resource) -> NodeEntry | None:
    """Return the usable node with the least use for others that is large enough, if any.

    The order is by the available room in addition to the request, not by the lack of room: a
    nearly full node is reserved rather than one that smaller asks can still use.

    All nodes are ranked for one reservation, and the ranking is kept until a node that is not reserved
    changes: a thousand reservations in a row need one ranking.
    """
    ranking = order.ranked.get(resource)
    if ranking is None:
        ranking = [entry for entry in order if entry.usable and fits(entry.capacity, resource)]
        ranking.sort(key=lambda entry: fit_score(resource, entry.available))
        ranking.reverse()  # The best is last, where it is cheap to remove.
        if len(order.ranked) >= _SIZES_MAX:
            del order.ranked[next(iter(order.ranked))]
        order.ranked[resource] = ranking
    while ranking and not ranking[-1].usable:
        ranking.pop()
    return ranking[-1] if ranking else None


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
        """Return the first usable entry with room, if any."""
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
        assert self.keys[index] == key, f"node {key} is not at the place of its key: please report"
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
