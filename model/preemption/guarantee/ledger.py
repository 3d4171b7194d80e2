"""The ledger: the use of queues, the future use of asks that have preempted, and the claims between queues.

The definitions are in `docs/preemption.md` ("For a guarantee"): *serving*, *owed*, *entitled*, *above*,
*gives*. Each is a function here of `QueueFacts`, the facts of a queue that preemption needs, as values, and
of the types that an ask requests: a quantity of zero requests nothing, and types that are not requested do
not count.

While its victims end an ask uses nothing, but its queue cannot be entitled to the same resources again. The
future use of such asks is *committed*, and counts. Otherwise two asks of one queue would both preempt for a
single entitlement, and the second one would find the queue full.

A `ProjectedUsage` is a temporary layer on top of the facts: the use after some allocations have ended and
others have been placed. Many layers share the same facts, so that each node can be tried with a new one at
the cost of an empty dict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from ...queues.queue import Queue
from ...queues.quota import kept_beside
from ...resources.comparisons import component_wise_max
from ...resources.resource import EMPTY, Resource, add, subtract, subtract_only_existing
from ...state.partition_state import PartitionState


@final
class CommittedResources:
    """The future use of asks that have preempted, by queue: a value."""

    __slots__ = ("_beside", "_by_path")

    def __init__(
        self, by_path: Mapping[str, Resource], beside: Mapping[Queue, Resource] | None = None
    ) -> None:
        self._by_path = by_path
        self._beside = beside or {}

    def use_of(self, queue: Queue) -> Resource:
        """Return the use of a queue after the preempted work has ended and those asks are placed."""
        used = subtract_only_existing(queue.allocated, queue.preempting)
        committed = self._by_path.get(queue.path)
        return used if committed is None else add(used, committed)

    def most_of(self, queue: Queue) -> Resource:
        """Return the larger of the present and the future use of a queue, type by type.

        Resources that are withheld from the ask count as used (`licorne.model.queues.quota`).
        """
        most = queue.allocated
        if queue.path in self._by_path:
            most = component_wise_max(most, self.use_of(queue))
        beside = self._beside.get(queue)
        return most if beside is None else add(most, beside)

    def leaves_room(self, leaf: Queue, resource: Resource) -> bool:
        """Return whether a leaf and those above it have room for a resource besides the commitments.

        The root is left out: its maximum is the sum of the nodes, not a quota.
        """
        for level in leaf.above[:-1]:
            most, maximum = self.most_of(level), level.maximum or EMPTY
            if any(
                maximum.has(name) and most.get(name) + more > maximum[name]
                for name, more in resource.items()
                if more > 0
            ):
                return False
        return True


NOTHING_COMMITTED: Final = CommittedResources({})


def committed_resources(state: PartitionState, leaf: Queue, allocation_key: str) -> CommittedResources:
    """Add up the commitments to asks with a claim, except one of a leaf, and the amounts withheld from it."""
    by_path: dict[str, Resource] = {}
    own = state.claims.find(allocation_key)
    for claim in state.claims:
        if claim is not own:
            for level in claim.entry.queue.above:
                by_path[level.path] = add(by_path.get(level.path, EMPTY), claim.size)
    beside = kept_beside(leaf)
    return CommittedResources(by_path, beside) if by_path or beside else NOTHING_COMMITTED


@dataclass(frozen=True, slots=True, eq=False)
class QueueFacts:
    """The facts of a queue at one moment, with those of the queues above it."""

    path: str
    parent: QueueFacts | None
    guaranteed: Resource | None
    used: Resource
    """The allocated less the preempted resources; above the ask, with the commitments to other asks."""
    above_ask: bool
    """Whether the queue is the ask's leaf or above it."""
    is_unbound: bool = False
    """Whether it is the leaf of an ask that preempts in it by priority: no guarantee decides."""

    @property
    def path_up(self) -> Iterator[QueueFacts]:
        """Walk this queue and those above it, the root last."""
        level: QueueFacts | None = self
        while level is not None:
            yield level
            level = level.parent

    def names(self, name: str) -> bool:
        """Return whether the guarantee of this queue names a type."""
        return self.guaranteed is not None and self.guaranteed.has(name)

    def above(self, name: str) -> int:
        """Return how much of a type the queue uses above its guarantee, which names the type."""
        return self.used.get(name) - (self.guaranteed or EMPTY)[name]

    def serving(self, name: str) -> QueueFacts | None:
        """Return the nearest queue from this one up whose guarantee names a type, `None` without one."""
        return next((level for level in self.path_up if level.names(name)), None)


@final
class QueueFactsOf:
    """Takes the facts of each queue once, when they are first needed."""

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


def unbound_facts(leaf: Queue) -> QueueFacts:
    """Return the facts of a leaf in which asks preempt by priority: no guarantee decides; its sum stays."""
    return QueueFacts(leaf.path, None, None, EMPTY, above_ask=True, is_unbound=True)


def _protectors(queue: QueueFacts) -> Iterator[QueueFacts]:
    """Walk from a leaf up to the first queue that contains the ask, which is not included."""
    return (level for level in queue.path_up if not level.above_ask)


