"""The nodes that could be reserved for an ask that preempts."""

from __future__ import annotations

from support.model.builders import TEN, a_resource, an_ask
from support.model.preemption_scenes import HUNDRED, TWO_QUEUES, Scene

from licorne.model.preemption.claims import NOTHING_COMMITTED
from licorne.model.preemption.guarantee.candidate_nodes import (
    STALE_AFTER_NS,
    PreemptibleReservations,
    find_candidate_nodes,
    preemptible_reservations,
)
from licorne.model.preemption.guarantee.candidate_victims import collect_victims
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
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
    preemptible: PreemptibleReservations | None = None,
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
        preemptible=preemptible or {},
    )
    return sorted(room.node_id for room in found)


def preemptible(scene: Scene, priority: int) -> list[str]:
    """The asks whose reservations yield to one of that priority."""
    found = preemptible_reservations(scene.state, an_ask(priority=priority), NOTHING_COMMITTED)
    return [key for _, key in found.values()]


def with_a_reservation(priority: int = -1, queue: str = "root.a") -> Scene:
    """The two nodes that are left have room for nothing larger than five, and n1 is reserved."""
    scene = a_scene()
    scene.runs("v3", node="n3", resource=a_resource(memory=95))
    scene.asks("old", priority=priority, queue=queue, may_preempt=False)
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
    preemptible = {reserved: (scene.entry("root.a"), "old")}

    assert reserved not in candidate_nodes(scene)
    assert reserved in candidate_nodes(scene, reserved_node=reserved)
    assert reserved in candidate_nodes(scene, preemptible=preemptible)


def test_a_reservation_is_stale_after_two_hours_for_a_higher_priority() -> None:
    """For an equal one it is not, nor is it before."""
    scene = with_a_reservation(priority=0)
    assert [] == preemptible(scene, priority=1)
    scene.advance(STALE_AFTER_NS // 10**9 + 1)

    assert ["old"] == preemptible(scene, priority=1)
    assert [] == preemptible(scene, priority=0)


def test_the_reservation_of_an_ask_above_its_guarantee_yields_at_once() -> None:
    """To one of no lower priority: the ask that holds it is entitled to nothing."""
    scene = with_a_reservation(priority=1, queue="root.b")

    assert ["old"] == preemptible(scene, priority=1)
    assert [] == preemptible(scene, priority=0)


def test_the_reservation_of_an_ask_within_its_guarantee_stays() -> None:
    """An ask within its guarantee goes first; one larger than the guarantee is entitled to nothing."""
    scene = with_a_reservation(priority=0)
    assert [] == preemptible(scene, priority=9)
    scene.queue("root.a").set_quota(a_resource(memory=9), None)

    assert ["old"] == preemptible(scene, priority=9)


def test_the_reservation_of_an_ask_that_has_preempted_never_yields() -> None:
    """Its victims went for it."""
    scene = with_a_reservation()
    scene.application("root.a").asks.note_preemption("old", scene.clock.now_ns(), triggered=True)
    scene.advance(STALE_AFTER_NS // 10**9 + 1)

    assert [] == preemptible(scene, priority=1)


def test_the_reservation_of_a_required_node_never_yields() -> None:
    """The ask has nowhere else to go."""
    scene = a_scene()
    scene.asks("bound", priority=-1, required_node="n1", may_preempt=False, resource=TEN)
    scene.runs("high", node="n1", priority=9, resource=a_resource(memory=1))
    scene.run_until_idle()
    scene.advance(STALE_AFTER_NS // 10**9 + 1)

    assert scene.state.reservations == 1
    assert [] == preemptible(scene, priority=1)
