"""Carrying out a preemption, all or nothing."""

from __future__ import annotations

from support.model.builders import PARTITION, a_resource, memory
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.preemption.acts import (
    is_still_ending,
    mark_all,
    release_all,
    release_by_application,
    remember,
    victim_record,
)
from licorne.model.preemption.victims import Victim
from licorne.model.resources.resource import EMPTY
from licorne.model.state.preemption_log import PreemptionCause, PreemptionRecord, VictimNeed
from licorne.model.values.messages import Release, TerminationType


def a_scene() -> Scene:
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=100))
    scene.runs("v1", "v2")
    return scene


def a_record(scene: Scene, *victims: Victim, ask: str = "ask") -> PreemptionRecord:
    return PreemptionRecord(
        time_ns=scene.clock.now_ns(),
        cause=PreemptionCause.GUARANTEE,
        queue_path="root.a",
        allocation_key=ask,
        application_id="root.a",
        reason="",
        victims=tuple(victim_record(victim, "because", VictimNeed.NODE) for victim in victims),
    )


def test_one_that_cannot_be_marked_leaves_all_unmarked() -> None:
    """The RM has been asked to end it already, for something else."""
    scene = a_scene()
    scene.application("root.b").allocations.mark_released("v2")

    assert mark_all([scene.victim("v1"), scene.victim("v2")]) == scene.victim("v2")
    assert not scene.application("root.b").allocations.is_preempted("v1")


def test_victims_are_marked_and_counted_in_every_queue_above_until_they_are_gone() -> None:
    """They are not chosen again, and stay allocated until the RM confirms."""
    scene = a_scene()
    victims = [scene.victim("v1"), scene.victim("v2")]

    assert mark_all(victims) is None
    assert all(scene.application("root.b").allocations.is_preempted(key) for key in ("v1", "v2"))
    release_all(scene.state, victims, "text")
    assert [memory(20)] * 2 == [scene.queue(path).preempting for path in ("root.b", "root")]
    scene.confirm()
    assert [EMPTY, EMPTY] == [scene.queue(path).preempting for path in ("root.b", "root")]


def test_the_rm_gets_one_message() -> None:
    """All victims are in one message, with the text and the type of a preemption."""
    scene = a_scene()
    release_all(scene.state, [scene.victim("v1"), scene.victim("v2")], "text")
    expected = tuple(
        Release(
            partition=PARTITION,
            application_id="root.b",
            allocation_key=key,
            termination=TerminationType.PREEMPTED_BY_SCHEDULER,
            message="text",
        )
        for key in ("v1", "v2")
    )

    assert [expected] == scene.preemption_messages


def test_the_rm_may_get_a_message_for_each_application() -> None:
    """One message for each, whatever the order of the victims."""
    scene = a_scene()
    scene.runs("x1", queue="root.a")
    victims = [scene.victim("v1"), scene.victim("x1", "root.a"), scene.victim("v2")]
    release_by_application(scene.state, victims, "text")

    assert [["x1"], ["v1", "v2"]] == [
        [release.allocation_key for release in message] for message in scene.preemption_messages
    ]


def test_a_preemption_goes_on_until_its_last_victim_is_gone() -> None:
    """Also if the application of a victim is gone with it."""
    scene = a_scene()
    record = a_record(scene, scene.victim("v1"), scene.victim("v2"))
    scene.release("v1", application_id="root.b")

    assert is_still_ending(scene.state, record)
    scene.withdraw("root.b")
    assert not is_still_ending(scene.state, record)


def test_a_preemption_for_an_ask_that_lost_its_room_is_remembered_as_a_loop() -> None:
    """The victims of the first are gone, its ask still waits, and it is taken from the same application."""
    scene = a_scene()
    scene.asks("ask")
    remember(scene.state, a_record(scene, scene.victim("v1")))
    scene.release("v1", application_id="root.b")
    remember(scene.state, a_record(scene, scene.victim("v2")))

    assert scene.state.preemptions.loops == 1


def test_a_preemption_while_the_first_is_under_way_is_no_loop() -> None:
    """Its victims have not gone yet."""
    scene = a_scene()
    scene.asks("ask", "second")
    remember(scene.state, a_record(scene, scene.victim("v1")))
    remember(scene.state, a_record(scene, scene.victim("v2"), ask="second"))

    assert scene.state.preemptions.loops == 0
