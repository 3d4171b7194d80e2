"""Asks that could get lost: each is placed, goes on waiting, or is turned away, and the RM hears of it."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.values.messages import NodeAction, TerminationType
from licorne.model.values.states import ObjectState

HUNDRED = a_resource(memory=100)
REPLACED = TerminationType.PLACEHOLDER_REPLACED
TIMEOUT = TerminationType.TIMEOUT


def a_large_partition(queues: str = "- name: leaf") -> Harness:
    return a_running_partition(capacity=HUNDRED, queues=queues)


# ------------------------------------------------------------------------------- what an ask depends on


def test_an_application_that_is_going_to_fail_says_why_it_takes_nothing_new() -> None:
    """What it has may still be resized; once it has failed it is unknown."""
    h = a_running_partition(
        nodes=("one",),
        capacity=HUNDRED,
        placeholder_ask=a_resource(memory=20),
        style="Hard",
        timeout_seconds=60,
    )
    h.ask_and_run("p", task_group_name="g", placeholder=True)
    h.advance(61)

    (rejection,) = h.ask("late")
    assert "application app is Failing; cannot process allocation late" == rejection.reason
    assert () == h.ask("p", resource=a_resource(memory=11))
    assert a_resource(memory=11) == h.queue().allocated
    h.confirm()

    (rejection,) = h.ask("later")
    assert "failed to find application app" == rejection.reason


@pytest.mark.parametrize("node_id", ["", "two"], ids=["ask", "restored"])
@pytest.mark.parametrize("state", ObjectState)
def test_a_partition_places_what_is_asked_for_unless_it_is_stopped(state: ObjectState, node_id: str) -> None:
    """One that is draining takes no applications; those that it has go on."""
    h = a_large_partition()
    h.state.state = state
    rejections = h.ask("x", node_id=node_id)
    h.run_until_idle()

    assert (state is ObjectState.STOPPED) == bool(rejections) == (not h.placements)


def test_a_queue_that_is_to_go_away_places_what_its_applications_ask_for() -> None:
    """A reload has taken it out of the configuration."""
    h = a_large_partition("- name: leaf\n- name: other")
    h.reload("- name: other")
    h.ask("x")
    h.ask_and_run("restored", node_id="two")

    assert {"x", "restored"} == set(h.placements)


def test_a_leaf_that_has_become_a_parent_lets_asks_wait() -> None:
    """They are placed when it is a leaf again."""
    h = a_large_partition()
    h.reload("- name: leaf\n  queues: [{name: below}]")
    h.ask_and_run("x")
    assert ({}, TEN) == (h.placements, h.queue().pending)

    h.reload("- name: leaf")
    h.run_until_idle()
    assert {"x"} == set(h.placements)


# ----------------------------------------------------------------------------------- keys that come again


def ended(h: Harness, how: str, *, limit_seconds: int | None = None, placeholder: bool = False) -> None:
    """Have an allocation end whose ask is kept."""
    group = "g" if placeholder else ""
    h.ask("x", node_id="two", task_group_name=group, placeholder=placeholder, limit_seconds=limit_seconds)
    h.ask_and_run("other")
    if how == "with its node":
        h.update_node("two", NodeAction.DECOMISSION)
    else:
        h.release("x", termination=TIMEOUT)
    h.forget()


@pytest.mark.parametrize("how", ["with its node", "by a timeout"])
@pytest.mark.parametrize("node_id", ["", "one"], ids=["ask", "restored"])
@pytest.mark.parametrize("placeholder", [False, True], ids=["real", "placeholder"])
def test_a_key_whose_allocation_has_ended_may_be_asked_for_again(
    how: str, node_id: str, *, placeholder: bool
) -> None:
    """Its ask is kept to be looked at, and stands for nothing: what comes under that name is new."""
    h = a_large_partition()
    ended(h, how, placeholder=placeholder)
    size = a_resource(memory=7)
    group = "g" if placeholder else ""

    rejections = h.ask("x", resource=size, node_id=node_id, task_group_name=group, placeholder=placeholder)
    h.run_until_idle()

    assert ((), {"x"}) == (rejections, set(h.placements))
    assert a_resource(memory=17) == h.queue().allocated


def test_a_key_whose_allocation_has_ended_may_be_that_of_another_application() -> None:
    """It is in use no longer."""
    h = a_large_partition()
    ended(h, "with its node")
    h.submit("next")

    assert () == h.ask("x", application_id="next")
    h.run_until_idle()
    assert {"x"} == set(h.placements)


def test_what_comes_anew_under_a_key_has_no_earlier_time_limit() -> None:
    """The limit was that of the ask whose allocation has ended."""
    h = a_large_partition()
    ended(h, "with its node", limit_seconds=60)
    h.ask_and_run("x")
    h.advance(3600)

    assert ({"x": "one"}, []) == (h.placements, h.releases)


# ------------------------------------------------------------------------ members whose swap comes to nothing


def a_swap_while_completing() -> Harness:
    """Return a gang whose last member runs no longer, while the next one is to take a place."""
    h = a_running_partition(
        nodes=("one",),
        capacity=a_resource(memory=20),
        placeholder_ask=a_resource(memory=20),
        timeout_seconds=3600,
    )
    h.ask_and_run("p1", "p2", task_group_name="g", placeholder=True)
    h.ask_and_run("m1", task_group_name="g")
    h.confirm()
    h.ask("m2", task_group_name="g")
    h.cycle()
    h.release("m1")
    assert ("Completing", REPLACED) == (h.states()[-1], h.releases[-2][1])
    return h


def fill(h: Harness) -> None:
    """Leave no room for anything else."""
    h.submit("rival")
    h.ask_and_run("r1", "r2", application_id="rival", priority=9)


@pytest.mark.parametrize("seconds", [0, 31], ids=["before", "after"])
def test_a_member_that_waits_again_keeps_its_application_from_completing(seconds: int) -> None:
    """Its placeholder ends in another way before, or after, the half minute is over."""
    h = a_swap_while_completing()
    h.advance(seconds)
    h.release("p2")
    fill(h)
    h.advance(3600)
    assert ("Running", TEN) == (h.states()[-1], h.queue().pending)

    h.release("r1", application_id="rival")
    h.run_until_idle()
    assert "m2" in h.placements
