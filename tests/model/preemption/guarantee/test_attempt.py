"""Preemption for a queue below its guarantee, from the ask to the message."""

from __future__ import annotations

from support.model.builders import SECOND_NS, FakePredicates, a_resource
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.preemption.guarantee.attempt import EXHAUSTED, NO_HELP, PRECONDITIONS
from licorne.model.preemption.guarantee.attempt_budget import ATTEMPTS_MAX
from licorne.model.state.preemption_log import PreemptionCause
from licorne.model.values.messages import NodeAction, TerminationType

HUNDRED = a_resource(memory=100)
TEN_KEYS = [f"v{number}" for number in range(10)]


def a_full_cluster(
    queues: str = TWO_QUEUES, *, partition: str = "", predicates: FakePredicates | None = None
) -> Scene:
    """Ten of ten fill the only node, in a queue whose guarantee is twenty."""
    scene = Scene(queues, partition=partition, predicates=predicates)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs(*TEN_KEYS)
    return scene


def wait(scene: Scene, seconds: int = 11) -> None:
    scene.advance(seconds)
    scene.run_until_idle()


def test_the_youngest_of_the_queue_above_its_guarantee_goes() -> None:
    """One for one ask, in one message that names the ask."""
    scene = a_full_cluster()
    scene.asks("p1")
    wait(scene)
    ((release,),) = scene.preemption_messages

    assert ["v9"] == scene.preempted
    assert release.message == "preempting allocations to free up resources to run ask: p1"
    assert release.termination is TerminationType.PREEMPTED_BY_SCHEDULER


def test_the_ask_is_placed_when_the_rm_confirms() -> None:
    """In the very next cycle, on the node that was reserved for it."""
    scene = a_full_cluster()
    scene.asks("p1")
    wait(scene)
    scene.confirm()
    scene.cycle()

    assert scene.placements["p1"] == "n1"


def test_a_queue_gets_what_it_is_entitled_to_and_no_more() -> None:
    """Five of ten asks are within the guarantee; what is above it waits for room that comes by itself."""
    scene = a_full_cluster()
    scene.asks(*[f"p{number}" for number in range(10)])
    for _ in range(20):
        wait(scene, 16)
        scene.confirm()

    assert a_resource(memory=50) == scene.queue("root.a").allocated
    assert a_resource(memory=50) == scene.queue("root.b").allocated


def test_the_other_queue_keeps_its_guarantee() -> None:
    """However much is guaranteed to the first one."""
    queues = TWO_QUEUES.replace("memory: 20", "memory: 85")
    scene = a_full_cluster(queues)
    scene.asks("p1", "p2")
    for _ in range(5):
        wait(scene, 16)
        scene.confirm()

    assert ["v9"] == scene.preempted


def test_a_queue_without_a_guarantee_is_entitled_to_nothing() -> None:
    """Not even by one without a guarantee."""
    scene = a_full_cluster("- name: a\n- name: b")
    scene.asks("p1")
    wait(scene, 60)

    assert [] == scene.preempted


def test_a_type_that_is_not_asked_for_keeps_no_queue_from_its_guarantee() -> None:
    """The queue has used up its memory guarantee, and the victims have memory as well: vcores are wanted."""
    scene = Scene("""
        - name: a
          properties: {preemption.delay: 10s}
          resources: {guaranteed: {memory: 10, vcore: 5m}}
        - name: b
          resources: {guaranteed: {vcore: 5m}}
    """)
    scene.nodes("n1", capacity=a_resource(memory=100, vcore=10))
    scene.runs("own", queue="root.a", resource=a_resource(memory=20))
    scene.runs(*TEN_KEYS, resource=a_resource(memory=1, vcore=1))
    scene.asks("p1", resource=a_resource(memory=0, vcore=2))
    wait(scene)

    assert ["v9", "v8"] == scene.preempted


