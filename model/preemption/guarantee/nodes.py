"""The choice of a node: the victims that would make the ask fit on each, and the mildest the RM agrees to.

A solution lists the necessary victims, followed by spare ones that the RM's predicates may demand in
addition. Solutions come in order of cost (the number of necessary victims, or the work lost with them), then
of the node's id, and each is computed only when it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from typing import Final, NamedTuple, final

from ...predicates.node_checks import NodeChecks, Pending, refuse_or_ask
from ...resources.resource import Resource, add, fits, subtract_eliminating_negative
from ...state.claims import EndingVictim
from ...values.allocation import Ask
from ..victims import Need, Victim, cost_of, first_enough, gangs_cut_by, needed_only
from .attempt_budget import NoPreemption
from .candidate_victims import CandidateVictims
from .ledger import ProjectedUsage, QueueFacts

SOLUTIONS_PER_BATCH: Final = 10
"""The number of solutions that are compared at once; more are evaluated only if none of them is mild."""


def choose_in_order(
    ledger: ProjectedUsage,
    facts: Mapping[str, QueueFacts],
    victims: Iterable[Victim],
    needs: tuple[Resource, Resource],
    spare: list[Victim] | None = None,
) -> list[Victim] | None:
    """Choose the victims that reduce the lack of a type that they give; `None` if all are not enough.

    The resources of victims count as used by the ask's queue: a victim that would lift the queue above its
    guarantee is skipped.

    Args:
        ledger: The use of queues; the chosen victims end there.
        facts: The queues of the victims, by path.
        victims: All possible victims, in order.
        needs: The present and the required room.
        spare: Gets the possible victims that are not chosen.
    """
    room, wanted = needs
    lack = subtract_eliminating_negative(wanted, room)
    chosen: list[Victim] = []
    for victim in victims:
        leaf = facts[victim.queue.path]
        given = ledger.gives(leaf)
        helps = any(lack.get(name) > 0 and victim.resource.get(name) > 0 for name in given)
        if not (helps or spare is not None) or not ledger.try_end(leaf, victim.resource):
            continue
        if helps:
            room = add(room, victim.resource)
            lack = subtract_eliminating_negative(wanted, room)
            chosen.append(victim)
            if spare is None and fits(room, wanted):
                break
        elif spare is not None:
            ledger.spare(leaf, victim.resource)
            spare.append(victim)
    return chosen if fits(room, wanted) else None


class CandidateNode(NamedTuple):
    """A node that may be reserved for the ask."""

    node_id: str
    available: Resource
    """The available room, now or after the unclaimed victims on the node have ended."""
    unclaimed: tuple[EndingVictim, ...] = ()
    """Victims on the node that end already, for no ask; the node has no room before they have ended."""


class NodeSolution(NamedTuple):
    """A node that fits the ask once the first `needed` of the victims have ended."""

    needed: int
    node_id: str
    victims: tuple[Victim, ...]

    @property
    def start_index(self) -> int:
        """The index of the last necessary victim, -1 without any."""
        return self.needed - 1

    @property
    def cost(self) -> int:
        """The cost of ending the necessary victims."""
        return cost_of(self.victims[: self.needed])


@final
class NodeSolver:
    """Computes the solutions for one ask, or for one member of a gang among the others.

    Args:
        ask: The ask, or all members as one ask.
        ask_leaf: Its leaf.
        candidates: The possible victims.
        nodes_tried: Nodes with room have been tried without result.
        size: The size of a member on its node.
        is_allowed: Whether the ask may have a node once some victims have ended; `None` for no such
            condition.
    """

    def __init__(
        self,
        ask: Ask,
        ask_leaf: QueueFacts,
        candidates: CandidateVictims,
        *,
        nodes_tried: bool,
        size: Resource | None = None,
        is_allowed: Callable[[str, Sequence[Victim]], bool] | None = None,
    ) -> None:
        self.size = ask.resource if size is None else size
        self._begun = ProjectedUsage(ask_leaf, ask.resource)
        self._candidates = candidates
        self._nodes_tried = nodes_tried
        self._is_allowed = is_allowed
        self._short = {} if is_allowed is None else self._begun.short(ask.resource)
        self._on_node: dict[str, list[Victim]] = {}
        for victim in candidates.victims:
            self._on_node.setdefault(victim.allocation.node_id, []).append(victim)

    def solutions(self, candidate_nodes: Sequence[CandidateNode]) -> Iterator[NodeSolution]:
        """Yield the solutions, the cheapest first."""
        waiting: list[tuple[int, str, CandidateNode]] = []
        for candidate in candidate_nodes:
            fewest = self._fewest(candidate)
            if fewest is not None:
                heappush(waiting, (self._least_cost(candidate, fewest), candidate.node_id, candidate))
        ready: list[tuple[int, str, NodeSolution]] = []
        while waiting or ready:
            if waiting and (not ready or waiting[0][:2] < ready[0][:2]):
                _, node_id, candidate = heappop(waiting)
                solution = self.solve(candidate)
                if solution is not None:
                    heappush(ready, (solution.cost, node_id, solution))
            else:
                yield heappop(ready)[2]

    def _fewest(self, candidate: CandidateNode) -> int | None:
        """Return the least number of victims that a node needs, `None` if it cannot help; cheap."""
        if fits(candidate.available, self.size):
            # The node has room but the queue has not: a node that was tried without result stays so.
            return None if self._nodes_tried and not candidate.unclaimed else 0
        victims = self._on_node.get(candidate.node_id, ())
        fewest = 1
        for name, quantity in self.size.items():
            lack = quantity - candidate.available.get(name) if quantity > 0 else 0
            count = 0
            for size in sorted((victim.resource.get(name) for victim in victims), reverse=True):
                if lack <= 0:
                    break
                lack -= size
                count += 1
            if lack > 0:
                return None
            fewest = max(fewest, count)
        return fewest

    def _least_cost(self, candidate: CandidateNode, fewest: int) -> int:
        """Return a lower bound of the cost of solutions of a node with this number of victims."""
        victims = self._on_node.get(candidate.node_id, ())
        if not victims or victims[0].lost is None:
            return fewest
        return sum(sorted(victim.lost or 0 for victim in victims)[:fewest])

    def end(self, victims: Iterable[Victim]) -> None:
        """End some victims; later choices are made in addition to them."""
        for victim in victims:
            self._begun.end(self._candidates.facts[victim.queue.path], victim.resource)
            self._on_node[victim.allocation.node_id].remove(victim)

    def solve(self, candidate: CandidateNode) -> NodeSolution | None:
        """Return the victims that make room on a node, `None` if no choice does."""
        if fits(candidate.available, self.size):
            is_allowed = self._is_allowed is None or self._is_allowed(candidate.node_id, ())
            return NodeSolution(0, candidate.node_id, ()) if is_allowed else None
        victims = self._on_node.get(candidate.node_id, ())
        relieves = self._relieves if self._short else None
        return first_enough(victims, self.size, partial(self._solve_in_order, candidate), relieves)

    def _relieves(self, victim: Victim) -> bool:
        """Return whether a victim gives a queue above the ask some of the types that it is short of."""
        path_up = [*self._candidates.facts[victim.queue.path].path_up]
        return any(
            victim.resource.get(name) > 0 and any(level is queue for level in path_up)
            for name, queue in self._short.items()
        )

    def _solve_in_order(self, candidate: CandidateNode, victims: Sequence[Victim]) -> NodeSolution | None:
        ledger = self._begun.copy()
        facts, needs = self._candidates.facts, (candidate.available, self.size)
        others: list[Victim] = []
        chosen = choose_in_order(ledger, facts, victims, needs, others)
        if chosen is None:
            return None
        needed = needed_only(chosen, Need(*needs))
        if self._is_allowed is not None and not self._is_allowed(candidate.node_id, needed):
            return None
        kept = {victim.key for victim in needed}
        spare = [victim for victim in chosen if victim.key not in kept]
        for victim in others:
            leaf = facts[victim.queue.path]
            if ledger.may_lose(leaf, victim.resource):
                ledger.take(leaf, victim.resource)
                spare.append(victim)
        return NodeSolution(len(needed), candidate.node_id, (*needed, *spare))


# ------------------------------------------------------------------------------------- the choice


class NodeChoice(NamedTuple):
    """The node that the RM agrees to, or the nodes of a gang, and the victims there."""

    node_id: str
    needed: tuple[Victim, ...]
    """The victims without which the node has no room."""
    demanded: tuple[Victim, ...]
    """The victims that the RM's predicates demand in addition."""
    member_nodes: tuple[str, ...] = ()
    """The nodes of the members of a gang, in their order; `node_id` is the first of them."""

    @property
    def node_ids(self) -> tuple[str, ...]:
        """The node of the ask, or the nodes of the members, in their order."""
        return self.member_nodes or (self.node_id,)

    @property
    def severity(self) -> tuple[bool, bool, int, int, int]:
        """Whether any opted out, whether any is an originator, the highest rank, the gangs cut, the cost."""
        victims = (*self.needed, *self.demanded)
        asks = [victim.allocation.ask for victim in victims]
        return (
            not all(ask.allow_preempt_self for ask in asks),
            any(ask.originator for ask in asks),
            max((victim.rank for victim in victims), default=0),
            gangs_cut_by(victims),
            cost_of(victims),
        )

    @property
    def is_mild(self) -> bool:
        """Whether no victim is an originator, opted out or above the lowest rank, and no gang is cut."""
        return self.severity[:4] == (False, False, 0, 0)


