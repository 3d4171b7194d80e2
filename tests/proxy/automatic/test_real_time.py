"""What time alone brings about, on the real clock."""

from __future__ import annotations

from typing import Final

import pytest
from support.proxy.listening import Listener, PredicateListener
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    gang_request,
    node_request,
    older_ask_request,
    placeholder_request,
    release_request,
)
from support.proxy.running_scheduler import begin, reserved_in

from licorne import Scheduler
from licorne.actors.services.clocks import RealClock
from licorne.model.applications import life as application_life
from licorne.model.applications.effects import ApplicationState
from licorne.model.state import host
from licorne.model.state.host import ApplicationTimer
from licorne.proxy.si import si_pb2 as si

SECOND_NS: Final = 1_000_000_000


def test_an_ask_that_waits_for_room_is_reported_and_reserves_a_node(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two seconds, of which the ask says that it has waited more than one; then it gets the node."""
    monkeypatch.setattr(host, "INSPECTION_DELAY_NS", SECOND_NS // 100)
    predicate_listener = PredicateListener()
    begin(scheduler, predicate_listener, memory=3)
    scheduler.update_node(node_request("node", memory=3))
    scheduler.update_allocation(ask_request("left", "right", memory=2))
    predicate_listener.wait_for("placed left", "placed right")
    late = ask_request("late", memory=2)
    late.allocations[0].allocationTags["creationTime"] = str(scheduler.now_ns() // SECOND_NS - 1)
    scheduler.update_allocation(late)

    predicate_listener.wait_for("waiting late", "asked to reserve for late")
    assert 1 == reserved_in(scheduler)
    scheduler.update_allocation(release_request("left"))
    predicate_listener.wait_for("placed late")
    assert 0 == reserved_in(scheduler)


def test_an_application_completes_in_real_time(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When nothing more has come for it in half a minute, which is shorter here."""
    monkeypatch.setitem(application_life._STATE_TIMEOUT_NS, ApplicationState.COMPLETING, SECOND_NS // 20)
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    scheduler.update_allocation(release_request("ask"))

    listener.wait_for("app is Completing", "app is Completed")


def test_placeholders_time_out_in_real_time(scheduler: Scheduler, listener: Listener) -> None:
    """A gang of which only one holder could be placed gives it back after the time that it said."""
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node", memory=1))
    scheduler.update_application(gang_request(total=2, timeout_ms=50))
    scheduler.update_allocation(placeholder_request("holder"))

    listener.wait_for("placed holder", "released holder TIMEOUT", "app is Resuming")


@pytest.mark.parametrize("whose", ["ask", "app"])
def test_execution_times_out_in_real_time(scheduler: Scheduler, listener: Listener, whose: str) -> None:
    """An allocation, or all of an application, is given back after the time that the RM said."""
    scheduler.register("rm", listener, configuration=ONE)
    scheduler.update_node(node_request("node"))
    submission = application_request("app")
    submission.new[0].executionTimeoutMilliSeconds = 50 if whose == "app" else 0
    scheduler.update_application(submission)
    scheduler.update_allocation(older_ask_request("ask", timeout_ms=50 if whose == "ask" else 0))

    listener.wait_for("placed ask", "released ask TIMEOUT")
    scheduler.update_allocation(release_request("ask", si.TIMEOUT))

    listener.wait_for("app is Failed" if whose == "app" else "app is Completing")


def waiting(scheduler: Scheduler) -> list[ApplicationTimer | str]:
    """Return what waits on the clock for applications, and the partitions that anything waits for."""
    clock = scheduler._clock
    assert isinstance(clock, RealClock)
    scheduler.validate()  # Each partition handles its earlier messages before it answers.
    with clock._changed:
        due = list(clock._due)
    return [action for *_, action in due if isinstance(action, ApplicationTimer)] + sorted(
        {partition for _, _, partition, _ in due}
    )


def test_applications_that_are_gone_leave_no_timer(scheduler: Scheduler, listener: Listener) -> None:
    """They waited on the clock for up to three days: 26 million where a hundred come a second."""
    begin(scheduler, listener)
    for number in range(60):
        name = f"app-{number}"
        scheduler.update_application(application_request(name))
        scheduler.update_allocation(ask_request(f"ask-{number}", application=name))
        if number % 2:
            listener.wait_for(f"placed ask-{number}")
        gone = si.ApplicationRequest(rmID="rm", remove=[{"applicationID": name}])
        scheduler.update_application(gone)

    assert [] == [entry for entry in waiting(scheduler) if isinstance(entry, ApplicationTimer)]


def test_a_partition_that_is_gone_leaves_no_timer(scheduler: Scheduler, listener: Listener) -> None:
    """An RM that registers again begins with partitions of its own."""
    begin(scheduler, listener)
    scheduler.update_application(application_request("odd", queue="root.nowhere"))
    before = waiting(scheduler)

    scheduler.register("rm", listener, configuration=ONE)

    assert ["[rm]default#1"] == before
    assert [] == waiting(scheduler)
