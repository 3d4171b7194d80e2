"""The decision for an ask whose queue is owed its guarantee: a node, and who has to go, or why nobody.

A plan holds what follows, and each is looked at here once more before it leaves:

* The ask fits the node once the victims on it are gone. The node is reserved for the ask, so that what it
  has available now counts.
* Every queue that had no room for the ask gets back at least what the ask takes. What such a queue has
  left counts for nothing: nobody holds it for the ask, and whoever is admitted to it in the meantime
  would leave the ask without room and its victims gone for nothing.
* The ask's queue is within its guarantee with the ask, and none of the victims' falls below its own.
* Without any one of its victims one of the first two would not hold, but for those the RM demanded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from .queue_preemption_guarantees import Ledger, QueueFacts, is_within
from .queue_preemption_judgement import JudgedNode, choose_node
from .queue_preemption_nodes import NodeRoom, NodeSolver
from .resources import Resource, add, fits, fits_actual
from .victims import Victim, needed_only, total_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .allocation import Ask
    from .queue_preemption_pool import VictimPool
    from .surroundings import Predicates

__all__ = ["NoPreemption", "PreemptionPlan", "PreemptionView", "decide", "lack_of_queues"]


class NoPreemption(Enum):
    """Why nothing is preempted for an ask; the ask is looked at again 15 seconds later."""

    GUARANTEE = "Preemption queue guarantees check failed"
    NO_NODE = "Preemption does not help"
    SHORT = "Preemption helped but short of resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionView:
    """All that the decision looks at, as it was at one moment."""

    ask: Ask
    leaf: QueueFacts
    lack: Resource
    """What must come back to the queues above the ask, see `lack_of_queues`."""
    pool: VictimPool
    rooms: tuple[NodeRoom, ...]
    """The nodes that may be reserved for the ask."""
    nodes_tried: bool
    """The nodes with room have been tried in vain."""


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The node for the ask, and who has to go."""

    node_id: str
    for_node: tuple[Victim, ...]
    """Without any of these the ask would not fit the node."""
    demanded: tuple[Victim, ...]
    """On the same node, because the RM's predicates say so."""
    for_queue: tuple[Victim, ...]
    """On any node: without any of these a queue above the ask would have no room for it."""

    @property
    def victims(self) -> tuple[Victim, ...]:
        """All of them."""
        return (*self.for_node, *self.demanded, *self.for_queue)


def lack_of_queues(ask: Ask, levels: Sequence[tuple[Resource | None, Resource]]) -> Resource:
    """Return what has to come back to the queues from the ask's leaf up, for the types that are short.

    Args:
        ask: The ask.
        levels: The maximum and what is allocated of each queue that the ask is in.
    """
    lack: dict[str, int] = {}
    for maximum, allocated in levels:
        if maximum is None:
            continue
        for name, quantity in ask.resource.items():
            if name in maximum and quantity > 0:
                above = allocated.get(name) - maximum[name]
                if above + quantity > 0:
                    lack[name] = max(lack.get(name, 0), quantity + max(0, above))
    return Resource(lack)


def decide(view: PreemptionView, predicates: Predicates | None) -> PreemptionPlan | NoPreemption:
    """Decide where the ask is to run and who has to go for it."""
    if not view.pool.victims or not _may_be_possible(view):
        return NoPreemption.GUARANTEE
    solver = NodeSolver(view.ask, view.leaf, view.pool, nodes_tried=view.nodes_tried)
    node = choose_node(view.ask.allocation_key, solver.solutions(view.rooms), predicates)
    if node is None:
        return NoPreemption.NO_NODE
    for_queue = _for_queue(view, node)
    if for_queue is None:
        return NoPreemption.SHORT
    plan = PreemptionPlan(node.node_id, node.needed, node.demanded, for_queue)
    if not plan.victims:
        return NoPreemption.NO_NODE
    return plan if _is_lawful(view, plan) else NoPreemption.GUARANTEE


def _may_be_possible(view: PreemptionView) -> bool:
    """Tell whether the ask's queue can be within its guarantee with the ask, whoever goes."""
    ledger = Ledger(view.leaf)
    remaining = ledger.remaining(view.leaf)
    if remaining is None:
        return False  # To a queue without a guarantee nothing is owed.
    if fits_actual(remaining, view.ask.resource):
        return True
    ledger.put(view.leaf, view.ask.resource)
    for victim in view.pool.victims:
        ledger.take(view.pool.facts[victim.queue.path], victim.resource)
        if _asked_is_within(ledger, view):
            return True
    return False


def _asked_is_within(ledger: Ledger, view: PreemptionView) -> bool:
    """Tell whether the ask's queue is within its guarantee, for the types that are asked for."""
    remaining = ledger.remaining(view.leaf)
    if remaining is None:
        return False
    asked = {name: remaining[name] for name in view.ask.resource if name in remaining}
    return is_within(Resource(asked))


def _for_queue(view: PreemptionView, node: JudgedNode) -> tuple[Victim, ...] | None:
    """Choose who goes in addition so that the queues have room; `None` if that is not to be had."""
    on_node = (*node.needed, *node.demanded)
    given = total_of(on_node)
    if fits(given, view.lack):
        return ()
    ledger = Ledger(view.leaf)
    for victim in on_node:
        ledger.take(view.pool.facts[victim.queue.path], victim.resource)
        ledger.put(view.leaf, victim.resource)
    taken = {victim.key for victim in on_node}
    chosen: list[Victim] = []
    back = given
    for victim in view.pool.victims:
        if victim.key in taken or not _helps(view.lack, victim):
            continue
        facts = view.pool.facts[victim.queue.path]
        if not ledger.may_lose(facts, victim.resource, view.ask.resource):
            continue
        ledger.take(facts, victim.resource)
        remaining = ledger.remaining(view.leaf)
        if remaining is None or not fits_actual(remaining, victim.resource):
            return None
        ledger.put(view.leaf, victim.resource)
        chosen.append(victim)
        back = add(back, victim.resource)
        if fits(back, view.lack):
            return needed_only(chosen, given=given, wanted=view.lack)
    return None


def _helps(lack: Resource, victim: Victim) -> bool:
    return any(victim.resource.get(name) > 0 for name in lack)


def _is_lawful(view: PreemptionView, plan: PreemptionPlan) -> bool:
    """Look at the guarantees once more, with the ask in and all victims out."""
    ledger = Ledger(view.leaf)
    for victim in plan.victims:
        facts = view.pool.facts[victim.queue.path]
        if not ledger.keeps_guarantees(facts, victim.resource):
            return False
        ledger.take(facts, victim.resource)
    ledger.put(view.leaf, view.ask.resource)
    return _asked_is_within(ledger, view)
