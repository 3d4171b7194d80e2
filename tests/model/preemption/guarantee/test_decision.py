"""The decision: a node and the victims, or why there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from support.model.builders import TEN, FakePredicates, a_resource, an_ask, memory
from support.model.preemption_scenes import HUNDRED, TWO_QUEUES, JudgingPredicates, Running, Scene, Situation

from licorne.model.predicates.node_checks import ImmediateChecks, NodeChecks, Pending, Predicates
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.preemption.guarantee.candidate_victims import collect_victims
from licorne.model.preemption.guarantee.decision import (
    PreemptionPlan,
    PreemptionView,
    decide,
    lack_of_queues,
)
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
from licorne.model.preemption.guarantee.nodes import CandidateNode
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.allocation import Ask

FIVE = memory(5)


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


@dataclass(frozen=True)
class Lack:
    """Maximum and allocated of each queue from the leaf up, what an ask of ten lacks; what ends anyway."""

    levels: list[tuple[Resource | None, Resource]]
    lack: Resource
    coming: tuple[Resource, ...] = ()


LACKS = {
    "nothing where every maximum has room, or there is none": Lack(
        [(None, FIVE), (memory(20), TEN), (HUNDRED, memory(90))], EMPTY
    ),
    "all that the ask takes, although the queue has five left: they are not held": Lack(
        [(memory(20), memory(15)), (HUNDRED, memory(20))], TEN
    ),
    "the excess as well in a queue above its maximum": Lack(
        [(memory(20), memory(27)), (HUNDRED, memory(27))], memory(17)
    ),
    # What the cluster has left is on nodes, and the one that counts is held.
    "what is missing in the root": Lack([(None, memory(95)), (HUNDRED, memory(95))], FIVE),
    "nothing of a type that is not asked for": Lack(
        [(a_resource(vcore=1), a_resource(vcore=9)), (HUNDRED, EMPTY)], EMPTY
    ),
    "less what ends for nobody: a queue gets it back in any case": Lack(
        [(memory(20), memory(15)), (HUNDRED, memory(20))], memory(7), (memory(3), memory(3))
    ),
    "nothing where enough ends for nobody": Lack(
        [(memory(20), memory(15)), (HUNDRED, memory(20))], EMPTY, (TEN, TEN)
    ),
}


@pytest.mark.parametrize("case", LACKS.values(), ids=LACKS)
def test_queues_lack(case: Lack) -> None:
    """What a full queue must get back for the ask to have room."""
    assert case.lack == lack_of_queues(an_ask(resource=TEN), case.levels, case.coming)


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
        decided(scene, asked, queue="root.p.x", predicates=JudgingPredicates(judge=insists_on_small))
    )
    assert decided(scene, asked, queue="root.p.x", checks=Hesitating()) is NoPreemption.PENDING


class Hesitating:
    """The RM has not answered yet whether the end of the large one alone will do."""

    def __init__(self) -> None:
        self._checks = ImmediateChecks(FakePredicates())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._checks, name)

    def preemption_index(
        self, ask: Ask, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        index = self._checks.preemption_index(ask, node_id, victim_keys, start_index)
        return index if "small" in victim_keys else Pending.PENDING


def insists_on_small(_: str, victims: tuple[str, ...], index: int | None) -> int | None:
    """Answer as an RM to which nothing but the end of the small one will do."""
    return index if "small" in victims else None


def demands_one_more(_: str, __: tuple[str, ...], index: int | None) -> int | None:
    """Answer as an RM that demands one victim more than is needed for room."""
    return None if index is None else index + 1


def refuses_all(_: str, __: tuple[str, ...], ___: int | None) -> int | None:
    """Answer as an RM that agrees to no victims."""
    return None


def test_what_the_rm_demands_goes_although_it_is_not_needed_for_room() -> None:
    """It may be in the way for other reasons."""
    scene = Scene("""
        - name: a
          resources: {guaranteed: {memory: 50}}
        - name: b
    """)
    scene.nodes("n1", capacity=memory(30))
    scene.runs("v1", "v2", "v3")

    assert ("n1", ["v3"], ["v2"], []) == keys(
        decided(scene, predicates=JudgingPredicates(judge=demands_one_more))
    )


UNDECIDED = {
    # Its guarantee is used up by itself.
    "its queue is entitled to nothing more": (
        Situation([Running("own", "root.a", resource=memory(45)), Running("v1 v2", resource=memory(25))]),
        NoPreemption.GUARANTEE,
    ),
    "everybody else is within a guarantee": (
        Situation([Running("v1 v2")], nodes={"n1": memory(20)}),
        NoPreemption.GUARANTEE,
    ),
    "every node is too small for it, whatever is preempted": (
        Situation([Running("v1 v2 v3")], nodes=dict.fromkeys(["n1", "n2"], memory(30)), asked=memory(40)),
        NoPreemption.NO_NODE,
    ),
}


@pytest.mark.parametrize(("situation", "why"), UNDECIDED.values(), ids=UNDECIDED)
def test_nothing_is_preempted_for_an_ask_where(situation: Situation, why: NoPreemption) -> None:
    """The reason is reported."""
    assert decided(situation.scene(), situation.asked, nodes_tried=True) is why


def test_a_refusal_of_the_rm_is_no_verdict_on_others_of_the_shape() -> None:
    """Unlike the other reasons, which hold for every ask of that size and priority."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=memory(30))
    scene.runs("v1", "v2", "v3")

    assert decided(scene, predicates=JudgingPredicates(judge=refuses_all)) is NoPreemption.REFUSED
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
