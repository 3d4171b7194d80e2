"""Where the room could be: solutions node by node."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import TEN, a_resource, an_ask, memory
from support.model.preemption_scenes import HUNDRED, TWO_QUEUES, Running, Scene

from licorne.model.preemption.guarantee.candidate_victims import collect_victims
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
from licorne.model.preemption.guarantee.nodes import CandidateNode, NodeSolution, NodeSolver
from licorne.model.resources.resource import Resource

TWENTY = memory(20)


def a_scene(*nodes: str, queues: str = TWO_QUEUES, capacity: Resource = TWENTY) -> Scene:
    scene = Scene(queues)
    scene.nodes(*nodes, capacity=capacity)
    return scene


def solutions(scene: Scene, resource: Resource = TEN, *, nodes_tried: bool = True) -> list[NodeSolution]:
    """Return the solutions for an ask of root.a, over all nodes."""
    leaf = scene.queue("root.a")
    ask = an_ask(resource=resource)
    facts_of = QueueFactsOf(leaf)
    candidates = collect_victims(leaf, ask, facts_of, {})
    solver = NodeSolver(ask, facts_of(leaf), candidates, nodes_tried=nodes_tried)
    candidate_nodes = [CandidateNode(entry.node_id, entry.available) for entry in scene.state.nodes]
    return list(solver.solutions(candidate_nodes))


def shown(found: list[NodeSolution]) -> list[tuple[str, int, list[str]]]:
    return [(one.node_id, one.needed, [victim.key for victim in one.victims]) for one in found]


BOTH_TYPES = "- {name: a, resources: {guaranteed: {memory: 50, vcore: 50m}}}\n- name: b"


@dataclass(frozen=True)
class Solved:
    """What runs; and for an ask of a size the nodes, how many victims are needed, and all there are."""

    running: list[Running]
    asked: Resource
    solutions: list[tuple[str, int, list[str]]]
    capacity: Resource = TWENTY
    queues: str = "- {name: a, resources: {guaranteed: {memory: 50}}}\n- name: b"
    nodes_tried: bool = True


SOLVED = {
    # The others are spare: the RM may demand them as well.
    "a node needs as few victims as are enough": Solved(
        [Running("v1 v2 v3")], TEN, [("n1", 1, ["v3", "v2", "v1"])], memory(30)
    ),
    "nodes with fewer victims come first, of equals the one whose name comes first": Solved(
        [
            Running("a1 a2", node="n1"),
            Running("b1", node="n2", resource=TWENTY),
            Running("c1", node="n3", resource=TWENTY),
        ],
        TWENTY,
        [("n2", 1, ["b1"]), ("n3", 1, ["c1"]), ("n1", 2, ["a2", "a1"])],
    ),
    "what a node has available counts: its reservation will hold it": Solved(
        [Running("v1", resource=memory(15)), Running("v2 v3", resource=memory(2))],
        memory(16),
        [("n1", 1, ["v1", "v3", "v2"])],
    ),
    # It is the queue that has no room.
    "a node with room needs no victims if nodes were not tried": Solved(
        [Running("v1", resource=memory(5))], TEN, [("n1", 0, [])], nodes_tried=False, queues=TWO_QUEUES
    ),
    "a node with room is of no use if nodes were tried": Solved(
        [Running("v1", resource=memory(5))], TEN, [], queues=TWO_QUEUES
    ),
    # What else runs may be foreign, or too important.
    "a node where all are not enough is no solution": Solved(
        [Running("important", priority=9, resource=memory(15)), Running("v1", resource=memory(5))], TEN, []
    ),
    "of forty of which twenty are guaranteed two tens may be preempted": Solved(
        [Running("v1 v2 v3 v4")], TWENTY, [("n1", 2, ["v4", "v3"])], memory(40), TWO_QUEUES
    ),
    "of forty of which twenty are guaranteed three tens may not be preempted": Solved(
        [Running("v1 v2 v3 v4")], memory(30), [], memory(40), TWO_QUEUES
    ),
    # Another queue would get what is left of them.
    "eighty are not preempted for a queue that is entitled to fifty": Solved(
        [Running("base", resource=TWENTY), Running("v1", resource=memory(80))], memory(40), [], HUNDRED
    ),
    "what does not reduce the shortage comes last: the node lacks memory, and vcores are spare": Solved(
        [Running("memory", resource=TWENTY), Running("vcore", resource=a_resource(vcore=10))],
        a_resource(memory=10, vcore=1),
        [("n1", 1, ["memory", "vcore"])],
        a_resource(memory=20, vcore=100),
        BOTH_TYPES,
    ),
    # The youngest would not be enough, and the next one is enough alone.
    "one that a later one makes needless is spare": Solved(
        [Running("large", resource=memory(18)), Running("small", resource=memory(2))],
        memory(15),
        [("n1", 1, ["large", "small"])],
    ),
}


@pytest.mark.parametrize("case", SOLVED.values(), ids=SOLVED)
def test_a_node_is_solved_with_as_few_victims_as_are_enough(case: Solved) -> None:
    """They are the first of the order; nodes with fewer come first."""
    nodes = dict.fromkeys(each.node for each in case.running)
    scene = a_scene(*nodes, queues=case.queues, capacity=case.capacity)
    scene.start(case.running)

    assert case.solutions == shown(solutions(scene, case.asked, nodes_tried=case.nodes_tried))


def test_no_more_solutions_are_worked_out_than_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that needs more at least is not looked at before those that need fewer."""
    scene = a_scene("n1", "n2")
    scene.runs("a1", "a2", node="n1")
    scene.runs("b1", node="n2", resource=TWENTY)
    leaf = scene.queue("root.a")
    ask = an_ask(resource=TWENTY)
    facts_of = QueueFactsOf(leaf)
    solver = NodeSolver(ask, facts_of(leaf), collect_victims(leaf, ask, facts_of, {}), nodes_tried=True)
    worked_out: list[str] = []
    solve = NodeSolver.solve

    def counting(self: NodeSolver, candidate: CandidateNode) -> NodeSolution | None:
        worked_out.append(candidate.node_id)
        return solve(self, candidate)

    monkeypatch.setattr(NodeSolver, "solve", counting)
    next(solver.solutions([CandidateNode(entry.node_id, entry.available) for entry in scene.state.nodes]))

    assert ["n2"] == worked_out
