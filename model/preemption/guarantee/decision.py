"""The decision for an ask that may preempt: a node and the victims, or why nothing is preempted.

A plan satisfies the following, and each point is checked here once more before the plan is returned:

* The ask fits the node once the victims there have ended. The node is reserved for the ask, so its available
  room counts.
* Every queue that had no room for the ask gets back at least what the ask takes. The remaining room of such a
  queue does not count: it is not held for the ask, and another ask that is placed in the meantime would leave
  this one without room, and its victims would have ended without effect. The root is different: the remaining
  room of the whole cluster includes that of the reserved node, which is held.
* The ask's queue is within its guarantee with the ask, and no queue of a victim falls from above its own
  guarantee to below it. Only the requested types count.
* Without any one of its victims, except those that the RM demanded, one of the first two would not hold.

A gang that is placed as a whole is decided as one ask for the sum of its members, but each member needs
a node (`gang_nodes`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Final, Protocol

from ...limits.usage_tree import LimitBlocker
from ...nodes.topology import Domains
from ...predicates.node_checks import NodeChecks, Pending, refuse_or_ask
from ...queues.queue import Queue
from ...resources.resource import Resource, add, fits
from ...state.claims import EndingVictim
from ...values.allocation import Ask
from ..losses import those_begun_first
from ..victims import Need, Victim, first_enough, given_back, needed_only, queue_order
from .attempt_budget import NoPreemption
from .candidate_victims import CandidateVictims
from .gang_nodes import (
    SETS_OF_MAX,
    GangView,
    all_sets,
    nodes_for_members,
    nodes_in_domains,
    nodes_once_ended,
)
from .ledger import ProjectedUsage, QueueFacts
from .nodes import CandidateNode, NodeChoice, NodeSolver, choose_in_order, choose_node

_OTHER_NODES_MAY_DO: Final = (
    NoPreemption.SHORT,
    NoPreemption.ABOVE_GUARANTEE,
    NoPreemption.WOULD_DELAY,
)
_NODES_MAX: Final = 10
"""The number of nodes that are tried if the queues lack room as well and too little may end for them."""


class PromisesOfOthers(Protocol):
    """The promised starts that an ask may not delay, below a queue with backfilling."""

    def keeps(self, node_ids: Sequence[str], victims: Collection[str]) -> bool:
        """Return whether all are kept if the ask gets nodes once some victims, given by key, have ended."""

    def awaited(self) -> Collection[str]:
        """Return the keys of work that is expected to end by the time of the last promise."""

    def any_delayed(self) -> bool:
        """Return whether one of the promises asked about so far would not have been kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptionView:
    """All facts that the decision depends on, at one moment."""

    ask: Ask
    leaf: QueueFacts
    lack: Resource
    """The amount that the queues above the ask, and limits, must get back, see `lack_of_queues`."""
    candidates: CandidateVictims
    candidate_nodes: tuple[CandidateNode, ...]
    """The nodes that may be reserved for the ask."""
    nodes_tried: bool
    """The nodes with room have been tried without result."""
    inside: Queue | None = None
    """The leaf if victims end in it by their priority, `None` if a guarantee is served."""
    limits: tuple[LimitBlocker, ...] = ()
    """The limits of the user and the group without room: the queues' lack includes the amounts that these
    must get back, and all candidates count for each of them."""
    unclaimed: tuple[EndingVictim, ...] = ()
    """Victims that end already, for no particular ask: without them the queues would lack more."""
    members: tuple[Ask, ...] = ()
    """The members of a gang, whose sum is `ask`; empty for a single ask."""
    promises: PromisesOfOthers | None = None
    """The promises that must be kept, `None` without backfilling."""
    domains: Domains | None = None
    """The domains of nodes of which the gang needs one; `None` if it may have all nodes."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The ask, or the members of the gang."""
        return self.members or (self.ask,)


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
    """The node for the ask, and the victims."""

    node_id: str
    for_node: tuple[Victim, ...]
    """The victims without any of which the ask would not fit the node."""
    demanded: tuple[Victim, ...]
    """Victims on the same node that the RM's predicates demand."""
    for_queue: tuple[Victim, ...]
    """Victims on any node without any of which a queue above the ask would have no room for it."""
    taken_over: tuple[EndingVictim, ...] = ()
    """Allocations that end already, and from now on end for this ask."""
    member_nodes: tuple[str, ...] = ()
    """The nodes of the members of a gang, in their order; `node_id` is the first of them."""

    @property
    def node_ids(self) -> tuple[str, ...]:
        """The node of the ask, or the nodes of the members, in their order."""
        return self.member_nodes or (self.node_id,)

    @property
    def victims(self) -> tuple[Victim, ...]:
        """All victims of the plan."""
        return (*self.for_node, *self.demanded, *self.for_queue)


