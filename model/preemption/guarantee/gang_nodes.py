"""Nodes for all members of a gang at once, and the victims there: one decision for all of them.

Members get their nodes one after the other, those of the largest size first. Each gets the node where the
mildest and fewest further victims make room for it: no victims on a node with room; of equal nodes the one
that then has room for most members. A victim of one member counts as ended for the next, in guarantees as
well. If that finds no nodes, the smallest size is placed first. Needless victims are left out at the end.

If few allocations may end, and no predicates are asked, all sets of them are compared instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias, final

from ...nodes.gang_room import NodeRoom, assign, by_size, slots
from ...nodes.topology import Domains, Path
from ...predicates.node_checks import NodeChecks, Pending
from ...resources.resource import add, subtract, total_of
from ...values.allocation import Ask
from ..victims import Victim, given_back
from .attempt_budget import NoPreemption
from .candidate_victims import CandidateVictims
from .ledger import QueueFacts
from .nodes import CandidateNode, NodeChoice, NodeSolution, NodeSolver, evaluate

SETS_OF_MAX: Final = 10
"""The largest number of possible victims of which all sets are compared."""

_Place: TypeAlias = "tuple[tuple[bool, bool, int, int, int], int, int, int, NodeSolution]"
"""The cost of a node; the negative number of members that it then has room for; its place among the nodes;
the number of victims chosen before; and the victims that it needs."""


def nodes_once_ended(
    members: Sequence[Ask],
    nodes: Iterable[CandidateNode],
    victims: Iterable[Victim],
    domains: Domains | None = None,
) -> tuple[str, ...] | None:
    """Return a node for each member once some victims have ended, `None` if no room is found."""
    rooms = {node.node_id: node.available for node in nodes}
    for victim in victims:
        node_id = victim.allocation.node_id
        if node_id in rooms:
            rooms[node_id] = add(rooms[node_id], victim.resource)
    sizes = [ask.resource for ask in members]
    return assign(sizes, [NodeRoom(*room) for room in rooms.items()], domains=domains)


def all_sets(victims: Sequence[Victim]) -> Iterator[tuple[Victim, ...]]:
    """Walk all sets of possible victims, the smallest first, of equal ones the first in the order."""
    for count in range(len(victims) + 1):
        yield from combinations(victims, count)


class GangView(NamedTuple):
    """A gang that may preempt, its possible victims, and the nodes that may be reserved for it."""

    members: Sequence[Ask]
    whole: Ask
    """All members as one ask."""
    leaf: QueueFacts
    candidates: CandidateVictims
    nodes: Sequence[CandidateNode]


def nodes_in_domains(
    gang: GangView, domains: Domains, checks: NodeChecks | None
) -> NodeChoice | NoPreemption:
    """Return nodes for all members in the domain where the mildest victims make room, or why not."""
    inside: dict[Path, list[CandidateNode]] = {}
    for node in gang.nodes:
        domain = domains.required_domain(node.node_id)
        if domain is not None:
            inside.setdefault(domain, []).append(node)
    return _mildest(
        [
            _nodes_for_slices(gang._replace(nodes=nodes), checks, domains)
            if domains.slice_depth
            else nodes_for_members(gang._replace(nodes=nodes), checks)
            for _, nodes in sorted(inside.items())
        ]
    )


def _mildest(found: Sequence[NodeChoice | NoPreemption]) -> NodeChoice | NoPreemption:
    """Return the mildest of the choices, or why there is none."""
    choices = [choice for choice in found if isinstance(choice, NodeChoice)]
    if NoPreemption.PENDING in found or not choices:
        reasons = (NoPreemption.PENDING, NoPreemption.REFUSED)
        return next((reason for reason in reasons if reason in found), NoPreemption.NO_NODE)
    return min(choices, key=lambda choice: choice.severity)


def _nodes_for_slices(
    gang: GangView, checks: NodeChecks | None, domains: Domains
) -> NodeChoice | NoPreemption:
    """Return nodes for all members, each slice in the domain where the mildest further victims make room."""
    inside: dict[Path, Sequence[CandidateNode]] = {}
    for node in gang.nodes:
        domain = domains.slice_domain(node.node_id)
        if domain is not None:
            inside[domain] = (*inside.get(domain, ()), node)
    size = domains.terms.slice_size
    done: _MemberNodes | None = None
    member_nodes: list[str] = []
    choice: NodeChoice | NoPreemption = NoPreemption.NO_NODE
    for first in range(0, len(gang.members), size):
        members = gang.members[first : first + size]
        searches = {
            domain: _MemberNodes(gang._replace(members=members, nodes=nodes), checks, done)
            for domain, nodes in sorted(inside.items())
        }
        found = [search.run([range(size)]) for search in searches.values()]
        choice = _mildest(found)
        if isinstance(choice, NoPreemption):
            return choice
        domain, done = [*searches.items()][found.index(choice)]
        inside[domain] = done.nodes
        member_nodes += choice.member_nodes
    if isinstance(choice, NodeChoice):
        return choice._replace(node_id=member_nodes[0], member_nodes=tuple(member_nodes))
    return choice


def nodes_for_members(gang: GangView, checks: NodeChecks | None) -> NodeChoice | NoPreemption:
    """Return nodes for all members and the victims there, or why none were found."""
    rooms = [NodeRoom(node.node_id, node.available) for node in gang.nodes]
    groups = by_size([ask.resource for ask in gang.members], rooms)
    found: NodeChoice | NoPreemption = NoPreemption.NO_NODE
    for order in (groups,) if len(groups) == 1 else (groups, groups[::-1]):
        found = _MemberNodes(gang, checks).run(order)
        if found is not NoPreemption.NO_NODE:
            break
    return found


@final
class _MemberNodes:
    """One search, with the members in one order.

    Args:
        gang: The gang.
        checks: The checks of the partition.
        before: The search for members that come first, whose victims end anyway.
    """

    def __init__(self, gang: GangView, checks: NodeChecks | None, before: _MemberNodes | None = None) -> None:
        self._gang = gang
        self._members = gang.members
        self.nodes = list(gang.nodes)
        """The nodes with what they have available once the members are there."""
        self._checks = checks
        self.needed: list[Victim] = [] if before is None else [*before.needed]
        self.demanded: list[Victim] = [] if before is None else [*before.demanded]
        self.ending: dict[str, list[Victim]] = (
            {} if before is None else {node_id: [*ending] for node_id, ending in before.ending.items()}
        )
        """The victims chosen so far, by node."""
        self._none = NoPreemption.NO_NODE

    def run(self, groups: Sequence[Sequence[int]]) -> NodeChoice | NoPreemption:
        """Return nodes for all members, or why none were found."""
        member_nodes = [""] * len(self._members)
        for group in groups:
            size = self._members[group[0]].resource
            gang = self._gang
            solver = NodeSolver(gang.whole, gang.leaf, gang.candidates, nodes_tried=False, size=size)
            solver.end([*self.needed, *self.demanded])
            if not self._place_all(group, solver, member_nodes):
                return self._none
        if self._none is NoPreemption.PENDING:
            return self._none
        return NodeChoice(member_nodes[0], tuple(self.needed), tuple(self.demanded), tuple(member_nodes))

    def _place_all(self, group: Sequence[int], solver: NodeSolver, member_nodes: list[str]) -> bool:
        """Place members of one size on the mildest nodes; return whether each has one."""
        places = [place for index in range(len(self.nodes)) if (place := self._place(index, solver))]
        heapify(places)
        for member in group:
            refused: list[_Place] = []
            index = None
            while places and index is None:
                place = heappop(places)
                if place[3] != self._chosen:  # Guarantees may allow less than before.
                    again = self._place(place[2], solver)
                    if again is not None:
                        heappush(places, again)
                elif self._takes(self._members[member], place[2], place[4], solver):
                    index = place[2]
                else:
                    refused.append(place)
            for each in refused:
                heappush(places, each)
            if index is None:
                return False
            node = self.nodes[index]
            left = subtract(node.available, self._members[member].resource)
            self.nodes[index] = node._replace(available=left)
            member_nodes[member] = node.node_id
            following = self._place(index, solver)
            if following is not None:
                heappush(places, following)
        return True

    @property
    def _chosen(self) -> int:
        return len(self.needed) + len(self.demanded)

    def _place(self, index: int, solver: NodeSolver) -> _Place | None:
        node = self.nodes[index]
        solution = solver.solve(node)
        if solution is None:
            return None
        choice = NodeChoice(solution.node_id, solution.victims[: solution.needed], ())
        room = NodeRoom(node.node_id, add(node.available, given_back(choice.needed)))
        return choice.severity, -slots(solver.size, [room]), index, self._chosen, solution

    def _takes(self, ask: Ask, index: int, solution: NodeSolution, solver: NodeSolver) -> bool:
        """End the victims on a node for a member, if the RM agrees; a pending answer counts as agreement."""
        already = self.ending.setdefault(solution.node_id, [])
        choice = evaluate(ask, solution, self._checks, already)
        if choice is None:
            if self._none is NoPreemption.NO_NODE:
                self._none = NoPreemption.REFUSED
            return False
        if isinstance(choice, Pending):
            self._none = NoPreemption.PENDING
            choice = NodeChoice(solution.node_id, solution.victims[: solution.needed], ())
        ending = (*choice.needed, *choice.demanded)
        self.needed += choice.needed
        self.demanded += choice.demanded
        already += ending
        solver.end(ending)
        node = self.nodes[index]
        self.nodes[index] = node._replace(available=add(node.available, given_back(ending)))
        return True


def as_one(members: Sequence[Ask]) -> Ask:
    """Return all members of a gang as one ask for their sum.

    It has the age of the youngest member and the lowest priority, and may preempt others if all members may.
    """
    first = members[0]
    return Ask(
        first.allocation_key,
        first.application_id,
        total_of(ask.resource for ask in members),
        max(ask.created_at_ns for ask in members),
        min(ask.priority for ask in members),
        first.tags,
        allow_preempt_other=all(ask.allow_preempt_other for ask in members),
        required_node=next((ask.required_node for ask in members if ask.required_node), ""),
    )
