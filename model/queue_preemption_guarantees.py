"""The arithmetic of guarantees, on a copy of the queues that may be changed at will.

`QueueFacts` are what preemption needs to know of a queue, frozen when it looks. A `Ledger` is a disposable
account on top of them: what would be used if this went and that came. Many ledgers share the same facts,
so that each node can be tried on a fresh one at the cost of an empty dict.

What counts as used is what is allocated less what is being preempted already. A guarantee holds for its
own types alone: of any other type nothing is guaranteed, and nothing is limited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from .preemption_claims import NOTHING_SPOKEN_FOR
from .resource_combinations import merge_if_not_present
from .resources import (
    EMPTY,
    Resource,
    add,
    component_wise_min,
    subtract,
)

if TYPE_CHECKING:
    from .preemption_claims import SpokenFor
    from .queue import Queue

__all__ = ["Ledger", "QueueFacts", "QueueFactsOf", "is_within"]


@dataclass(frozen=True, slots=True, eq=False)
class QueueFacts:
    """A queue as it was when preemption looked, with those above it."""

    path: str
    parent: QueueFacts | None
    guaranteed: Resource | None
    used: Resource
    """Allocated less what is being preempted; above the ask, with what other asks have preempted for."""
    above_ask: bool
    """The queue is the ask's leaf or above it."""


@final
class QueueFactsOf:
    """Takes the facts of queues when they are first asked for, each once."""

    def __init__(self, ask_leaf: Queue, spoken_for: SpokenFor = NOTHING_SPOKEN_FOR) -> None:
        self.spoken_for = spoken_for
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
                (self.spoken_for if above_ask else NOTHING_SPOKEN_FOR).use_of(queue),
                above_ask,
            )
        return facts


def is_within(remaining: Resource | None) -> bool:
    """Tell whether a queue with that much left of its guarantee uses no more than it; `None`: it has none."""
    return remaining is not None and all(quantity >= 0 for quantity in remaining.values())


@final
class Ledger:
    """What queues would use if some allocations went and others came; for one ask, to be thrown away."""

    def __init__(self, ask_leaf: QueueFacts) -> None:
        self.ask_leaf = ask_leaf
        self._less: dict[str, Resource] = {}
        """By path, how much less is used than the facts say; negative for more."""

    def used(self, queue: QueueFacts) -> Resource:
        """Return what a queue would use."""
        less = self._less.get(queue.path)
        return queue.used if less is None else subtract(queue.used, less)

    def take(self, queue: QueueFacts, resource: Resource) -> None:
        """Let a resource go from a leaf and all above it."""
        level: QueueFacts | None = queue
        while level is not None:
            self._less[level.path] = add(self._less.get(level.path), resource)
            level = level.parent

    def put(self, queue: QueueFacts, resource: Resource) -> None:
        """Let a resource come to a leaf and all above it."""
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

        The ask's own leaf stands for itself where it has a guarantee, and is bound by those above only in
        types that its own does not name. The queues above such a leaf bind nobody: what they share out is
        shared out again by the guarantees below them.
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

    def may_lose(self, queue: QueueFacts, resource: Resource, asked: Resource) -> bool:
        """Tell whether a leaf may lose a resource to an ask.

        It must use more than its guarantee of some type that is asked for, unless nothing is guaranteed to
        it; and neither it nor a queue above it that the ask is not in may fall below its guarantee in any
        type that it loses.
        """
        remaining = self.remaining(queue)
        if remaining is not None and not any(remaining.get(name) < 0 for name in asked):
            return False
        return self.keeps_guarantees(queue, resource)

    def keeps_guarantees(self, queue: QueueFacts, resource: Resource) -> bool:
        """Tell whether a leaf and those above it that the ask is not in would keep their guarantees."""
        level: QueueFacts | None = queue
        while level is not None and not level.above_ask:
            own = self.own_remaining(level)
            if own is not None and any(
                quantity > 0 and name in own and own[name] + quantity > 0
                for name, quantity in resource.items()
            ):
                return False
            level = level.parent
        return True
