"""What asks are going to use that have preempted and still wait."""

from __future__ import annotations

from support.model.builders import TEN, FakePredicates, a_resource, memory
from support.model.preemption_scenes import Scene

from licorne.model.preemption.guarantee.ledger import (
    NOTHING_COMMITTED,
    CommittedResources,
    committed_resources,
)
from licorne.model.resources.resource import EMPTY
from licorne.model.state.preemption_log import RECORDS_MAX
from licorne.model.values.messages import NodeAction

TWENTY = memory(20)
QUEUES = """
    - name: p
      queues:
      - name: a
        properties: {preemption.delay: 10s}
        resources: {guaranteed: {memory: 10}}
      - name: o
    - name: b
"""


def two_nodes(queues: str = QUEUES, predicates: FakePredicates | None = None) -> Scene:
    """Two nodes, full of a queue without a guarantee."""
    scene = Scene(queues, predicates=predicates)
    scene.nodes("n1", "n2", capacity=TWENTY)
    scene.runs("v1", "v2", node="n1")
    scene.runs("v3", "v4", node="n2")
    return scene


def preempting() -> Scene:
    """Return a scene in which the ask p1 has preempted, and nothing is confirmed."""
    scene = two_nodes()
    scene.asks("p1", "p2", queue="root.p.a")
    scene.wait(11)
    assert ["v2"] == scene.preempted
    return scene


def test_an_ask_keeps_its_node_until_its_victims_have_ended() -> None:
    """A reservation without room ends after an hour; how long victims take is up to the RM."""
    scene = preempting()
    scene.wait(3 * 3600)
    claim = scene.state.claims.find("p1")

    assert claim is not None
    assert (["v2"], [("p1", "n1")]) == (
        list(claim.ending),
        [(each.ask.allocation_key, each.node_id) for each in scene.state.reserved.all()],
    )
    assert ["v2"] == scene.preempted


def used(scene: Scene, path: str, but_for: str = "") -> int:
    queue = scene.queue(path)
    return committed_resources(scene.state, queue, but_for).use_of(queue).get("memory")


def test_two_asks_do_not_preempt_for_what_is_guaranteed_once() -> None:
    """There is a second node, and the first ask has not been placed yet."""
    scene = preempting()
    scene.wait(60)

    assert ["v2"] == scene.preempted


def test_more_asks_preempt_at_a_time_than_are_remembered_for_explanations() -> None:
    """Each of them waits for its own victim; none is chosen for those that are entitled to nothing more."""
    entitled, victims = RECORDS_MAX + 10, RECORDS_MAX + 20
    scene = Scene(QUEUES.replace("memory: 10", f"memory: {10 * entitled}"))
    names = [f"{number:03}" for number in range(victims)]
    scene.nodes(*(f"n{name}" for name in names), capacity=TEN)
    for name in names:
        scene.runs(f"v{name}", node=f"n{name}")
    scene.asks(*(f"p{name}" for name in names), queue="root.p.a")
    for _ in range(3):
        scene.wait(16)

    assert entitled == len(set(scene.preempted)) == len(scene.preempted)


def test_what_is_committed_counts_in_every_queue_above_the_ask() -> None:
    """And nowhere else: the victim counts as gone. It does not count for the ask, which may preempt again."""
    scene = preempting()

    assert [10, 10, 0, 40, 30] == [
        used(scene, path) for path in ("root.p.a", "root.p", "root.p.o", "root", "root.b")
    ]
    assert 0 == used(scene, "root.p.a", but_for="p1")


def test_nothing_is_committed_to_a_placed_ask() -> None:
    """It is used."""
    scene = preempting()
    scene.settle()
    assert "p1" in scene.placements

    assert NOTHING_COMMITTED is committed_resources(scene.state, scene.queue("root"), "")
    assert not scene.state.claims.by_key


def test_nothing_is_committed_to_an_ask_that_is_withdrawn() -> None:
    """Its victim goes, and the next one finds the room."""
    scene = preempting()
    scene.release("p1", application_id="root.p.a")
    assert NOTHING_COMMITTED is committed_resources(scene.state, scene.queue("root"), "")
    scene.settle()

    assert (["v2"], {"p2"}) == (scene.preempted, {"p1", "p2"} & set(scene.placements))


def test_room_is_committed_to_an_ask_that_lost_its_node_while_its_victims_end_elsewhere() -> None:
    """With node and victims gone it has no more than the others."""
    scene = preempting()
    scene.update_node("n1", NodeAction.DECOMISSION)

    assert 0 == used(scene, "root.p.a")


def test_an_ask_that_the_rm_refuses_in_the_end_leaves_the_guarantee_to_the_next_one() -> None:
    """It has had its chance: its victims are gone."""
    refused = dict.fromkeys([("p1", "n1"), ("p1", "n2")], "not after all")
    scene = two_nodes(predicates=FakePredicates(refused=refused))
    scene.asks("p1", "p2", queue="root.p.a")
    for _ in range(3):
        scene.wait(16)
        scene.confirm()
    scene.run_until_idle()

    assert {"p2"} == {"p1", "p2"} & set(scene.placements)
    assert TEN == scene.queue("root.p.a").allocated


def test_the_most_of_a_queue_is_what_it_uses_now_or_will_use() -> None:
    """For each type by itself; without a claim it will use what it uses less what is preempted."""
    scene = preempting()
    queue = scene.queue("root.b")

    assert memory(30) == NOTHING_COMMITTED.use_of(queue)
    assert [memory(40), memory(40), memory(45)] == [
        committed.most_of(queue)
        for committed in (
            NOTHING_COMMITTED,
            CommittedResources({"root.b": EMPTY}),
            CommittedResources({"root.b": memory(15)}),
        )
    ]


def test_a_full_leaf_is_full_for_those_behind_an_ask_that_has_preempted() -> None:
    """The guarantee is its parent's and has room for more, but the leaf could take one of them."""
    scene = two_nodes("""
        - name: p
          resources: {guaranteed: {memory: 30}}
          queues:
          - name: a
            properties: {preemption.delay: 10s}
            resources: {max: {memory: 10}}
        - name: b
    """)
    scene.asks("p1", "p2", queue="root.p.a")
    scene.wait(60)
    assert 1 == len(scene.preempted)
    scene.settle()

    assert TEN == scene.queue("root.p.a").allocated
    assert 1 == len(scene.preempted)


def test_room_is_left_where_no_maximum_is_exceeded_with_what_is_committed() -> None:
    """Of the types that are asked for; the root is full when its nodes are, and bars nobody."""
    scene = preempting()
    leaf = scene.queue("root.p.o")
    scene.queue("root.p").set_quota(None, memory(25))
    committed = CommittedResources({"root.p": TEN})

    assert NOTHING_COMMITTED.leaves_room(leaf, TWENTY)
    assert committed.leaves_room(leaf, TEN)
    assert not committed.leaves_room(leaf, TWENTY)
    assert committed.leaves_room(leaf, a_resource(vcore=1))