def lack_of_queues(
    ask: Ask, levels: Sequence[tuple[Resource | None, Resource]], coming: Sequence[Resource] = ()
) -> Resource:
    """Return the amount that the queues from the ask's leaf up have to get back, of the types that are short.

    Args:
        ask: The ask.
        levels: The maximum and the use of each limit and queue that the ask is in, the root last.
        coming: The amount that each gets back anyway, from victims that end for no ask; may be empty.
    """
    lack: dict[str, int] = {}
    last = len(levels) - 1
    for position, (maximum, allocated) in enumerate(levels):
        if maximum is None:
            continue
        for name, quantity in ask.resource.items():
            if maximum.has(name) and quantity > 0:
                above = allocated.get(name) - maximum[name]
                wanted = quantity + (above if position == last else max(0, above))
                if coming:
                    wanted -= coming[position].get(name)
                if above + quantity > 0 and wanted > 0:
                    lack[name] = max(lack.get(name, 0), wanted)
    return Resource(lack)


def decide(view: PreemptionView, checks: NodeChecks | None) -> PreemptionPlan | NoPreemption:
    """Decide on the node for the ask and the victims."""
    end_already = view.unclaimed or any(node.unclaimed for node in view.candidate_nodes)
    if view.inside is not None and not view.candidates.victims:
        return NoPreemption.NO_LOWER
    if not (
        (view.candidates.victims or end_already)
        and may_be_entitled(view.leaf, view.ask)
        and _is_entitled_if_all_go(view)
    ):
        return NoPreemption.GUARANTEE
    if view.members:
        return _decide_for_all(view, checks)
    solver = NodeSolver(
        *(view.ask, view.leaf, view.candidates),
        nodes_tried=view.nodes_tried,
        is_allowed=partial(_may_do, view),
    )
    tried: dict[str, NoPreemption] = {}
    while len(tried) < _NODES_MAX:
        candidates = [each for each in view.candidate_nodes if each.node_id not in tried]
        solutions = solver.solutions(candidates)
        node = choose_node(view.ask, solutions, checks)
        if isinstance(node, NoPreemption):
            return next(iter(tried.values()), _without_node(view, node))
        plan = _plan_on(view, node, checks)
        if plan not in _OTHER_NODES_MAY_DO or not fits(given_back(view.candidates.victims), view.lack):
            return plan
        assert isinstance(plan, NoPreemption), "a plan is not a reason"
        tried[node.node_id] = plan
    return next(iter(tried.values()))


def _decide_for_all(view: PreemptionView, checks: NodeChecks | None) -> PreemptionPlan | NoPreemption:
    """Decide for all members of a gang together: by all sets of possible victims, if these are few."""
    if checks is not None or len(view.candidates.victims) > SETS_OF_MAX:
        gang = GangView(view.members, view.ask, view.leaf, view.candidates, view.candidate_nodes)
        choice = (
            nodes_for_members(gang, checks)
            if view.domains is None
            else nodes_in_domains(gang, view.domains, checks)
        )
        return (
            _without_node(view, choice)
            if isinstance(choice, NoPreemption)
            else _plan_on(view, choice, checks)
        )
    best: NodeChoice | None = None
    for victims in all_sets(view.candidates.victims):
        other = NodeChoice("", victims, ())
        if best is None or other.severity < best.severity:
            member_nodes = _nodes_if_ended(view, victims)
            best = (
                best
                if member_nodes is None
                else other._replace(node_id=member_nodes[0], member_nodes=member_nodes)
            )
    if best is None:
        return _without_node(view, NoPreemption.NO_NODE)
    going = tuple(victim for victim in best.needed if victim.allocation.node_id in best.member_nodes)
    others = tuple(victim for victim in best.needed if victim not in going)
    plan = _with_taken_over(
        view, PreemptionPlan(best.node_id, going, (), others, member_nodes=best.member_nodes)
    )
    return plan if plan.victims or plan.taken_over else NoPreemption.NO_NODE


