"""A recovery step by step: what is sent when, what the manager hears, and what is held back."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.proxy.knowing_manager import CONFIGURATION, KnowingManager, a_node, an_allocation, an_application
from support.proxy.noting_scheduler import Noting, begun, schedulable

from licorne import Recovery, RequestError, ResourceManager, Scheduler
from licorne.proxy.fuzz.plans import PROCESS, Plan, PlannedStep
from licorne.proxy.fuzz.world.cluster import run_plan
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client import recovery as recovery_module
from licorne.proxy.wire.client.recovery_parts import RecoveryState
from licorne.proxy.wire.client.recovery_progress import RejectedKind

RM: Final = si.RegisterResourceManagerRequest(rmID="rm", config=CONFIGURATION)


# ------------------------------------------------------------------------------------- what is sent


def test_everything_is_sent_in_its_order(scheduler: Noting, manager: KnowingManager) -> None:
    """Nodes drained, applications, what runs, then each node as soon as it is answered, and asks last."""
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()

    assert RecoveryState.RUNNING is recovery.state
    assert [
        "register",
        "n1 CREATE_DRAIN, n2 CREATE_DRAIN",
        "app",
        "a on n1, theirs on n2, licorne-recovery [rm]default on none",
        "n1 DRAIN_TO_SCHEDULABLE",
        "n2 DRAIN_TO_SCHEDULABLE",
        "waits on none",
    ] == scheduler.sent
    assert ["n1", "n2"] == schedulable(scheduler)
    assert RecoveryState.RUNNING is recovery.wait()


def test_requests_have_as_many_entries_as_they_may(scheduler: Noting, manager: KnowingManager) -> None:
    """One, for example; the order stays."""
    recovery = begun(manager, scheduler, batch_max=1)
    scheduler.scheduler.deliver()

    assert RecoveryState.RUNNING is recovery.state
    assert [
        "register",
        "n1 CREATE_DRAIN",
        "n2 CREATE_DRAIN",
        "app",
        "a on n1",
        "theirs on n2",
        "licorne-recovery [rm]default on none",
        "n1 DRAIN_TO_SCHEDULABLE",
        "n2 DRAIN_TO_SCHEDULABLE",
        "waits on none",
    ] == scheduler.sent


def test_nothing_is_placed_on_a_node_before_it_is_recovered(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """Cycles between the answers change nothing, also if an ask came past the recovery."""
    outbox = scheduler.scheduler._outbox
    assert outbox is not None
    recovery = begun(manager, scheduler)
    placed: list[int] = []
    while not schedulable(scheduler):
        past = an_allocation(f"past {len(placed)}")
        scheduler.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[past]))
        placed.append(scheduler.scheduler.schedule())
        outbox._deliver_next()

    assert len(placed) > 3
    assert {0} == set(placed)
    assert RecoveryState.RECOVERING is recovery.state
    assert 0 < scheduler.scheduler.run_until_idle()


def test_a_node_that_was_drained_stays_so(scheduler: Noting) -> None:
    """What runs on it is recovered, and nothing is placed."""
    manager = KnowingManager()
    manager.know(
        nodes=[a_node("n1", drained=True), a_node("n2")],
        applications=[an_application("app")],
        allocations=[an_allocation("a", node_id="n1")],
    )
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()

    assert (RecoveryState.RUNNING, ["n2"], ()) == (recovery.state, schedulable(scheduler), recovery.left_out)


def test_a_manager_that_has_nothing_runs_at_once(scheduler: Noting) -> None:
    """With asks or without."""
    recovery = begun(KnowingManager(), scheduler)

    assert (RecoveryState.RUNNING, ["register"]) == (recovery.state, scheduler.sent)


# ------------------------------------------------------------------------------ what the manager hears


def test_a_manager_is_not_called_about_what_it_knew(scheduler: Noting, manager: KnowingManager) -> None:
    """Otherwise it would start again what runs; everything else it hears."""
    begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()

    assert [
        "accepted n1",
        "accepted n2",
        "accepted app",
        "app is Accepted",
        "app is Running",
        "placed waits",
    ] == manager.heard


def test_predicates_are_those_of_the_manager(scheduler: Noting) -> None:
    """One without any is not asked: it would cost the time of a question."""

    class Judge(KnowingManager):
        def predicates(self, args: si.PredicatesArgs) -> None:
            self.heard.append(f"asked about {args.allocationKey}")

    judge = Judge()
    for manager in (judge, KnowingManager()):
        manager.know(
            nodes=[a_node("n1")], applications=[an_application("app")], allocations=[an_allocation("ask")]
        )
        begun(manager, scheduler)
        scheduler.scheduler.run_until_idle()
        assert "placed ask" in manager.heard

    assert "asked about ask" in judge.heard
    assert scheduler.scheduler._managers.get("rm", "test").predicates is None


def test_predicates_that_the_manager_answers_later_are_asked(scheduler: Noting) -> None:
    """What it refuses is not placed."""

    class Refusing(KnowingManager):
        def ask_predicates(self, questions: Any, answer: Any) -> None:
            answer({0: dict.fromkeys(questions[0].node_ids, "full")})

        def ask_preemption_predicates(self, questions: Any, answer: Any) -> None:
            answer(dict.fromkeys(range(len(questions))))

    manager = Refusing()
    manager.know(
        nodes=[a_node("n1")], applications=[an_application("app")], allocations=[an_allocation("ask")]
    )
    begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()

    assert "accepted app" in manager.heard
    assert "placed ask" not in manager.heard


def test_hints_events_and_preemption_go_to_the_manager() -> None:
    """As if it had registered itself."""
    heard: list[object] = []

    class Hearing(ResourceManager):
        def update_container_scheduling_state(
            self, request: si.UpdateContainerSchedulingStateRequest
        ) -> None:
            heard.append(request)

        def send_event(self, events: Any) -> None:
            heard.append(events)

        def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> None:
            heard.append(args)

    callback = Recovery(Scheduler(engine="direct"), RM, Hearing())._watcher
    sent = (si.UpdateContainerSchedulingStateRequest(), [si.EventRecord()], si.PreemptionPredicatesArgs())
    callback.update_container_scheduling_state(sent[0])
    callback.send_event(sent[1])

    assert callback.preemption_predicates(sent[2]) is None
    assert [*sent] == heard


# ------------------------------------------------------------------------------------ held back


def test_requests_while_it_recovers_are_held_back_in_their_order(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """Asks that were given come first; a request is what it was when it was sent."""
    recovery = manager.recovery(scheduler)
    request = si.AllocationRequest(rmID="rm", allocations=[an_allocation("late")])
    recovery.update_allocation(request)
    request.allocations[0].allocationKey = "changed"
    recovery.start()
    recovery.update_application(si.ApplicationRequest(rmID="rm", new=[an_application("more")]))
    recovery.update_node(si.NodeRequest(rmID="rm", nodes=[a_node("n3")]))
    held = list(scheduler.sent)
    scheduler.scheduler.deliver()
    after = len(scheduler.sent)
    recovery.update_allocation(request)

    assert ["register", "n1 CREATE_DRAIN, n2 CREATE_DRAIN", "app"] == held
    assert ["waits on none", "late on none", "more", "n3 CREATE"] == scheduler.sent[after - 4 : after]
    assert ["changed on none"] == scheduler.sent[after:]


def test_a_callback_may_send_while_requests_are_held_back(scheduler: Noting, manager: KnowingManager) -> None:
    """It is its turn after those before it."""
    recovery = manager.recovery(scheduler)

    def answer(text: str) -> None:
        if text == "accepted app":
            recovery.update_allocation(
                si.AllocationRequest(rmID="rm", allocations=[an_allocation("from a callback")])
            )

    manager.react = answer
    recovery.start()
    scheduler.scheduler.deliver()

    assert ["waits on none", "from a callback on none"] == scheduler.sent[-2:]


def test_too_many_requests_are_refused(
    scheduler: Noting, manager: KnowingManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is on what waits."""
    monkeypatch.setattr(recovery_module, "HELD_REQUESTS_MAX", 2)
    recovery = begun(manager, scheduler)
    request = si.AllocationRequest(rmID="rm")
    recovery.update_allocation(request)
    with pytest.raises(RequestError, match="2 requests of RM 'rm' wait already"):
        recovery.update_allocation(request)
    scheduler.scheduler.deliver()
    recovery.update_allocation(request)


