"""What may be preempted for a queue below its guarantee: the fence, and the candidates inside it.

Preemption looks for victims below the *fence root*: from the ask's leaf upwards the first queue that is a
preemption fence, or that has no room for the ask under its own maximum and those above it (what is outside it
would not help; the size of the cluster is no maximum), or the root. Priorities are compared among the
children of the first queue that contains both the ask and the victim: on the way up and down each is
converted, queue by queue, by the offset of the queue that it leaves.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ...queues.queue import Queue, priority_outside
from ...queues.quota import maximum_below_root
from ...resources.comparisons import matches_any
from ...resources.resource import Resource, add, fits_undefined_unlimited
from ...values.allocation import Ask
from ..claims import NOTHING_COMMITTED, CommittedResources
from ..protection import Protected, Protection
from ..victims import Victim, queue_order, victims_of
from ..whole_jobs import by_whole_jobs
from ..work_lost import WorkLost
from .ledger import ProjectedUsage, QueueFacts, QueueFactsOf, unbound_facts


class CandidateVictims(NamedTuple):
    """The possible victims in their order, and the queues they are counted in."""

    victims: tuple[Victim, ...]
    facts: dict[str, QueueFacts]
    """By the path of the leaf."""
    protected: tuple[Protected, ...] = ()
    """Those that would be possible victims, and have not run for as long as their queues want."""

    def without_protection(self) -> CandidateVictims:
        """Return the possible victims as they are once all of them have run long enough."""
        victims = sorted((*self.victims, *(each.victim for each in self.protected)), key=queue_order)
        return CandidateVictims(tuple(victims), self.facts)

    def without(self, keys: Collection[str]) -> CandidateVictims:
        """Return the possible victims but for some, given by their keys."""
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
    """Find the fence root of an ask, and what its priority counts as among the children of each queue.

    The offset of a queue counts among its siblings, so not inside it.
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
    """Return whether a queue could take the ask as well, by its own maximum and those above.

    A type that is not asked for does not count: a queue may be above a maximum that was lowered for it.
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
    work_lost: WorkLost | None = None,
) -> CandidateVictims:
    """Collect what may be preempted for an ask: outside of its leaf, or inside of it.

    Args:
        leaf: The leaf of the ask.
        ask: The ask.
        facts_of: Takes the facts of queues.
        known: What may be chosen at all, by the path of its leaf; what is not there is found, and added.
        is_inside: Whether to collect what has a lower priority in the leaf of the ask, and nothing else. No
            guarantee decides then: the leaf counts as one without.
        protection: What protects from an ask of this leaf, `None` if nothing does.
        work_lost: Measures what is lost with a victim, `None` where that does not decide.
    """
    search = _Search(leaf, ask, facts_of, known)
    search.protection = protection
    search.work_lost = work_lost
    if is_inside:
        search.visit_own_leaf()
        return search.ranked_by_priority()
    root, search.priorities = fence_root(leaf, ask, facts_of.committed)
    if root is not leaf:
        search.visit(root, search.priorities[root.path], fenced=False)
    return search.found()


class _Search:
    """One walk down from the fence root, or a visit of the leaf of the ask."""

    def __init__(
        self, leaf: Queue, ask: Ask, facts_of: QueueFactsOf, known: dict[str, tuple[Victim, ...]]
    ) -> None:
        self.leaf = leaf
        self.ask = ask
        self.facts_of = facts_of
        self.known = known
        self.priorities: dict[str, int] = {}
        self.ledger = ProjectedUsage(facts_of(leaf), ask.resource)
        self.victims: list[Victim] = []
        self.protection: Protection | None = None
        self.work_lost: WorkLost | None = None
        self.protected: list[Protected] = []
        self.facts: dict[str, QueueFacts] = {}
        self._shares_type: dict[Resource, bool] = {}
        """By size, whether it names a type that the ask names; many allocations have the same size."""

    def found(self) -> CandidateVictims:
        """Return what was collected, in the order of queues."""
        victims = sorted(self.victims, key=queue_order)
        return CandidateVictims(tuple(victims), self.facts, tuple(self.protected))

    def ranked_by_priority(self) -> CandidateVictims:
        """Return the same with the rank of each priority, the lowest first."""
        everything = (*self.victims, *(each.victim for each in self.protected))
        priorities = sorted({victim.allocation.ask.priority for victim in everything})
        ranks = {priority: rank for rank, priority in enumerate(priorities)}
        self.victims = [each._replace(rank=ranks[each.allocation.ask.priority]) for each in self.victims]
        self.protected = [
            each._replace(victim=each.victim._replace(rank=ranks[each.victim.allocation.ask.priority]))
            for each in self.protected
        ]
        return self.found()

    def visit_own_leaf(self) -> None:
        """Collect what has a lower priority in the leaf of the ask."""
        if not self.leaf.settings.preemption_policy.is_disabled:
            facts = unbound_facts(self.leaf)
            self.collect(self.leaf, facts, self.ask.priority - 1, fenced=False)

    def visit(self, queue: Queue, priority: int, *, fenced: bool) -> None:
        """Collect below a queue; `fenced`: whatever its priority, because a fence above decided."""
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
        """Collect what a leaf has of a priority no higher than this one; `fenced`: of any."""
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
        if self.work_lost is not None:
            possible = [self.work_lost.measured(victim) for victim in possible]
        if self.protection is not None:
            possible, protected = self.protection.divide(queue, possible)
            self.protected += protected
        self.victims += possible

    def _matches(self, resource: Resource) -> bool:
        matches = self._shares_type.get(resource)
        if matches is None:
            matches = self._shares_type[resource] = matches_any(self.ask.resource, resource)
        return matches