def _nodes_if_ended(view: PreemptionView, victims: Sequence[Victim]) -> tuple[str, ...] | None:
    """Return the nodes of a gang if all conditions hold once some victims have ended, else `None`.

    A victim that only the guarantee needs, and not the room, is not allowed.
    """

    def nodes_with(some: Sequence[Victim]) -> tuple[str, ...] | None:
        has_room = fits(given_back(some), view.lack)
        if not has_room:
            return None
        return nodes_once_ended(view.members, view.candidate_nodes, some, view.domains)

    if not fits(given_back(victims), view.lack):
        return None
    ledger = ProjectedUsage(view.leaf, view.ask.resource)
    facts = view.candidates.facts
    if not all(ledger.try_end(facts[victim.queue.path], victim.resource) for victim in victims):
        return None
    if not _keeps_guarantees(view, victims):
        return None
    member_nodes = nodes_with(victims)
    fewer = combinations(victims, len(victims) - 1) if victims else ()
    if member_nodes is None or any(nodes_with(some) is not None for some in fewer):
        return None
    return member_nodes if _keeps_promises(view, member_nodes, victims) else None


def _keeps_promises(view: PreemptionView, node_ids: Sequence[str], victims: Sequence[Victim]) -> bool:
    """Return whether no promised start is later if some victims end, and the ask gets nodes."""
    keys = [victim.key for victim in victims]
    return view.promises is None or view.promises.keeps(node_ids, keys)


def _without_node(view: PreemptionView, none: NoPreemption) -> NoPreemption:
    """Return why no node was found."""
    is_delayed = view.promises is not None and view.promises.any_delayed()
    return NoPreemption.WOULD_DELAY if none is NoPreemption.NO_NODE and is_delayed else none


def _plan_on(
    view: PreemptionView, node: NodeChoice, checks: NodeChecks | None
) -> PreemptionPlan | NoPreemption:
    """Complete the choice of a node: add the victims that the queues need, and leave out needless ones."""
    for_queue = _for_queue(view, node)
    if for_queue is None:
        return NoPreemption.SHORT
    plan = _without_needless(view, node, for_queue, checks)
    if plan is None:
        return NoPreemption.PENDING
    plan = _with_taken_over(view, plan)
    if not plan.victims and not plan.taken_over:
        return NoPreemption.NO_NODE
    if not _keeps_guarantees(view, plan.victims):
        return NoPreemption.ABOVE_GUARANTEE
    return plan if _keeps_promises(view, plan.node_ids, plan.victims) else NoPreemption.WOULD_DELAY


def _with_taken_over(view: PreemptionView, plan: PreemptionPlan) -> PreemptionPlan:
    """Return a plan with the allocations that end already, for no ask, on its nodes and for the queues."""
    nodes = (node for node in view.candidate_nodes if node.node_id in plan.node_ids)
    on_nodes = [each for node in nodes for each in node.unclaimed]
    taken_over = {each.allocation_key: each for each in (*on_nodes, *view.unclaimed)}
    return replace(plan, taken_over=tuple(taken_over.values()))


def may_be_entitled(leaf: QueueFacts, ask: Ask) -> bool:
    """Return whether the ask's queue can be entitled to it at all, with any preemption.

    It does not examine allocations.
    """
    return ProjectedUsage(leaf, ask.resource).may_be_entitled(ask.resource)


def _is_entitled_if_all_go(view: PreemptionView) -> bool:
    """Return whether the ask's queue can be within its guarantee with the ask if all candidates end."""
    ledger = ProjectedUsage(view.leaf, view.ask.resource)
    ledger.put(view.leaf, view.ask.resource)
    if ledger.is_entitled():
        return True
    for victim in view.candidates.victims:
        ledger.take(view.candidates.facts[victim.queue.path], victim.resource)
        if ledger.is_entitled():
            return True
    return False


def _for_queue(view: PreemptionView, node: NodeChoice) -> tuple[Victim, ...] | None:
    """Choose further victims so that the queues have room; `None` if no choice is enough."""
    on_node = (*node.needed, *node.demanded)
    if fits(given_back(on_node), view.lack):
        return ()
    victims = those_begun_first(view.candidates.victims, on_node)
    return first_enough(victims, view.ask.resource, partial(_for_queue_in_order, view, on_node))


def _for_queue_in_order(
    view: PreemptionView, on_node: tuple[Victim, ...], victims: Sequence[Victim]
) -> tuple[Victim, ...] | None:
    ledger = ProjectedUsage(view.leaf, view.ask.resource)
    for victim in on_node:
        ledger.end(view.candidates.facts[victim.queue.path], victim.resource)
    taken = {victim.key for victim in on_node}
    others = (victim for victim in victims if victim.key not in taken)
    needs = given_back(on_node), view.lack
    chosen = choose_in_order(ledger, view.candidates.facts, others, needs)
    return None if chosen is None else tuple(chosen)


