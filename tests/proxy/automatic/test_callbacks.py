"""The callbacks of a resource manager: on one thread, in order, whatever they do."""

from __future__ import annotations

import threading
from asyncio import CancelledError

import pytest
from support.proxy.listening import Gate, Listener, PredicateListener, once
from support.proxy.manager_requests import ask_request, keys, release_request
from support.proxy.running_scheduler import begin
from support.waiting import WAIT_SECONDS

from licorne import Scheduler


def test_callbacks_come_on_one_thread_that_is_not_the_callers(
    scheduler: Scheduler, listener: Listener
) -> None:
    """An RM needs no lock of its own, and no call of it comes back before it has returned."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for_count("placed ", 100)

    assert ["licorne-rm-rm"] == [thread.name for thread in listener.threads]
    assert threading.current_thread() not in listener.threads


def test_placements_come_in_the_order_of_the_asks(scheduler: Scheduler, listener: Listener) -> None:
    """Also where they were made in several turns."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(300)))
    scheduler.update_allocation(ask_request(*keys(200, "more")))
    listener.wait_for_count("placed ", 500)

    assert keys(300) + keys(200, "more") == listener.all("placed ")


def test_what_becomes_of_an_application_comes_in_order(scheduler: Scheduler, listener: Listener) -> None:
    """Acceptance first, then its states, each before what is placed in it."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    scheduler.update_allocation(release_request("ask"))
    listener.wait_for("released ask STOPPED_BY_RM")

    started = ["accepted node-default", "accepted app", "app is Accepted", "app is Running", "placed ask"]
    assert started == listener.heard[:5]
    assert sorted(["app is Completing", "released ask STOPPED_BY_RM"]) == sorted(listener.heard[5:7])


def test_a_slow_callback_does_not_stall_another_manager(scheduler: Scheduler, listener: Listener) -> None:
    """Nor the caller, nor the scheduling of its own asks: only its callbacks wait."""
    slow, gate = Listener(), Gate("placed")
    begin(scheduler, slow, rm_id="slow")
    begin(scheduler, listener)
    slow.react = gate.hold
    scheduler.update_allocation(ask_request(*keys(20), rm_id="slow"))
    assert gate.reached.wait(WAIT_SECONDS)

    scheduler.update_allocation(ask_request(*keys(100)))
    listener.wait_for_count("placed ", 100)
    assert ["ask-0"] == slow.all("placed ")
    gate.open()
    slow.wait_for_count("placed ", 20)


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, CancelledError])
def test_a_callback_that_raises_stops_nothing(
    scheduler: Scheduler, listener: Listener, complaints: list[str], error: type[BaseException]
) -> None:
    """The error is logged, and the next callback comes."""
    begin(scheduler, listener)

    def fail(text: str) -> None:
        raise error(f"{text} on purpose")

    listener.react = fail
    scheduler.update_allocation(ask_request(*keys(5)))
    listener.wait_for_count("placed ", 5)
    scheduler.stop()

    assert 7 == len(complaints)  # five placements, and the application is Accepted and Running
    assert all("callback of RM rm failed" in complaint for complaint in complaints)
    complaints.clear()


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, CancelledError])
def test_a_predicate_that_raises_refuses_and_stops_nothing(
    scheduler: Scheduler, error: type[BaseException]
) -> None:
    """Whatever it raises; other managers are scheduled for, and this one when it agrees again."""
    predicate_listener, other = PredicateListener(), Listener()

    def fail() -> None:
        raise error("on purpose")

    predicate_listener.react = once("asked to place ask", fail)
    begin(scheduler, predicate_listener)
    begin(scheduler, other, rm_id="other")
    scheduler.update_allocation(ask_request("ask"))
    predicate_listener.wait_for("asked to place ask")
    scheduler.update_allocation(ask_request("elsewhere", rm_id="other"))
    scheduler.update_allocation(ask_request("next"))

    other.wait_for("placed elsewhere")
    predicate_listener.wait_for("placed next")


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_manager_that_registers_again_hears_after_a_callback_that_failed(
    scheduler: Scheduler, listener: Listener, complaints: list[str], error: type[BaseException]
) -> None:
    """The link of the next registration begins when the one before has ended."""

    def fail() -> None:
        raise error("on purpose")

    listener.react = once("placed ask", fail)
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    again = Listener()
    begin(scheduler, again)

    assert 1 == len(complaints)
    complaints.clear()
