"""Preemption for a queue below its guarantee, from the ask to the message."""

from __future__ import annotations

import pytest
from support.model.builders import SECOND_NS, FakePredicates, a_resource, memory
from support.model.preemption_scenes import HUNDRED, TWO_QUEUES, JudgingPredicates, Running, Scene, Situation

from licorne.model.preemption.guarantee.attempt import EXHAUSTED, NO_HELP, PRECONDITIONS
from licorne.model.preemption.guarantee.attempt_budget import ATTEMPTS_MAX
from licorne.model.state.preemption_log import PreemptionCause
from licorne.model.values.messages import NodeAction, TerminationType

TEN_KEYS = [f"v{number}" for number in range(10)]
TEN_RUNNING = Running(" ".join(TEN_KEYS))
NO_EXCESS = TWO_QUEUES.replace("memory: 20", "memory: 100")
"""The queue in which everything runs is guaranteed all of it."""


def a_full_cluster(
    queues: str = TWO_QUEUES, *, partition: str = "", predicates: FakePredicates | None = None
) -> Scene:
    """Ten of ten fill the only node, in a queue whose guarantee is twenty."""
    scene = Scene(queues, partition=partition, predicates=predicates)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs(*TEN_KEYS)
    return scene


def test_the_youngest_of_the_queue_above_its_guarantee_is_preempted_and_the_ask_placed() -> None:
    """Once, in one message that names the ask, however late the RM confirms; then the ask is placed."""
    scene = a_full_cluster()
    scene.asks("p1")
    scene.wait(11)
    ((release,),) = scene.preemption_messages

    assert ["v9"] == scene.preempted
    assert release.message == "preempting allocations to free up resources to run ask: p1"
    assert release.termination is TerminationType.PREEMPTED_BY_SCHEDULER
    for _ in range(3):
        scene.wait(60)
    assert ["v9"] == scene.preempted
    scene.confirm()
    scene.cycle()
    assert scene.placements["p1"] == "n1"


@pytest.mark.parametrize(
    ("guaranteed", "asks", "preempted"),
    [
        pytest.param(20, 10, 5, id="a queue gets what it is guaranteed and no more, though it asks for more"),
        pytest.param(85, 2, 1, id="the other queue keeps its guarantee, however much the first one lacks"),
    ],
)
def test_each_queue_gets_its_guarantee_in_the_end(guaranteed: int, asks: int, preempted: int) -> None:
    """The queue that asks is guaranteed fifty; what it asks for beyond that waits."""
    scene = a_full_cluster(TWO_QUEUES.replace("memory: 20", f"memory: {guaranteed}"))
    scene.asks(*[f"p{number}" for number in range(asks)])
    for _ in range(20):
        scene.wait(16)
        scene.confirm()

    assert TEN_KEYS[: -preempted - 1 : -1] == scene.preempted
    assert memory(10 * preempted) == scene.queue("root.a").allocated
    assert memory(100 - 10 * preempted) == scene.queue("root.b").allocated