def test_a_maximum_that_was_lowered_for_another_type_is_no_bound() -> None:
    """The parent has room for the memory that is asked for: it takes from outside."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 100, vcore: 2m}}
          queues:
          - name: x
            properties: {preemption.delay: 10s}
            resources: {guaranteed: {memory: 50, vcore: 1m}}
        - name: b
    """)
    scene.nodes("n1", capacity=a_resource(memory=100, vcore=10))
    scene.runs("own", queue="root.p.x", resource=a_resource(vcore=5))
    scene.runs(*TEN_KEYS)
    scene.asks("p1", queue="root.p.x")
    wait(scene)

    assert ["v9"] == scene.preempted


def test_nothing_goes_before_the_delay() -> None:
    """It is that of the ask's leaf, and counts from the ask's creation."""
    scene = a_full_cluster()
    scene.asks("p1")
    wait(scene, 9)

    assert [] == scene.preempted
    assert PRECONDITIONS in scene.waits_with("p1")
    wait(scene, 1)
    assert ["v9"] == scene.preempted


def test_an_ask_that_may_not_preempt_waits() -> None:
    """Its policy does not allow it."""
    scene = a_full_cluster()
    scene.asks("p1", may_preempt=False)
    wait(scene, 60)

    assert [] == scene.preempted


def test_a_partition_can_switch_preemption_off() -> None:
    """Then a queue gets its guarantee when room comes by itself."""
    scene = a_full_cluster(partition="preemption: {enabled: false}")
    scene.asks("p1")
    wait(scene, 60)

    assert [] == scene.preempted


def test_an_ask_preempts_once_while_it_has_its_node() -> None:
    """However long the RM takes to confirm."""
    scene = a_full_cluster()
    scene.asks("p1")
    for _ in range(4):
        wait(scene, 60)

    assert ["v9"] == scene.preempted


def test_an_ask_that_lost_its_node_preempts_again_when_its_victims_are_gone() -> None:
    """In the recorded core it never does."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", capacity=a_resource(memory=50))
    scene.runs(*TEN_KEYS[:5], node="n2")
    scene.runs(*TEN_KEYS[5:], node="n1")
    scene.asks("p1")
    wait(scene)
    assert ["v9"] == scene.preempted
    scene.update_node("n1", NodeAction.DECOMISSION)
    wait(scene, 16)

    assert ["v9", "v4"] == scene.preempted


def a_fragmented_cluster(*small: str) -> Scene:
    """Two full nodes, the first one of a queue within its guarantee, and small ones on which no ask fits."""
    scene = Scene(f"{TWO_QUEUES}\n    - name: c\n      resources: {{guaranteed: {{memory: 50}}}}")
    scene.nodes("n1", "n2", capacity=a_resource(memory=50))
    scene.nodes(*small, capacity=a_resource(memory=8))
    scene.runs("c1", "c2", "c3", "c4", "c5", queue="root.c")
    scene.runs(*TEN_KEYS[:5], node="n2")
    return scene


def test_an_ask_gives_its_reservation_up_for_the_node_that_preemption_finds() -> None:
    """The queues have room, but no node has; what is on the reserved node is guaranteed to others."""
    scene = a_fragmented_cluster("s1", "s2")
    scene.asks("p1")
    wait(scene, 5)
    assert ("p1",) == scene.node("n1").reservations
    wait(scene, 11)

    assert ["v4"] == scene.preempted
    assert ((), ("p1",)) == (scene.node("n1").reservations, scene.node("n2").reservations)
    assert "n2 has no room" in scene.record.reason


def test_an_ask_whose_node_is_gone_preempts_again_though_its_queues_have_room() -> None:
    """Its first victims are gone with the node."""
    scene = a_fragmented_cluster("s1", "s2")
    scene.nodes("n3", capacity=a_resource(memory=30))
    scene.runs("v5", "v6", "v7", node="n3")
    scene.asks("p1")
    wait(scene, 11)
    assert ["v4"] == scene.preempted
    scene.update_node("n2", NodeAction.DECOMISSION)
    wait(scene, 16)

    assert ["v4", "v7"] == scene.preempted


def test_an_ask_for_one_node_preempts_what_is_on_it_and_for_no_guarantee() -> None:
    """The whole cluster is full; but what the nodes have together is nobody's quota."""
    scene = a_full_cluster()
    scene.asks("p1", required_node="n1")
    wait(scene, 60)

    assert (["v9"], PreemptionCause.REQUIRED_NODE) == (scene.preempted, scene.record.cause)


