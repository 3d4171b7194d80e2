"""Where the room could be: solutions node by node."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_resource, an_ask
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.preemption.guarantee.candidate_victims import collect_victims
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
from licorne.model.preemption.guarantee.node_solver import CandidateNode, NodeSolution, NodeSolver
from licorne.model.resources.resource import Resource

TWENTY = a_resource(memory=20)


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


def test_a_node_needs_as_few_victims_as_are_enough() -> None:
    """The others are spare: the RM may want them gone as well."""
    scene = a_scene("n1", capacity=a_resource(memory=30))
    scene.runs("v1", "v2", "v3", resource=TEN)

    scene.queue("root.b").set_quota(None, None)

    assert [("n1", 1, ["v3", "v2", "v1"])] == shown(solutions(scene, TEN))


def test_nodes_with_fewer_victims_come_first() -> None:
    """And of equals the one whose name comes first."""
    scene = a_scene("n1", "n2", "n3")
    scene.runs("a1", "a2", node="n1")
    scene.runs("b1", node="n2", resource=TWENTY)
    scene.runs("c1", node="n3", resource=TWENTY)

    assert [("n2", 1), ("n3", 1), ("n1", 2)] == [row[:2] for row in shown(solutions(scene, TWENTY))]


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
    solve = NodeSolver._solve

    def counting(self: NodeSolver, candidate: CandidateNode) -> NodeSolution | None:
        worked_out.append(candidate.node_id)
        return solve(self, candidate)

    monkeypatch.setattr(NodeSolver, "_solve", counting)
    next(solver.solutions([CandidateNode(entry.node_id, entry.available) for entry in scene.state.nodes]))

    assert ["n2"] == worked_out


def test_what_a_node_has_available_counts() -> None:
    """Its reservation will hold it for the ask."""
    scene = a_scene("n1")
    scene.runs("v1", node="n1", resource=a_resource(memory=15))
    scene.runs("v2", "v3", node="n1", resource=a_resource(memory=2))
    scene.queue("root.b").set_quota(None, None)

    assert [("n1", 1, ["v1", "v3", "v2"])] == shown(solutions(scene, a_resource(memory=16)))


def test_a_node_with_room_needs_no_victims_if_nodes_were_not_tried() -> None:
    """It is the queue that has no room. Where nodes were tried without result such a node is of no use."""
    scene = a_scene("n1")
    scene.runs("v1", node="n1", resource=a_resource(memory=5))

    assert [("n1", 0, [])] == shown(solutions(scene, TEN, nodes_tried=False))
    assert [] == shown(solutions(scene, TEN, nodes_tried=True))


def test_a_node_where_all_are_not_enough_is_no_solution() -> None:
    """The rest may be foreign, or too important."""
    scene = a_scene("n1")
    scene.runs("important", node="n1", priority=9, resource=a_resource(memory=15))
    scene.runs("v1", node="n1", resource=a_resource(memory=5))

    assert [] == solutions(scene, TEN)


def test_the_guarantee_of_the_victims_bounds_a_solution() -> None:
    """Of forty, twenty are guaranteed: two tens may go, not three."""
    scene = a_scene("n1", capacity=a_resource(memory=40))
    scene.runs("v1", "v2", "v3", "v4", node="n1")

    assert [2] == [one.needed for one in solutions(scene, TWENTY)]
    assert [] == solutions(scene, a_resource(memory=30))


def test_victims_may_not_be_worth_more_than_the_guarantee_allows() -> None:
    """Another queue would get what is left: sixty do not go for a queue that is entitled to fifty."""
    scene = a_scene("n1", capacity=a_resource(memory=100))
    scene.runs("base", node="n1", resource=TWENTY)
    scene.runs("v1", node="n1", resource=a_resource(memory=80))
    scene.queue("root.b").set_quota(None, None)

    assert [] == solutions(scene, a_resource(memory=40))


def test_what_does_not_reduce_the_shortage_comes_last() -> None:
    """The node lacks memory; who gives vcore back is spare."""
    scene = Scene("""
        - name: a
          resources: {guaranteed: {memory: 50, vcore: 50m}}
        - name: b
    """)
    scene.nodes("n1", capacity=a_resource(memory=20, vcore=100))
    scene.runs("memory", node="n1", resource=TWENTY)
    scene.runs("vcore", node="n1", resource=a_resource(vcore=10))

    assert [("n1", 1, ["memory", "vcore"])] == shown(solutions(scene, a_resource(memory=10, vcore=1)))


def test_one_that_a_later_one_makes_needless_is_spare() -> None:
    """The youngest would not be enough, and the next one is enough alone."""
    scene = a_scene("n1")
    scene.runs("large", node="n1", resource=a_resource(memory=18))
    scene.runs("small", node="n1", resource=a_resource(memory=2))
    scene.queue("root.b").set_quota(None, None)

    assert [("n1", 1, ["large", "small"])] == shown(solutions(scene, a_resource(memory=15)))
