"""The nodes that could be reserved for an ask that preempts."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_resource, an_ask
from support.model.preemption_scenes import HUNDRED, TWO_QUEUES, Scene

from licorne.model.preemption.guarantee.candidate_nodes import (
    STALE_AFTER_NS,
    find_candidate_nodes,
    yielding_nodes,
)
from licorne.model.preemption.guarantee.candidate_victims import collect_victims
from licorne.model.preemption.guarantee.ledger import NOTHING_COMMITTED, QueueFactsOf
from licorne.model.values.messages import NodeAction


def a_scene() -> Scene:
    """Node n1 is full, n2 has room for five, n3 for anything."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", "n3", capacity=HUNDRED)
    scene.runs("v1", node="n1", resource=HUNDRED)
    scene.runs("v2", node="n2", resource=a_resource(memory=95))
    return scene


def candidate_nodes(
    scene: Scene,
    *,
    reserved_node: str = "",
    nodes_tried: bool = True,
    yielding: frozenset[str] = frozenset(),
) -> list[str]:
    leaf = scene.queue("root.a")
    ask = an_ask(resource=TEN)
    candidates = collect_victims(leaf, ask, QueueFactsOf(leaf), {})
    found = find_candidate_nodes(
        scene.state,
        ask,
        candidates,
        reserved_node=reserved_node,
        nodes_tried=nodes_tried,
        yielding=yielding,
    )
    return sorted(room.node_id for room in found)


def yielding(scene: Scene, priority: int, key: str = "ask-1") -> list[str]:
    """The asks whose reservations yield to one of that priority."""
    nodes = yielding_nodes(scene.state, an_ask(key, priority=priority), NOTHING_COMMITTED)
    return [each.ask.allocation_key for node in nodes for each in scene.state.reserved.on_node(node)]


def with_a_reservation(priority: int = -1, queue: str = "root.a", *, may_preempt: bool = True) -> Scene:
    """The two nodes that are left have room for nothing larger than five, and n1 is reserved."""
    scene = a_scene()
    scene.runs("v3", node="n3", resource=a_resource(memory=95))
    scene.asks("old", priority=priority, queue=queue, may_preempt=may_preempt)
    scene.wait(3)
    assert scene.state.reservations == 1
    return scene


def test_nodes_with_victims_may_be_reserved() -> None:
    """Nodes with room too, where none was tried: it is the queue that has no room. A cordoned one may not."""
    scene = a_scene()

    assert ["n1", "n2"] == candidate_nodes(scene)
    assert ["n1", "n2", "n3"] == candidate_nodes(scene, nodes_tried=False)
    scene.update_node("n1", NodeAction.DRAIN_NODE)
    assert ["n2"] == candidate_nodes(scene)


def test_a_node_that_is_too_small_may_not() -> None:
    """However empty it were."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=9, vcore=100))
    scene.runs("v1", node="n1", resource=a_resource(memory=9))
    scene.queue("root.b").set_quota(None, None)

    assert [] == candidate_nodes(scene)


def test_a_node_that_another_ask_has_may_not() -> None:
    """But the ask's own one may, and one whose reservation yields."""
    scene = with_a_reservation()
    (reserved,) = [entry.node_id for entry in scene.state.nodes if entry.reserved]

    assert reserved not in candidate_nodes(scene)
    assert reserved in candidate_nodes(scene, reserved_node=reserved)
    assert reserved in candidate_nodes(scene, yielding=frozenset({reserved}))


def test_a_reservation_is_stale_after_two_hours_for_a_higher_priority() -> None:
    """For an equal one it is not, nor is it before."""
    scene = with_a_reservation(priority=0)
    assert [] == yielding(scene, priority=1)
    scene.advance(STALE_AFTER_NS // 10**9 + 1)

    assert ["old"] == yielding(scene, priority=1)
    assert [] == yielding(scene, priority=0)


def test_the_reservation_of_an_ask_above_its_guarantee_yields_at_once() -> None:
    """To one of no lower priority: the ask that holds it is entitled to nothing."""
    scene = with_a_reservation(priority=1, queue="root.b")

    assert ["old"] == yielding(scene, priority=1)
    assert [] == yielding(scene, priority=0)


def test_the_reservation_of_an_ask_within_its_guarantee_stays() -> None:
    """An ask within its guarantee goes first; one larger than the guarantee is entitled to nothing."""
    scene = with_a_reservation(priority=0)
    assert [] == yielding(scene, priority=9)
    scene.queue("root.a").set_quota(a_resource(memory=9), None)

    assert ["old"] == yielding(scene, priority=9)


def test_the_reservation_of_an_ask_that_may_not_preempt_yields_at_once() -> None:
    """It waits until something ends by itself, while the other one makes the room."""
    scene = with_a_reservation(priority=0, may_preempt=False)

    assert ["old"] == yielding(scene, priority=0)
    assert [] == yielding(scene, priority=-1)


def test_the_own_reservation_of_an_ask_does_not_yield_to_it() -> None:
    """Without it another ask would take what ends."""
    scene = with_a_reservation(priority=0, queue="root.b")

    assert [] == yielding(scene, priority=0, key="old")


def test_the_reservation_of_an_ask_that_has_preempted_never_yields() -> None:
    """Its victims went for it."""
    scene = with_a_reservation()
    scene.application("root.a").asks.note_preemption("old", scene.clock.now_ns(), triggered=True)
    scene.advance(STALE_AFTER_NS // 10**9 + 1)

    assert [] == yielding(scene, priority=1)


@pytest.mark.parametrize(("priority", "yields"), [(-1, ["bound"]), (0, [])])
def test_the_reservation_of_a_required_node_yields_while_nothing_may_end_for_it(
    priority: int, yields: list[str]
) -> None:
    """One that makes room for itself has nowhere else to go, whatever the priority of the other."""
    scene = a_scene()
    scene.asks("bound", priority=priority, required_node="n1", may_preempt=False, resource=TEN)
    scene.run_until_idle()
    assert scene.state.reservations == 1

    assert yields == yielding(scene, priority=-2)
    assert yields == yielding(scene, priority=1)
