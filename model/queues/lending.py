"""Lending: what of its guarantee a queue keeps back from others while it does not use it.

A queue with `resources.lend` lends that much of its guarantee, type by type, and *keeps back* the rest. For
others it counts as the larger of what it uses, or is held for it, and what it keeps back; a parent as the
larger of the sum of its queues and what it keeps back itself. The difference to what it uses is what it
*withholds*. What all queues beside a path withhold, below one of its queues, is room that the path does not
have there.

Queues are visited one after the other here, so only a thread that has the partition alone may charge where
any queue keeps something back (`licorne.model.scheduling.concurrent_placing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from ..configuration.positions import Position
from ..resources.comparisons import component_wise_max, prune
from ..resources.resource import EMPTY, Resource, add, subtract, subtract_eliminating_negative, total_of
from .queue import Queue

NOTHING_KEPT: Final[Mapping[Queue, Resource]] = MappingProxyType({})
"""What is withheld where no queue of a tree lends."""


class Withheld(NamedTuple):
    """What one queue withholds of a resource type from all others."""

    path: str
    name: str
    quantity: int
    """Less than it keeps back by what it uses of it, or what is held for it."""
    kept: int
    position: Position | None
    """Where the setting stands, `None` if it is in no file."""


def kept_beside(queue: Queue) -> Mapping[Queue, Resource]:
    """Return what is withheld from a queue, by each queue above it; one without is not there.

    It costs a step a level: each queue has the sum of what those below it withhold.
    """
    if not queue.above[-1].lending:
        return NOTHING_KEPT
    beside: dict[Queue, Resource] = {}
    sum_beside = EMPTY
    for level, parent in pairwise(queue.above):
        others = subtract(parent.withheld_below, level.withheld)
        if len(others):
            sum_beside = add(sum_beside, others)
        beside[parent] = sum_beside
    return beside


def settle(queue: Queue) -> None:
    """Bring what a queue and those above it withhold up to date with their use and settings."""
    if not queue.above[-1].lending:
        return
    for level, parent in pairwise(queue.above):
        withheld = _withheld(level)
        if withheld is not EMPTY or level.withheld is not EMPTY:
            _count_below(parent, subtract(withheld, level.withheld))
            level.withheld = withheld


def leave(queue: Queue) -> None:
    """Have a queue that has been removed withhold nothing."""
    parent = queue.parent
    if parent is not None and queue.withheld is not EMPTY:
        _count_below(parent, subtract(EMPTY, queue.withheld))
        queue.withheld = EMPTY
        settle(parent)


def settle_all(root: Queue, queues: Iterable[Queue]) -> None:
    """Find anew what each queue of a tree withholds, after a change of settings.

    Args:
        root: The root of the tree.
        queues: All queues of the tree, parents before children.
    """
    every = [*queues]
    root.lending = any(
        queue.lend is not None or (queue.template is not None and queue.template.lend is not None)
        for queue in every
    )
    for queue in every:
        queue.withheld = queue.withheld_below = EMPTY
    if root.lending:
        for queue in reversed(every):
            withheld = _withheld(queue)
            if queue.parent is not None and withheld is not EMPTY:
                queue.withheld = withheld
                _count_below(queue.parent, withheld)


def gives_room(queue: Queue, resource: Resource, leaf: Queue) -> bool:
    """Return whether a resource that ends in a queue is room for a leaf, and not kept back for its queue."""
    for level in queue.above if queue.above[-1].lending else ():
        if level in leaf.above:
            break
        for name in level.lend or ():
            kept = (level.guaranteed or EMPTY).get(name) - (level.lend or EMPTY).get(name)
            if resource.get(name) > 0 and level.allocated.get(name) <= kept:
                return False
    return True


def validate_lending(queues: Iterable[Queue]) -> None:
    """Assert that what queues withhold is what their settings and their use say."""
    for queue in queues:
        below = total_of(child.withheld for child in queue.children.values())
        assert dict(prune(below).items()) == dict(queue.withheld_below.items()), (
            f"below {queue} {below!r} is withheld, and {queue.withheld_below!r} is counted: please report"
        )
        withheld = EMPTY if queue.parent is None else _withheld(queue)
        assert dict(withheld.items()) == dict(queue.withheld.items()), (
            f"{queue} withholds {withheld!r}, and {queue.withheld!r} is counted: please report"
        )


def withheld_from(queue: Queue, ancestor: Queue, name: str) -> list[Withheld]:
    """Return which queues beside the path from an ancestor down to a queue withhold a type, largest first."""
    found: list[Withheld] = []
    for level, parent in pairwise(queue.above):
        found.extend(_holders(parent, name, but_for=level.name))
        if parent is ancestor:
            break
    return sorted(found, key=lambda each: (-each.quantity, each.path))


def _holders(parent: Queue, name: str, *, but_for: str = "") -> Iterator[Withheld]:
    """Walk the queues below a parent whose settings withhold a type."""
    for child in parent.children.values():
        quantity = child.withheld.get(name)
        if child.name == but_for or quantity <= 0:
            continue
        if quantity > child.withheld_below.get(name):
            positions = child.positions
            position = positions.get(f"lend.{name}") or positions.get("lend")
            kept = (child.guaranteed or EMPTY).get(name) - (child.lend or EMPTY).get(name)
            yield Withheld(child.path, name, quantity, kept, position)
        else:
            yield from _holders(child, name)


def _withheld(queue: Queue) -> Resource:
    """Return what a queue withholds: what those below it do, or more if it uses less than it keeps back."""
    lend, guaranteed = queue.lend, queue.guaranteed
    below = queue.withheld_below
    if lend is None or guaranteed is None:
        return below
    kept = Resource({name: guaranteed.get(name) - lent for name, lent in lend.items()})
    unused = subtract_eliminating_negative(kept, add(queue.allocated, queue.held))
    own = Resource({name: quantity for name in lend if (quantity := unused.get(name)) > 0})
    if not len(own):
        return below
    return component_wise_max(own, below) if len(below) else own


def _count_below(parent: Queue, change: Resource) -> None:
    """Count a change of what a child withholds."""
    parent.withheld_below = prune(add(parent.withheld_below, change)) or EMPTY
