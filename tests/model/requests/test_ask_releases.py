"""Releases of asks alone, as the older generation sends and gets them."""

from __future__ import annotations

import pytest
from support.model.builders import FIVE, PARTITION, TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.resources.resource import EMPTY
from licorne.model.values.messages import AllocationsReleased, AskRelease, NodeAction, TerminationType


def withdraw_asks(h: Harness, key: str = "", application_id: str = "app") -> None:
    """Have the RM withdraw an ask, the empty key means all of the application."""
    release = AskRelease(
        partition=PARTITION,
        application_id=application_id,
        allocation_key=key,
        termination=TerminationType.STOPPED_BY_RM,
    )
    h.partition.update_allocations([], [release])
    h.validate()


def half_placed() -> Harness:
    """Return a partition with one ask placed and two that wait."""
    h = a_running_partition(nodes=("one",))
    h.ask_and_run("placed", "wide", "wider", resource=TEN)
    h.forget()
    return h


def test_an_ask_that_waits_is_withdrawn() -> None:
    """It is no longer pending; the RM knows that, and is not answered."""
    h = half_placed()

    withdraw_asks(h, "wide")

    assert ([], TEN) == (h.announcements, h.queue().pending)
    assert not h.application().asks.knows("wide")


def test_an_allocation_stays_when_its_ask_is_released() -> None:
    """The ask has been satisfied: there is nothing to withdraw."""
    h = half_placed()

    withdraw_asks(h, "placed")

    assert ([], TEN) == (h.announcements, h.node("one").allocated)
    assert h.application().asks.knows("placed")


def test_an_empty_key_withdraws_all_that_waits() -> None:
    """Allocations stay, and the application runs on."""
    h = half_placed()

    withdraw_asks(h)

    assert (EMPTY, TEN, []) == (h.queue().pending, h.node("one").allocated, h.announcements)


def test_a_reservation_ends_with_its_ask() -> None:
    """The node is free for others."""
    h = half_placed()
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.advance(3)
    h.run_until_idle()
    reserved = h.node("one").reservations

    withdraw_asks(h)

    assert (1, ()) == (len(reserved), h.node("one").reservations)


def test_an_ask_is_found_without_its_application() -> None:
    """Its key is enough; the asks of others stay."""
    h = half_placed()

    withdraw_asks(h, "wide", application_id="")

    assert TEN == h.queue().pending


@pytest.mark.parametrize(("key", "application_id"), [("no", "app"), ("wide", "no"), ("no", ""), ("", "no")])
def test_an_ask_that_is_not_known_has_ended_already(key: str, application_id: str) -> None:
    """Nothing happens."""
    h = half_placed()

    withdraw_asks(h, key, application_id)

    assert ([], a_resource(memory=20)) == (h.announcements, h.queue().pending)


def test_an_application_completes_with_its_last_ask() -> None:
    """It has nothing left to do."""
    h = a_running_partition(nodes=("one",))
    h.ask("wide", resource=a_resource(memory=20))

    withdraw_asks(h)

    assert ["Accepted", "Completing"] == h.states()


def test_a_gang_that_gives_up_releases_asks_apart_from_allocations() -> None:
    """The placeholder that runs is to be ended, the one that waits is given up."""
    h = a_running_partition(
        nodes=("one",),
        queues="- {name: leaf, properties: {application.sort.policy: fifo}}",
        placeholder_ask=a_resource(memory=15),
        timeout_seconds=60,
    )
    h.ask("placed", resource=FIVE, placeholder=True, task_group_name="tasks")
    h.ask_and_run("waits", resource=TEN, placeholder=True, task_group_name="tasks")

    h.advance(60)

    (answer,) = h.heard(AllocationsReleased)
    assert [("placed", False), ("waits", True)] == [
        (release.allocation_key, isinstance(release, AskRelease)) for release in answer.releases
    ]
