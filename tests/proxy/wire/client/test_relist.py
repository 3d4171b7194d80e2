"""A manager lists everything anew: what is sent then, what is left alone, and what the manager hears."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pytest
from support.proxy.knowing_manager import CONFIGURATION, KnowingManager, a_node, an_allocation, an_application
from support.proxy.noting_scheduler import Noting, begun, schedulable
from support.waiting import WAIT_SECONDS, wait_until

from licorne import LicorneError, Recovery, RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery import OnRejection
from licorne.proxy.wire.client.recovery_parts import RecoveryState
from licorne.proxy.wire.client.recovery_progress import RejectedKind

RM: Final = si.RegisterResourceManagerRequest(rmID="rm", config=CONFIGURATION)


@pytest.fixture
def recovery(manager: KnowingManager, scheduler: Noting) -> Recovery:
    """Give a recovery that has ended: `a` runs on n1, `theirs` on n2, and `waits` is placed on n1."""
    recovery = begun(manager, scheduler)
    scheduler.scheduler.run_until_idle()
    assert "n1" == manager.placed["waits"].nodeID
    scheduler.sent.clear()
    manager.heard.clear()
    return recovery


def relisted(manager: KnowingManager, recovery: Recovery, scheduler: Noting) -> None:
    manager.relist(recovery)
    scheduler.scheduler.deliver()
    assert RecoveryState.RUNNING is recovery.state


def places(scheduler: Noting) -> dict[str, str]:
    """Return where each ask runs; the empty text is for one that waits."""
    snapshot: Any = scheduler.scheduler.snapshot()
    entries = [
        entry
        for application in snapshot["applications"]["default"]
        for entry in (*application.get("allocations", []), *application.get("requests", []))
    ]
    return {entry["allocationKey"]: entry.get("nodeId", "") for entry in entries}


# ------------------------------------------------------------------------------------- what is sent


@dataclass(frozen=True)
class Row:
    """What is different, what is sent for it, and what the manager hears."""

    change: Callable[[KnowingManager], object]
    sent: list[str]
    heard: list[str] = field(default_factory=list)


def resize(resource: si.Resource, memory: int) -> None:
    resource.resources["memory"].value = memory


def unbound(manager: KnowingManager) -> None:
    ask = manager.placed.pop("waits")
    ask.nodeID = ""
    manager.know(allocations=[ask])


def moved(manager: KnowingManager, key: str, node_id: str) -> None:
    manager.placed[key].nodeID = node_id


def gone_node(manager: KnowingManager) -> None:
    unbound(manager)
    del manager.nodes["n1"], manager.placed["a"]


def without_applications(manager: KnowingManager) -> None:
    manager.applications.clear()
    del manager.placed["a"], manager.placed["waits"]


PROBE: Final = "licorne-recovery [rm]default on none"
CASES: dict[str, Row] = {
    "nothing is different": Row(lambda _: None, []),
    "an ask that is placed is given as one that waits": Row(unbound, []),
    "an allocation is gone": Row(
        lambda manager: manager.placed.pop("a"), ["end a", "app"], ["released a", "accepted app"]
    ),
    "an application is gone": Row(
        without_applications,
        ["remove app"],
        ["app is Completing", "released a", "released waits"],
    ),
    "an application is new": Row(
        lambda manager: manager.know(applications=[an_application("other")]), ["other"], ["accepted other"]
    ),
    "an ask is new": Row(
        lambda manager: manager.know(allocations=[an_allocation("b")]), ["app", "b on none"], ["accepted app"]
    ),
    "an allocation is new": Row(
        lambda manager: manager.know(allocations=[an_allocation("b", node_id="n2")]),
        ["app", f"b on n2, {PROBE}"],
        ["accepted app"],
    ),
    "an allocation has another size": Row(
        lambda manager: resize(manager.placed["a"].resourcePerAlloc, 20), ["app", "a on n1"], ["accepted app"]
    ),
    "an allocation runs elsewhere": Row(
        lambda manager: moved(manager, "a", "n2"), ["end a", "app", f"a on n2, {PROBE}"], ["accepted app"]
    ),
    "what others run is elsewhere": Row(
        lambda manager: moved(manager, "theirs", "n1"), [f"theirs on n1, {PROBE}"]
    ),
    "what others run is gone": Row(lambda manager: manager.placed.pop("theirs"), ["end theirs"]),
    "a node is new": Row(
        lambda manager: manager.know(nodes=[a_node("n3")]),
        ["n3 CREATE_DRAIN", "n3 DRAIN_TO_SCHEDULABLE"],
        ["accepted n3"],
    ),
    "a node is gone, with an ask that was placed there": Row(
        gone_node,
        ["end a, end waits", "n1 DECOMISSION", "app", "waits on none"],
        ["released a", "accepted app"],
    ),
    "a node has another size": Row(
        lambda manager: resize(manager.nodes["n1"].schedulableResource, 50), ["n1 UPDATE"]
    ),
    "a node is drained": Row(
        lambda manager: manager.know(nodes=[a_node("n1", drained=True)]), ["n1 DRAIN_NODE"]
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_different_is_sent(
    case: Row, manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """Nothing else is; and the manager hears what it does not know."""
    case.change(manager)

    relisted(manager, recovery, scheduler)

    assert case.sent == scheduler.sent
    assert case.heard == manager.heard
    assert () == recovery.rejections


def test_a_drained_node_becomes_schedulable_after_what_runs_there(
    manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """As in a recovery from the beginning."""
    manager.know(nodes=[a_node("n1", drained=True)])
    relisted(manager, recovery, scheduler)
    scheduler.sent.clear()
    manager.know(nodes=[a_node("n1")], allocations=[an_allocation("b", node_id="n1")])

    relisted(manager, recovery, scheduler)

    assert ["app", f"b on n1, {PROBE}", "n1 DRAIN_TO_SCHEDULABLE"] == scheduler.sent
    assert ["n1", "n2"] == schedulable(scheduler)


def test_a_placement_on_a_node_that_is_gone_is_taken_back(
    manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """The ask waits again, and is placed elsewhere."""
    gone_node(manager)

    relisted(manager, recovery, scheduler)

    assert {"waits": ""} == places(scheduler)
    scheduler.scheduler.run_until_idle()
    assert {"waits": "n2"} == places(scheduler)


def test_an_application_that_completes_with_what_is_moved_is_created_again(
    manager: KnowingManager, scheduler: Noting
) -> None:
    """A gang that has nothing any more completes at once."""
    room = an_allocation("room", "gang", placeholder=True, task_group="group", node_id="n1")
    manager.know(
        applications=[an_application("gang", "root.gangs", placeholders=20)],
        allocations=[an_allocation("member", "gang", node_id="n1"), room],
    )
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()
    for key in ("room", "member"):
        moved(manager, key, "n2")

    relisted(manager, recovery, scheduler)

    assert "gang is Completed" in manager.heard
    assert ("n2", "n2", ()) == (
        places(scheduler)["room"],
        places(scheduler)["member"],
        recovery.rejections,
    )


@pytest.mark.parametrize("given", [("member",), ()])
def test_a_member_that_is_about_to_replace_its_placeholder_goes_on(
    given: tuple[str, ...], manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """Whether the manager still has it or not: it comes when the end of the placeholder is confirmed."""
    group: dict[str, Any] = {"application": "gang", "task_group": "group"}
    door: Any = recovery
    manager.send(
        door,
        applications=[an_application("gang", "root.gangs", placeholders=10)],
        allocations=[an_allocation("room", **group, placeholder=True), an_allocation("member", **group)],
    )
    scheduler.scheduler.run_until_idle()
    assert "released room" == manager.heard[-1]
    manager.asks = {key: manager.asks[key] for key in given}

    relisted(manager, recovery, scheduler)
    confirmed = si.AllocationRelease(
        applicationID="gang", allocationKey="room", terminationType=si.PLACEHOLDER_REPLACED
    )
    releases = si.AllocationReleasesRequest(allocationsToRelease=[confirmed])
    recovery.update_allocation(si.AllocationRequest(rmID="rm", releases=releases))
    scheduler.scheduler.deliver()

    assert "placed member" == manager.heard[-1]


# --------------------------------------------------------------------------------------- rejections


def test_what_is_rejected_is_in_the_list_with_its_code(
    manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """A node that was there stays schedulable; it is not left out."""
    manager.know(allocations=[an_allocation("empty", node_id="n1", memory=0)])

    relisted(manager, recovery, scheduler)
    (rejection,) = recovery.rejections

    assert (RejectedKind.ALLOCATION, "empty", "n1", "INVALID") == (
        rejection.kind,
        rejection.name,
        rejection.node_id,
        rejection.code,
    )
    assert ((), ["n1", "n2"]) == (recovery.left_out, schedulable(scheduler))


def test_a_rejection_may_end_the_recovery(manager: KnowingManager, scheduler: Noting) -> None:
    """If it is to fail then, also on a node that was there."""
    recovery = begun(manager, scheduler, on_rejection=OnRejection.FAIL)
    scheduler.scheduler.deliver()
    manager.know(allocations=[an_allocation("empty", node_id="n1", memory=0)])

    manager.relist(recovery)
    scheduler.scheduler.deliver()

    assert RecoveryState.FAILED is recovery.state
    assert "allocation empty was rejected" in recovery.failure


def test_what_is_rejected_with_an_application_has_its_code(
    manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """An application without a user is refused even as a forced one."""
    manager.know(
        applications=[an_application("bad", user="no user name!")],
        allocations=[an_allocation("b", "bad", node_id="n1")],
    )

    relisted(manager, recovery, scheduler)

    assert [("bad", "INVALID"), ("b", "INVALID")] == [
        (rejection.name, rejection.code) for rejection in recovery.rejections
    ]


# ------------------------------------------------------------------------------------ at the same time


class Interrupted(Noting):
    """A scheduler in which something happens right after its snapshot."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.happens: Callable[[], object] = lambda: None

    def snapshot(self, *, rm_id: str | None = None) -> Any:
        snapshot = super().snapshot(rm_id=rm_id)
        self.happens()
        return snapshot


