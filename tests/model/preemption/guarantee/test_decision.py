"""The decision: a node and the victims, or why there are none."""

from __future__ import annotations

from typing import Any

import pytest
from support.model.builders import TEN, FakePredicates, a_resource, an_ask
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.preemption.guarantee.candidate_victims import collect_victims
from licorne.model.preemption.guarantee.decision import (
    NoPreemption,
    PreemptionPlan,
    PreemptionView,
    decide,
    lack_of_queues,
)
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
from licorne.model.preemption.guarantee.node_solver import CandidateNode
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.state.host import Predicates
from licorne.model.state.node_checks import ImmediateChecks, NodeChecks, Pending

HUNDRED = a_resource(memory=100)
FIVE = a_resource(memory=5)


def memory(quantity: int) -> Resource:
    return a_resource(memory=quantity)


def decided(
    scene: Scene,
    resource: Resource = TEN,
    *,
    queue: str = "root.a",
    nodes_tried: bool = False,
    predicates: Predicates | None = None,
    checks: NodeChecks | None = None,
) -> PreemptionPlan | NoPreemption:
    """Decide for an ask, with all nodes to choose from."""
    leaf = scene.queue(queue)
    ask = an_ask(resource=resource)
    facts_of = QueueFactsOf(leaf)
    view = PreemptionView(
        ask=ask,
        leaf=facts_of(leaf),
        lack=lack_of_queues(ask, [(level.maximum, level.allocated) for level in leaf.above]),
        candidates=collect_victims(leaf, ask, facts_of, {}),
        candidate_nodes=tuple(CandidateNode(entry.node_id, entry.available) for entry in scene.state.nodes),
        nodes_tried=nodes_tried,
    )
    return decide(view, checks if predicates is None else ImmediateChecks(predicates))


def keys(plan: PreemptionPlan | NoPreemption) -> tuple[str, list[str], list[str], list[str]]:
    """Return the node, and who goes for it, on demand of the RM, and for a queue."""
    assert isinstance(plan, PreemptionPlan)
    parts = (plan.for_node, plan.demanded, plan.for_queue)
    node, demanded, queue = [[victim.key for victim in part] for part in parts]
    return plan.node_id, node, demanded, queue


def a_full_parent(headroom: int = 0) -> Scene:
    """A parent with little room left, on a cluster with much."""
    scene = Scene(f"""
        - name: p
          resources: {{max: {{memory: {40 + headroom}}}}}
          queues:
          - name: x
            resources: {{guaranteed: {{memory: 30}}}}
          - name: y
    """)
    scene.nodes("n1", "n2", capacity=HUNDRED)
    return scene


def test_nothing_lacks_where_every_maximum_has_room() -> None:
    """Queues without a maximum have room for everything."""
    ask = an_ask(resource=TEN)

    assert EMPTY == lack_of_queues(ask, [(None, memory(5)), (memory(20), memory(10)), (HUNDRED, memory(90))])


def test_a_full_queue_must_get_back_what_the_ask_takes() -> None:
    """All of it, although the queue has five left: these are not held."""
    assert TEN == lack_of_queues(an_ask(resource=TEN), [(memory(20), memory(15)), (HUNDRED, memory(20))])


def test_a_queue_above_its_maximum_must_get_back_the_excess_too() -> None:
    """Or the ask would still have no room."""
    assert memory(17) == lack_of_queues(
        an_ask(resource=TEN), [(memory(20), memory(27)), (HUNDRED, memory(27))]
    )


def test_the_root_must_get_back_what_is_missing() -> None:
    """What the cluster has left is on nodes, and the one that counts is held."""
    assert FIVE == lack_of_queues(an_ask(resource=TEN), [(None, memory(95)), (HUNDRED, memory(95))])


def test_only_types_that_are_asked_for_can_lack() -> None:
    """A queue may be full of what the ask does not want."""
    ask = an_ask(resource=TEN)

    assert EMPTY == lack_of_queues(ask, [(a_resource(vcore=1), a_resource(vcore=9)), (HUNDRED, EMPTY)])


