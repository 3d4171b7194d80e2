"""Preemption for an ask that can run on one node only."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import TEN, a_resource, memory
from support.model.preemption_scenes import HUNDRED, Running, Scene

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
TWENTY = memory(20)
FIVE_TWENTIES = Running("v0 v1 v2 v3 v4", resource=TWENTY)


def a_scene() -> Scene:
    scene = Scene(QUEUES)
    scene.nodes("n1", "n2", capacity=HUNDRED)
    return scene


def a_full_node() -> Scene:
    """Five allocations of twenty fill node n1."""
    scene = a_scene()
    scene.start([FIVE_TWENTIES])
    return scene


def needs_node(scene: Scene, key: str = "ds", resource: Resource = TWENTY, priority: int = 0) -> None:
    scene.asks(key, resource=resource, priority=priority, may_preempt=False, required_node="n1")
    scene.run_until_idle()


def test_an_ask_preempts_once_and_runs_when_its_victims_are_gone() -> None:
    """However long the RM takes; the node is reserved for it, so that no other ask takes the room."""
    scene = a_full_node()
    scene.asks("other", resource=TWENTY, may_preempt=False)
    needs_node(scene)
    for _ in range(5):
        scene.wait(60)
    assert ["v4"] == scene.preempted
    scene.settle()

    assert {"n1": "ds", "n2": "other"} == {
        node: key for key, node in scene.placements.items() if key in ("ds", "other")
    }


def test_the_rm_gets_one_message_that_names_the_ask() -> None:
    """Also when several have to go."""
    scene = a_full_node()
    needs_node(scene, resource=memory(50))
    (message,) = scene.preemption_messages

    assert ["v4", "v3", "v2"] == [release.allocation_key for release in message]
    assert {"preempting allocations to free up resources to run daemon set ask: ds"} == {
        release.message for release in message
    }
    assert {TerminationType.PREEMPTED_BY_SCHEDULER} == {release.termination for release in message}


@dataclass(frozen=True)
class Needed:
    """What runs on node n1, what an ask needs there, and what is preempted for it, in order."""

    running: list[Running]
    asked: Resource
    preempted: list[str]
    capacity: Resource = HUNDRED
    queues: str = QUEUES
    partition: str = ""


NEEDED = {
    # No delay, no guarantee, no policy of a queue and no permission of the ask matters.
    "the youngest": Needed([FIVE_TWENTIES], TWENTY, ["v4"]),
    # The recorded core would preempt two of twenty.
    "no more than what the node lacks": Needed(
        [Running("filler", resource=memory(50)), Running("v1 v2", resource=TWENTY)], memory(30), ["v2"]
    ),
    # It comes first in the order, but a large one behind it is preempted anyway.
    "no small one without need": Needed(
        [Running("large", resource=memory(90)), Running("small")], memory(80), ["large"]
    ),
    "no other ask of the node": Needed([Running("bound", resource=HUNDRED, required_node="n1")], TWENTY, []),
    "nothing that shares no type with the ask": Needed(
        [Running("memory"), Running("vcore", resource=a_resource(vcore=10))],
        TEN,
        ["memory"],
        a_resource(memory=10, vcore=10),
    ),
    # Preemption is not a way around a maximum.
    "nothing for an ask outside its quota": Needed(
        [Running("own", "root.a", "n2", TWENTY), Running("v0", resource=HUNDRED)],
        TWENTY,
        [],
        queues="- {name: a, resources: {max: {memory: 30}}}\n- name: b",
    ),
    # The partition's switch is for guarantees.
    "also where preemption is off in the partition": Needed(
        [Running("v0", resource=HUNDRED)], TWENTY, ["v0"], partition="preemption: {enabled: false}"
    ),
}


@pytest.mark.parametrize("case", NEEDED.values(), ids=NEEDED)
def test_an_ask_that_needs_the_node_preempts(case: Needed) -> None:
    """As little as makes room, at once."""
    scene = Scene(case.queues, partition=case.partition)
    scene.nodes("n1", "n2", capacity=case.capacity)
    scene.start(case.running)
    needs_node(scene, resource=case.asked)

    assert case.preempted == scene.preempted


def test_an_ask_that_all_together_do_not_help_waits_until_that_changes() -> None:
    """Foreign allocations and those of higher priority stay; the ask says so, and each cycle looks again."""
    scene = a_scene()
    scene.runs("v0", resource=memory(60), priority=5)
    scene.runs("v1", resource=memory(40))
    needs_node(scene, resource=memory(50))

    assert [] == scene.preempted
    assert ["No fit on required node, preemption does not help"] == scene.waits_with("ds")
    scene.release("v0", application_id="root.b")
    scene.runs("v2", resource=memory(60))
    scene.cycle()
    assert ["v2"] == scene.preempted


def test_what_is_on_its_way_out_is_not_chosen() -> None:
    """The RM has been asked to end it for something else: its room is not counted on."""
    scene = a_full_node()
    scene.application("root.b").allocations.mark_released("v4")
    scene.application("root.b").allocations.mark_preempted("v3")
    needs_node(scene)

    assert ["v2"] == scene.preempted


def test_another_ask_of_the_node_does_not_take_the_room_of_what_ended() -> None:
    """It makes room for itself; in the recorded core it takes the room, and the first one waits for ever."""
    scene = a_full_node()
    needs_node(scene, resource=memory(30))
    scene.end("v4")
    needs_node(scene, "smaller", resource=TWENTY)
    assert ["v4", "v3", "v2"] == scene.preempted
    scene.end("v3")

    assert "ds" in scene.placements
    assert "smaller" not in scene.placements
    scene.settle()
    assert "smaller" in scene.placements


def test_an_ask_of_the_node_that_may_end_nothing_does_not_take_the_room_of_what_ended() -> None:
    """Even if what the node had left would do with it."""
    scene = a_scene()
    scene.runs("v0", "v1", "v2", resource=memory(30))
    needs_node(scene, "low", memory(35), priority=-1)
    needs_node(scene, resource=memory(30))
    assert ["v2"] == scene.preempted
    scene.end("v2")

    assert "ds" in scene.placements
    assert "low" not in scene.placements


def test_two_asks_do_not_preempt_for_what_their_queue_has_room_for_once() -> None:
    """Each is within the quota, but both are not: the second one would make room that it may not use."""
    scene = Scene(QUEUES.replace("- name: a", "- name: a\n      resources: {max: {memory: 30}}"))
    scene.nodes("n1", "n2", "n3", capacity=HUNDRED)
    scene.runs("v1", node="n1", resource=HUNDRED)
    scene.runs("v2", node="n2", resource=HUNDRED)
    for node in ("n1", "n2"):
        scene.asks(f"ds-{node}", resource=TWENTY, may_preempt=False, required_node=node)
    scene.run_until_idle()
    scene.settle()

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


@settings(max_examples=40)
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
            scene.runs(f"v{number}", resource=memory(size), priority=priorities[number])
    victims = [scene.victim(f"v{number}") for number in range(len(sizes)) if f"v{number}" in scene.placements]
    available = scene.node("n1").available
    eligible = given_back(victim for victim in victims if victim.allocation.ask.priority <= 0)
    needs_node(scene, resource=memory(asked))
    gone = [victim for victim in victims if victim.key in scene.preempted]

    helps = fits(add(available, eligible), memory(asked))
    assert helps == ("ds" in scene.placements or bool(gone))
    for victim in gone:
        others = given_back(other for other in gone if other is not victim)
        assert not fits(add(available, others), memory(asked))


def test_an_ask_gets_room_on_its_node_while_no_other_node_has_any_for_its_size() -> None:
    """Its leaf wakes by any change: room on a node that is reserved for another ask opens no size."""
    queue = "- {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 30}}}"
    scene = Scene(f"{queue}\n- name: b\n- name: c")
    scene.nodes("n1", "n2", "n3", capacity=TEN)
    scene.runs("v1", resource=memory(6))
    scene.runs("v2", resource=memory(4))
    for node in ("n2", "n3"):
        scene.runs(f"on {node}", node=node, resource=memory(7), willing=False)
    scene.asks("preemptor", resource=TEN)
    scene.run_until_idle()
    scene.advance(11)
    scene.run_until_idle()
    assert {"v1", "v2"} == {*scene.preempted}
    scene.asks("other", queue="root.b", resource=memory(4), may_preempt=False)
    scene.run_until_idle()
    scene.asks("d", queue="root.c", resource=memory(4), required_node="n1", priority=-5, may_preempt=False)
    scene.run_until_idle()
    assert ("preemptor",) == scene.node("n1").reservations

    scene.end("v1")

    assert "n1" == scene.placements["d"]


def test_what_another_preemptor_holds_in_the_cluster_bars_no_ask_from_the_node_it_needs() -> None:
    """All nodes together are no quota: the ask would wait beside room that has ended for it."""
    scene = Scene(
        "- {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 20}}}\n- name: b"
    )
    scene.nodes("n1", capacity=memory(30))
    scene.runs("v1", "v2", resource=TEN)
    scene.asks("preemptor", resource=TWENTY)
    scene.run_until_idle()
    scene.advance(11)
    scene.run_until_idle()
    (first,) = scene.preempted
    scene.asks("d", resource=TWENTY, required_node="n1")
    scene.run_until_idle()
    (second,) = {*scene.preempted} - {first}

    scene.end(second)

    assert "n1" == scene.placements["d"]


@pytest.mark.parametrize(("size", "preempted"), [(30, ["v1"]), (40, [])])
def test_nothing_ends_where_others_keep_their_guarantees_back_all_the_same(
    size: int, preempted: list[str]
) -> None:
    """Of fifty the lender keeps twenty back: forty would have no room, whatever ends."""
    scene = Scene("- {name: l, resources: {guaranteed: {memory: 20}, lend: {memory: 0}}}\n- name: b")
    scene.nodes("n1", capacity=memory(50))
    scene.runs("v1", resource=memory(25))
    scene.asks("daemon", queue="root.b", resource=memory(size), required_node="n1")
    scene.wait(1)

    assert preempted == scene.preempted
    for key in preempted:
        scene.end(key)
    assert bool(preempted) == ("daemon" in scene.placements)
