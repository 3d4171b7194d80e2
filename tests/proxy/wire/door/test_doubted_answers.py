"""What a worker says that cannot be, after all that it was sent: the resource manager hears none of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.door.fake_sessions import FakeSession, LinkBench
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    node_request,
    release_request,
)
from support.waiting import WAIT_SECONDS, wait_until

from licorne.model.errors import shortened
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.allocation_record import AllocationRecord
from licorne.proxy.wire.door.entries import RecentNames
from licorne.proxy.wire.door.handing_over import bound_texts, doubted_code
from licorne.proxy.wire.door.link import PartitionLink
from licorne.proxy.wire.door.record import PartitionRecord
from licorne.proxy.wire.door.workers import LinkState


@pytest.fixture
def bench() -> Iterator[LinkBench]:
    """Return what is around a link."""
    bench = LinkBench(ONE)
    yield bench
    bench.stop()


@pytest.fixture
def link(bench: LinkBench) -> Iterator[PartitionLink]:
    """Return a link with two nodes, an application, an ask that runs, and one too large to run."""
    link = bench.link()
    link.start()
    link.started.result(WAIT_SECONDS)
    link.update_node(node_request("n1", "n2"))
    link.update_application(application_request("app"))
    bench.listener.wait_for("accepted app")
    link.update_allocation(ask_request("runs"))
    link.update_allocation(ask_request("waits", memory=1_000))
    bench.listener.wait_for("placed runs")
    yield link
    link.close()


def placed(key: str, node: str = "n1", memory: int = 1_000, **fields: Any) -> si.AllocationResponse:
    """Return a placement."""
    entry = si.Allocation(allocationKey=key, nodeID=node, **{"applicationID": "app", **fields})
    entry.resourcePerAlloc.resources["memory"].value = memory
    return si.AllocationResponse(new=[entry])


def twice() -> si.AllocationResponse:
    """Return two placements of one ask."""
    response = placed("waits")
    response.MergeFrom(placed("waits", "n2"))
    return response


def ended(key: str, partition: str = "[rm]default", why: Any = si.STOPPED_BY_RM) -> si.AllocationResponse:
    """Return the end of an allocation."""
    release = si.AllocationRelease(
        applicationID="app", allocationKey=key, partitionName=partition, terminationType=why
    )
    return si.AllocationResponse(released=[release])


LIES: Final[dict[str, tuple[str, Any, str]]] = {
    "an unknown application": ("update_allocation", placed("waits", applicationID="ghost"), "never asked"),
    "an unknown key": ("update_allocation", placed("phantom"), "'phantom' of 'app', which was never asked"),
    "an unknown node": ("update_allocation", placed("waits", "nowhere"), "there is no such node"),
    "another size": ("update_allocation", placed("waits", memory=7), "with another size than it was asked"),
    "no size": ("update_allocation", placed("waits", memory=0), "with another size than it was asked"),
    "another partition": (
        "update_allocation",
        placed("waits", partitionName="[rm]other"),
        "in partition '[rm]other'",
    ),
    "what runs elsewhere": ("update_allocation", placed("runs", "n2", 1), "it is on 'n1' already"),
    "what runs there": ("update_allocation", placed("runs", "n1", 1), "it is on 'n1' already"),
    "one ask twice": ("update_allocation", twice(), "placed an ask twice in one response"),
    "the end of nothing": ("update_allocation", ended("never"), "ended 'never'"),
    "an end elsewhere": ("update_allocation", ended("runs", "[rm]other"), "in partition '[rm]other'"),
    "a rejection of nothing": (
        "update_allocation",
        si.AllocationResponse(
            rejectedAllocations=[si.RejectedAllocation(applicationID="app", allocationKey="never")]
        ),
        "rejected 'never'",
    ),
    "a node": ("update_node", si.NodeResponse(accepted=[si.AcceptedNode(nodeID="n9")]), "for node 'n9'"),
    "a node again": ("update_node", si.NodeResponse(accepted=[si.AcceptedNode(nodeID="n1")]), "node 'n1'"),
    "no node": ("update_node", si.NodeResponse(rejected=[si.RejectedNode(nodeID="n1")]), "for node 'n1'"),
    "an application": (
        "update_application",
        si.ApplicationResponse(accepted=[si.AcceptedApplication(applicationID="b")]),
        "for application 'b'",
    ),
    "no application": (
        "update_application",
        si.ApplicationResponse(rejected=[si.RejectedApplication(applicationID="app")]),
        "for application 'app'",
    ),
    "a state of nothing": (
        "update_application",
        si.ApplicationResponse(updated=[si.UpdatedApplication(applicationID="b", state="Failed")]),
        "a state of application 'b'",
    ),
    "an unknown state": (
        "update_application",
        si.ApplicationResponse(updated=[si.UpdatedApplication(applicationID="app", state="\x1b[2J")]),
        "the state '\\x1b[2J', which applications do not have",
    ),
    "an end for no reason": (
        "update_allocation",
        ended("runs", why=77),
        "ended 'runs' for a reason that si.v1 does not have",
    ),
    "the end of an ask": (
        "update_allocation",
        si.AllocationResponse(
            releasedAsks=[si.AllocationAskRelease(applicationID="app", allocationKey="waits")]
        ),
        "the older generation",
    ),
    "no code": (
        "update_allocation",
        si.AllocationResponse(
            rejectedAllocations=[si.RejectedAllocation(applicationID="app", allocationKey="waits")]
        ),
        "the code '', which does not exist",
    ),
    "a hint about nothing": (
        "update_container_scheduling_state",
        si.UpdateContainerSchedulingStateRequest(applicationID="app", allocationKey="never"),
        "a hint about 'never'",
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_worker_that_says_what_cannot_be_is_replaced(
    bench: LinkBench, link: PartitionLink, lie: tuple[str, Any, str]
) -> None:
    """The RM hears nothing of it, and nothing else of that worker; the door says why."""
    name, said, why = lie
    first = bench.session(1)
    heard = [*bench.listener.heard]
    getattr(first.callback, name)(said)
    first.callback.update_node(si.NodeResponse(rejected=[si.RejectedNode(nodeID="n2")]))
    second = bench.session(2)
    wait_until(lambda: link.place.state is LinkState.RUNNING, "it runs again")

    assert [first.worker] == bench.lost_workers
    (line,) = bench.failures
    assert line.startswith(
        "partition 'default': the worker of partition 'default' is not believed, and replaced"
    )
    assert why in line
    assert why in link.place.reason
    link.update_node(node_request("n3", memory=1_000))
    bench.listener.wait_for("placed waits")
    told = [text for text in bench.listener.heard if "is Running" not in text or text in heard]
    # A worker says again and again that an ask waits: how often is a matter of pace.
    assert [text for text in (*heard, "accepted n3", "placed waits") if text != "waiting waits"] == [
        text for text in told if text != "waiting waits"
    ]
    assert second.worker != first.worker


TEXT: Final = "x" * 1_000_000
SHORT: Final = shortened(TEXT)


def long_texts() -> Iterator[tuple[str, Any]]:
    """Yield what a worker may say, each with a text of a million characters wherever there is one."""
    yield "update_node", si.NodeResponse(rejected=[si.RejectedNode(nodeID="n", code="INVALID", reason=TEXT)])
    updated = si.UpdatedApplication(applicationID="app", state="Running", message=TEXT)
    rejected = si.RejectedApplication(applicationID="b", code="NO_QUEUE", reason=TEXT)
    yield "update_application", si.ApplicationResponse(updated=[updated], rejected=[rejected])
    response = placed("waits", taskGroupName=TEXT, UUID=TEXT, allocationTags={TEXT: TEXT})
    response.rejectedAllocations.add(applicationID="app", allocationKey="c", code="INVALID", reason=TEXT)
    response.released.add(applicationID="app", allocationKey="runs", UUID=TEXT, message=TEXT)
    yield "update_allocation", response
    yield "send_event", [si.EventRecord(objectID=TEXT, referenceID=TEXT, message=TEXT)]
    hint = si.UpdateContainerSchedulingStateRequest(applicationID="app", allocationKey="waits", reason=TEXT)
    yield "update_container_scheduling_state", hint


@pytest.mark.parametrize(("name", "said"), [*long_texts()])
def test_the_texts_of_a_worker_are_bounded(name: str, said: Any) -> None:
    """As those are that a scheduler writes; what has no text stays as it is."""
    bound_texts(said)

    heard = said if name == "send_event" else [said]
    texts = "".join(map(str, heard))
    assert SHORT in texts
    assert len(texts) < 10 * len(SHORT)
    assert "waits" in texts or name not in {"update_allocation", "update_container_scheduling_state"}


def test_what_is_rejected_for_its_long_name_keeps_it() -> None:
    """The RM knows by it what is meant."""
    said = si.AllocationResponse()
    said.rejectedAllocations.add(applicationID=TEXT, allocationKey=TEXT, code="INVALID", reason=TEXT)
    bound_texts(said)

    (rejected,) = said.rejectedAllocations
    assert (TEXT, TEXT, SHORT) == (rejected.applicationID, rejected.allocationKey, rejected.reason)


def test_a_worker_may_not_send_a_long_text_to_the_manager(bench: LinkBench, link: PartitionLink) -> None:
    """It is shortened on the way; the worker is believed."""
    response = si.AllocationResponse()
    response.rejectedAllocations.add(applicationID="app", allocationKey="waits", code="INVALID", reason=TEXT)
    bench.session(1).callback.update_allocation(response)

    assert f"rejected waits: {SHORT}" in bench.listener.heard
    assert link.is_running


@pytest.mark.parametrize("code", ["", "\x1b[2J", TEXT])
def test_a_rejection_has_a_code_that_there_is(code: str) -> None:
    """Programs decide by it."""
    allocation = si.RejectedAllocation(applicationID="app", allocationKey="a", code=code)
    said = [
        si.NodeResponse(rejected=[si.RejectedNode(nodeID="n", code=code)]),
        si.ApplicationResponse(rejected=[si.RejectedApplication(applicationID="app", code=code)]),
        si.AllocationResponse(rejectedAllocations=[allocation]),
    ]

    assert {f"it rejected for the code {code!r:.100}, which does not exist"} == {*map(doubted_code, said)}


def node_change(name: str, action: si.NodeInfo.ActionFromRM) -> si.NodeRequest:
    """Return a request that changes a node."""
    return si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID=name, action=action)])


def held_back(bench: LinkBench) -> FakeSession:
    """Have the worker say nothing for a while."""
    session = bench.session(1)
    session.speaks.clear()
    return session


def speaks(session: FakeSession, bench: LinkBench, link: PartitionLink) -> None:
    """Let it say what it held back, and answer for a node after it."""
    session.speaks.set()
    link.update_node(node_request("last"))
    bench.listener.wait_for("accepted last")


def test_what_the_rm_has_changed_meanwhile_is_no_reason_for_doubt(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The worker answers what it was sent first: asks that are withdrawn or resized, nodes that are gone."""
    session = held_back(bench)
    link.update_allocation(ask_request("withdrawn", "resized", "again"))
    assert session.holds_back.wait(WAIT_SECONDS)
    link.update_allocation(release_request("withdrawn"))
    link.update_allocation(release_request("again"))
    link.update_allocation(ask_request("again", memory=3))
    link.update_allocation(ask_request("resized", memory=2))
    link.update_node(
        si.NodeRequest(
            rmID="rm",
            nodes=[si.NodeInfo(nodeID=name, action=si.NodeInfo.DECOMISSION) for name in ("n1", "n2")],
        )
    )
    link.update_application(
        si.ApplicationRequest(rmID="rm", remove=[si.RemoveApplicationRequest(applicationID="app")])
    )
    speaks(session, bench, link)

    assert [] == bench.failures
    assert [] == bench.lost_workers