def _without_needless(
    view: PreemptionView,
    node: NodeChoice,
    for_queue: tuple[Victim, ...],
    checks: NodeChecks | None,
) -> PreemptionPlan | None:
    """Leave out every victim without which the node and the queues would still have room.

    A victim for a queue may be on the node as well, and spare another one there. With predicates the RM has
    agreed to a different set on the node: it is asked again, and if it does not agree no victim is spared.
    The result is `None` if its answer is pending.
    """
    if node.demanded:
        kept = _needed(view, node, (), for_queue)
        return PreemptionPlan(node.node_id, node.needed, node.demanded, kept, member_nodes=node.member_nodes)
    found = node
    kept = _needed(view, node, node.needed, for_queue)
    if view.members:
        member_nodes = _nodes_on(view, node, kept)
        assert member_nodes is not None, "what is needed is enough: please report"
        node = node._replace(node_id=member_nodes[0], member_nodes=member_nodes)
    on_node = tuple(victim for victim in node.needed if victim in kept)
    added = tuple(victim for victim in for_queue if victim in kept)
    spared = tuple(victim for victim in node.needed if victim not in kept)
    agrees = not spared or _agrees(view, node, kept, checks)
    if agrees is None:
        return None
    if agrees:
        return PreemptionPlan(node.node_id, on_node, (), added, member_nodes=node.member_nodes)
    return PreemptionPlan(
        found.node_id, on_node, spared, _needed(view, found, (), for_queue), member_nodes=found.member_nodes
    )


def _nodes_on(view: PreemptionView, node: NodeChoice, victims: Sequence[Victim]) -> tuple[str, ...] | None:
    """Return nodes for the members among those of a choice once some victims have ended, if any."""
    nodes = [each for each in view.candidate_nodes if each.node_id in node.node_ids]
    return nodes_once_ended(view.members, nodes, victims)


def _needed(
    view: PreemptionView,
    node: NodeChoice,
    for_node: tuple[Victim, ...],
    for_queue: tuple[Victim, ...],
) -> tuple[Victim, ...]:
    """Return those of the given victims without any of which the node or the queues would lack room.

    All other victims of the node's choice end in any case. The last in the order are spared first.
    """
    considered = sorted((*for_node, *for_queue), key=queue_order)
    others = [victim for victim in (*node.needed, *node.demanded) if victim not in for_node]
    going = given_back(others)
    if view.members:
        return needed_only(
            considered,
            Need(going, view.lack),
            fits_all=lambda rest: _nodes_on(view, node, [*others, *rest]) is not None,
        )
    available = next(
        candidate.available for candidate in view.candidate_nodes if candidate.node_id == node.node_id
    )
    return needed_only(
        considered,
        Need(add(available, going), view.ask.resource, node.node_id),
        Need(going, view.lack),
    )


def _agrees(
    view: PreemptionView,
    node: NodeChoice,
    victims: tuple[Victim, ...],
    checks: NodeChecks | None,
) -> bool | None:
    """Ask the RM about other victims on a node than it has agreed to; `None` if the answer is pending."""
    if checks is None:
        return True
    agrees: bool | None = True
    for ask, node_id in zip(view.asks, node.node_ids, strict=True):
        keys = tuple(victim.key for victim in victims if victim.allocation.node_id == node_id)
        if view.members and not keys:
            refusal = refuse_or_ask(checks, ask, node_id, allocate=True)
            one = None if isinstance(refusal, Pending) else refusal is None
        else:
            last = len(keys) - 1
            index = checks.preemption_index(ask, node_id, keys, last)
            one = None if isinstance(index, Pending) else index == last
        if one is False:
            return False
        agrees = one if agrees else None
    return agrees


def _may_do(view: PreemptionView, node_id: str, on_node: Sequence[Victim]) -> bool:
    """Return whether guarantees and promises hold with the victims on a node, or may with more victims."""
    if not fits(given_back(on_node), view.lack):
        return True  # The queues need more victims.
    return _keeps_guarantees(view, on_node) and _keeps_promises(view, (node_id,), on_node)


def _keeps_guarantees(view: PreemptionView, victims: Sequence[Victim]) -> bool:
    """Return whether all guarantees hold with the ask placed and all victims ended."""
    ledger = ProjectedUsage(view.leaf, view.ask.resource)
    for victim in victims:
        facts = view.candidates.facts[victim.queue.path]
        if not ledger.keeps_guarantees(facts, victim.resource):
            return False
        ledger.take(facts, victim.resource)
    ledger.put(view.leaf, view.ask.resource)
    return ledger.is_entitled()
