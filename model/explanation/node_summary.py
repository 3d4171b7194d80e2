"""What the nodes say to an ask: how many refuse it for which reason, and which one comes nearest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..resources.comparisons import fit_score
from ..resources.resource import EMPTY, fits
from .blockers import Lack, lacks_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..nodes.order import NodeSeat
    from ..resources.resource import Resource

__all__ = [
    "EXAMPLES_MAX",
    "NearMiss",
    "NodeObstacle",
    "NodeSummary",
    "NodeTally",
    "node_lacks",
    "obstacle_of",
    "summarise",
]

EXAMPLES_MAX: Final = 3
"""How many nodes are named for each reason."""


class NodeObstacle(Enum):
    """Why a node does not take an ask. A node is counted once, for the reason that is hardest to change."""

    TOO_SMALL = "too small even when empty"
    UNSCHEDULABLE = "cordoned"
    NO_ROOM = "without enough room left"
    RESERVED = "with room, but reserved for another ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTally:
    """How many nodes refuse for one reason.

    `types` says for how many of them each resource type is too little; empty where it is not about room.
    `examples` are the first of them in scheduling order, `reserved_for` the asks that hold these.
    """

    obstacle: NodeObstacle
    nodes: int
    types: tuple[tuple[str, int], ...] = ()
    examples: tuple[str, ...] = ()
    reserved_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The node that lacks least, among those that lack nothing but room."""

    node_id: str
    lacks: tuple[Lack, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """All nodes of a partition in the eyes of one ask.

    `first` is the node that the ask would be tried on first, the empty text if none has room.
    """

    total: int
    with_room: int
    first: str
    tallies: tuple[NodeTally, ...]
    nearest: NearMiss | None


def obstacle_of(seat: NodeSeat, resource: Resource, *, own: bool = False) -> NodeObstacle | None:
    """Return why a node does not take an ask, `None` if it does: what `NodeOrder.fitting` asks of it.

    Args:
        seat: The node.
        resource: What the ask wants.
        own: The node is reserved for this very ask.
    """
    if not fits(seat.capacity, resource):
        return NodeObstacle.TOO_SMALL
    if not seat.schedulable:
        return NodeObstacle.UNSCHEDULABLE
    if not fits(seat.available, resource):
        return NodeObstacle.NO_ROOM
    return NodeObstacle.RESERVED if seat.reserved and not own else None


def node_lacks(resource: Resource, room: Resource, capacity: Resource) -> tuple[Lack, ...]:
    """Return what a node has too little of: `room` is what it has left, or all of it."""
    missing = lacks_of(resource, room, EMPTY, {}, "", is_closed=True)
    return tuple(
        Lack(name=lack.name, asked=lack.asked, available=lack.available, limit=capacity.get(lack.name))
        for lack in missing
    )


def summarise(nodes: Iterable[NodeSeat], resource: Resource, *, own_node: str = "") -> NodeSummary:
    """Ask every node, in scheduling order.

    Args:
        nodes: The nodes.
        resource: What the ask wants.
        own_node: The node that is reserved for the ask, or the empty text.
    """
    refusing: dict[NodeObstacle, list[NodeSeat]] = {obstacle: [] for obstacle in NodeObstacle}
    willing: list[NodeSeat] = []
    for seat in nodes:
        obstacle = obstacle_of(seat, resource, own=seat.node_id == own_node)
        (willing if obstacle is None else refusing[obstacle]).append(seat)
    first = next((seat for seat in willing if seat.node_id == own_node), willing[0] if willing else None)
    return NodeSummary(
        total=len(willing) + sum(map(len, refusing.values())),
        with_room=len(willing),
        first="" if first is None else first.node_id,
        tallies=tuple(_tally(obstacle, seats, resource) for obstacle, seats in refusing.items() if seats),
        nearest=_nearest(refusing[NodeObstacle.NO_ROOM], resource),
    )


def _tally(obstacle: NodeObstacle, seats: list[NodeSeat], resource: Resource) -> NodeTally:
    types: dict[str, int] = {}
    if obstacle in (NodeObstacle.TOO_SMALL, NodeObstacle.NO_ROOM):
        for seat in seats:
            room = seat.capacity if obstacle is NodeObstacle.TOO_SMALL else seat.available
            for lack in node_lacks(resource, room, seat.capacity):
                types[lack.name] = types.get(lack.name, 0) + 1
    shown = seats[:EXAMPLES_MAX]
    held = obstacle is NodeObstacle.RESERVED
    return NodeTally(
        obstacle=obstacle,
        nodes=len(seats),
        types=tuple(sorted(types.items())),
        examples=tuple(seat.node_id for seat in shown),
        reserved_for=tuple(key for seat in shown for key in seat.node.facts().reservations) if held else (),
    )


def _nearest(seats: list[NodeSeat], resource: Resource) -> NearMiss | None:
    if not seats:
        return None
    best = min(seats, key=lambda seat: (fit_score(seat.available, resource), seat.key))
    return NearMiss(node_id=best.node_id, lacks=node_lacks(resource, best.available, best.capacity))