def test_a_victim_on_the_node_serves_node_and_queues_at_once() -> None:
    """In a full cluster no further victim is needed."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs(*[f"v{number}" for number in range(10)])

    assert ("n1", ["v9"], [], []) == keys(decided(scene))


def test_a_queue_without_room_takes_from_any_node() -> None:
    """The ask fits a node already; who goes may be elsewhere."""
    scene = a_full_parent()
    scene.runs("y1", "y2", "y3", "y4", queue="root.p.y", node="n2")

    assert ("n1", [], [], ["y4"]) == keys(decided(scene, queue="root.p.x"))


def test_who_goes_for_a_queue_may_spare_who_goes_for_the_node() -> None:
    """A large one on the node makes the small one needless that was chosen before it."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 40}}
          queues:
          - name: x
            resources: {guaranteed: {memory: 40}}
          - name: y
    """)
    scene.nodes("n1", capacity=memory(45))
    scene.runs("large", queue="root.p.y", resource=memory(25))
    scene.runs("small", queue="root.p.y", resource=memory(15))
    asked = memory(20)

    assert ("n1", [], [], ["large"]) == keys(decided(scene, asked, queue="root.p.x"))
    assert ("n1", [], [], ["large"]) == keys(
        decided(scene, asked, queue="root.p.x", predicates=FakePredicates())
    )
    assert ("n1", [], ["small"], ["large"]) == keys(
        decided(scene, asked, queue="root.p.x", predicates=Insisting())
    )
    assert decided(scene, asked, queue="root.p.x", checks=Hesitating()) is NoPreemption.PENDING


class Hesitating:
    """The RM has not answered yet whether the end of the large one alone will do."""

    def __init__(self) -> None:
        self._checks = ImmediateChecks(FakePredicates())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checks, name)

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        index = self._checks.preemption_index(allocation_key, node_id, victim_keys, start_index)
        return index if "small" in victim_keys else Pending.PENDING


class Insisting(FakePredicates):
    """An RM to which nothing but the end of the small one will do."""

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        index = super().preemption_index(allocation_key, node_id, victim_keys, start_index)
        return index if "small" in victim_keys else None


def test_what_the_rm_demands_goes_although_it_is_not_needed_for_room() -> None:
    """It may be in the way for other reasons."""
    scene = Scene("""
        - name: a
          resources: {guaranteed: {memory: 50}}
        - name: b
    """)
    scene.nodes("n1", capacity=memory(30))
    scene.runs("v1", "v2", "v3")

    assert ("n1", ["v3"], ["v2"], []) == keys(decided(scene, predicates=Demanding()))


class Demanding(FakePredicates):
    """An RM that wants one more gone than has to go."""

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        index = super().preemption_index(allocation_key, node_id, victim_keys, start_index)
        return None if index is None else index + 1


def test_a_queue_that_is_entitled_to_nothing_preempts_nothing() -> None:
    """Its guarantee is used up by itself, or it has none."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("own", queue="root.a", resource=memory(45))
    scene.runs("v1", "v2", resource=memory(25))

    assert decided(scene, TEN) is NoPreemption.GUARANTEE


def test_without_a_possible_victim_there_is_no_plan() -> None:
    """Everybody else is within a guarantee."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=memory(20))
    scene.runs("v1", "v2")

    assert decided(scene) is NoPreemption.GUARANTEE


def test_without_a_node_there_is_no_plan() -> None:
    """Every node is too small for the ask, whatever is preempted."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", capacity=memory(30))
    scene.runs("v1", "v2", "v3")

    assert decided(scene, memory(40), nodes_tried=True) is NoPreemption.NO_NODE


def test_a_refusal_of_the_rm_is_no_verdict_on_others_of_the_shape() -> None:
    """Unlike the other reasons, which hold for every ask of that size and priority."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=memory(30))
    scene.runs("v1", "v2", "v3")
    refusing = FakePredicates()
    refusing.preemption_index = lambda *_, **__: None  # type: ignore[method-assign]

    assert decided(scene, predicates=refusing) is NoPreemption.REFUSED
    assert not NoPreemption.REFUSED.holds_for_shape
    assert NoPreemption.NO_NODE.holds_for_shape


def test_where_queues_cannot_be_given_enough_nothing_is_preempted() -> None:
    """Twenty are wanted back, and only what is too important for that is there."""
    scene = a_full_parent()
    scene.runs("important", queue="root.p.y", node="n2", resource=memory(30), priority=1)
    scene.runs("y1", queue="root.p.y", node="n2")

    assert decided(scene, memory(20), queue="root.p.x") is NoPreemption.SHORT


def test_nodes_are_not_offered_again_where_they_were_tried() -> None:
    """Only where the queue had no room a node with room is news."""
    scene = a_full_parent(headroom=50)
    scene.runs("y1", queue="root.p.y")

    assert decided(scene, queue="root.p.x", nodes_tried=True) is NoPreemption.NO_NODE


def test_a_decision_changes_nothing() -> None:
    """Whatever it is, only carrying it out does."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs(*[f"v{number}" for number in range(10)])
    before = len(scene.announcements)
    first, second = decided(scene), decided(scene)

    assert first == second
    assert before == len(scene.announcements)
    assert not scene.application("root.b").allocations.is_preempted("v9")


@pytest.mark.parametrize("nodes", [1, 2], ids=["on the only node", "for a queue"])
def test_a_victim_that_is_too_large_does_not_end_the_search(nodes: int) -> None:
    """The youngest would lift the ask's queue above its guarantee; the two small ones are enough."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 80}}
          queues:
          - {name: a, resources: {guaranteed: {memory: 20}}}
          - {name: b, resources: {guaranteed: {memory: 10}}}
    """)
    scene.nodes(*("n1", "n2")[:nodes], capacity=memory(80))
    scene.runs("small", "smaller", queue="root.p.b")
    scene.runs("big", queue="root.p.b", resource=memory(60))
    plan = decided(scene, memory(20), queue="root.p.a")

    assert isinstance(plan, PreemptionPlan)
    assert {"small", "smaller"} == {victim.key for victim in plan.victims}


def test_what_ends_for_nobody_is_not_lacking() -> None:
    """A queue gets it back in any case; what else it has left is still not held."""
    levels = [(memory(20), memory(15)), (HUNDRED, memory(20))]

    assert memory(7) == lack_of_queues(an_ask(resource=TEN), levels, [memory(3), memory(3)])
    assert EMPTY == lack_of_queues(an_ask(resource=TEN), levels, [TEN, TEN])
