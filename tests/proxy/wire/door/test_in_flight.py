"""What is under way when a worker is lost is done once, whether that has not heard or not said it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from support.door.fake_sessions import FakeSession, LinkBench
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    gang_request,
    node_request,
    placeholder_request,
    release_request,
)
from support.waiting import WAIT_SECONDS, wait_until

from licorne.model.values.allocation import REQUIRED_NODE_TAG
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager
from licorne.proxy.wire.door.handing_over import PatientWorker, hand_over
from licorne.proxy.wire.door.link import PartitionLink
from licorne.proxy.wire.door.record import PartsToRecover
from licorne.proxy.wire.door.workers import LaunchedWorker

State = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """What is sent before the loss, and what is there in the end.

    Attributes:
        act: sends what is under way when the worker is lost.
        before: sends what comes before, and waits for it.
        after: what the node has in the end.
        once: what the RM hears exactly once.
        confirms: whether the RM confirms at once what the scheduler ends.
    """

    act: Callable[[PartitionLink], object]
    before: Callable[[LinkBench, PartitionLink], object] = lambda _, __: None
    after: State = field(default_factory=dict)
    once: tuple[str, ...] = ()
    confirms: bool = True


def member(key: str, memory: int = 1) -> si.AllocationRequest:
    """Ask for a member of the gang."""
    request = ask_request(key, memory=memory)
    request.allocations[0].taskGroupName = "tasks"
    return request


def of_others(key: str) -> si.AllocationRequest:
    """Report what others run on the node."""
    request = ask_request(key, application="", memory=5, node_id="node")
    request.allocations[0].allocationTags["foreign"] = "default"
    return request


def for_the_node(key: str) -> si.AllocationRequest:
    """Ask for all of the node, as its own daemon."""
    request = ask_request(key, memory=100)
    request.allocations[0].allocationTags[REQUIRED_NODE_TAG] = "node"
    request.allocations[0].priority = 10
    return request


def change_node(action: si.NodeInfo.ActionFromRM, memory: int = 100) -> si.NodeRequest:
    """Change the node."""
    request = node_request("node", memory=memory)
    request.nodes[0].action = action
    return request


def place(bench: LinkBench, link: PartitionLink, request: si.AllocationRequest) -> None:
    """Ask, and wait until it is placed."""
    link.update_allocation(request)
    bench.listener.wait_for(*[f"placed {each.allocationKey}" for each in request.allocations])


def begin_gang(bench: LinkBench, link: PartitionLink) -> None:
    """Have a placeholder."""
    link.update_application(gang_request(1, 0))
    bench.listener.wait_for("accepted app")
    place(bench, link, placeholder_request("stand-in"))


def begin_swap(bench: LinkBench, link: PartitionLink) -> None:
    """Have a placeholder that ends for a member."""
    begin_gang(bench, link)
    link.update_allocation(member("real"))
    bench.listener.wait_for("released stand-in PLACEHOLDER_REPLACED")


def begin_one(bench: LinkBench, link: PartitionLink, memory: int = 10) -> None:
    """Have something that runs."""
    link.update_application(application_request("app"))
    bench.listener.wait_for("accepted app")
    place(bench, link, ask_request("one", memory=memory))


def begin_victim(bench: LinkBench, link: PartitionLink) -> None:
    """Have a victim."""
    begin_one(bench, link, memory=100)
    link.update_allocation(for_the_node("daemon"))
    bench.listener.wait_for("released one PREEMPTED_BY_SCHEDULER")


def begin_foreign(_: LinkBench, link: PartitionLink) -> None:
    """Have something of others."""
    link.update_allocation(of_others("theirs"))


CASES: dict[str, Row] = {
    "an ask": Row(
        before=begin_one,
        act=lambda link: link.update_allocation(ask_request("two", memory=10)),
        after={"keys": ["one", "two"]},
        once=("placed one", "placed two"),
    ),
    "a release": Row(
        before=begin_one,
        act=lambda link: link.update_allocation(release_request("one")),
        once=("released one STOPPED_BY_RM",),
    ),
    "the ask that needs a victim": Row(
        before=lambda bench, link: begin_one(bench, link, memory=100),
        act=lambda link: link.update_allocation(for_the_node("daemon")),
        after={"keys": ["daemon"]},
        once=("released one PREEMPTED_BY_SCHEDULER", "placed daemon"),
    ),
    "the end of a victim": Row(
        before=begin_victim,
        act=lambda link: link.update_allocation(release_request("one", si.PREEMPTED_BY_SCHEDULER)),
        after={"keys": ["daemon"]},
        once=("released one PREEMPTED_BY_SCHEDULER", "placed daemon"),
        confirms=False,
    ),
    "the ask of a member of a gang": Row(
        before=begin_gang,
        act=lambda link: link.update_allocation(member("real")),
        after={"keys": ["real"]},
        once=("released stand-in PLACEHOLDER_REPLACED", "placed real"),
    ),
    "the end of a placeholder": Row(
        before=begin_swap,
        act=lambda link: link.update_allocation(release_request("stand-in", si.PLACEHOLDER_REPLACED)),
        after={"keys": ["real"]},
        once=("released stand-in PLACEHOLDER_REPLACED", "placed real"),
        confirms=False,
    ),
    "an allocation of others": Row(
        act=lambda link: link.update_allocation(of_others("theirs")), after={"foreign": ["theirs"]}
    ),
    "the end of an allocation of others": Row(
        before=begin_foreign,
        act=lambda link: link.update_allocation(release_request("theirs", application="")),
    ),
    "a node that is drained": Row(
        act=lambda link: link.update_node(change_node(si.NodeInfo.DRAIN_NODE)), after={"schedulable": False}
    ),
    "a node that grows": Row(
        act=lambda link: link.update_node(change_node(si.NodeInfo.UPDATE, memory=200)),
        after={"capacity": {"memory": 200}},
    ),
}
CONFIRMED = {
    "PREEMPTED_BY_SCHEDULER": si.PREEMPTED_BY_SCHEDULER,
    "PLACEHOLDER_REPLACED": si.PLACEHOLDER_REPLACED,
}
PLAIN: State = {"keys": [], "foreign": [], "schedulable": True, "capacity": {"memory": 100}}


def state_of(session: FakeSession) -> State:
    """Return what the node of a worker has."""
    snapshot: Any = session.scheduler.snapshot()
    (node,) = snapshot["nodes"]["default"]
    return {
        "keys": sorted(each["allocationKey"] for each in node.get("allocations") or ()),
        "foreign": sorted(each["allocationKey"] for each in node.get("foreignAllocations") or ()),
        "schedulable": node["schedulable"],
        "capacity": node["capacity"],
    }


@pytest.fixture
def bench() -> Iterator[LinkBench]:
    """Return what is around a link."""
    bench = LinkBench(ONE)
    yield bench
    bench.stop()


def play(row: Row, bench: LinkBench, lose: Callable[[FakeSession, PartitionLink, State], object]) -> None:
    """Lose a worker in the way that is given; the next one has all, and the RM has heard all once."""
    link = bench.link()

    def confirm(text: str) -> None:
        words = text.split()
        if row.confirms and words[-1] in CONFIRMED:
            link.update_allocation(release_request(words[1], CONFIRMED[words[-1]]))

    bench.listener.react = confirm
    link.start()
    link.started.result(WAIT_SECONDS)
    link.update_node(node_request("node"))
    bench.listener.wait_for("accepted node")
    row.before(bench, link)
    after = PLAIN | row.after
    lose(bench.session(1), link, after)

    second = bench.session(2)
    wait_until(lambda: link.is_running, "it runs again")
    bench.listener.wait_for(*row.once)
    wait_until(lambda: state_of(second) == after, f"the books are equal: {state_of(second)}")
    assert [1] * len(row.once) == [bench.listener.heard.count(text) for text in row.once]
    second.scheduler.validate()
    assert [] == bench.failures
    link.close()


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_what_a_lost_worker_has_not_heard_is_done_by_the_next_one(row: Row, bench: LinkBench) -> None:
    """It waits in the door when the worker is lost."""

    def lose(first: FakeSession, link: PartitionLink, _: State) -> None:
        first.reads = False
        row.act(link)
        first.lose()

    play(row, bench, lose)


@pytest.mark.parametrize("row", CASES.values(), ids=CASES)
def test_what_a_lost_worker_has_not_said_is_done_again_by_the_next_one(row: Row, bench: LinkBench) -> None:
    """The worker has done it, as far as it can without an answer, and says it too late."""

    def lose(first: FakeSession, link: PartitionLink, after: State) -> None:
        first.speaks.clear()
        row.act(link)
        wait_until(lambda: first.holds_back.is_set() or state_of(first) == after, "it has done it")
        first.lose()
        wait_until(lambda: link.is_running, "it runs again")
        first.speaks.set()

    play(row, bench, lose)


def test_no_request_overtakes_the_asks_that_a_recovery_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread sends all: from the one on which answers come an ask could follow its release, and run."""
    senders: dict[str, str] = {}
    real = FakeSession.update_allocation

    def update(session: FakeSession, request: si.AllocationRequest) -> None:
        senders.update({each.allocationKey: threading.current_thread().name for each in request.allocations})
        real(session, request)

    monkeypatch.setattr(FakeSession, "update_allocation", update)
    bench = LinkBench(ONE)
    session = FakeSession(LaunchedWorker("default", "nowhere", 1), lambda _: None)
    known = PartsToRecover(
        nodes=tuple(node_request("node").nodes),
        applications=tuple(application_request("app").new),
        allocations=(),
        asks=(ask_request("waits").allocations[0].SerializeToString(),),
        late=(),
        heard=(),
    )
    worker = PatientWorker(cast("Any", session), "default", threading.Event(), threading.Lock(), None)
    hand_over(worker, bench.registration(), ResourceManager(), known, lambda: None)
    wait_until(lambda: "waits" in senders)
    session.scheduler.stop()
    bench.stop()

    assert threading.current_thread().name == senders["waits"]
