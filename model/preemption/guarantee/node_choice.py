"""The choice of the node: the RM's predicates are asked about the solutions, and the mildest one is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

from ...predicates.node_checks import NodeChecks, Pending, refuse_or_ask
from ...values.allocation import Ask
from ..victims import Victim, cost_of, gangs_cut_by
from .node_solver import NodeSolution

SOLUTIONS_PER_BATCH: Final = 10
"""So many solutions are compared; the next ones are evaluated only if none of these is mild."""


class NoNode(Enum):
    """Why there is no node for an ask."""

    NO_ROOM = "no node would have room, whoever goes"
    REFUSED = "the RM's predicates refused every node that would"
    PENDING = "the RM's predicates have not answered yet"


class NodeChoice(NamedTuple):
    """The node, or those of a gang, that the RM agrees to, and the victims there."""

    node_id: str
    needed: tuple[Victim, ...]
    """Those without which the node has no room."""
    demanded: tuple[Victim, ...]
    """Those that the RM's predicates want gone as well."""
    member_nodes: tuple[str, ...] = ()
    """The nodes of the members of a gang, in their order; `node_id` is the first of them."""

    @property
    def node_ids(self) -> tuple[str, ...]:
        """The node of the ask, or those of the members, in their order."""
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
) -> NodeChoice | NoNode:
    """Return the mildest solution that the RM agrees to, of equals the first.

    The cheapest solutions come first. They are evaluated in batches: a batch with a mild
    solution is the last one. Where the RM answers later, it is asked about a batch at once, and after that
    about more than it has refused.
    """
    best: NodeChoice | None = None
    none = NoNode.NO_ROOM
    evaluated = 0
    asked_max: int | None = None
    """After how many solutions the rest is left until the RM has answered."""
    while batch := list(islice(solutions, SOLUTIONS_PER_BATCH)):
        for solution in batch:
            if best is not None and best.is_mild and best.severity[-1] <= solution.cost:
                return best  # No later one is milder.
            if none is not NoNode.PENDING:
                none = NoNode.REFUSED
            choice = evaluate(ask, solution, checks)
            if isinstance(choice, Pending):
                none, best = NoNode.PENDING, None
                asked_max = asked_max or 2 * evaluated + SOLUTIONS_PER_BATCH
            elif none is NoNode.PENDING or choice is None:
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
    """Return a solution as the RM agrees to it, `None` if it does not; some victims end there already."""
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
    index = checks.preemption_index(ask.allocation_key, solution.node_id, keys, enough)
    if isinstance(index, Pending):
        return index
    if index is None or index >= len(keys):
        return None
    return NodeChoice(solution.node_id, needed, victims[enough + 1 : index + 1])
