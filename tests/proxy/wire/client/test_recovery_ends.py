"""How a recovery ends: what becomes of rejections, failures, and a recovery after another one."""

from __future__ import annotations

import threading
from typing import Any, Final

import pytest
from support.proxy.knowing_manager import CONFIGURATION, KnowingManager, a_node, an_allocation, an_application
from support.proxy.noting_scheduler import Noting, begun, schedulable
from support.waiting import WAIT_SECONDS, stays

from licorne import LicorneError, Recovery, RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery import OnRejection
from licorne.proxy.wire.client.recovery_parts import RecoveryState
from licorne.proxy.wire.client.recovery_progress import RejectedKind

RM: Final = si.RegisterResourceManagerRequest(rmID="rm", config=CONFIGURATION)


# ------------------------------------------------------------------------------------- rejections


def refused_application(manager: KnowingManager) -> None:
    """Have an application that even a forced creation does not accept, with an allocation on n1."""
    bad = an_application("bad", user="no user name!")
    manager.know(applications=[bad], allocations=[an_allocation("b", "bad", node_id="n1")])


def test_an_application_whose_queue_is_gone_is_recovered_as_a_forced_one(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """Only if it has allocations; the manager is not called about the first answer."""
    manager.know(
        applications=[an_application("moved", "root.gone"), an_application("idle", "root.gone")],
        allocations=[an_allocation("b", "moved", node_id="n1")],
    )
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()
    (rejection,) = recovery.rejections
    snapshot: Any = scheduler.scheduler.snapshot()
    queues = {
        entry["applicationID"]: entry["queueName"]
        for entry in snapshot["applications"]["default"]
        if entry["applicationState"] != "Rejected"
    }

    assert RecoveryState.RUNNING is recovery.state
    assert "moved forced" in scheduler.sent
    assert "root.@recovery@" == queues["moved"]
    assert (RejectedKind.APPLICATION, "idle") == (rejection.kind, rejection.name)
    assert ["rejected idle"] == [text for text in manager.heard if text.startswith("rejected")]
    assert ((), ["n1", "n2"]) == (recovery.left_out, schedulable(scheduler))


def test_a_recovery_that_forces_nothing_counts_what_runs_on_its_node(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """The manager gets the rejection of the application, and no node is closed."""
    manager.know(
        applications=[an_application("moved", "root.gone")],
        allocations=[an_allocation("b", "moved", node_id="n1")],
    )
    recovery = begun(manager, scheduler, forces_applications=False)
    scheduler.scheduler.deliver()
    snapshot: Any = scheduler.scheduler.snapshot()
    foreign = {
        each["nodeID"]: [found["allocationKey"] for found in each.get("foreignAllocations") or []]
        for each in snapshot["nodes"]["default"]
    }

    assert {"n1": ["b"], "n2": ["theirs"]} == foreign
    assert ["rejected moved"] == [text for text in manager.heard if text.startswith("rejected")]
    assert ((), ["n1", "n2"]) == (recovery.left_out, schedulable(scheduler))


def test_a_node_with_a_rejected_allocation_is_left_out(scheduler: Noting, manager: KnowingManager) -> None:
    """It stays drained, with what is recovered on it; the others are schedulable, and asks are sent."""
    manager.know(allocations=[an_allocation("empty", node_id="n1", memory=0)])
    recovery = begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()
    (rejection,) = recovery.rejections

    assert RecoveryState.RUNNING is recovery.state
    assert (RejectedKind.ALLOCATION, "empty", "n1", "app", "allocation contains no resources") == (
        rejection.kind,
        rejection.name,
        rejection.node_id,
        rejection.application_id,
        rejection.reason,
    )
    assert (("n1",), ["n2"]) == (recovery.left_out, schedulable(scheduler))
    assert "rejected empty" in manager.heard
    assert "n2" == manager.placed["waits"].nodeID


def test_a_node_with_a_rejected_foreign_allocation_is_left_out(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """Such an allocation has no answer unless it is rejected: the recovery waits until it would have come."""
    manager.know(allocations=[an_allocation("", node_id="n2", foreign=True)])
    recovery = begun(manager, scheduler, batch_max=1)
    scheduler.scheduler.deliver()

    assert RecoveryState.RUNNING is recovery.state
    assert (("n2",), ["n1"]) == (recovery.left_out, schedulable(scheduler))
    assert [RejectedKind.ALLOCATION] == [rejection.kind for rejection in recovery.rejections]
    assert "rejected licorne-recovery [rm]default" not in manager.heard


def test_a_rejected_node_takes_its_allocations_with_it(scheduler: Noting, manager: KnowingManager) -> None:
    """They are reported, and not sent."""
    manager.know(
        nodes=[a_node("n3", -1)],
        allocations=[an_allocation("c", node_id="n3"), an_allocation("f", node_id="n3", foreign=True)],
    )
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()
    found = [(rejection.kind.value, rejection.name) for rejection in recovery.rejections]

    assert RecoveryState.RUNNING is recovery.state
    assert [("node", "n3"), ("allocation", "c"), ("allocation", "f")] == found
    assert recovery.rejections[1].reason.startswith("its node was rejected: the capacity of node n3")
    assert (("n3",), ["n1", "n2"]) == (recovery.left_out, schedulable(scheduler))


def test_a_rejected_application_takes_its_allocations_with_it(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """They are reported, and their node is left out."""
    refused_application(manager)
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()
    found = [(rejection.kind.value, rejection.name) for rejection in recovery.rejections]

    assert [("application", "bad"), ("allocation", "b")] == found
    assert recovery.rejections[1].reason.startswith("its application was rejected: ")
    assert (("n1",), ["n2"]) == (recovery.left_out, schedulable(scheduler))


def test_a_recovery_may_fail_instead(scheduler: Noting, manager: KnowingManager) -> None:
    """No ask is sent, nor anything that the manager sends later; it says why."""
    refused_application(manager)
    recovery = begun(manager, scheduler, on_rejection=OnRejection.FAIL)
    scheduler.scheduler.deliver()
    text = "allocation b was rejected: its application was rejected"

    assert RecoveryState.FAILED is recovery.wait()
    assert recovery.failure.startswith(text)
    assert ([], "app, bad", "bad forced") == (schedulable(scheduler), *scheduler.sent[-2:])
    with pytest.raises(RequestError, match=f"the recovery of RM 'rm' has failed: {text}"):
        recovery.update_allocation(si.AllocationRequest(rmID="rm"))


# ------------------------------------------------------------------------------------- the life


def test_a_registration_that_is_refused_may_be_tried_again(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """The recovery is still new."""
    scheduler.scheduler.register("other", KnowingManager("other"))
    recovery = manager.recovery(scheduler)
    recovery._registration = si.RegisterResourceManagerRequest(rmID="rm", config="partitions: 7")
    with pytest.raises(RequestError, match="registration of RM failed"):
        recovery.start()
    state = recovery.state
    recovery._registration = RM
    recovery.start()

    assert (RecoveryState.NEW, RecoveryState.RECOVERING) == (state, recovery.state)


def test_a_recovery_is_started_once(scheduler: Noting, manager: KnowingManager) -> None:
    """Another start would begin anew what is under way."""
    recovery = begun(manager, scheduler)
    with pytest.raises(LicorneError, match="event Register is inappropriate for a recovery that is Recover"):
        recovery.start()

    assert 1 == scheduler.sent.count("register")


def test_a_recovery_that_cannot_go_on_fails(scheduler: Noting, manager: KnowingManager) -> None:
    """The connection is lost, for example; answers that come later change nothing."""
    recovery = begun(manager, scheduler)
    recovery.update_allocation(si.AllocationRequest(rmID="rm"))
    done = [recovery.fail("the stream broke"), recovery.fail("again")]
    sent = list(scheduler.sent)
    scheduler.scheduler.deliver()

    assert ([True, False], "the stream broke") == (done, recovery.failure)
    assert (RecoveryState.FAILED, sent) == (recovery.state, scheduler.sent)
    assert "accepted n1" in manager.heard


def test_a_scheduler_that_stops_meanwhile_fails_the_recovery(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """What it refuses is the reason."""
    recovery = begun(manager, scheduler)
    scheduler.scheduler.stop_manager("rm", "too long")
    scheduler.scheduler.deliver()

    assert RecoveryState.FAILED is recovery.state
    assert "has stopped: too long; register again" in recovery.failure


def test_a_start_that_the_scheduler_refuses_half_way_raises(manager: KnowingManager) -> None:
    """The recovery has failed: it begins anew with another registration."""

    class Full(Noting):
        def update_application(self, request: si.ApplicationRequest) -> None:
            raise RequestError(f"{len(request.new)} is too many")

    with Scheduler(engine="direct") as scheduler:
        recovery = manager.recovery(Full(scheduler))
        with pytest.raises(RequestError, match="the recovery has failed: 1 is too many"):
            recovery.start()

        assert RecoveryState.FAILED is recovery.state


@pytest.mark.parametrize(
    ("options", "text"),
    [({"batch_max": 0}, "batch_max=0"), ({"callback": object()}, "has no method update_allocation")],
)
def test_bad_arguments_are_refused(options: dict[str, Any], text: str) -> None:
    """Before anything is sent."""
    arguments: dict[str, Any] = {"callback": KnowingManager()} | options
    with pytest.raises(LicorneError, match=text):
        Recovery(Scheduler(engine="direct"), RM, **arguments)


def test_a_manager_that_recovers_again_does_not_hear_that_all_it_had_has_ended(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """The scheduler ends what it knew of it; the manager goes on with all of that."""
    first = begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()
    known = dict(manager.placed)
    manager.heard.clear()
    again = begun(manager, scheduler, replaces=first)
    scheduler.scheduler.run_until_idle()

    assert RecoveryState.RUNNING is again.state
    assert ["a", "theirs", "waits"] == sorted(known)
    assert known == manager.placed
    assert [
        "accepted n1",
        "accepted n2",
        "accepted app",
        "app is Accepted",
        "app is Running",
    ] == manager.heard


def test_what_runs_is_not_placed_again_for_a_manager_whose_recovery_has_failed(
    scheduler: Noting, manager: KnowingManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers to what it had sent come later; it would start once more what runs."""
    recovery = begun(manager, scheduler)
    send = scheduler.update_allocation

    def send_and_fail(request: si.AllocationRequest) -> None:
        send(request)
        recovery.fail("the stream broke")

    monkeypatch.setattr(scheduler, "update_allocation", send_and_fail)
    scheduler.scheduler.run_until_idle()

    assert RecoveryState.FAILED is recovery.state
    assert any("a on n1" in text for text in scheduler.sent)
    assert "placed a" not in manager.heard


def test_a_recovery_under_way_sends_nothing_more_once_the_manager_recovers_again(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """Not even in answer to what it hears until then: that would reach the new registration."""
    first = begun(manager, scheduler)
    again = manager.recovery(scheduler, replaces=first)
    first._stand_aside()
    scheduler.scheduler.deliver()
    sent = [*scheduler.sent]
    again.start()
    scheduler.scheduler.run_until_idle()

    assert not any("a on" in text for text in sent)
    assert 1 == sum("a on n1" in text for text in scheduler.sent)
    assert (RecoveryState.FAILED, RecoveryState.RUNNING) == (first.state, again.state)
    assert "has registered again" in first.failure


def test_a_recovery_under_way_goes_on_when_another_one_cannot_register(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """With what followed from the answers meanwhile."""
    first = begun(manager, scheduler)
    again = manager.recovery(scheduler, replaces=first)
    again._registration = si.RegisterResourceManagerRequest(rmID="rm", config="partitions: 7")
    first._stand_aside()
    scheduler.scheduler.deliver()
    with pytest.raises(RequestError, match="registration of RM failed"):
        again.start()
    scheduler.scheduler.run_until_idle()

    assert RecoveryState.RUNNING is first.state
    assert "placed waits" in manager.heard


def test_a_recovery_that_cannot_register_leaves_the_one_before_in_place(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """The manager hears what it heard before."""
    first = begun(manager, scheduler)
    again = manager.recovery(scheduler, replaces=first)
    again._registration = si.RegisterResourceManagerRequest(rmID="rm", config="partitions: 7")
    with pytest.raises(RequestError, match="registration of RM failed"):
        again.start()
    scheduler.scheduler.run_until_idle()

    assert "placed waits" in manager.heard


def test_a_request_that_is_being_sent_arrives_before_the_manager_recovers_again(
    scheduler: Noting, manager: KnowingManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later, the scheduler would reject it, as one for an application that is not recovered yet."""
    first = begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()
    again = manager.recovery(scheduler, replaces=first)
    other = threading.Thread(target=again.start)
    send = scheduler.update_allocation

    def send_late(request: si.AllocationRequest) -> None:
        monkeypatch.undo()
        other.start()
        assert stays(other.is_alive)
        send(request)

    monkeypatch.setattr(scheduler, "update_allocation", send_late)
    first.update_allocation(si.AllocationRequest(rmID="rm", allocations=[an_allocation("new")]))
    other.join(WAIT_SECONDS)

    assert scheduler.sent.index("new on none") < scheduler.sent.index("register", 1)


def test_a_recovery_that_another_one_has_replaced_refuses_requests(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """They were said before what the other one has recovered."""
    first = begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()
    begun(manager, scheduler, replaces=first)
    sent = [*scheduler.sent]

    with pytest.raises(RequestError, match="'rm' has registered again, by another recovery"):
        first.update_allocation(si.AllocationRequest(rmID="rm", allocations=[an_allocation("new")]))
    assert sent == scheduler.sent
