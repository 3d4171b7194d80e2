"""Which nodes could have room: for each candidate, which victims on it would make the ask fit.

A solution lists the victims that are all needed, and behind them spare ones that the RM's predicates may
ask for in addition. Solutions come in order of what they cost (how many victims they need, or how much work
is lost with these), then of their node's id, and each is computed only when the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple, final

from ...resources.resource import Resource, add, fits, subtract_eliminating_negative
from ...state.claims import EndingVictim
from ...values.allocation import Ask
from ..victims import Need, Victim, cost_of, first_enough, needed_only
from .candidate_victims import CandidateVictims
from .ledger import ProjectedUsage, QueueFacts


def helps(lack: Resource, victim: Victim, given: Iterable[str]) -> bool:
    """Return whether a victim reduces what is lacking of one of the types that its queue gives."""
    return any(lack.get(name) > 0 and victim.resource.get(name) > 0 for name in given)


class CandidateNode(NamedTuple):
    """A node that may be reserved for the ask."""

    node_id: str
    available: Resource
    """What it has left, or will have once the unclaimed victims on it have ended."""
    unclaimed: tuple[EndingVictim, ...] = ()
    """Victims on it that end already, for no ask; the node has no room before they have ended."""


class NodeSolution(NamedTuple):
    """A node that fits the ask once the first `needed` of the victims have ended."""

    needed: int
    node_id: str
    victims: tuple[Victim, ...]

    @property
    def start_index(self) -> int:
        """The index of the last victim that is needed, -1 for none."""
        return self.needed - 1

    @property
    def cost(self) -> int:
        """What it costs to end those that are needed."""
        return cost_of(self.victims[: self.needed])


@final
class NodeSolver:
    """Computes the solutions for one ask, or for one member of a gang beside the others.

    Args:
        ask: The ask, or all members as one ask.
        ask_leaf: Its leaf.
        candidates: What may end.
        nodes_tried: Nodes with room have been tried without result.
        size: What a member needs on its node.
    """

    def __init__(
        self,
        ask: Ask,
        ask_leaf: QueueFacts,
        candidates: CandidateVictims,
        *,
        nodes_tried: bool,
        size: Resource | None = None,
    ) -> None:
        self.size = ask.resource if size is None else size
        self._begun = ProjectedUsage(ask_leaf, ask.resource)
        self._candidates = candidates
        self._nodes_tried = nodes_tried
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
        """Return how many victims a node needs at least, `None` if it is of no use; cheap."""
        if fits(candidate.available, self.size):
            # With room on the node the queue has none: a node that was tried without result stays so.
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
        """Return what no solution of a node with so many victims costs less than."""
        victims = self._on_node.get(candidate.node_id, ())
        if not victims or victims[0].lost is None:
            return fewest
        return sum(sorted(victim.lost or 0 for victim in victims)[:fewest])

    def end(self, victims: Iterable[Victim]) -> None:
        """Have some victims end: what is chosen after them is chosen beside them."""
        for victim in victims:
            self._begun.end(self._candidates.facts[victim.queue.path], victim.resource)
            self._on_node[victim.allocation.node_id].remove(victim)

    def solve(self, candidate: CandidateNode) -> NodeSolution | None:
        """Return which victims give a node room, `None` if none do."""
        if fits(candidate.available, self.size):
            return NodeSolution(0, candidate.node_id, ())
        victims = self._on_node.get(candidate.node_id, ())
        return first_enough(victims, self.size, partial(self._solve_in_order, candidate))

    def _solve_in_order(self, candidate: CandidateNode, victims: Sequence[Victim]) -> NodeSolution | None:
        useful, others = self._useful(candidate, victims)
        ledger = self._begun.copy()
        useful = self._keeping_guarantees(ledger, useful)
        available = candidate.available
        for position, victim in enumerate(useful, start=1):
            available = add(available, victim.resource)
            if fits(available, self.size):
                spare = useful[position:] + self._keeping_guarantees(ledger, others)
                return self._without_needless(candidate, useful[:position], spare)
        return None

    def _useful(
        self, candidate: CandidateNode, victims: Sequence[Victim]
    ) -> tuple[list[Victim], list[Victim]]:
        """Return the victims that reduce what their node lacks of a type that they give, and the others.

        Both are in order. What victims give back is counted for the ask's queue, as if it used it: a victim
        that would lift the queue above its guarantee is skipped.
        """
        asked = self.size
        ledger = self._begun.copy()
        available = candidate.available
        lack = subtract_eliminating_negative(asked, available)
        head: list[Victim] = []
        tail: list[Victim] = []
        for victim in victims:
            facts = self._candidates.facts[victim.queue.path]
            if not ledger.try_end(facts, victim.resource):
                continue
            if helps(lack, victim, ledger.gives(facts)):
                available = add(available, victim.resource)
                lack = subtract_eliminating_negative(asked, available)
                head.append(victim)
            else:
                ledger.spare(facts, victim.resource)
                tail.append(victim)
        return head, tail

    def _keeping_guarantees(self, ledger: ProjectedUsage, victims: list[Victim]) -> list[Victim]:
        """Return those of the victims that may end one after the other and leave all guarantees kept."""
        kept = []
        for victim in victims:
            facts = self._candidates.facts[victim.queue.path]
            if ledger.may_lose(facts, victim.resource):
                ledger.take(facts, victim.resource)
                kept.append(victim)
        return kept

    def _without_needless(
        self,
        candidate: CandidateNode,
        enough: list[Victim],
        spare: list[Victim],
    ) -> NodeSolution:
        needed = needed_only(enough, Need(candidate.available, self.size))
        kept = {victim.key for victim in needed}
        left_out = [victim for victim in enough if victim.key not in kept]
        return NodeSolution(len(needed), candidate.node_id, (*needed, *left_out, *spare))