def choose_node(
    ask: Ask,
    solutions: Iterator[NodeSolution],
    checks: NodeChecks | None,
) -> NodeChoice | NoPreemption:
    """Return the mildest solution that the RM agrees to, of equally mild ones the first.

    The cheapest solutions come first. They are evaluated in batches: a batch with a mild solution is the last
    one. If the RM answers later, it is asked about a whole batch at once, and after that about more solutions
    than it has refused.
    """
    best: NodeChoice | None = None
    none = NoPreemption.NO_NODE
    evaluated = 0
    asked_max: int | None = None
    """The number of solutions after which the rest waits for the RM's answer."""
    while batch := list(islice(solutions, SOLUTIONS_PER_BATCH)):
        for solution in batch:
            if best is not None and best.is_mild and best.severity[-1] <= solution.cost:
                return best  # No later solution is milder.
            if none is not NoPreemption.PENDING:
                none = NoPreemption.REFUSED
            choice = evaluate(ask, solution, checks)
            if isinstance(choice, Pending):
                none, best = NoPreemption.PENDING, None
                asked_max = asked_max or 2 * evaluated + SOLUTIONS_PER_BATCH
            elif none is NoPreemption.PENDING or choice is None:
                continue
            elif best is None or choice.severity < best.severity:
                best = choice
        evaluated += len(batch)
        if best is not None and best.is_mild:
            return best
        if asked_max is not None and evaluated >= asked_max:
            break
    return none if best is None else best


def evaluate(
    ask: Ask, solution: NodeSolution, checks: NodeChecks | None, already: Sequence[Victim] = ()
) -> NodeChoice | Pending | None:
    """Return a solution that the RM agrees to, `None` if it does not; some victims end there already."""
    needed = solution.victims[: solution.needed]
    if checks is None:
        return NodeChoice(solution.node_id, needed, ())
    victims = (*already, *solution.victims)
    if not victims:
        reason = refuse_or_ask(checks, ask, solution.node_id, allocate=True)
        if isinstance(reason, Pending):
            return reason
        return NodeChoice(solution.node_id, (), ()) if reason is None else None
    keys = tuple(victim.key for victim in victims)
    enough = len(already) + solution.start_index
    index = checks.preemption_index(ask, solution.node_id, keys, enough)
    if isinstance(index, Pending):
        return index
    if index is None or index >= len(keys):
        return None
    return NodeChoice(solution.node_id, needed, victims[enough + 1 : index + 1])