@final
class ProjectedUsage:
    """The use of queues after some allocations have ended and others are placed; temporary, for one ask."""

    def __init__(self, ask_leaf: QueueFacts, asked: Resource) -> None:
        self.ask_leaf = ask_leaf
        self._asked = [name for name, quantity in asked.items() if quantity > 0]
        self._serving: dict[str, QueueFacts] = {}
        """The queue that serves each requested type, if any."""
        for name in self._asked:
            serving = ask_leaf.serving(name)
            if serving is not None:
                self._serving[name] = serving
        self._less: dict[str, Resource] = {}
        """By path, the difference of the use to the facts; negative for more use."""
        self._gives: dict[str, frozenset[str]] = {}
        """By path of a leaf, the known answers of `gives`."""

    def copy(self) -> ProjectedUsage:
        """Return a layer that can change without changing this one."""
        other = ProjectedUsage(self.ask_leaf, EMPTY)
        other._asked, other._serving, other._gives = self._asked, self._serving, self._gives
        other._less = self._less.copy()
        return other

    def used(self, queue: QueueFacts) -> Resource:
        """Return the projected use of a queue."""
        less = self._less.get(queue.path)
        return queue.used if less is None else subtract(queue.used, less)

    def take(self, queue: QueueFacts, resource: Resource) -> None:
        """Subtract a resource from a leaf and all above it."""
        for level in queue.path_up:
            self._less[level.path] = add(self._less.get(level.path), resource)

    def put(self, queue: QueueFacts, resource: Resource) -> None:
        """Add a resource to a leaf and all above it."""
        for level in queue.path_up:
            self._less[level.path] = subtract(self._less.get(level.path, EMPTY), resource)

    def end(self, queue: QueueFacts, resource: Resource) -> None:
        """End an allocation of a leaf; its resources count as used by the leaf of the ask."""
        self.take(queue, resource)
        self.put(self.ask_leaf, resource)

    def try_end(self, queue: QueueFacts, resource: Resource) -> bool:
        """End an allocation of a leaf if the leaf may lose it and it is owed; return whether it ended."""
        if not self.may_lose(queue, resource):
            return False
        self.take(queue, resource)
        if not self.covers(resource):
            self.put(queue, resource)
            return False
        self.put(self.ask_leaf, resource)
        return True

    def spare(self, queue: QueueFacts, resource: Resource) -> None:
        """Undo the end of an allocation."""
        self.put(queue, resource)
        self.take(self.ask_leaf, resource)

    def owed(self, name: str) -> int | None:
        """Return how much of a requested type is owed, `None` if no guarantee names the type."""
        serving = self._serving.get(name)
        if serving is None or serving.guaranteed is None:
            return None
        return serving.guaranteed[name] - self.used(serving).get(name)

    def is_entitled(self) -> bool:
        """Return whether the ask is entitled to the projected use: no guarantee that serves it is exceeded.

        If no guarantee decides, it is entitled.
        """
        if self.ask_leaf.is_unbound:
            return True
        return bool(self._serving) and all((self.owed(name) or 0) >= 0 for name in self._serving)

    def covers(self, resource: Resource) -> bool:
        """Return whether a resource has, of each type served, at most the owed amount.

        Nothing is owed if no type is served; if no guarantee decides, everything is owed.
        """
        if self.ask_leaf.is_unbound:
            return True
        return bool(self._serving) and all(
            (self.owed(name) or 0) >= quantity
            for name in self._serving
            if (quantity := resource.get(name)) > 0
        )

    def may_be_entitled(self, asked: Resource) -> bool:
        """Return whether the ask can be entitled to its request, whatever ends.

        The use of the ask's leaf does not become less; that of the queues above it may.
        """
        if self.ask_leaf.is_unbound:
            return True
        return bool(self._serving) and all(
            serving is not self.ask_leaf or (self.owed(name) or 0) >= asked.get(name)
            for name, serving in self._serving.items()
        )

    def short(self, asked: Resource) -> dict[str, QueueFacts]:
        """Return, by type, the queues above the ask's leaf that have less left of it than the request."""
        return {
            name: serving
            for name, serving in self._serving.items()
            if serving is not self.ask_leaf and (self.owed(name) or 0) < asked.get(name)
        }

    def gives(self, queue: QueueFacts) -> frozenset[str]:
        """Return the requested types that a leaf gives."""
        found = self._gives.get(queue.path)
        if found is None:
            entitled = self._asked if self.ask_leaf.is_unbound else self._serving
            found = frozenset(name for name in entitled if self._is_given(queue, name))
            self._gives[queue.path] = found
        return found

    def _is_given(self, queue: QueueFacts, name: str) -> bool:
        naming = [level for level in _protectors(queue) if level.names(name)]
        if naming:
            return all(level.above(name) > 0 for level in naming)
        serving = self._serving.get(name)
        return serving is None or all(level is not serving for level in queue.path_up)

    def may_lose(self, queue: QueueFacts, resource: Resource) -> bool:
        """Return whether a leaf may lose a resource to the ask."""
        gives = any(resource.get(name) > 0 for name in self.gives(queue))
        return gives and self.keeps_guarantees(queue, resource)

    def keeps_guarantees(self, queue: QueueFacts, resource: Resource) -> bool:
        """Return whether a leaf and the queues above it that do not contain the ask keep their guarantees.

        The facts determine whether a queue is above its guarantee, so the order of several victims does not
        matter, nor whether one is spared in the end.
        """
        lost = [(name, quantity) for name in self._asked if (quantity := resource.get(name)) > 0]
        for level in _protectors(queue):
            less = self._less.get(level.path, EMPTY)
            for name, quantity in lost:
                if not level.names(name):
                    continue
                above = level.above(name)
                if above < less.get(name) + quantity and (above > 0 or name not in self._serving):
                    return False
        return True
