"""The candidates for preemption for a queue below its guarantee, and the fence around them.

Preemption looks for victims below the *fence root*. It is the first queue, from the ask's leaf upwards, that
is a preemption fence or that has no room for the ask under its own maximum and those above it; without such a
queue it is the root. Victims outside it would not help; the size of the cluster is not a maximum. Priorities
are compared among the children of the first queue that contains both the ask and the victim: on the way up
and down each priority is converted, queue by queue, by the offset of the queue that it leaves.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from ...queues.queue import Queue, priority_outside
from ...queues.quota import maximum_below_root
from ...resources.comparisons import matches_any
from ...resources.resource import Resource, add, fits_undefined_unlimited
from ...values.allocation import Ask
from ..losses import VictimMeasure, by_whole_jobs
from ..protection import Protected, Protection
from ..victims import Victim, queue_order, victims_of
from .ledger import (
    NOTHING_COMMITTED,
    CommittedResources,
    ProjectedUsage,
    QueueFacts,
    QueueFactsOf,
    unbound_facts,
)


class CandidateVictims(NamedTuple):
    """The possible victims in their order, and the facts of their queues."""

    victims: tuple[Victim, ...]
    facts: dict[str, QueueFacts]
    """The facts by the path of the leaf."""
    protected: tuple[Protected, ...] = ()
    """Allocations that would be possible victims, and have not run for the minimum time of their queues."""

    def without_protection(self) -> CandidateVictims:
        """Return the possible victims after all of them have run long enough."""
        victims = sorted((*self.victims, *(each.victim for each in self.protected)), key=queue_order)
        return CandidateVictims(tuple(victims), self.facts)

    def without(self, keys: Collection[str]) -> CandidateVictims:
        """Return the possible victims except some, given by their keys."""
        return self._replace(
            victims=tuple(victim for victim in self.victims if victim.key not in keys),
            protected=tuple(each for each in self.protected if each.victim.key not in keys),
        )

    def by_whole_jobs(self, wanted: Resource) -> CandidateVictims:
        """Return the possible victims in the order in which whole gangs end, to give back a resource."""
        ranked = sorted(by_whole_jobs(self.victims, wanted), key=queue_order)
        return self._replace(victims=tuple(ranked))


def fence_root(
    leaf: Queue, ask: Ask, committed: CommittedResources = NOTHING_COMMITTED
) -> tuple[Queue, dict[str, int]]:
    """Find the fence root of an ask, and its effective priority among the children of each queue.

    The offset of a queue counts among its siblings, and not inside the queue.
    """
    priority = ask.priority
    priorities: dict[str, int] = {}
    for level in leaf.above:
        settings = level.settings
        priorities[level.path] = priority
        if settings.preemption_policy.is_fence or not _has_room(level, ask, committed):
            return level, priorities
        priority = priority_outside(settings, priority)
    return leaf.above[-1], priorities


def _has_room(queue: Queue, ask: Ask, committed: CommittedResources) -> bool:
    """Return whether a queue has room for the ask, by its own maximum and those above.

    Types that are not requested do not count: a queue may be above a maximum that was lowered for it.
    """
    with_ask = add(committed.most_of(queue), ask.resource)
    relevant = Resource({name: with_ask[name] for name, quantity in ask.resource.items() if quantity > 0})
    return fits_undefined_unlimited(maximum_below_root(queue), relevant)


def collect_victims(
    leaf: Queue,
    ask: Ask,
    facts_of: QueueFactsOf,
    known: dict[str, tuple[Victim, ...]],
    *,
    is_inside: bool = False,
    protection: Protection | None = None,
    measure: VictimMeasure | None = None,
) -> CandidateVictims:
    """Collect the possible victims for an ask, outside or inside its leaf.

    Args:
        leaf: The leaf of the ask.
        ask: The ask.
        facts_of: Takes the facts of queues.
        known: All possible victims by the path of their leaf; missing leaves are found, and added.
        is_inside: Whether to collect only allocations of lower priority in the leaf of the ask. Then no
            guarantee decides: the leaf counts as one without.
        protection: The protection against an ask of this leaf, `None` without protection.
        measure: The measure of victims, `None` where the youngest end first.
    """
    search = _Search(leaf, ask, facts_of, known, protection, measure)
    if not is_inside:
        root, search.priorities = fence_root(leaf, ask, facts_of.committed)
        if root is not leaf:
            search.visit(root, search.priorities[root.path], fenced=False)
    elif not leaf.settings.preemption_policy.is_disabled:
        search.collect(leaf, unbound_facts(leaf), ask.priority - 1, fenced=False)
    victims = sorted(search.victims, key=queue_order)
    return CandidateVictims(tuple(victims), search.facts, tuple(search.protected))


@dataclass(slots=True)
class _Search:
    """One walk down from the fence root, or one visit of the leaf of the ask."""

    leaf: Queue
    ask: Ask
    facts_of: QueueFactsOf
    known: dict[str, tuple[Victim, ...]]
    protection: Protection | None
    measure: VictimMeasure | None
    priorities: dict[str, int] = field(default_factory=dict)
    victims: list[Victim] = field(default_factory=list)
    protected: list[Protected] = field(default_factory=list)
    facts: dict[str, QueueFacts] = field(default_factory=dict)
    shares_type: dict[Resource, bool] = field(default_factory=dict)
    """By size, whether it contains a type that the ask requests; many allocations have the same size."""
    ledger: ProjectedUsage = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = ProjectedUsage(self.facts_of(self.leaf), self.ask.resource)

    def visit(self, queue: Queue, priority: int, *, fenced: bool) -> None:
        """Collect below a queue; `fenced`: at any priority, because a fence above has decided."""
        if queue is self.leaf or not queue.allocated:
            return
        if queue.is_leaf:
            self._visit_leaf(queue, priority, fenced=fenced)
            return
        for name in sorted(queue.children):
            child = queue.children[name]
            settings = child.settings
            if child.path in self.priorities:
                self.visit(child, self.priorities[child.path], fenced=False)
            elif settings.priority_policy.is_fence:
                if settings.priority_offset <= priority:
                    self.visit(child, priority, fenced=True)
            else:
                self.visit(child, priority - settings.priority_offset, fenced=fenced)

    def _visit_leaf(self, queue: Queue, priority: int, *, fenced: bool) -> None:
        if queue.settings.preemption_policy.is_disabled:
            return
        facts = self.facts_of(queue)
        if self.ledger.gives(facts):
            self.collect(queue, facts, priority, fenced=fenced)

    def collect(self, queue: Queue, facts: QueueFacts, priority: int, *, fenced: bool) -> None:
        """Collect the allocations of a leaf up to this priority; `fenced`: at any priority."""
        found = self.known.get(queue.path)
        if found is None:
            entries = queue.entries.by_id.values()
            found = tuple(victim for entry in entries for victim in victims_of(entry))
            self.known[queue.path] = found
        possible = [
            victim
            for victim in found
            if (fenced or victim.allocation.ask.priority <= priority) and self._matches(victim.resource)
        ]
        if not possible:
            return
        self.facts[queue.path] = facts
        if facts.is_unbound:
            priorities = sorted({victim.allocation.ask.priority for victim in possible})
            ranks = {priority: rank for rank, priority in enumerate(priorities)}
            possible = [victim._replace(rank=ranks[victim.allocation.ask.priority]) for victim in possible]
        if self.measure is not None:
            possible = [self.measure.measured(victim) for victim in possible]
        if self.protection is not None:
            possible, protected = self.protection.divide(queue, possible)
            self.protected += protected
        self.victims += possible

    def _matches(self, resource: Resource) -> bool:
        matches = self.shares_type.get(resource)
        if matches is None:
            matches = self.shares_type[resource] = matches_any(self.ask.resource, resource)
        return matches
