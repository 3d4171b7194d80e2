"""A callback may call the scheduler back, whatever the call."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from listening import WAIT_SECONDS, Listener, once
from manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    gang_request,
    keys,
    node_request,
    placeholder_request,
    release_request,
)
from running_scheduler import begin

from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne import Scheduler


def test_a_callback_may_confirm_a_release(scheduler: Scheduler, listener: Listener) -> None:
    """A member of a gang takes its place when the RM confirms from within the callback that asked for it."""
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node"))
    scheduler.update_application(gang_request(total=1, timeout_ms=600_000))

    def confirm(text: str) -> None:
        if text == "released holder PLACEHOLDER_REPLACED":
            scheduler.update_allocation(release_request("holder", si.PLACEHOLDER_REPLACED))

    listener.react = confirm
    scheduler.update_allocation(placeholder_request("holder"))
    listener.wait_for("placed holder")
    member = ask_request("member")
    member.allocations[0].taskGroupName = "tasks"
    scheduler.update_allocation(member)

    listener.wait_for("placed member")


def test_a_callback_may_ask_for_more(scheduler: Scheduler, listener: Listener) -> None:
    """Each placement asks for the next one."""
    begin(scheduler, listener)

    def ask_again(text: str) -> None:
        kind, _, key = text.partition(" ask-")
        if kind == "placed" and int(key) < 60:
            scheduler.update_allocation(ask_request(f"ask-{int(key) + 1}"))

    listener.react = ask_again
    scheduler.update_allocation(ask_request("ask-0"))

    listener.wait_for("placed ask-60")
    assert keys(61) == listener.all("placed ")


def test_a_callback_may_change_the_configuration(scheduler: Scheduler, listener: Listener) -> None:
    """The partition that it adds is there when the call returns."""
    begin(scheduler, listener)

    def add_partition() -> None:
        scheduler.update_configuration(configuration_request(TWO))
        scheduler.update_node(node_request("late", partition="second"))

    listener.react = once("placed ask-0", add_partition)
    scheduler.update_allocation(ask_request(*keys(100)))

    listener.wait_for("accepted late")
    listener.wait_for_count("placed ", 100)


def test_a_callback_may_register_another_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Which is served at once."""
    other = Listener()
    listener.react = once("accepted app", lambda: begin(scheduler, other, rm_id="other"))
    begin(scheduler, listener)

    other.wait_for("accepted app")


def test_a_callback_may_register_its_own_manager_again(scheduler: Scheduler, listener: Listener) -> None:
    """Its link is told to end while it runs; the new one goes on."""
    again = Listener()
    listener.react = once("placed ask-0", lambda: scheduler.register("rm", again, configuration=ONE))
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for("app is Failed")

    scheduler.update_node(node_request("node-default"))
    again.wait_for("accepted node-default")


def test_callbacks_come_one_at_a_time_when_a_callback_registers_again(
    scheduler: Scheduler, listener: Listener
) -> None:
    """The new link waits for the callback of the old one to return."""
    returned: list[bool] = []
    seen: list[bool] = []

    def register_again() -> None:
        scheduler.register("rm", listener, configuration=ONE)
        listener.react = lambda _: seen.append(bool(returned))
        scheduler.update_node(node_request("again"))
        listener.hears(lambda: bool(seen), seconds=1)
        returned.append(True)

    listener.react = once("accepted node-default", register_again)
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node-default"))
    listener.wait_for("accepted again")
    assert listener.hears(lambda: bool(seen), seconds=WAIT_SECONDS)

    assert [True] == seen


def test_a_callback_may_stop_the_scheduler(scheduler: Scheduler, listener: Listener) -> None:
    """It does not wait for itself; the fixture finds that all threads end."""
    stopped = threading.Event()

    def stop() -> None:
        scheduler.stop()
        stopped.set()

    listener.react = once("accepted app", stop)
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_application(application_request("app"))

    assert stopped.wait(WAIT_SECONDS)
