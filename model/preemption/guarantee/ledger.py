"""The arithmetic of guarantees, on a copy of the queues that may be changed at will.

`QueueFacts` are what preemption needs to know of a queue, as values. A `ProjectedUsage` is a temporary layer
on top of them: what would be used if some allocations ended and others were placed. Many layers share the
same facts, so that each node can be tried with a new one at the cost of an empty dict.

What counts as used is what is allocated less what is being preempted already. A guarantee holds for its
own types alone: of any other type nothing is guaranteed, and nothing is limited. Only types that are asked
for are checked, and a quantity of zero asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from ...queues.queue import Queue
from ...resources.combinations import merge_if_not_present
from ...resources.resource import EMPTY, Resource, add, component_wise_min, fits_actual, subtract
from ..claims import NOTHING_COMMITTED, CommittedResources

__all__ = ["ProjectedUsage", "QueueFacts", "QueueFactsOf", "covers", "is_within", "unbound_facts"]


@dataclass(frozen=True, slots=True, eq=False)
class QueueFacts:
    """A queue as it was when its facts were taken, with those above it."""

    path: str
    parent: QueueFacts | None
    guaranteed: Resource | None
    used: Resource
    """Allocated less what is being preempted; above the ask, with what other asks have preempted for."""
    above_ask: bool
    """The queue is the ask's leaf or above it."""

    def excess(self, name: str) -> int | None:
        """Return how much more of a type the queue uses than is guaranteed to it, `None` if nothing is."""
        if self.guaranteed is None or not self.guaranteed.has(name):
            return None
        return self.used.get(name) - self.guaranteed[name]


@final
class QueueFactsOf:
    """Takes the facts of queues when they are first asked for, each once."""

    def __init__(self, ask_leaf: Queue, committed: CommittedResources = NOTHING_COMMITTED) -> None:
        self.committed = committed
        self._path = frozenset(level.path for level in ask_leaf.above)
        self._known: dict[str, QueueFacts] = {}

    def __call__(self, queue: Queue) -> QueueFacts:
        """Return the facts of a queue."""
        facts = self._known.get(queue.path)
        if facts is None:
            above_ask = queue.path in self._path
            facts = self._known[queue.path] = QueueFacts(
                queue.path,
                self(queue.parent) if queue.parent is not None else None,
                queue.guaranteed,
                (self.committed if above_ask else NOTHING_COMMITTED).use_of(queue),
                above_ask,
            )
        return facts


def unbound_facts(leaf: Queue, *, of_victims: bool = False) -> QueueFacts:
    """Return the facts of a leaf that no guarantee binds, as inside of it, where its sum stays.

    As the leaf of the ask it has a guarantee of no type, which lets it use anything; as that of the
    victims it has none, and gives everything.
    """
    return QueueFacts(leaf.path, None, None if of_victims else EMPTY, EMPTY, True)


def is_within(remaining: Resource | None) -> bool:
    """Return whether a queue with that much left of its guarantee uses no more; `None`: it has none."""
    return remaining is not None and all(quantity >= 0 for quantity in remaining.values())


def covers(remaining: Resource | None, resource: Resource, asked: Resource) -> bool:
    """Return whether that much left of a guarantee is enough for a resource, in the types that are asked for.

    A type that the guarantee does not name is not limited by it. Without a guarantee nothing is covered.
    """
    part = Resource(dict(_part_asked_for(resource, asked)))
    return remaining is not None and fits_actual(remaining, part)


def _part_asked_for(resource: Resource, asked: Resource) -> Iterator[tuple[str, int]]:
    """Walk what a resource has of the types that are asked for."""
    for name, quantity in asked.items():
        if quantity > 0 and resource.get(name) > 0:
            yield name, resource[name]


def _protectors(queue: QueueFacts) -> Iterator[QueueFacts]:
    """Walk from a leaf up to the first queue that the ask is in, which is not included."""
    level: QueueFacts | None = queue
    while level is not None and not level.above_ask:
        yield level
        level = level.parent