def test_an_ask_for_one_node_preempts_nothing_where_its_queue_is_at_its_maximum() -> None:
    """It could not run with the room."""
    scene = a_full_cluster("""
    - {name: a, resources: {max: {memory: 5}}}
    - {name: b}
    """)
    scene.asks("p1", required_node="n1")
    wait(scene, 60)

    assert [] == scene.preempted


def test_an_ask_without_result_is_tried_again_after_fifteen_seconds() -> None:
    """The attempt costs something; the ask says when it is due."""
    scene = a_full_cluster(TWO_QUEUES.replace("memory: 20", "memory: 100"))
    scene.asks("p1")
    wait(scene)
    due_ns = scene.partition.next_retry_ns()

    assert scene.clock.now_ns() + 15 * SECOND_NS == due_ns
    assert "Preemption queue guarantees check failed" in scene.waits_with("p1")


def test_a_leaf_is_skipped_until_the_delay_is_over() -> None:
    """Nothing polls: a timer is set for when preemption may begin."""
    scene = a_full_cluster()
    scene.asks("p1")
    scene.run_until_idle()
    record = scene.application("root.a").asks.record("p1")
    assert record is not None

    assert record.ask.created_at_ns + 10 * SECOND_NS == scene.partition.next_retry_ns()


def test_a_visit_of_a_leaf_makes_ten_attempts() -> None:
    """The others are tried in the next cycle, not fifteen seconds later."""
    scene = a_full_cluster(TWO_QUEUES.replace("memory: 20", "memory: 100"))
    keys = [f"p{number:02}" for number in range(ATTEMPTS_MAX + 2)]
    for number, key in enumerate(keys):
        scene.asks(key, resource=a_resource(memory=number + 1))
    scene.advance(11)
    scene.cycle()
    tried = [key for key in keys if _checked(scene, key)]

    assert keys[:ATTEMPTS_MAX] == tried
    assert EXHAUSTED in scene.waits_with(keys[-1])
    scene.cycle()
    assert all(_checked(scene, key) for key in keys)


def test_asks_of_one_shape_are_tried_once() -> None:
    """One stands for the others: all would fail for the same reason."""
    scene = a_full_cluster(TWO_QUEUES.replace("memory: 20", "memory: 100"))
    scene.asks("p1", "p2", "p3")
    wait(scene)

    assert [True, False, False] == [_checked(scene, key) for key in ("p1", "p2", "p3")]
    assert NO_HELP in scene.waits_with("p1")
    assert [] == scene.waits_with("p3")


def test_an_ask_that_comes_later_does_not_try_what_has_just_failed() -> None:
    """Also in another walk: while nothing changes, one attempt stands for fifteen seconds."""
    scene = a_full_cluster(TWO_QUEUES.replace("memory: 20", "memory: 100"))
    scene.asks("p1")
    wait(scene)
    scene.asks("p2")
    wait(scene)

    assert [True, False] == [_checked(scene, key) for key in ("p1", "p2")]
    assert NO_HELP in scene.waits_with("p2")


class Refusing(FakePredicates):
    """An RM that agrees to no victim for the ask p1."""

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        agreed = super().preemption_index(allocation_key, node_id, victim_keys, start_index)
        return None if allocation_key == "p1" else agreed


def test_an_ask_that_the_predicates_refuse_stands_for_no_other() -> None:
    """The RM's judgement is about the ask, not its shape."""
    scene = a_full_cluster(predicates=Refusing())
    scene.asks("p1", "p2")
    wait(scene)
    ((release,),) = scene.preemption_messages

    assert release.message.endswith("to run ask: p2")