def interrupted(manager: KnowingManager) -> tuple[Interrupted, Recovery]:
    scheduler = Interrupted(Scheduler(engine="direct"))
    recovery = begun(manager, scheduler)
    scheduler.scheduler.deliver()
    return scheduler, recovery


def test_an_ask_that_is_placed_elsewhere_meanwhile_is_moved_by_the_next_relist(
    manager: KnowingManager,
) -> None:
    """The manager hears of the placement, which is not the one that it has listed."""
    scheduler, recovery = interrupted(manager)
    door, send = cast("Any", scheduler), scheduler.update_allocation

    def place_before(request: si.AllocationRequest) -> None:
        scheduler.scheduler.schedule()
        send(request)

    door.update_allocation = place_before
    ask = manager.asks.pop("waits")
    ask.nodeID = "n2"
    manager.know(allocations=[ask])

    relisted(manager, recovery, scheduler)
    assert "placed waits" in manager.heard
    assert "n1" == places(scheduler)["waits"]
    relisted(manager, recovery, scheduler)

    assert "n2" == places(scheduler)["waits"]
    scheduler.scheduler.validate()


def test_requests_follow_that_are_sent_meanwhile(manager: KnowingManager) -> None:
    """From any thread, and after asks that are new."""
    scheduler, recovery = interrupted(manager)
    scheduler.sent.clear()
    manager.know(allocations=[an_allocation("new")])
    later = si.AllocationRequest(rmID="rm", allocations=[an_allocation("later")])
    other = threading.Thread(target=lambda: recovery.update_allocation(later))

    def send_elsewhere() -> None:
        other.start()
        other.join()

    scheduler.happens = send_elsewhere

    relisted(manager, recovery, scheduler)

    assert ["app", "new on none", "later on none"] == scheduler.sent


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_a_scheduler_that_runs_by_itself_is_relisted_again_and_again(engine: Any) -> None:
    """While other threads send through the recovery, and asks are placed."""
    first, second = KnowingManager(), KnowingManager()
    applications = [an_application("app")]
    first.know(nodes=[a_node("n1"), a_node("n2")], applications=applications)
    second.know(nodes=[a_node("n2", 50), a_node("n3")], applications=applications)
    for number in range(20):
        first.know(allocations=[an_allocation(f"a{number}", memory=1)])
        second.know(allocations=[an_allocation(f"a{number}", memory=1, node_id=f"n{2 + number % 2}")])
    with Scheduler(engine=engine) as scheduler:
        recovery = KnowingManager().recovery(scheduler)
        recovery.start()

        def send_on() -> None:
            for number in range(1_000):
                asks = [an_allocation(f"b{number}", memory=1)]
                recovery.update_allocation(si.AllocationRequest(rmID="rm", allocations=asks))

        states = {recovery.wait(WAIT_SECONDS)}
        other = threading.Thread(target=send_on)
        other.start()
        for truth in (first, second) * 5:
            truth.relist(recovery)
            states.add(recovery.wait(WAIT_SECONDS))
        other.join()
        second.relist(recovery)
        states.add(recovery.wait(WAIT_SECONDS))
        scheduler.validate()
        snapshot: Any = scheduler.snapshot()

    assert {RecoveryState.RUNNING} == states
    assert {"n2": 10, "n3": 10} == {
        node["nodeID"]: len(node["allocations"]) for node in snapshot["nodes"]["default"]
    }


