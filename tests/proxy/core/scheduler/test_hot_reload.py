"""Registrations and configurations that change while work runs, on each engine step by step."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    node_request,
    release_request,
)

from licorne import RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si

LEAVES: Final = "queues: [{name: leaf}]"


def busy(scheduler: Scheduler, listener: Listener, text: str = TWO, memory: int = 1) -> None:
    """Register, and let an application run and wait in each partition."""
    scheduler.register("rm", listener, configuration=text)
    for name in ("default", "second") if text == TWO else ("default",):
        scheduler.update_node(node_request(f"node-{name}", memory=memory, partition=name))
        scheduler.update_application(application_request(f"app-{name}", partition=name))
        asks = ask_request(f"a-{name}", f"b-{name}", application=f"app-{name}", partition=name)
        scheduler.update_allocation(asks)
    scheduler.run_until_idle()


def update(scheduler: Scheduler, text: str, policy_group: str = "") -> None:
    request = si.UpdateConfigurationRequest(rmID="rm", config=text, policyGroup=policy_group)
    scheduler.update_configuration(request)
    scheduler.run_until_idle()


def partitions(scheduler: Scheduler) -> list[str]:
    snapshot: Any = scheduler.snapshot()
    return [view["name"] for view in snapshot["partitions"]]


def queue(scheduler: Scheduler, name: str = "root.leaf") -> Any:
    """Return the document of a queue below the root."""
    snapshot: Any = scheduler.snapshot()
    children = snapshot["queues"]["default"].get("children", [])
    return next((child for child in children if child["queuename"] == name), None)


def test_a_partition_that_left_the_configuration_ends_what_it_has(
    scheduler: Scheduler, listener: Listener
) -> None:
    """Its applications fail, its allocations are reported; the other partition does not notice."""
    busy(scheduler, listener)
    listener.heard.clear()

    update(scheduler, ONE)

    expected = ["app-second is Failing", "released a-second STOPPED_BY_RM", "app-second is Failed"]
    assert sorted(expected) == sorted(listener.heard)
    assert ["default"] == partitions(scheduler)


def test_a_partition_that_comes_back_is_empty(scheduler: Scheduler, listener: Listener) -> None:
    """And works, with nodes and applications of the same names."""
    busy(scheduler, listener)
    update(scheduler, ONE)
    update(scheduler, TWO)
    listener.heard.clear()

    scheduler.update_node(node_request("node-second", partition="second"))
    scheduler.update_application(application_request("app-second", partition="second"))
    scheduler.update_allocation(ask_request("a-second", application="app-second", partition="second"))
    scheduler.run_until_idle()

    assert {"accepted node-second", "accepted app-second", "placed a-second"} <= set(listener.heard)


def test_a_registration_again_ends_everything_and_starts_afresh(
    scheduler: Scheduler, listener: Listener
) -> None:
    """Also when it is the third, and with fewer partitions."""
    for _ in range(3):
        busy(scheduler, listener)
    busy(scheduler, listener, ONE)

    assert ["default"] == partitions(scheduler)
    assert 3 == listener.heard.count("app-second is Failed")
    assert 4 == listener.heard.count("placed a-default")


def test_a_callback_may_register_again(scheduler: Scheduler, listener: Listener) -> None:
    """It is on the stack of the delivering call, and no thread waits for it."""
    again = Listener()

    def react(text: str) -> None:
        if text == "placed a-default":
            scheduler.register("rm", again, configuration=ONE)

    listener.react = react
    busy(scheduler, listener, ONE)

    assert "app-default is Failed" in listener.heard
    busy(scheduler, again, ONE)
    assert "placed a-default" in again.heard


def test_without_partitions_only_a_registration_helps(scheduler: Scheduler, listener: Listener) -> None:
    """An update is refused in words."""
    busy(scheduler, listener, ONE)
    update(scheduler, "partitions: []")

    with pytest.raises(RequestError, match="RM rm has no active partitions, make sure it is registered"):
        update(scheduler, ONE)
    busy(scheduler, listener, ONE)

    assert ["default"] == partitions(scheduler)


def test_the_policy_group_of_an_update_says_nothing(scheduler: Scheduler, listener: Listener) -> None:
    """What counts is the text."""
    busy(scheduler, listener, ONE)

    update(scheduler, ONE.replace(LEAVES, "queues: [{name: leaf}, {name: new}]"), "another")

    assert queue(scheduler, "root.new") is not None


def test_what_a_draining_queue_has_goes_on(scheduler: Scheduler, listener: Listener) -> None:
    """Its asks are placed still; nothing new comes in, and it goes when it is empty."""
    busy(scheduler, listener, ONE)
    update(scheduler, ONE.replace(LEAVES, "queues: [{name: other}]"))
    state = queue(scheduler)["status"]
    scheduler.update_application(application_request("late"))
    scheduler.update_node(node_request("more"))
    scheduler.run_until_idle()

    assert "Draining" == state
    assert any(text.startswith("rejected late: ") for text in listener.heard)
    assert "placed b-default" in listener.heard
    scheduler.update_allocation(release_request("", application="app-default"))
    scheduler.advance_to(scheduler.now_ns() + 3700 * 10**9)
    assert queue(scheduler) is None


def test_a_draining_queue_that_is_configured_again_takes_applications(
    scheduler: Scheduler, listener: Listener
) -> None:
    """It is the same queue, with all that it has."""
    busy(scheduler, listener, ONE)
    update(scheduler, ONE.replace(LEAVES, "queues: [{name: other}]"))
    update(scheduler, ONE)
    scheduler.update_application(application_request("late"))
    scheduler.deliver()

    assert "accepted late" in listener.heard
    assert ("Active", {"memory": 1}) == (
        queue(scheduler)["status"],
        queue(scheduler)["allocatedResource"],
    )


def test_a_leaf_that_becomes_a_parent_keeps_its_applications(
    scheduler: Scheduler, listener: Listener
) -> None:
    """What runs goes on and may end; what waits waits until the queue is a leaf again."""
    busy(scheduler, listener, ONE)
    update(scheduler, ONE.replace(LEAVES, "queues: [{name: leaf, queues: [{name: below}]}]"))
    scheduler.update_node(node_request("more"))
    scheduler.run_until_idle()
    waited = "placed b-default" not in listener.heard
    scheduler.update_allocation(release_request("a-default", application="app-default"))
    update(scheduler, ONE)

    assert waited
    assert "released a-default STOPPED_BY_RM" in listener.heard
    assert "placed b-default" in listener.heard


def test_a_lowered_maximum_ends_nothing_and_bars_what_comes(scheduler: Scheduler, listener: Listener) -> None:
    """Until it is raised again."""
    busy(scheduler, listener, ONE, memory=10)
    lowered = "queues: [{name: leaf, resources: {max: {memory: 1}}}]"
    update(scheduler, ONE.replace(LEAVES, lowered))
    scheduler.update_allocation(ask_request("c", application="app-default"))
    scheduler.run_until_idle()
    barred = list(listener.heard)
    update(scheduler, ONE)

    assert ("placed b-default" in barred, "placed c" in barred) == (True, False)
    assert not any(text.startswith("released") for text in barred)
    assert "placed c" in listener.heard
