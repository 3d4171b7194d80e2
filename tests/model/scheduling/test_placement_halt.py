"""What a partition does, and does not begin, while nothing new is placed for its resource manager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.model.builders import TEN, a_resource
from support.model.harness import Harness, a_partition
from support.model.preemption_scenes import Scene

from licorne.model.queues.quota import quota_settings, quotas_changed
from licorne.model.scheduling.cycle import ConcurrentOutcome, CycleOutcome
from licorne.model.values.allocation import PlacementHalt, RefusalReason
from licorne.model.values.messages import NodeAction

HALT = PlacementHalt(reason=RefusalReason.MANAGER_PAUSED, since_ns=1, detail="the cable")
HUNDRED = a_resource(memory=100)


def an_ask_with_room() -> Harness:
    h = a_partition("one")
    h.ask("a")
    return h


def an_ask_that_has_waited_for_room() -> Harness:
    h = Harness()
    h.nodes("one")
    h.nodes("spare", action=NodeAction.CREATE_DRAIN)
    h.submit()
    h.ask("runs", node_id="one")
    h.ask("a")
    h.advance(5)
    return h


def an_ask_with_a_reserved_node_that_is_free_now() -> Harness:
    h = an_ask_that_has_waited_for_room()
    h.run_until_idle()
    assert h.node("one").reservations
    h.release("runs")
    return h


def a_member_whose_placeholder_is_placed() -> Harness:
    h = a_partition("one", capacity=HUNDRED, placeholder_ask=TEN)
    h.ask_and_run("placeholder", task_group_name="g", placeholder=True)
    h.ask("member", task_group_name="g")
    return h


def an_ask_that_needs_a_full_node() -> Harness:
    scene = Scene("- name: a\n- name: b")
    scene.nodes("n1", "n2", capacity=HUNDRED)
    scene.runs("runs", resource=HUNDRED)
    scene.asks("needs", may_preempt=False, required_node="n1")
    return scene


def a_queue_above_a_lowered_maximum() -> Harness:
    scene = Scene(
        "- {name: b, properties: {quota.preemption.delay: 10s}, resources: {max: {memory: 50}}}",
        partition="preemption: {quotapreemptionenabled: true}",
    )
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("v1", "v2")
    before = quota_settings(scene.state.tree)
    queue = scene.queue("root.b")
    queue.set_quota(queue.guaranteed, TEN)
    scene.state.tree.limits_changed()
    quotas_changed(scene.state.tree, before, scene.clock.now_ns())
    scene.advance(11)
    return scene


SCENES = pytest.mark.parametrize(
    "scene",
    [
        an_ask_with_room,
        an_ask_that_has_waited_for_room,
        an_ask_with_a_reserved_node_that_is_free_now,
        a_member_whose_placeholder_is_placed,
        an_ask_that_needs_a_full_node,
        a_queue_above_a_lowered_maximum,
    ],
)


def trace(h: Harness) -> tuple[object, ...]:
    """Return what a partition has done so far that could be new."""
    nodes = [(entry.node_id, entry.node.facts().reservations) for entry in h.state.nodes.by_name()]
    return dict(h.placements), list(h.releases), nodes


def work(h: Harness) -> None:
    """Have a partition do all that it may do now, in each way in which it is asked to."""
    h.partition.run_until_idle()
    h.partition.work(8)
    h.partition.preempt_over_quota()
    h.validate()


@SCENES
def test_nothing_new_is_begun_while_placing_is_halted(scene: Callable[[], Harness]) -> None:
    """No placement, reservation, swap or preemption; without the halt there is one."""
    h = scene()
    h.halt = HALT
    before = trace(h)
    work(h)
    outcome = h.partition.cycle()
    alone = h.partition.place_concurrently()
    during = trace(h)
    h.halt = None
    work(h)

    assert before == during
    assert (CycleOutcome.NOTHING, ConcurrentOutcome.ALONE) == (outcome, alone)
    assert before != trace(h)


@SCENES
def test_no_timer_is_set_to_look_again_while_placing_is_halted(scene: Callable[[], Harness]) -> None:
    """The partition is told when the halt ends; a timer that is due would be set again and again."""
    h = scene()
    h.halt = HALT
    due_ns = h.clock.next_due_ns()
    work(h)

    assert (None, due_ns) == (h.partition.next_retry_ns(), h.clock.next_due_ns())


def test_a_timer_for_a_quota_does_nothing_while_placing_is_halted() -> None:
    """It is not set again; the next work after the halt sets one."""
    h = a_queue_above_a_lowered_maximum()
    h.partition.watch_quotas()
    h.halt = HALT
    h.advance(60)
    held = list(h.releases)
    due_ns = h.clock.next_due_ns()
    h.halt = None
    h.partition.work(1)
    h.advance(1)

    assert ([], None) == (held, due_ns)
    assert ["v2"] == [key for key, _ in h.releases]


def test_timers_and_requests_go_on_while_placing_is_halted() -> None:
    """An application ends in its time, and what the manager says is carried out and answered."""
    h = an_ask_with_room()
    h.run_until_idle()
    h.halt = HALT
    h.release("a")
    h.submit("second")
    h.ask("known", application_id="second", node_id="one")
    h.advance(30)

    assert ["Accepted", "Running", "Completing", "Completed"] == h.states()
    assert "one" == h.placements["known"]