def test_a_request_that_is_being_sent_arrives_first(manager: KnowingManager) -> None:
    """What it brings is compared; what is sent after it waits, as during the relist."""
    scheduler, recovery = interrupted(manager)
    scheduler.sent.clear()
    begins, goes_on = threading.Event(), threading.Event()
    send: Any = scheduler.update_allocation

    def update_allocation(request: si.AllocationRequest) -> None:
        begins.set()
        assert goes_on.wait(WAIT_SECONDS)
        send(request)

    door: Any = scheduler
    door.update_allocation = update_allocation
    scheduler.happens = lambda: scheduler.sent.append("compared")
    slow, later = (
        si.AllocationRequest(rmID="rm", allocations=[an_allocation(key)]) for key in ("slow", "later")
    )
    manager.know(allocations=[an_allocation("slow")])
    with ThreadPoolExecutor(2) as threads:
        sending = threads.submit(recovery.update_allocation, slow)
        assert begins.wait(WAIT_SECONDS)
        comparing = threads.submit(manager.relist, recovery)
        wait_until(lambda: recovery._is_pausing)
        recovery.update_allocation(later)
        goes_on.set()
        sending.result(WAIT_SECONDS)
        comparing.result(WAIT_SECONDS)

    assert ["slow on none", "later on none", "compared", "end later", "app"] == scheduler.sent