PREEMPTING = {
    "for vcores, although the memory guarantee of its queue is used up": Situation(
        [
            Running("own", "root.a", resource=memory(20)),
            Running(TEN_RUNNING.keys, resource=a_resource(memory=1, vcore=1)),
        ],
        """
        - name: a
          properties: {preemption.delay: 10s}
          resources: {guaranteed: {memory: 10, vcore: 5m}}
        - {name: b, resources: {guaranteed: {vcore: 5m}}}
        """,
        nodes={"n1": a_resource(memory=100, vcore=10)},
        asked=a_resource(memory=0, vcore=2),
        preempted=["v9", "v8"],
    ),
    "outside a parent that has room for the memory, although it exceeds its maximum of vcores": Situation(
        [Running("own", "root.p.x", resource=a_resource(vcore=5)), TEN_RUNNING],
        """
        - name: p
          resources: {max: {memory: 100, vcore: 2m}}
          queues:
          - name: x
            properties: {preemption.delay: 10s}
            resources: {guaranteed: {memory: 50, vcore: 1m}}
        - name: b
        """,
        nodes={"n1": a_resource(memory=100, vcore=10)},
        leaf="root.p.x",
        preempted=["v9"],
    ),
    "inside a parent that has reached its maximum, although the cluster has room": Situation(
        [Running("y1 y2 y3 y4 y5 y6", "root.p.y"), Running("o1", "root.o")],
        """
        - name: p
          resources: {max: {memory: 60}}
          queues:
          - {name: x, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 30}}}
          - name: y
        - name: o
        """,
        leaf="root.p.x",
        preempted=["y6"],
    ),
    # On n1 four are enough, but the parent may have only five more: those of a sibling are preempted.
    "on another node than the one on which its queue would get more than its guarantee": Situation(
        [
            Running("o1", "root.o", resource=memory(5)),
            Running("o2", "root.o", resource=memory(4)),
            Running("y1 y2 y3", "root.p.y", "n2", memory(5)),
        ],
        """
        - name: p
          resources: {guaranteed: {memory: 20}}
          queues:
          - {name: x, properties: {preemption.delay: 10s}}
          - {name: y, resources: {guaranteed: {memory: 5}}}
        - name: o
        """,
        nodes={"n1": memory(15), "n2": memory(15), "n3": memory(9)},
        leaf="root.p.x",
        preempted=["y3", "y2"],
    ),
    # On n1 one of ten is enough, but the parent lacks twenty: with the other one more than twenty would end.
    "on another node than the one with which too much would end for its parent": Situation(
        [Running("y1", "root.p.y", "n1"), Running("y2", "root.p.y", "n2", memory(20))],
        """
        - name: p
          resources: {max: {memory: 30}}
          queues:
          - {name: x, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 20}}}
          - name: y
        """,
        nodes={"n1": memory(20), "n2": memory(20)},
        leaf="root.p.x",
        asked=memory(20),
        preempted=["y2"],
    ),
    "the next one, where the youngest would leave its queue below the guarantee": Situation(
        [
            Running("z1", "root.p.z"),
            Running("y1", "root.p.y", resource=memory(5), priority=9),
            Running("y2", "root.p.y"),
        ],
        """
        - name: p
          resources: {max: {memory: 25}}
          queues:
          - {name: x, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 10}}}
          - {name: y, resources: {guaranteed: {memory: 10}}}
          - name: z
        """,
        leaf="root.p.x",
        preempted=["z1"],
    ),
    # What the node has available is held by the reservation, and counts.
    "half of what it needs, where the node has room for the other half": Situation(
        [Running(" ".join(TEN_KEYS[:9]))], nodes={"n1": memory(95)}, asked=memory(15), preempted=["v8"]
    ),
    "several willing ones rather than one that opted out or an originator": Situation(
        [
            Running("opted-out", node="n1", resource=memory(20), willing=False),
            Running("originator", node="n2", resource=memory(20), originator=True),
            Running("v1 v2", node="n3"),
        ],
        nodes=dict.fromkeys(["n1", "n2", "n3"], memory(20)),
        asked=memory(20),
        preempted=["v2", "v1"],
    ),
}


@pytest.mark.parametrize("situation", PREEMPTING.values(), ids=PREEMPTING)
def test_an_ask_preempts(situation: Situation) -> None:
    """Only what its queue is entitled to, and what is of use."""
    scene = situation.scene()
    scene.asks("p1", queue=situation.leaf, resource=situation.asked)
    scene.wait(11)

    assert situation.preempted == scene.preempted


@pytest.mark.parametrize(
    ("queues", "partition", "may_preempt"),
    [
        pytest.param("- name: a\n- name: b", "", True, id="no queue has a guarantee"),
        pytest.param(TWO_QUEUES, "", False, id="its policy does not allow it"),
        pytest.param(TWO_QUEUES, "preemption: {enabled: false}", True, id="it is off in the partition"),
    ],
)
def test_an_ask_preempts_nothing_where(queues: str, partition: str, *, may_preempt: bool) -> None:
    """It waits for room that comes by itself."""
    scene = a_full_cluster(queues, partition=partition)
    scene.asks("p1", may_preempt=may_preempt)
    scene.wait(60)

    assert [] == scene.preempted


def test_nothing_is_preempted_before_the_delay() -> None:
    """It is that of the ask's leaf, and counts from the ask's creation; nothing polls, a timer is set."""
    scene = a_full_cluster()
    scene.asks("p1")
    scene.run_until_idle()
    created_at_ns = scene.ask_record("p1", "root.a").ask.created_at_ns
    assert created_at_ns + 10 * SECOND_NS == scene.partition.next_retry_ns()
    scene.wait(9)

    assert [] == scene.preempted
    assert PRECONDITIONS in scene.waits_with("p1")
    scene.wait(1)
    assert ["v9"] == scene.preempted


