"""The places of queues, applications and asks in the scheduler's orders, and what goes before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..configuration.positions import Position
from ..configuration.queue_properties import (
    APPLICATION_SORT_POLICY,
    APPLICATION_SORT_PRIORITY,
    SortPolicy,
)
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.ranks import ranked_children
from ..queues.tree import QueueTree

__all__ = ["AHEAD_MAX", "Place", "application_place", "place_in", "queue_places"]

AHEAD_MAX: Final = 5
"""How many of those that go before are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in an order, counted from one.

    `subject` is what has the place, `among` where, `order` the rule of the order in words. `ahead` are the
    first of those that go before. `position` is the setting of the order, `None` for the default.
    """

    subject: str
    among: str
    number: int
    of: int
    ahead: tuple[str, ...]
    order: str
    position: Position | None = None


def place_in(
    names: Sequence[str], index: int, among: str, order: str, position: Position | None = None
) -> Place:
    """Return the place of one of the names that stand in an order."""
    return Place(
        subject=names[index],
        among=among,
        number=index + 1,
        of=len(names),
        ahead=tuple(names[: min(index, AHEAD_MAX)]),
        order=order,
        position=position,
    )


def application_place(leaf: Queue, entry: ApplicationEntry, *, is_new: bool = False) -> Place | None:
    """Return the place of an application in its leaf, `None` while nothing of it waits.

    Args:
        leaf: The leaf.
        entry: The application.
        is_new: It is not in the leaf, and the place is the one that it would have.
    """
    ranked = leaf.entries.ranked(leaf, entry) if is_new else leaf.entries.ranked(leaf)
    names = [other.application_id for other in ranked]
    if entry.application_id not in names:
        return None
    index = names.index(entry.application_id)
    settings = (APPLICATION_SORT_POLICY, APPLICATION_SORT_PRIORITY)
    found = [leaf.positions.get(f"properties.{name}") for name in settings]
    position = next((position for position in found if position is not None), None)
    return place_in(names, index, leaf.path, _order_of_applications(leaf), position)


def queue_places(tree: QueueTree, leaf: Queue) -> tuple[Place, ...]:
    """Return the place of a leaf among its siblings, and of each queue above it; without idle queues."""
    places = []
    for level in leaf.above[:-1]:
        parent = level.parent
        assert parent is not None, "the root has been left out"
        names = [child.path for child in ranked_children(tree, parent)]
        if level.path in names:
            places.append(place_in(names, names.index(level.path), parent.path, _order_of_queues(parent)))
    return tuple(places)


def _order_of_applications(leaf: Queue) -> str:
    fair = leaf.settings.application_sort_policy is SortPolicy.FAIR
    rule = "the smaller share of the queue's guarantee" if fair else "the earlier submission"
    if leaf.settings.priority_sorting:
        return f"the higher priority first, then {rule}"
    return f"{rule} first, then the higher priority"


def _order_of_queues(parent: Queue) -> str:
    rule = "the smaller share of the guarantee"
    if parent.settings.priority_sorting:
        return f"the higher priority first, then {rule}"
    return f"{rule} first, then the higher priority"