def test_a_scheduler_that_does_not_answer_changes_nothing(manager: KnowingManager) -> None:
    """The recovery is Running as before; requests that waited are sent."""
    scheduler, recovery = interrupted(manager)
    scheduler.sent.clear()
    later = si.AllocationRequest(rmID="rm", allocations=[an_allocation("later")])

    def lost() -> None:
        recovery.update_allocation(later)
        raise RequestError("no answer")

    scheduler.happens = lost
    with pytest.raises(RequestError, match="no answer"):
        manager.relist(recovery)

    assert (RecoveryState.RUNNING, ["later on none"]) == (recovery.state, scheduler.sent)


def test_a_recovery_that_fails_meanwhile_sends_nothing(manager: KnowingManager) -> None:
    """The connection is lost, for example."""
    scheduler, recovery = interrupted(manager)
    scheduler.sent.clear()
    manager.placed.clear()
    scheduler.happens = lambda: recovery.fail("lost")

    with pytest.raises(RequestError, match="the recovery has failed: lost"):
        manager.relist(recovery)

    assert [] == scheduler.sent


def test_inside_a_request_of_the_recovery_it_is_refused(manager: KnowingManager, recovery: Recovery) -> None:
    """There a stepped scheduler in another process makes callbacks."""
    noting: Any = recovery._scheduler
    refusals: list[str] = []

    def update_node(_: si.NodeRequest) -> None:
        with pytest.raises(LicorneError) as caught:
            manager.relist(recovery)
        refusals.append(str(caught.value))

    noting.update_node = update_node
    recovery.update_node(si.NodeRequest(rmID="rm"))

    assert ["RM 'rm' lists everything inside one of its own requests, or twice"] == refusals


def test_before_the_end_of_the_recovery_it_is_refused(manager: KnowingManager, scheduler: Noting) -> None:
    """Nothing is sent for it."""
    recovery = begun(manager, scheduler)
    sent = len(scheduler.sent)

    with pytest.raises(LicorneError, match="inappropriate for a recovery that is Recovering"):
        manager.relist(recovery)

    assert sent == len(scheduler.sent)


def test_after_another_registration_it_is_refused(
    manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """What the scheduler has then is of the other recovery."""
    begun(manager, scheduler, replaces=recovery)

    with pytest.raises(LicorneError, match="RM 'rm' has registered again"):
        manager.relist(recovery)


def test_an_rm_of_the_older_generation_is_refused(
    manager: KnowingManager, recovery: Recovery, scheduler: Noting
) -> None:
    """A key may be that of several allocations there; first what is given shows it, then what is there."""
    part = an_allocation("part", node_id="n1")
    part.UUID = "u"
    manager.know(allocations=[part])
    with pytest.raises(LicorneError, match="older generation"):
        manager.relist(recovery)
    recovery.update_allocation(si.AllocationRequest(rmID="rm", allocations=[part]))
    scheduler.scheduler.deliver()
    del manager.placed["part"]

    with pytest.raises(LicorneError, match="older generation"):
        manager.relist(recovery)


def test_a_scheduler_that_shows_nothing_is_refused(manager: KnowingManager) -> None:
    """One behind the plain interface, for example."""

    class Plain:
        def __init__(self, scheduler: Scheduler) -> None:
            self.register_resource_manager = scheduler.register_resource_manager
            self.update_node = scheduler.update_node
            self.update_application = scheduler.update_application
            self.update_allocation = scheduler.update_allocation

    with Scheduler(engine="direct") as scheduler:
        plain: Any = Plain(scheduler)
        recovery = manager.recovery(plain)
        recovery.start()
        scheduler.deliver()

        with pytest.raises(LicorneError, match="does not show its state"):
            manager.relist(recovery)