def test_an_ask_that_lost_its_node_preempts_again_when_its_victims_are_gone() -> None:
    """In the recorded core it never does."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", capacity=memory(50))
    scene.runs(*TEN_KEYS[:5], node="n2")
    scene.runs(*TEN_KEYS[5:], node="n1")
    scene.asks("p1")
    scene.wait(11)
    assert ["v9"] == scene.preempted
    scene.update_node("n1", NodeAction.DECOMISSION)
    scene.wait(16)

    assert ["v9", "v4"] == scene.preempted


def test_an_ask_whose_node_another_ask_needs_preempts_again() -> None:
    """A member of a daemon set takes what the node has left; the room for the first one is too small then."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=memory(50))
    scene.runs(*TEN_KEYS[:4])
    scene.asks("p1", resource=memory(20))
    scene.wait(11)
    assert ["v3"] == scene.preempted
    scene.asks("ds", required_node="n1", may_preempt=False)
    scene.run_until_idle()
    scene.end("v3")
    scene.wait(31)

    assert "ds" in scene.placements
    assert ["v3", "v2"] == scene.preempted
    scene.end("v2")
    assert "p1" in scene.placements


@pytest.mark.parametrize("needing", ["withdrawn", "placed"])
def test_an_ask_reserves_its_node_again_when_another_that_needs_it_has_gone(needing: str) -> None:
    """A member of a daemon set takes the reservation; then the node is kept for the preemptor again."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=memory(50))
    scene.nodes("n2", capacity=memory(5))
    scene.runs(*TEN_KEYS[:5])
    scene.asks("p1")
    scene.wait(11)
    scene.asks("ds", required_node="n1", may_preempt=False)
    scene.run_until_idle()
    assert ["v4", "v3"] == scene.preempted
    assert scene.state.reserved.get("p1") is None
    if needing == "withdrawn":
        scene.release("ds", application_id="root.a")
        scene.run_until_idle()
    else:
        scene.end("v3")
        assert "ds" in scene.placements
    reserved = scene.state.reserved.get("p1")

    assert reserved is not None
    assert "n1" == reserved.node_id
    assert ["v4", "v3"] == scene.preempted


IN_A_TEAM = """
    - name: p
      resources: {max: {memory: 30}}
      queues:
      - name: a
        properties: {preemption.delay: 10s}
        resources: {guaranteed: {memory: 20}}
      - name: b
