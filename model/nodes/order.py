"""The partition's view of its nodes: an order by policy, kept while nodes change, that skips full nodes.

Nodes are ordered by (score, node id), lowest first. `fair` scores a node by its usage, so the emptiest
comes first; `binpacking` by what is left, so the fullest comes first.

The order is a list of blocks of about a hundred seats. Each block knows, per resource type, the most that
any usable node in it has available. A search for room skips a whole block with one comparison, so that it
looks at some hundred seats among 10,000 where most are full. A resource for which a search found nothing
is remembered as `closed` until a node gains room: asking again costs one look into a dictionary.

Rejected: a sorted list without blocks (binpacking walks all full nodes for each ask: the recorded core
spends 67 % of its time there); one list of fitting nodes for each size of ask (every change of a node then
costs one update a size, and sizes are not bounded).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, final

from ..configuration.schema import NodeSortPolicy
from ..marks import writes
from ..resources.combinations import prune
from ..resources.comparisons import fit_score
from ..resources.resource import add, fits, subtract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..resources.resource import Resource
    from .node import Node

__all__ = ["DEFAULT_WEIGHTS", "NodeOrder", "NodeSeat"]

DEFAULT_WEIGHTS: Final[Mapping[str, float]] = {"vcore": 1.0, "memory": 1.0}
_BLOCK_SPLIT: Final = 192
_CLOSED_MAX: Final = 256
"""Resources remembered as having no room; at the bound the oldest is forgotten and searched for again."""


@final
class NodeSeat:
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
        self, node: Node, node_id: str, instance_type: str, capacity: Resource, *, schedulable: bool
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


@final
class _Block:
    """Some neighbouring seats, in order."""

    __slots__ = ("is_exact", "keys", "room", "seats")

    def __init__(self, keys: list[tuple[float, str]], seats: list[NodeSeat]) -> None:
        self.keys = keys
        self.seats = seats
        self.room: dict[str, int] | None = None
        """Per type the most that a usable seat has, or more; `None` when it must be measured again."""
        self.is_exact = False
        """The room is no more than that: a search that it has misled learns nothing by measuring again."""

    def measure(self) -> dict[str, int]:
        """Return and keep the most that any usable seat has available, per type."""
        room: dict[str, int] = {}
        for seat in self.seats:
            if seat.schedulable and not seat.reserved:
                for name, quantity in seat.available.items():
                    if quantity > room.get(name, 0):
                        room[name] = quantity
        self.room = room
        self.is_exact = True
        return room

    def may_fit(self, resource: Resource) -> bool:
        """Tell whether some node here may have room, `False` if none can."""
        room = self.room
        if room is None:
            room = self.measure()
        for name, quantity in resource.items():  # noqa: SIM110 - a generator takes twice as long here
            if quantity > 0 and room.get(name, 0) < quantity:
                return False
        return True

    def insert(self, seat: NodeSeat) -> None:
        """Put a seat in its place; the room is widened rather than measured."""
        index = bisect_left(self.keys, seat.key)
        self.keys.insert(index, seat.key)
        self.seats.insert(index, seat)
        self.widen(seat)

    def widen(self, seat: NodeSeat) -> None:
        """Count what a seat in this block has available."""
        room = self.room
        if room is not None and seat.schedulable and not seat.reserved:
            for name, quantity in seat.available.items():
                if quantity > room.get(name, 0):
                    room[name] = quantity

    def discard(self, key: tuple[float, str]) -> None:
        """Take the seat with that key out. The room stays too wide at worst: measured when it misleads."""
        self.is_exact = False
        index = bisect_left(self.keys, key)
        assert self.keys[index] == key, f"node {key} is not where its key says: please report"
        del self.keys[index]
        del self.seats[index]


@final
class NodeOrder:
    """The seats of a partition's nodes in scheduling order."""

    def __init__(self, policy: NodeSortPolicy, weights: Mapping[str, float]) -> None:
        self._blocks: list[_Block] = []
        self._last_keys: list[tuple[float, str]] = []
        self._seats: dict[str, NodeSeat] = {}
        self.gains = 0
        """Counts the changes after which some node may have room that had none."""
        self.closed: dict[Resource, None] = {}
        """Resources for which no usable node has room now."""
        self._order_by(policy, weights)

    def __len__(self) -> int:
        return len(self._seats)

    def __iter__(self) -> Iterator[NodeSeat]:
        """Walk all seats in order, usable or not."""
        for block in self._blocks:
            yield from block.seats

    def get(self, node_id: str) -> NodeSeat | None:
        """Return the seat of a node, if it is known."""
        return self._seats.get(node_id)

    def by_name(self) -> list[NodeSeat]:
        """Return all seats ordered by node id."""
        return [self._seats[name] for name in sorted(self._seats)]

    @writes
    def set_policy(self, policy: NodeSortPolicy, weights: Mapping[str, float]) -> None:
        """Order by another policy; an empty map of weights means the default ones."""
        self.gains += 1
        self._order_by(policy, weights)

    def _order_by(self, policy: NodeSortPolicy, weights: Mapping[str, float]) -> None:
        self.policy = policy
        self.weights = dict(weights) or dict(DEFAULT_WEIGHTS)
        self._weighted = [(name, weight) for name, weight in self.weights.items() if weight]
        self._rebuild()

    # ---------------------------------------------------------------------------------- changes

    @writes
    def add(self, seat: NodeSeat) -> None:
        """Take a node in."""
        assert seat.node_id not in self._seats, f"node {seat.node_id} is known: please report"
        self._seats[seat.node_id] = seat
        seat.key = (self._score(seat), seat.node_id)
        self._insert(seat)
        self._open(seat)

    @writes
    def remove(self, node_id: str) -> NodeSeat:
        """Take a node out."""
        seat = self._seats.pop(node_id)
        self._discard(seat)
        return seat

    @writes
    def take(self, seat: NodeSeat, available: Resource) -> None:
        """Note that a node has less available than before."""
        seat.available = available
        self._place_anew(seat)

    @writes
    def give(self, seat: NodeSeat, available: Resource) -> None:
        """Note that a node may have more available than before."""
        seat.available = available
        self._place_anew(seat)
        self._open(seat)

    @writes
    def give_unscored(self, seat: NodeSeat, available: Resource) -> None:
        """Note what a node has available after a change that leaves its place as it was.

        Foreign allocations and changes of size do not move a node: the next placement or release there
        does. The recorded core orders so, and what an RM sees placed where follows from the order.
        """
        seat.available = available
        block = self._blocks[self._block_index(seat.key)]
        block.is_exact = False
        block.widen(seat)
        self._open(seat)

    @writes
    def set_reserved(self, seat: NodeSeat, *, reserved: bool) -> None:
        """Note that a node is reserved, or that it no longer is."""
        seat.reserved = reserved
        self._usability_changed(seat)

    @writes
    def set_schedulable(self, seat: NodeSeat, *, schedulable: bool) -> None:
        """Note that a node is cordoned, or that it no longer is."""
        seat.schedulable = schedulable
        self._place_anew(seat)
        self._usability_changed(seat)

    def _usability_changed(self, seat: NodeSeat) -> None:
        self._blocks[self._block_index(seat.key)].room = None
        self._open(seat)

    def _open(self, seat: NodeSeat) -> None:
        self.gains += 1
        if self.closed and seat.usable:
            for resource in [closed for closed in self.closed if fits(seat.available, closed)]:
                del self.closed[resource]

    # --------------------------------------------------------------------------------- searching

    @writes
    def first_fit(self, resource: Resource) -> NodeSeat | None:
        """Return the first usable node with room; remember the resource as closed if there is none."""
        if resource in self.closed:
            return None
        for seat in self.fitting(resource):
            return seat
        if len(self.closed) >= _CLOSED_MAX:
            del self.closed[next(iter(self.closed))]
        self.closed[resource] = None
        return None

    @writes
    def take_first_fit(self, resource: Resource) -> NodeSeat | None:
        """Return the first usable node with room, and count the resource as taken there; one step."""
        seat = NodeOrder.first_fit(self, resource)
        if seat is not None:
            NodeOrder.take(self, seat, prune(subtract(seat.available, resource)))
        return seat

    @writes
    def give_back(self, seat: NodeSeat, resource: Resource) -> None:
        """Count a resource as taken no longer that the node did not take."""
        NodeOrder.give(self, seat, prune(add(seat.available, resource)))

    def fitting(self, resource: Resource) -> Iterator[NodeSeat]:
        """Walk the usable nodes with room, in order; the walk ends when the order is changed."""
        for block in self._blocks:
            if not block.may_fit(resource):
                continue
            missed = True
            for seat in block.seats:
                if (
                    seat.schedulable
                    and not seat.reserved
                    and fits(seat.available, resource)
                    and fits(seat.capacity, resource)
                ):
                    missed = False
                    yield seat
            if missed and not block.is_exact:
                block.room = None

    def best_to_reserve(self, resource: Resource) -> list[NodeSeat]:
        """Return the usable nodes that are large enough, those of the least use to others first.

        What counts is how much a node has available beyond what is asked, not how much it lacks: a node
        that is about as full as it can be is reserved rather than one that smaller asks can still use.
        """
        large = [seat for seat in self if seat.usable and fits(seat.capacity, resource)]
        large.sort(key=lambda seat: fit_score(resource, seat.available))
        return large

    # --------------------------------------------------------------------------------- the order

    def _score(self, seat: NodeSeat) -> float:
        capacity = seat.capacity
        available = seat.available
        used = 0.0
        weights = 0.0
        for name, weight in self._weighted:
            total = capacity.get(name)
            if total:
                used += weight * (1.0 - available.get(name) / total)
                weights += weight
        usage = used / weights if weights else 0.0
        return usage if self.policy is NodeSortPolicy.FAIR else 1.0 - usage

    def _place_anew(self, seat: NodeSeat) -> None:
        score = self._score(seat)
        if score != seat.key[0]:
            self._discard(seat)
            seat.key = (score, seat.node_id)
            self._insert(seat)
            return
        block = self._blocks[self._block_index(seat.key)]
        block.is_exact = False
        block.widen(seat)

    def _block_index(self, key: tuple[float, str]) -> int:
        index = bisect_left(self._last_keys, key)
        return min(index, len(self._blocks) - 1)

    def _insert(self, seat: NodeSeat) -> None:
        if not self._blocks:
            self._blocks.append(_Block([], []))
            self._last_keys.append(seat.key)
        index = self._block_index(seat.key)
        block = self._blocks[index]
        block.insert(seat)
        self._last_keys[index] = block.keys[-1]
        if len(block.keys) > _BLOCK_SPLIT:
            half = len(block.keys) // 2
            right = _Block(block.keys[half:], block.seats[half:])
            del block.keys[half:], block.seats[half:]
            block.room = None
            self._blocks.insert(index + 1, right)
            self._last_keys[index : index + 1] = [block.keys[-1], right.keys[-1]]

    def _discard(self, seat: NodeSeat) -> None:
        index = self._block_index(seat.key)
        block = self._blocks[index]
        block.discard(seat.key)
        if block.keys:
            self._last_keys[index] = block.keys[-1]
        else:
            del self._blocks[index], self._last_keys[index]

    def _rebuild(self) -> None:
        seats = list(self._seats.values())
        for seat in seats:
            seat.key = (self._score(seat), seat.node_id)
        seats.sort(key=lambda seat: seat.key)
        half = _BLOCK_SPLIT // 2
        chunks = [seats[start : start + half] for start in range(0, len(seats), half)]
        self._blocks = [_Block([seat.key for seat in chunk], chunk) for chunk in chunks]
        self._last_keys = [block.keys[-1] for block in self._blocks]
        self.closed.clear()

    def validate(self) -> None:
        """Assert that the order is one, that it is complete, and that `closed` is true."""
        walked = list(self)
        assert len(walked) == len(self._seats), "nodes are missing from the order"
        keys = [seat.key for seat in walked]
        assert keys == sorted(keys), "nodes are out of order"
        for seat in walked:
            for resource in self.closed:
                has_room = fits(seat.available, resource) and fits(seat.capacity, resource)
                assert not (seat.usable and has_room), (
                    f"{resource!r} fits node {seat.node_id} but is remembered as having no room"
                )