def test_an_ask_that_the_rm_gives_back_before_it_has_heard_of_a_place_may_have_two(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The worker takes the first place back, and finds another one."""
    session = held_back(bench)
    link.update_allocation(ask_request("back"))
    assert session.holds_back.wait(WAIT_SECONDS)
    release = si.AllocationRelease(
        applicationID="app", allocationKey="back", terminationType=si.SCHEDULING_FAILED_ON_RM
    )
    request = si.AllocationRequest(rmID="rm", releases={"allocationsToRelease": [release]})
    link.update_allocation(request)
    speaks(session, bench, link)

    bench.listener.wait_for_count("placed back", 2)
    assert [] == bench.failures


def test_what_names_no_partition_of_the_configuration_may_be_rejected(
    bench: LinkBench, link: PartitionLink
) -> None:
    """It is not recorded: any worker answers it."""
    link.pass_on(node_request("far", partition="elsewhere"))
    link.pass_on(application_request("far", partition="elsewhere"))
    link.pass_on(ask_request("far", application="far", partition="elsewhere"))
    bench.listener.wait_for_count("rejected far: ", 3)

    assert [] == bench.failures


def test_changes_of_nodes_that_are_not_there_may_be_rejected(bench: LinkBench, link: PartitionLink) -> None:
    """Whether they were never there, are gone, or were rejected themselves."""
    action = si.NodeInfo.DRAIN_NODE
    link.update_node(node_change("never", action))
    link.update_node(node_change("n2", si.NodeInfo.DECOMISSION))
    link.update_node(node_change("n2", action))
    request = node_request("bad", memory=-1)
    request.MergeFrom(node_change("bad", action))
    link.update_node(request)
    request = node_request("n1", "twice", "twice")
    request.MergeFrom(node_change("twice", action))
    link.update_node(request)
    link.update_node(node_request("last"))
    bench.listener.wait_for("accepted last")

    heard = [text.split(":")[0] for text in bench.listener.heard if text.startswith("rejected ")]
    assert [f"rejected {name}" for name in ("never", "n2", "bad", "bad", "n1", "twice")] == heard
    assert [] == bench.failures


def test_what_is_rejected_for_its_partition_is_no_answer_about_this_one(
    bench: LinkBench, link: PartitionLink
) -> None:
    """Also if the ids are the same: what this partition has is recovered."""
    session = held_back(bench)
    link.update_node(node_request("n3", memory=1_000))
    link.pass_on(node_request("n3", partition="elsewhere"))
    link.update_application(application_request("b"))
    link.pass_on(application_request("b", partition="elsewhere"))
    link.pass_on(ask_request("waits", partition="elsewhere"))
    speaks(session, bench, link)
    bench.listener.wait_for("placed waits")
    session.lose()
    wait_until(lambda: link.place.worker_number == 2 and link.is_running, "it runs again")
    link.update_allocation(ask_request("more", application="b", memory=900))
    bench.session(2)
    link.update_allocation(release_request("waits"))
    bench.listener.wait_for("placed more")

    assert [] == bench.failures


def test_a_size_counts_whatever_the_order_of_its_types() -> None:
    """And types of which there is nothing."""
    record = AllocationRecord("[rm]default", lambda _: True)
    request = ask_request("a")
    for name in ("vcore", "gpu", "disk"):
        request.allocations[0].resourcePerAlloc.resources[name].value = 3
    record.note(request, 1)
    answer = placed("a", memory=1)
    for name, value in (("disk", 3), ("none", 0), ("gpu", 3), ("vcore", 3)):
        answer.new[0].resourcePerAlloc.resources[name].value = value

    assert "" == record.doubt(answer)
    record.note(ask_request("b"), 1)
    assert "" == record.doubt(placed("b", memory=1))
    del answer.new[0].resourcePerAlloc.resources["gpu"]
    assert "another size" in record.doubt(answer)
    answer.new[0].resourcePerAlloc.Clear()
    assert "another size" in record.doubt(answer)
    answer.new[0].resourcePerAlloc.resources["gpu"].value = 4
    assert "another size" in record.doubt(answer)


def test_names_are_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of them however old they are; more than a bound are not known, and not doubted."""
    now = [0.0]
    monkeypatch.setattr("licorne.proxy.wire.door.entries._FEW", 2)
    monkeypatch.setattr("licorne.proxy.wire.door.entries._NAMES_MAX", 3)
    names = RecentNames(lambda: now[0])
    names.add("a")
    now[0] = 100.0
    names.add("b")
    assert [True, True, False] == [names.may_have(name) for name in ("a", "b", "c")]
    names.add("c")
    now[0] = 200.0
    names.add("d")
    names.add("e")
    assert [False, False, True] == [names.may_have(name) for name in ("a", "b", "c")]

    for name in "fgh":
        names.add(name)
    assert names.may_have("never")
    names.clear()
    assert not names.may_have("c")


def test_an_ask_of_the_door_itself_may_be_rejected() -> None:
    """It has an application complete that has run; the next worker may not take the application any more."""
    record = PartitionRecord("rm", "default")
    record.note_applications(application_request("app"))
    record.take_applications(
        si.ApplicationResponse(
            accepted=[si.AcceptedApplication(applicationID="app")],
            updated=[si.UpdatedApplication(applicationID="app", state="Running")],
        )
    )
    (late,) = record.begin_recovery(0).late
    assert isinstance(late, si.AllocationRequest)
    rejected = si.RejectedAllocation(
        applicationID="app", allocationKey=late.allocations[0].allocationKey, reason="no such application"
    )
    said = si.AllocationResponse(rejectedAllocations=[rejected])

    assert not record.doubt("update_allocation", said)
    assert record.take("update_allocation", said, 1) is None