def test_a_request_of_another_manager_is_refused(scheduler: Noting, manager: KnowingManager) -> None:
    """A recovery is for one."""
    with pytest.raises(RequestError, match="is of RM 'other', and this recovery of 'rm'"):
        begun(manager, scheduler).update_node(si.NodeRequest(rmID="other"))


def test_a_held_request_that_the_scheduler_refuses_is_reported(
    scheduler: Noting, manager: KnowingManager
) -> None:
    """The requests after it are sent."""
    recovery = begun(manager, scheduler)
    recovery.update_allocation(
        si.AllocationRequest(rmID="rm", allocations=[an_allocation("older"), _with_uuid("older")])
    )
    recovery.update_allocation(si.AllocationRequest(rmID="rm", allocations=[an_allocation("good")]))
    scheduler.scheduler.deliver()
    (rejection,) = recovery.rejections

    assert (RejectedKind.REQUEST, "AllocationRequest") == (rejection.kind, rejection.name)
    assert "good on none" == scheduler.sent[-1]


def _with_uuid(key: str) -> si.Allocation:
    allocation = an_allocation(key)
    allocation.UUID = "of another generation"
    return allocation


def test_answers_on_another_thread_leave_no_node_drained() -> None:
    """The thread that began looks whether that was all, while another one has the last answer in hand."""
    steps = tuple(PlannedStep(0, action, 1, 0) for action in ("add node", "add node", "crash"))
    for seed in range(40):
        plan = Plan(seed, "threads", False, (PROCESS,), "random", 0.5, False, False, steps)
        assert run_plan(plan).failure is None, f"seed {seed}"
