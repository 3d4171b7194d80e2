"""Preemption for an ask that can run on one node only."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import TEN, a_resource
from support.model.preemption_scenes import Scene

from licorne.model.preemption.victims import given_back
from licorne.model.resources.resource import Resource, add, fits
from licorne.model.state.preemption_log import PreemptionCause
from licorne.model.values.messages import TerminationType

QUEUES = """
    - name: a
    - name: b
      properties: {preemption.policy: disabled}
      resources: {guaranteed: {memory: 100}}
"""
HUNDRED = a_resource(memory=100)
TWENTY = a_resource(memory=20)


def a_scene(*, partition: str = "") -> Scene:
    scene = Scene(QUEUES, partition=partition)
    scene.nodes("n1", "n2", capacity=HUNDRED)
    return scene


def a_full_node() -> Scene:
    """Five allocations of twenty fill node n1."""
    scene = a_scene()
    scene.runs("v0", "v1", "v2", "v3", "v4", resource=TWENTY)
    return scene


def needs_node(scene: Scene, key: str = "ds", resource: Resource = TWENTY, priority: int = 0) -> None:
    scene.asks(key, resource=resource, priority=priority, may_preempt=False, required_node="n1")
    scene.run_until_idle()


def test_the_youngest_goes_for_an_ask_that_needs_the_node() -> None:
    """No delay, no guarantee, no policy of a queue and no permission of the ask matters."""
    scene = a_full_node()
    needs_node(scene)

    assert ["v4"] == scene.preempted


def test_the_ask_runs_once_its_victims_are_gone() -> None:
    """The node is reserved for it, so that no other ask takes the room."""
    scene = a_full_node()
    scene.asks("other", resource=TWENTY, may_preempt=False)
    needs_node(scene)
    scene.confirm()
    scene.run_until_idle()

    assert {"n1": "ds", "n2": "other"} == {
        node: key for key, node in scene.placements.items() if key in ("ds", "other")
    }


def test_the_rm_gets_one_message_that_names_the_ask() -> None:
    """Also when several have to go."""
    scene = a_full_node()
    needs_node(scene, resource=a_resource(memory=50))
    (message,) = scene.preemption_messages

    assert ["v4", "v3", "v2"] == [release.allocation_key for release in message]
    assert {"preempting allocations to free up resources to run daemon set ask: ds"} == {
        release.message for release in message
    }
    assert {TerminationType.PREEMPTED_BY_SCHEDULER} == {release.termination for release in message}


def test_an_ask_preempts_once_while_its_victims_go() -> None:
    """However long the RM takes."""
    scene = a_full_node()
    needs_node(scene)
    for _ in range(5):
        scene.advance(60)
        scene.run_until_idle()

    assert ["v4"] == scene.preempted


def test_what_the_node_has_left_counts() -> None:
    """The recorded core would let two of twenty go for thirty of which ten are there."""
    scene = a_scene()
    scene.runs("filler", resource=a_resource(memory=50))
    scene.runs("v1", "v2", resource=TWENTY)
    needs_node(scene, resource=a_resource(memory=30))

    assert ["v2"] == scene.preempted


def test_nothing_ends_without_need() -> None:
    """A small one that comes first in the order is spared when a large one behind it has to go anyway."""
    scene = a_scene()
    scene.runs("large", resource=a_resource(memory=90))
    scene.runs("small")
    needs_node(scene, resource=a_resource(memory=80))

    assert ["large"] == scene.preempted


def test_nothing_goes_where_all_together_are_not_enough() -> None:
    """Foreign allocations and those of higher priority stay; the ask goes on waiting, and says so."""
    scene = a_scene()
    scene.runs("v0", resource=a_resource(memory=60), priority=5)
    scene.runs("v1", resource=a_resource(memory=40))
    needs_node(scene, resource=a_resource(memory=50))

    assert [] == scene.preempted
    assert ["No fit on required node, preemption does not help"] == scene.waits_with("ds")


def test_an_ask_without_result_is_tried_again_when_it_may_help() -> None:
    """Nothing was triggered, so the next cycle looks again."""
    scene = a_scene()
    scene.runs("v0", resource=a_resource(memory=60), priority=5)
    scene.runs("v1", resource=a_resource(memory=40))
    needs_node(scene, resource=a_resource(memory=50))
    scene.release("v0", application_id="root.b")
    scene.runs("v2", resource=a_resource(memory=60))
    scene.cycle()

    assert ["v2"] == scene.preempted


def test_other_asks_of_the_node_stay() -> None:
    """A daemon set does not go for another."""
    scene = a_scene()
    scene.runs("bound", resource=HUNDRED, required_node="n1")
    needs_node(scene)

    assert [] == scene.preempted


def test_what_shares_no_type_with_the_ask_stays() -> None:
    """Its end would give nothing."""
    scene = Scene(QUEUES)
    scene.nodes("n1", "n2", capacity=a_resource(memory=10, vcore=10))
    scene.runs("memory", resource=TEN)
    scene.runs("vcore", resource=a_resource(vcore=10))
    needs_node(scene, resource=TEN)

    assert ["memory"] == scene.preempted


def test_what_is_on_its_way_out_is_not_chosen() -> None:
    """The RM has been asked to end it for something else: its room is not counted on."""
    scene = a_full_node()
    scene.application("root.b").allocations.mark_released("v4")
    scene.application("root.b").allocations.mark_preempted("v3")
    needs_node(scene)

    assert ["v2"] == scene.preempted


def test_an_ask_outside_its_quota_preempts_nothing() -> None:
    """Preemption is not a way around a maximum."""
    scene = Scene("""
        - name: a
          resources: {max: {memory: 30}}
        - name: b
    """)
    scene.nodes("n1", "n2", capacity=HUNDRED)
    scene.runs("own", queue="root.a", node="n2", resource=TWENTY)
    scene.runs("v0", resource=HUNDRED)
    needs_node(scene)

    assert [] == scene.preempted


def test_required_nodes_are_preempted_for_where_preemption_is_off() -> None:
    """The partition's switch is for guarantees."""
    scene = a_scene(partition="preemption: {enabled: false}")
    scene.runs("v0", resource=HUNDRED)
    needs_node(scene)

    assert ["v0"] == scene.preempted