def test_a_queue_below_a_full_parent_takes_from_inside() -> None:
    """The cluster has room; the maximum of the parent is in the way."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 60}}
          queues:
          - name: x
            properties: {preemption.delay: 10s}
            resources: {guaranteed: {memory: 30}}
          - name: y
        - name: o
    """)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("y1", "y2", "y3", "y4", "y5", "y6", queue="root.p.y")
    scene.runs("o1", queue="root.o")
    scene.asks("p1", queue="root.p.x")
    wait(scene)

    assert ["y6"] == scene.preempted


def test_room_that_a_queue_has_left_is_not_counted_on() -> None:
    """Five are left below the maximum, but they are not held for the ask: ten go, not five."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 65}}
          queues:
          - name: x
            properties: {preemption.delay: 10s}
            resources: {guaranteed: {memory: 30}}
          - name: y
    """)
    scene.nodes("n1", "n2", capacity=HUNDRED)
    scene.runs(*[f"y{number:02}" for number in range(12)], queue="root.p.y", resource=a_resource(memory=5))
    scene.asks("p1", queue="root.p.x")
    wait(scene)
    assert ["y11", "y10"] == scene.preempted
    scene.asks("thief", queue="root.p.y", resource=a_resource(memory=5), may_preempt=False)
    scene.run_until_idle()
    assert "thief" in scene.placements
    scene.confirm()
    scene.run_until_idle()

    assert "p1" in scene.placements


def test_a_node_on_which_the_queue_would_get_more_than_its_guarantee_is_left_for_another() -> None:
    """The parent may have five. On n1 four have to go, but the ask brings ten: those of a sibling go."""
    scene = Scene("""
        - name: p
          resources: {guaranteed: {memory: 20}}
          queues:
          - name: x
            properties: {preemption.delay: 10s}
          - name: y
            resources: {guaranteed: {memory: 5}}
        - name: o
    """)
    scene.nodes("n1", "n2", capacity=a_resource(memory=15))
    scene.runs("o1", queue="root.o", resource=a_resource(memory=5))
    scene.runs("o2", queue="root.o", resource=a_resource(memory=4))
    scene.runs("y1", "y2", "y3", queue="root.p.y", resource=a_resource(memory=5), node="n2")
    scene.nodes("n3", capacity=a_resource(memory=9))
    scene.asks("p1", queue="root.p.x")
    wait(scene)

    assert ["y3", "y2"] == scene.preempted


def test_a_victim_that_its_queue_may_not_lose_is_passed_over_for_the_next_one() -> None:
    """The youngest would leave its queue below the guarantee; the node has room, only the parent is full."""
    scene = Scene("""
        - name: p
          resources: {max: {memory: 25}}
          queues:
          - name: x
            properties: {preemption.delay: 10s}
            resources: {guaranteed: {memory: 10}}
          - name: y
            resources: {guaranteed: {memory: 10}}
          - name: z
    """)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("z1", queue="root.p.z")
    scene.runs("y1", queue="root.p.y", resource=a_resource(memory=5), priority=9)
    scene.runs("y2", queue="root.p.y")
    scene.asks("p1", queue="root.p.x")
    wait(scene)

    assert ["z1"] == scene.preempted


def test_a_node_with_room_for_half_needs_the_other_half() -> None:
    """What the node has available is held by the reservation, and counts."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=95))
    scene.runs(*[f"v{number}" for number in range(9)])
    scene.asks("p1", resource=a_resource(memory=15))
    wait(scene)

    assert ["v8"] == scene.preempted


def test_opted_out_and_originators_go_only_where_nothing_else_is_enough() -> None:
    """The node with willing victims is taken, although it needs more of them."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", "n3", capacity=a_resource(memory=20))
    scene.runs("opted-out", resource=a_resource(memory=20), node="n1", willing=False)
    scene.runs("originator", resource=a_resource(memory=20), node="n2", originator=True)
    scene.runs("v1", "v2", node="n3")
    scene.asks("p1", resource=a_resource(memory=20))
    wait(scene)

    assert ["v2", "v1"] == scene.preempted