"""
"""The queues above the ask are full, where the node need not be."""


@pytest.mark.parametrize("capacity", [30, 100], ids=["on a full node", "for a full queue"])
def test_a_large_victim_ends_where_a_small_younger_one_would_use_up_what_is_owed(capacity: int) -> None:
    """With the young one more than twenty would end, and without the old one too little."""
    scene = Scene(IN_A_TEAM)
    scene.nodes("n1", capacity=memory(capacity))
    scene.runs("old", queue="root.p.b", resource=memory(20))
    scene.runs("young", queue="root.p.b", resource=memory(10))
    scene.asks("p1", queue="root.p.a", resource=memory(20))
    scene.wait(11)

    assert ["old"] == scene.preempted
    scene.end("old", queue="root.p.b", again=True)
    assert "p1" in scene.placements


def a_fragmented_cluster(*small: str) -> Scene:
    """Two full nodes, the first one of a queue within its guarantee, and small ones on which no ask fits."""
    scene = Scene(f"{TWO_QUEUES}\n    - name: c\n      resources: {{guaranteed: {{memory: 50}}}}")
    scene.nodes("n1", "n2", capacity=memory(50))
    scene.nodes(*small, capacity=memory(8))
    scene.runs("c1", "c2", "c3", "c4", "c5", queue="root.c")
    scene.runs(*TEN_KEYS[:5], node="n2")
    return scene


@pytest.mark.parametrize("younger", [10, 20], ids=["smaller", "larger"])
def test_the_victim_ends_that_gives_the_queue_above_back_what_it_owes(younger: int) -> None:
    """The leaf is owed memory, and its team has no gpu left: what has one ends, and not what is younger."""
    scene = Scene(
        """
        - name: team
          resources: {guaranteed: {gpu: 10}}
          queues:
          - {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 20}}}
          - {name: b}
        - name: other
        """
    )
    scene.nodes("n1", capacity=a_resource(memory=10 + younger, gpu=20))
    scene.runs("mate", queue="root.team.b", resource=a_resource(memory=10, gpu=10))
    scene.runs("stranger", queue="root.other", resource=memory(younger))
    scene.asks("a", queue="root.team.a", resource=a_resource(memory=10, gpu=10))
    scene.wait(11)

    assert ["mate"] == scene.preempted


def test_an_ask_gives_its_reservation_up_for_the_node_that_preemption_finds() -> None:
    """The queues have room, but no node has; what is on the reserved node is guaranteed to others."""
    scene = a_fragmented_cluster("s1", "s2")
    scene.asks("p1")
    scene.wait(5)
    assert ("p1",) == scene.node("n1").reservations
    scene.wait(11)

    assert ["v4"] == scene.preempted
    assert ((), ("p1",)) == (scene.node("n1").reservations, scene.node("n2").reservations)
    assert "n2 has no room" in scene.record.reason


def test_an_ask_whose_node_is_gone_preempts_again_though_its_queues_have_room() -> None:
    """Its first victims are gone with the node."""
    scene = a_fragmented_cluster("s1", "s2")
    scene.nodes("n3", capacity=memory(30))
    scene.runs("v5", "v6", "v7", node="n3")
    scene.asks("p1")
    scene.wait(11)
    assert ["v4"] == scene.preempted
    scene.update_node("n2", NodeAction.DECOMISSION)
    scene.wait(16)

    assert ["v4", "v7"] == scene.preempted


def test_an_ask_without_result_is_tried_again_after_fifteen_seconds() -> None:
    """The attempt costs something; the ask says when it is due."""
    scene = a_full_cluster(NO_EXCESS)
    scene.asks("p1")
    scene.wait(11)
    due_ns = scene.partition.next_retry_ns()

    assert scene.clock.now_ns() + 15 * SECOND_NS == due_ns
    assert "Preemption queue guarantees check failed" in scene.waits_with("p1")


def test_a_visit_of_a_leaf_makes_ten_attempts() -> None:
    """The others are tried in the next cycle, not fifteen seconds later."""
    scene = a_full_cluster(NO_EXCESS)
    keys = [f"p{number:02}" for number in range(ATTEMPTS_MAX + 2)]
    for number, key in enumerate(keys):
        scene.asks(key, resource=memory(number + 1))
    scene.advance(11)
    scene.cycle()
    tried = [key for key in keys if _checked(scene, key)]

    assert keys[:ATTEMPTS_MAX] == tried
    assert EXHAUSTED in scene.waits_with(keys[-1])
    scene.cycle()
    assert all(_checked(scene, key) for key in keys)


def test_asks_of_one_shape_are_tried_once() -> None:
    """One stands for the others: all would fail for the same reason."""
    scene = a_full_cluster(NO_EXCESS)
    scene.asks("p1", "p2", "p3")
    scene.wait(11)

    assert [True, False, False] == [_checked(scene, key) for key in ("p1", "p2", "p3")]
    assert NO_HELP in scene.waits_with("p1")
    assert [] == scene.waits_with("p3")


def test_an_ask_that_comes_later_does_not_try_what_has_just_failed() -> None:
    """Also in another walk: while nothing changes, one attempt stands for fifteen seconds."""
    scene = a_full_cluster(NO_EXCESS)
    for key in ("p1", "p2"):
        scene.asks(key)
        scene.wait(11)

    assert [True, False] == [_checked(scene, key) for key in ("p1", "p2")]
    assert NO_HELP in scene.waits_with("p2")


def test_an_ask_that_the_predicates_refuse_stands_for_no_other() -> None:
    """The RM's judgement is about the ask, not its shape."""

    def refuses_p1(allocation_key: str, _: tuple[str, ...], index: int | None) -> int | None:
        return None if allocation_key == "p1" else index

    scene = a_full_cluster(predicates=JudgingPredicates(judge=refuses_p1))
    scene.asks("p1", "p2")
    scene.wait(11)
    ((release,),) = scene.preemption_messages

    assert release.message.endswith("to run ask: p2")