def test_an_ask_whose_room_another_ask_of_the_node_took_preempts_again() -> None:
    """In the recorded core it waits for ever: it has preempted before."""
    scene = a_full_node()
    needs_node(scene, resource=a_resource(memory=30))
    scene.release("v4", application_id="root.b", termination=TerminationType.PREEMPTED_BY_SCHEDULER)
    needs_node(scene, "smaller", resource=TWENTY)
    scene.confirm()
    scene.run_until_idle()

    assert "smaller" in scene.placements
    assert ["v4", "v3", "v2"] == scene.preempted
    scene.confirm()
    scene.run_until_idle()
    assert "ds" in scene.placements


def test_two_asks_do_not_preempt_for_what_their_queue_has_room_for_once() -> None:
    """Each is within the quota, but both are not: the second one would make room that it may not use."""
    scene = Scene(QUEUES.replace("- name: a", "- name: a\n      resources: {max: {memory: 30}}"))
    scene.nodes("n1", "n2", "n3", capacity=HUNDRED)
    scene.runs("v1", node="n1", resource=HUNDRED)
    scene.runs("v2", node="n2", resource=HUNDRED)
    for node in ("n1", "n2"):
        scene.asks(f"ds-{node}", resource=TWENTY, may_preempt=False, required_node=node)
    scene.run_until_idle()
    scene.confirm()
    scene.run_until_idle()

    assert ["v1"] == scene.preempted
    assert "ds-n1" in scene.placements


def test_a_preemption_for_a_node_is_explained() -> None:
    """The record names the ask, the node, each victim and why that one."""
    scene = a_full_node()
    needs_node(scene)
    record = scene.record
    (victim,) = record.victims

    assert (PreemptionCause.REQUIRED_NODE, "ds", "n1") == (
        record.cause,
        record.allocation_key,
        record.node_id,
    )
    assert ("root.a", TWENTY) == (record.ask_queue_path, record.wanted)
    assert "can run on n1 only, which has nothing left" in record.reason
    assert (victim.allocation_key, victim.queue_path) == ("v4", "root.b")
    assert "it allows preemption" in victim.reason


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    asked=st.integers(1, 60),
    priorities=st.lists(st.integers(-1, 1), min_size=8, max_size=8),
)
def test_victims_on_a_required_node_are_enough_and_none_could_be_spared(
    sizes: list[int], asked: int, priorities: list[int]
) -> None:
    """Of the eligible ones those go without which the ask would not fit, or none if all are not enough."""
    scene = a_scene()
    used = 0
    for number, size in enumerate(sizes):
        if used + size <= 100:
            used += size
            scene.runs(f"v{number}", resource=a_resource(memory=size), priority=priorities[number])
    victims = [scene.victim(f"v{number}") for number in range(len(sizes)) if f"v{number}" in scene.placements]
    available = scene.node("n1").available
    eligible = given_back(victim for victim in victims if victim.allocation.ask.priority <= 0)
    needs_node(scene, resource=a_resource(memory=asked))
    gone = [victim for victim in victims if victim.key in scene.preempted]

    helps = fits(add(available, eligible), a_resource(memory=asked))
    assert helps == ("ds" in scene.placements or bool(gone))
    for victim in gone:
        others = given_back(other for other in gone if other is not victim)
        assert not fits(add(available, others), a_resource(memory=asked))
