"""Room for a whole gang: nodes for all members at once, or for none. Pure functions of free room and sizes.

Members of one size are placed exactly: if there is room for all of them it is found, since each member takes
the same from whichever node it is on. Several sizes are an instance of bin packing. They are tried twice:
the largest first, then the smallest first; each member gets the first node with room, in the order of nodes,
which changes as members take room. If neither finds room there may still be some. So a plan is always right,
and a missing one means `no room was found`. A search over all assignments was rejected: its time has no
bound, and a cycle waits for it.

A gang that names domains of nodes is tried in one domain after the other, on its nodes in their order there
(`licorne.model.nodes.topology`). If it has slices, all members have one size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import NamedTuple, TypeAlias

from ..resources.comparisons import prune
from ..resources.quantities import INT64_MAX
from ..resources.resource import Resource, fits, subtract, total_of
from .order import NodeOrder
from .topology import Domains

Score: TypeAlias = Callable[[str, Resource], float]
"""The place of a node in the order, the lowest first, by its id and what it has available."""

MayRun: TypeAlias = Callable[[int, str], bool]
"""Whether a member, by its position, may run on the node with that id."""


class NodeRoom(NamedTuple):
    """The available room of a node that may be used."""

    node_id: str
    available: Resource
    key: tuple[float, str] = (0.0, "")
    """Its place in the order of nodes, the lowest first; equal ones stay in the order of the sequence."""


def usable_rooms(nodes: NodeOrder, own: Container[str] = ()) -> list[NodeRoom]:
    """Return what the nodes have available that a gang may be placed on, in order.

    These are the nodes without a reservation, and its `own`: those that are reserved for it.
    """
    return [
        NodeRoom(node.node_id, node.available, node.key)
        for node in nodes
        if node.usable or (node.schedulable and node.node_id in own)
    ]


def plan_on(
    nodes: NodeOrder,
    sizes: Sequence[Resource],
    may_run: MayRun | None = None,
    left: Mapping[str, Resource] | None = None,
    *,
    own: Container[str] = (),
    domains: Domains | None = None,
) -> tuple[str, ...] | None:
    """Return a node for each member as `assign` does, on the nodes of now, in their order.

    `left` has the nodes of which only a part may be used, `own` those reserved for the gang.
    """

    def score(node_id: str, available: Resource) -> float:
        node = nodes.get(node_id)
        assert node is not None, f"node {node_id} has gone during a search: please report"
        return nodes.rule.key(node, available, nodes.weighted)

    rooms = usable_rooms(nodes, own)
    if left:
        rooms = [room._replace(available=left.get(room.node_id, room.available)) for room in rooms]
    return assign(sizes, rooms, score=score, may_run=may_run, domains=domains)


def assign(
    sizes: Sequence[Resource],
    rooms: Sequence[NodeRoom],
    *,
    score: Score | None = None,
    may_run: MayRun | None = None,
    domains: Domains | None = None,
) -> tuple[str, ...] | None:
    """Return a node for each member of a gang so that all fit at once, `None` if no room was found.

    Args:
        sizes: The request of each member.
        rooms: The usable nodes.
        score: The new place of a node after a member took room there; without it places do not change.
        may_run: Tells which members may run where; without it all may run on each node. With it the search is
            not exact for members of one size either.
        domains: The domains that the gang may have, whose order of nodes is then used.

    Returns:
        The ids of the nodes, in the order of the members.
    """
    groups = by_size(sizes, rooms)
    if domains is not None and groups:
        return _assign_in(domains, groups, sizes, rooms, may_run)
    placed = _fill(groups, sizes, rooms, score, may_run)
    if placed is None and len(groups) > 1:
        placed = _fill(groups[::-1], sizes, rooms, score, may_run)
    return placed


def _assign_in(
    domains: Domains,
    groups: Sequence[Sequence[int]],
    sizes: Sequence[Resource],
    rooms: Sequence[NodeRoom],
    may_run: MayRun | None,
) -> tuple[str, ...] | None:
    """Give the members nodes of the first domain that has room for all."""
    if domains.slice_depth and len(groups) > 1:
        return None
    largest = sizes[groups[0][0]]
    slots_of = slots_of_each(largest, rooms)
    for order in domains.orders([room.node_id for room in rooms], slots_of, len(groups[0])):
        inside = [rooms[index]._replace(key=(place, "")) for place, (index, _) in enumerate(order)]
        if domains.terms.balanced and len(groups) == 1:
            parts = zip(inside, order, strict=True)
            even = [
                room._replace(available=total_of([largest] * count)) for room, (_, count) in parts if count
            ]
            placed = _fill(groups, sizes, even, None, may_run)
            if placed is not None:
                return placed
        if domains.slice_depth:
            placed = _fill_slices(domains, sizes, inside, may_run)
        else:
            placed = assign(sizes, inside, may_run=may_run)
        if placed is not None:
            return placed
    return None


def _fill_slices(
    domains: Domains, sizes: Sequence[Resource], rooms: Sequence[NodeRoom], may_run: MayRun | None
) -> tuple[str, ...] | None:
    """Give each slice of members of one size the first of the domains for slices with room, in order."""
    size, count = sizes[0], domains.terms.slice_size
    placed: list[str] = []
    for domain, inside in groupby(rooms, key=lambda room: domains.slice_domain(room.node_id)):
        left = list(inside)
        while domain is not None and len(placed) < len(sizes):
            first = len(placed)
            allowed = None if may_run is None else partial(_later_member, may_run, first)
            found = _fill([range(count)], [size] * count, left, None, allowed)
            if found is None:
                break
            placed += found
            taken = Counter(found)
            left = [
                room._replace(
                    available=prune(subtract(room.available, total_of([size] * taken[room.node_id])))
                )
                if room.node_id in taken
                else room
                for room in left
            ]
    return tuple(placed) if len(placed) == len(sizes) else None


def _later_member(may_run: MayRun, first: int, member: int, node_id: str) -> bool:
    """Return whether a member may run on a node, by its position after the `first` ones."""
    return may_run(first + member, node_id)


def slots(size: Resource, rooms: Sequence[NodeRoom]) -> int:
    """Return how many members of one size have room at once without others.

    A size that asks for nothing counts once a node.
    """
    return sum(slots_of_each(size, rooms))


def slots_of_each(size: Resource, rooms: Sequence[NodeRoom]) -> list[int]:
    """Return how many members of one size each node has room for, see `slots`."""
    wanted = [(name, quantity) for name, quantity in size.items() if quantity > 0]
    if not wanted:
        return [1] * len(rooms)
    found = []
    for room in rooms:
        least = INT64_MAX
        for name, quantity in wanted:
            count = room.available.get(name) // quantity
            if count < least:
                least = count
                if count <= 0:
                    least = 0
                    break
        found.append(least)
    return found


def by_size(sizes: Sequence[Resource], rooms: Sequence[NodeRoom]) -> list[list[int]]:
    """Return the positions of the members by size, the size with the largest share of the room first."""
    groups: dict[Resource, list[int]] = {}
    for member, size in enumerate(sizes):
        groups.setdefault(size, []).append(member)
    if len(groups) > 1:
        total = total_of([room.available for room in rooms])
        return sorted(groups.values(), key=lambda members: -_dominant_share(sizes[members[0]], total))
    return list(groups.values())


def _dominant_share(size: Resource, total: Resource) -> float:
    """Return the largest share that a size has of the room, of any type; infinite without any room."""
    return max((_share(quantity, total.get(name)) for name, quantity in size.items()), default=0.0)


def _share(quantity: int, total: int) -> float:
    if quantity <= 0:
        return 0.0
    return quantity / total if total > 0 else float("inf")


def _fill(
    groups: Sequence[Sequence[int]],
    sizes: Sequence[Resource],
    rooms: Sequence[NodeRoom],
    score: Score | None,
    may_run: MayRun | None,
) -> tuple[str, ...] | None:
    """Give each member the first node with room, one size after the other; `None` if one finds none.

    Room only shrinks, so that a node without room for a size is not looked at again for that size.
    """
    left = list(rooms)
    placed = [""] * len(sizes)
    for members in groups:
        size = sizes[members[0]]
        fitting = [(room.key, index) for index, room in enumerate(left) if fits(room.available, size)]
        heapify(fitting)
        for member in members:
            index = _first_allowed(fitting, left, member, may_run)
            if index is None:
                return None
            node_id, available, key = left[index]
            available = prune(subtract(available, size))
            if score is not None:
                key = (score(node_id, available), key[1])
            left[index] = NodeRoom(node_id, available, key)
            placed[member] = node_id
            if fits(available, size):
                heappush(fitting, (key, index))
    return tuple(placed)


def _first_allowed(
    fitting: list[tuple[tuple[float, str], int]],
    rooms: Sequence[NodeRoom],
    member: int,
    may_run: MayRun | None,
) -> int | None:
    """Take the first node on which a member may run out of a heap, `None` without one."""
    passed = []
    found = None
    for place in _popped(fitting):
        if may_run is None or may_run(member, rooms[place[1]].node_id):
            found = place[1]
            break
        passed.append(place)
    for place in passed:
        heappush(fitting, place)
    return found


def _popped(
    heap: list[tuple[tuple[float, str], int]],
) -> Iterator[tuple[tuple[float, str], int]]:
    while heap:
        yield heappop(heap)