@final
class ProjectedUsage:
    """What queues would use if some allocations ended and others were placed; temporary, for one ask."""

    def __init__(self, ask_leaf: QueueFacts) -> None:
        self.ask_leaf = ask_leaf
        self._less: dict[str, Resource] = {}
        """By path, how much less is used than the facts say; negative for more."""

    def used(self, queue: QueueFacts) -> Resource:
        """Return what a queue would use."""
        less = self._less.get(queue.path)
        return queue.used if less is None else subtract(queue.used, less)

    def take(self, queue: QueueFacts, resource: Resource) -> None:
        """Subtract a resource from a leaf and all above it."""
        level: QueueFacts | None = queue
        while level is not None:
            self._less[level.path] = add(self._less.get(level.path), resource)
            level = level.parent

    def put(self, queue: QueueFacts, resource: Resource) -> None:
        """Add a resource to a leaf and all above it."""
        level: QueueFacts | None = queue
        while level is not None:
            self._less[level.path] = subtract(self._less.get(level.path, EMPTY), resource)
            level = level.parent

    def own_remaining(self, queue: QueueFacts) -> Resource | None:
        """Return what a queue has left of its own guarantee, `None` without one; negative for an excess."""
        guaranteed = queue.guaranteed
        if guaranteed is None:
            return None
        used = self.used(queue)
        return Resource({name: quantity - used.get(name) for name, quantity in guaranteed.items()})

    def remaining(self, queue: QueueFacts) -> Resource | None:
        """Return what a queue has left of its guarantee and of those above; `None` if nothing is guaranteed.

        Where the ask's own leaf has a guarantee, that one counts, and those above only for types that it does
        not name. The guarantees above such a leaf limit no other queue: what they give is divided by the
        guarantees below them.
        """
        above = self.remaining(queue.parent) if queue.parent is not None else None
        own = self.own_remaining(queue)
        if own is None:
            return above
        if queue is self.ask_leaf:
            return merge_if_not_present(own, above)
        if queue.above_ask and self.ask_leaf.guaranteed is not None:
            return None
        return component_wise_min(own, above)

    def gives(self, queue: QueueFacts, asked: Resource) -> frozenset[str]:
        """Return the types asked for that a leaf has to give.

        Without any guarantee it has to give them all. Otherwise it gives those of which it uses more than is
        guaranteed, to it and to each queue above it that the ask is not in, as far as they name the type.
        """
        remaining = self.remaining(queue)
        wanted = [name for name, _ in _part_asked_for(asked, asked)]
        if remaining is None:
            return frozenset(wanted)
        kept = {
            name
            for level in _protectors(queue)
            for name in wanted
            if (excess := level.excess(name)) is not None and excess <= 0
        }
        return frozenset(name for name in wanted if remaining.get(name) < 0 and name not in kept)

    def may_lose(self, queue: QueueFacts, resource: Resource, asked: Resource) -> bool:
        """Return whether a leaf may lose a resource to an ask.

        It must lose some of a type that it has to give, and keep its guarantees. A type of which it uses no
        more than its guarantee gives nothing, and prevents nothing.
        """
        gives = any(resource.get(name) > 0 for name in self.gives(queue, asked))
        return gives and self.keeps_guarantees(queue, resource, asked)

    def keeps_guarantees(self, queue: QueueFacts, resource: Resource, asked: Resource) -> bool:
        """Return whether no type asked for would fall from above a guarantee to below it.

        The leaf is checked, and those above it that the ask is not in. Whether a queue is above its guarantee
        is what the facts say, so the order of several victims does not matter, nor whether one is spared in
        the end.
        """
        for level in _protectors(queue):
            less = self._less.get(level.path, EMPTY)
            for name, quantity in _part_asked_for(resource, asked):
                excess = level.excess(name)
                if excess is not None and 0 < excess < less.get(name) + quantity:
                    return False
        return True
