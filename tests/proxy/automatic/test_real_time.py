"""What time alone brings about, on the real clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from listening import Judge, Listener
from manager_requests import (
    ONE,
    application_request,
    ask_request,
    gang_request,
    node_request,
    older_ask_request,
    placeholder_request,
    release_request,
)
from running_scheduler import begin, reserved_in

from licorne.model import application_life, partition
from licorne.model.application_state import ApplicationState
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne import Scheduler

SECOND_NS: Final = 1_000_000_000


def test_an_ask_that_waits_for_room_is_reported_and_reserves_a_node(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two seconds, of which the ask says that it has waited more than one; then it gets the node."""
    monkeypatch.setattr(partition, "INSPECTION_DELAY_NS", SECOND_NS // 100)
    judge = Judge()
    begin(scheduler, judge, memory=3)
    scheduler.update_node(node_request("node", memory=3))
    scheduler.update_allocation(ask_request("left", "right", memory=2))
    judge.wait_for("placed left", "placed right")
    late = ask_request("late", memory=2)
    late.allocations[0].allocationTags["creationTime"] = str(scheduler.now_ns() // SECOND_NS - 1)
    scheduler.update_allocation(late)

    judge.wait_for("waiting late", "asked to reserve for late")
    assert 1 == reserved_in(scheduler)
    scheduler.update_allocation(release_request("left"))
    judge.wait_for("placed late")
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
