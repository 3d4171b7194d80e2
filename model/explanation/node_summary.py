"""The answers of the nodes to an ask: how many refuse it for which reason, and which one lacks least."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ..nodes.order import NodeEntry
from ..resources.comparisons import fit_score
from ..resources.resource import EMPTY, Resource, add, fits
from .blockers import Lack, lacks_of

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

    `types` says of how many of them each resource type is too little; empty if the reason is not room.
    `examples` are the first of them in scheduling order, `reserved_for` the asks that hold these. Without the
    work of other schedulers those in `foreign` would have room.
    """

    obstacle: NodeObstacle
    nodes: int
    types: tuple[tuple[str, int], ...] = ()
    examples: tuple[str, ...] = ()
    reserved_for: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The node that lacks least, among those that lack only room.

    `foreign` is what the work of other schedulers uses there of the types that lack.
    """

    node_id: str
    lacks: tuple[Lack, ...]
    foreign: Resource = EMPTY


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """All nodes of a partition, summarised for one ask.

    `first` is the node that the ask would be tried on first, the empty text if none has room.
    """

    total: int
    with_room: int
    first: str
    tallies: tuple[NodeTally, ...]
    nearest: NearMiss | None


def obstacle_of(entry: NodeEntry, resource: Resource, *, own: bool = False) -> NodeObstacle | None:
    """Return why a node does not take an ask, `None` if it does: what `NodeOrder.fitting` asks of it.

    Args:
        entry: The node.
        resource: What the ask wants.
        own: The node is reserved for this very ask.
    """
    if not fits(entry.capacity, resource):
        return NodeObstacle.TOO_SMALL
    if not entry.schedulable:
        return NodeObstacle.UNSCHEDULABLE
    if not fits(entry.available, resource):
        return NodeObstacle.NO_ROOM
    return NodeObstacle.RESERVED if entry.reserved and not own else None


def node_lacks(resource: Resource, room: Resource, capacity: Resource) -> tuple[Lack, ...]:
    """Return what a node has too little of: `room` is what it has left, or all of it."""
    missing = lacks_of(resource, room, EMPTY, {}, "", is_closed=True)
    return tuple(
        Lack(name=lack.name, asked=lack.asked, available=lack.available, limit=capacity.get(lack.name))
        for lack in missing
    )


def used_by_others(entry: NodeEntry, lacks: Iterable[Lack]) -> Resource:
    """Return what the work of other schedulers uses on a node of the types that lack."""
    occupied = entry.node.facts().occupied
    return Resource({lack.name: used for lack in lacks if (used := occupied.get(lack.name)) > 0})


def summarise(nodes: Iterable[NodeEntry], resource: Resource, *, own_node: str = "") -> NodeSummary:
    """Ask every node, in scheduling order.

    Args:
        nodes: The nodes.
        resource: What the ask wants.
        own_node: The node that is reserved for the ask, or the empty text.
    """
    refusing: dict[NodeObstacle, list[NodeEntry]] = {obstacle: [] for obstacle in NodeObstacle}
    willing: list[NodeEntry] = []
    for entry in nodes:
        obstacle = obstacle_of(entry, resource, own=entry.node_id == own_node)
        (willing if obstacle is None else refusing[obstacle]).append(entry)
    first = next((entry for entry in willing if entry.node_id == own_node), willing[0] if willing else None)
    return NodeSummary(
        total=len(willing) + sum(map(len, refusing.values())),
        with_room=len(willing),
        first="" if first is None else first.node_id,
        tallies=tuple(
            _tally(obstacle, entries, resource) for obstacle, entries in refusing.items() if entries
        ),
        nearest=_nearest(refusing[NodeObstacle.NO_ROOM], resource),
    )


def _tally(obstacle: NodeObstacle, entries: list[NodeEntry], resource: Resource) -> NodeTally:
    types: dict[str, int] = {}
    if obstacle in (NodeObstacle.TOO_SMALL, NodeObstacle.NO_ROOM):
        for entry in entries:
            room = entry.capacity if obstacle is NodeObstacle.TOO_SMALL else entry.available
            for lack in node_lacks(resource, room, entry.capacity):
                types[lack.name] = types.get(lack.name, 0) + 1
    shown = entries[:EXAMPLES_MAX]
    held, is_full = obstacle is NodeObstacle.RESERVED, obstacle is NodeObstacle.NO_ROOM
    return NodeTally(
        obstacle=obstacle,
        nodes=len(entries),
        types=tuple(sorted(types.items())),
        examples=tuple(entry.node_id for entry in shown),
        reserved_for=tuple(key for entry in shown for key in entry.node.facts().reservations) if held else (),
        foreign=tuple(entry.node_id for entry in shown if is_full and _is_filled_by_others(entry, resource)),
    )


def _is_filled_by_others(entry: NodeEntry, resource: Resource) -> bool:
    """Return whether a node without room would have it if other schedulers had placed nothing there."""
    return fits(add(entry.available, entry.node.facts().occupied), resource)


def _nearest(entries: list[NodeEntry], resource: Resource) -> NearMiss | None:
    if not entries:
        return None
    best = min(entries, key=lambda entry: (fit_score(entry.available, resource), entry.key))
    lacks = node_lacks(resource, best.available, best.capacity)
    return NearMiss(node_id=best.node_id, lacks=lacks, foreign=used_by_others(best, lacks))
