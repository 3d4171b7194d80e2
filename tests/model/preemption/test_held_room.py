"""The room that victims give back belongs to the ask that they ended for."""

from __future__ import annotations

from random import Random

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.explained import blockers
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.state.claims import CLAIM_GRACE_NS
from licorne.model.values.messages import NodeAction

TWENTY = a_resource(memory=20)
NODES = [f"n{number}" for number in range(6)]
SECOND_NS = 1_000_000_000

SIDE_BY_SIDE = """
    - name: p
      resources: {max: {memory: 40}}
      queues:
      - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 20}}}
      - {name: b, resources: {guaranteed: {memory: 10}}}
"""
APART = """
    - name: p
      resources: {max: {memory: 40}}
      queues:
      - name: left
        queues: [{name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 20}}}]
      - name: right
        queues: [{name: b, resources: {guaranteed: {memory: 10}}}]
"""
PLACES = {SIDE_BY_SIDE: ("root.p.a", "root.p.b"), APART: ("root.p.left.a", "root.p.right.b")}


def four_of_one_queue(queues: str, *, predicates: FakePredicates | None = None) -> Scene:
    """Six nodes have room for all; a parent is full of four allocations, and another queue below asks."""
    scene = Scene(queues, predicates=predicates)
    scene.nodes(*NODES, capacity=TWENTY)
    asks, runs = PLACES.get(queues, PLACES[SIDE_BY_SIDE])
    for number in range(4):
        scene.runs(f"v{number}", queue=runs, node=NODES[number])
    scene.asks("p1", queue=asks, resource=TWENTY)
    scene.wait(2)
    assert ["v3", "v2"] == scene.preempted
    return scene


@pytest.mark.parametrize("queues", PLACES, ids=["side by side", "in different sub-trees"])
def test_what_one_victim_gives_back_is_kept_until_the_other_has_ended(queues: str) -> None:
    """Its job asks for it again at once, and the nodes have room: why that ask waits is explained."""
    scene = four_of_one_queue(queues)
    _, runs = PLACES[queues]
    scene.end("v3", runs, again=True)
    assert "v3'" not in scene.placements
    (blocker,) = blockers(scene, "v3'", runs)
    assert ("root.p", "a part is kept for asks that have preempted") == (blocker.subject, blocker.detail)
    scene.end("v2", runs, again=True)

    assert "p1" in scene.placements
    scene.wait(300)
    assert ["v3", "v2"] == scene.preempted


def test_an_ask_of_higher_priority_does_not_take_what_was_taken_for_another() -> None:
    """The victims would have ended for nothing."""
    scene = four_of_one_queue(SIDE_BY_SIDE)
    scene.asks("urgent", queue="root.p.a", priority=9, may_preempt=False)
    scene.end("v3", "root.p.b")
    assert "urgent" not in scene.placements
    scene.end("v2", "root.p.b")

    assert {"p1"} == {"p1", "urgent"} & set(scene.placements)


def test_what_was_kept_for_a_withdrawn_ask_is_for_all() -> None:
    """At once."""
    scene = four_of_one_queue(SIDE_BY_SIDE)
    scene.end("v3", "root.p.b", again=True)
    scene.release("p1", application_id="root.p.a")
    scene.run_until_idle()

    assert "v3'" in scene.placements