def with_a_reserved_node() -> Scene:
    """An ask of low priority has node n1, which is full; what is left elsewhere is in pieces."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.nodes("n2", "n3", capacity=a_resource(memory=5))
    scene.runs(*TEN_KEYS)
    scene.asks("old", priority=-1, may_preempt=False)
    wait(scene, 3)
    assert ("old",) == scene.node("n1").reservations
    return scene


def test_a_young_reservation_keeps_its_node() -> None:
    """An ask within the guarantee of its queue goes first, whatever its priority."""
    scene = with_a_reserved_node()
    scene.asks("p1")
    wait(scene)

    assert [] == scene.preempted


def test_reservations_of_asks_above_their_guarantee_do_not_bar_an_entitled_queue() -> None:
    """A cordoned node makes the cluster look roomier, so that a backlog reserves every other one."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", "n2", capacity=a_resource(memory=50))
    scene.nodes("n3", capacity=HUNDRED)
    scene.update_node("n3", NodeAction.DRAIN_NODE)
    scene.runs(*TEN_KEYS[:5])
    scene.runs(*TEN_KEYS[5:], node="n2")
    scene.asks("r1", "r2", queue="root.b", may_preempt=False)
    wait(scene, 3)
    assert [("r1",), ("r2",)] == sorted(scene.node(node_id).reservations for node_id in ("n1", "n2"))
    scene.asks("p1")
    wait(scene)

    assert ["v4"] == scene.preempted
    scene.confirm()
    scene.run_until_idle()
    assert "p1" in scene.placements


def test_an_old_reservation_of_a_lower_priority_yields() -> None:
    """It has waited for two hours; here both are of one application, which stops the recorded core."""
    scene = with_a_reserved_node()
    scene.advance(2 * 3600 + 3)
    scene.asks("p1")
    wait(scene)

    assert ["v9"] == scene.preempted
    assert ("p1",) == scene.node("n1").reservations


def test_a_preemption_is_explained() -> None:
    """The record names the ask, the queue whose guarantee it serves, each victim and why that one."""
    scene = a_full_cluster()
    scene.asks("p1")
    wait(scene)
    record = scene.record
    (victim,) = record.victims

    assert (PreemptionCause.GUARANTEE, "p1", "root.a", "root.a", "n1") == (
        record.cause,
        record.allocation_key,
        record.application_id,
        record.queue_path,
        record.node_id,
    )
    assert ("root.a", a_resource(memory=10)) == (record.ask_queue_path, record.wanted)
    assert "root.a uses nothing of a guarantee of memory 50" in record.reason
    assert "root.b uses memory 100 of a guarantee of memory 20" in victim.reason
    assert record.explain() == scene.state.preemptions.explain("v9")


def test_a_guarantee_of_a_parent_is_served_by_name() -> None:
    """The leaf has none of its own."""
    scene = Scene("""
        - name: p
          resources: {guaranteed: {memory: 50}}
          queues:
          - name: a
            properties: {preemption.delay: 10s}
        - name: b
    """)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs(*TEN_KEYS)
    scene.asks("p1", queue="root.p.a")
    wait(scene)

    assert (scene.record.queue_path, scene.record.ask_queue_path) == ("root.p", "root.p.a")
    assert "nothing is guaranteed to root.b" in scene.record.victims[0].reason


class Slipping(FakePredicates):
    """An RM that is asked to end a victim while it judges."""

    scene: Scene

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        self.scene.application("root.b").allocations.mark_released("v8")
        return super().preemption_index(allocation_key, node_id, victim_keys, start_index)


def test_a_victim_that_slips_away_spoils_the_whole_plan() -> None:
    """Between the look and the act: nothing is preempted, and nothing is reserved."""
    predicates = Slipping()
    scene = predicates.scene = a_full_cluster(predicates=predicates)
    scene.asks("p1", resource=a_resource(memory=20))
    wait(scene)

    assert [] == scene.preempted
    assert not scene.application("root.b").allocations.is_preempted("v9")
    assert "Victims picked earlier were released at the final stage" in scene.waits_with("p1")


def _checked(scene: Scene, key: str) -> bool:
    record = scene.application("root.a").asks.record(key)
    return record is not None and record.preemption_checked_ns is not None