def test_room_that_a_queue_has_left_is_not_counted_on() -> None:
    """Five are left below the maximum, but they are not held for the ask: ten go, not five."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 65}}
          queues:
          - {name: x, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 30}}}
          - name: y
    """)
    scene.nodes("n1", "n2", capacity=HUNDRED)
    scene.runs(*[f"y{number:02}" for number in range(12)], queue="root.p.y", resource=memory(5))
    scene.asks("p1", queue="root.p.x")
    scene.wait(11)
    assert ["y11", "y10"] == scene.preempted
    scene.asks("thief", queue="root.p.y", resource=memory(5), may_preempt=False)
    scene.run_until_idle()
    assert "thief" in scene.placements
    scene.settle()

    assert "p1" in scene.placements


def with_a_reserved_node() -> Scene:
    """An ask of low priority has node n1, which is full; what is left elsewhere is in pieces."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.nodes("n2", "n3", capacity=memory(5))
    scene.runs(*TEN_KEYS)
    scene.asks("old", priority=-1, may_preempt=False)
    scene.wait(3)
    assert ("old",) == scene.node("n1").reservations
    return scene


def test_the_reservation_of_a_queue_mate_that_may_not_preempt_yields() -> None:
    """It waits until something ends by itself. Both are of one application: the recorded core stops there."""
    scene = with_a_reserved_node()
    scene.asks("p1")
    scene.wait(11)

    assert ["v9"] == scene.preempted
    assert ("p1",) == scene.node("n1").reservations


def test_reservations_of_asks_above_their_guarantee_do_not_bar_an_entitled_queue() -> None:
    """A cordoned node makes the cluster look roomier, so that a backlog reserves every other one."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", capacity=memory(50))
    scene.nodes("n3", capacity=HUNDRED)
    scene.update_node("n3", NodeAction.DRAIN_NODE)
    scene.runs(*TEN_KEYS[:5])
    scene.runs(*TEN_KEYS[5:], node="n2")
    scene.asks("r1", "r2", queue="root.b", may_preempt=False)
    scene.wait(3)
    assert [("r1",), ("r2",)] == sorted(scene.node(node_id).reservations for node_id in ("n1", "n2"))
    scene.asks("p1")
    scene.wait(11)

    assert ["v4"] == scene.preempted
    scene.settle()
    assert "p1" in scene.placements


def test_a_preemption_is_explained() -> None:
    """The record names the ask, the queue whose guarantee it serves, each victim and why that one."""
    scene = a_full_cluster()
    scene.asks("p1")
    scene.wait(11)
    record = scene.record
    (victim,) = record.victims

    assert (PreemptionCause.GUARANTEE, "p1", "root.a", "root.a", "n1") == (
        record.cause,
        record.allocation_key,
        record.application_id,
        record.queue_path,
        record.node_id,
    )
    assert ("root.a", memory(10)) == (record.ask_queue_path, record.wanted)
    assert "root.a uses nothing of a guarantee of memory 50" in record.reason
    assert "root.b uses memory 100 of a guarantee of memory 20" in victim.reason
    assert record.explain() == scene.state.preemptions.explain("v9")


def test_a_guarantee_of_a_parent_is_served_by_name() -> None:
    """The leaf has none of its own."""
    scene = a_full_cluster("""
        - name: p
          resources: {guaranteed: {memory: 50}}
          queues: [{name: a, properties: {preemption.delay: 10s}}]
        - name: b
    """)
    scene.asks("p1", queue="root.p.a")
    scene.wait(11)

    assert (scene.record.queue_path, scene.record.ask_queue_path) == ("root.p", "root.p.a")
    assert "nothing is guaranteed to root.b" in scene.record.victims[0].reason


def test_a_victim_that_slips_away_spoils_the_whole_plan() -> None:
    """The RM is asked to end it while it judges: nothing is preempted, and nothing is reserved."""

    def ends_v8(_: str, __: tuple[str, ...], index: int | None) -> int | None:
        scene.application("root.b").allocations.mark_released("v8")
        return index

    scene = a_full_cluster(predicates=JudgingPredicates(judge=ends_v8))
    scene.asks("p1", resource=memory(20))
    scene.wait(11)

    assert [] == scene.preempted
    assert not scene.application("root.b").allocations.is_preempted("v9")
    assert "Victims picked earlier were released at the final stage" in scene.waits_with("p1")


def _checked(scene: Scene, key: str) -> bool:
    return scene.ask_record(key, "root.a").preemption_checked_ns is not None