def test_what_an_ask_cannot_use_is_kept_for_as_long_as_it_takes_to_try_again() -> None:
    """The RM refuses all nodes, but only once the victims have ended."""
    predicates = FakePredicates()
    scene = four_of_one_queue(SIDE_BY_SIDE, predicates=predicates)
    predicates.refused.update(dict.fromkeys([("p1", node) for node in NODES], "not after all"))
    scene.end("v3", "root.p.b", again=True)
    scene.end("v2", "root.p.b", again=True)
    scene.wait(CLAIM_GRACE_NS // SECOND_NS - 1)
    assert not {"v3'", "v2'"} & set(scene.placements)
    scene.wait(2)

    assert {"v3'", "v2'"} <= set(scene.placements)


def test_an_ask_that_lost_its_node_keeps_no_room_once_its_victims_have_ended() -> None:
    """It must find another node."""
    scene = four_of_one_queue(SIDE_BY_SIDE)
    (reserved,) = scene.state.reserved.all()
    scene.update_node(reserved.node_id, NodeAction.DECOMISSION)
    assert scene.state.claims.by_key
    for key in ("v3", "v2"):
        if scene.application("root.p.b").allocations.get(key) is not None:
            scene.end(key, "root.p.b")

    assert not scene.state.claims.by_key


def test_the_limit_of_a_user_is_kept_as_well() -> None:
    """Another job of the user would take what the preemptor may use only once."""
    scene = Scene("""
    - name: p
      limits: [{limit: bob, users: [bob], maxresources: {memory: 20}}]
      queues:
      - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 20}}}
      - {name: b, resources: {guaranteed: {memory: 10}}}
      - {name: c}
    """)
    scene.nodes("n1", capacity=a_resource(memory=40))
    scene.submit("root.p.b", "root.p.b", user="ann")
    scene.submit("root.p.a", "root.p.a", user="bob")
    scene.submit("root.p.c", "root.p.c", user="bob")
    scene.runs("v0", "v1", "v2", "v3", queue="root.p.b")
    scene.asks("p1", queue="root.p.a", resource=TWENTY)
    scene.wait(2)
    assert ["v3", "v2"] == scene.preempted
    scene.nodes("n2", capacity=TEN)
    scene.asks("other", queue="root.p.c", may_preempt=False)
    scene.run_until_idle()
    assert "other" not in scene.placements
    scene.end("v3", "root.p.b")
    scene.end("v2", "root.p.b")

    assert {"p1"} == {"p1", "other"} & set(scene.placements)


# --------------------------------------------------------------------------------- withdrawn, and asked again


def test_nothing_more_ends_for_a_job_that_is_withdrawn_and_submitted_again() -> None:
    """What ends already ends for the new ask."""
    scene = four_of_one_queue(SIDE_BY_SIDE)
    for number in range(2, 5):
        scene.release(f"p{number - 1}", application_id="root.p.a")
        scene.asks(f"p{number}", queue="root.p.a", resource=TWENTY)
        scene.wait(20)
    scene.end("v3", "root.p.b", again=True)
    scene.end("v2", "root.p.b", again=True)

    assert (["v3", "v2"], True) == (scene.preempted, "p4" in scene.placements)


def test_nothing_more_ends_for_an_ask_of_another_queue_either() -> None:
    """The room is nobody's, so it is the next one's."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=80))
    scene.runs(*(f"v{number}" for number in range(8)))
    for key in ("p1", "p2"):
        scene.asks(key)
        scene.wait(30)
        assert ["v7"] == scene.preempted
        if key == "p1":
            scene.release("p1", application_id="root.a")
    scene.end("v7", again=True)

    assert "p2" in scene.placements


def test_nothing_more_ends_for_a_required_node_that_is_asked_for_again() -> None:
    """As above."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=40))
    scene.runs("v0", "v1", "v2", "v3")
    for number in range(3):
        scene.asks(f"d{number}", required_node="n1", priority=5)
        scene.run_until_idle()
        if number < 2:
            scene.release(f"d{number}", application_id="root.a")
    assert 1 == len(scene.preempted)
    scene.end(scene.preempted[0], again=True)

    assert "d2" in scene.placements


def test_only_what_is_missing_ends_for_a_larger_ask() -> None:
    """Room that comes anyway counts before anything else is chosen."""
    scene = four_of_one_queue(SIDE_BY_SIDE.replace("guaranteed: {memory: 20}", "guaranteed: {memory: 30}"))
    scene.release("p1", application_id="root.p.a")
    scene.nodes("large", capacity=a_resource(memory=30))
    scene.asks("p2", queue="root.p.a", resource=a_resource(memory=30))
    scene.wait(2)

    assert ["v3", "v2", "v1"] == scene.preempted


# --------------------------------------------------------------------------------------- any order of events


@pytest.mark.parametrize("seed", range(12))
def test_no_more_ends_than_queues_are_entitled_to_whatever_comes_between(seed: int) -> None:
    """Victims end one by one and are asked for again; preemptors come, and come again under other keys."""
    draw = Random(seed)  # noqa: S311 - no secret
    scene = Scene("""
    - name: p
      resources: {max: {memory: 80}}
      queues:
      - {name: a, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 20}}}
      - {name: c, properties: {preemption.delay: 1s}, resources: {guaranteed: {memory: 20}}}
      - {name: b, resources: {guaranteed: {memory: 10}}}
    """)
    scene.nodes("n0", "n1", "n2", "n3", capacity=a_resource(memory=draw.choice((20, 30, 40))))
    for number in range(8):
        scene.asks(f"v{number}", queue="root.p.b", may_preempt=False)
    scene.run_until_idle()
    ended: set[str] = set()
    for leaf, size in (("root.p.a", TWENTY), ("root.p.c", TEN), ("root.p.c", TEN)):
        scene.asks(f"{leaf} {len(ended)} {draw.random()}", queue=leaf, resource=size)
    for _ in range(80):
        scene.advance(draw.choice((0, 1, 5, 16)))
        scene.run_until_idle()
        due = [key for key in scene.preempted if key not in ended]
        if due and draw.random() < 0.5:
            key = draw.choice(due)
            ended.add(key)
            scene.end(key, "root.p.b", again=True)

    assert (TWENTY, TWENTY) == (scene.queue("root.p.a").allocated, scene.queue("root.p.c").allocated)
    assert len(scene.preempted) <= 4
