"""Requests that end or hold the worker that gets them: the partition goes on without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.door.fake_sessions import FakeSession, LinkBench
from support.proxy.manager_requests import ONE, application_request, ask_request, keys, node_request
from support.waiting import WAIT_SECONDS, wait_until

from licorne.proxy.base.process import is_compiled
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.link import PartitionLink
from licorne.proxy.wire.door.session import SILENCE_SECONDS
from licorne.proxy.wire.door.under_way import UnderWay
from licorne.proxy.wire.door.workers import LinkState

pytestmark = pytest.mark.skipif(is_compiled(), reason="machine code does not look its constants up")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[LinkBench]:
    """Return what is around a link whose seconds are short."""
    monkeypatch.setattr("licorne.proxy.wire.door.link.TICK_SECONDS", 0.005)
    bench = LinkBench(ONE)
    yield bench
    bench.stop()


@pytest.fixture
def link(bench: LinkBench) -> Iterator[PartitionLink]:
    """Return a link with a node and an application, which the worker has carried out."""
    link = bench.link()
    link.start()
    link.started.result(WAIT_SECONDS)
    link.update_node(node_request("node"))
    link.update_application(application_request("app"))
    bench.listener.wait_for("accepted node", "accepted app")
    wait_until(lambda: not len(link._under_way), "all is carried out")
    yield link
    link.close()


def each(bench: LinkBench, **faults: str) -> None:
    """Let all sessions have faults, also that which runs."""

    def change(session: FakeSession) -> None:
        for name, text in faults.items():
            setattr(session, name, text)

    bench.changes = change
    change(bench.sessions[0])


def runs_on(bench: LinkBench, link: PartitionLink, number: int) -> FakeSession:
    """Wait until it runs on the worker of a number; return the session."""
    wait_until(
        lambda: (link.place.state, link.place.worker_number) == (LinkState.RUNNING, number),
        f"it runs on worker {number}",
    )
    return bench.session(number)


SENT: dict[str, tuple[Callable[[PartitionLink], None], str]] = {
    "an application": (lambda link: link.update_application(application_request("bad")), "application 'bad'"),
    "a node": (lambda link: link.update_node(node_request("bad")), "node 'bad'"),
    "an ask": (
        lambda link: link.update_allocation(ask_request("bad")),
        "allocation 'bad' of application 'app'",
    ),
    "an allocation": (
        lambda link: link.update_allocation(ask_request("bad", node_id="node")),
        "allocation 'bad' of application 'app'",
    ),
}


@pytest.mark.parametrize("case", SENT.values(), ids=SENT)
@pytest.mark.parametrize("fault", ["kills", "hangs"])
def test_what_ends_two_workers_is_set_aside(
    bench: LinkBench, link: PartitionLink, fault: str, case: tuple[Callable[[PartitionLink], None], str]
) -> None:
    """The RM hears it with the reason, the third worker does not get it, and the rest goes on."""
    send, named = case
    each(bench, **{fault: '"bad"'})
    send(link)
    third = runs_on(bench, link, 3)
    link.update_allocation(ask_request("good"))
    bench.listener.wait_for("placed good")

    why = (
        "it was killed"
        if fault == "kills"
        else f"the worker has given no sign of life for {SILENCE_SECONDS} s"
    )
    reason = f"{named} is set aside: nothing else was under way when two workers in a row were lost"
    (heard,) = bench.listener.all("rejected bad: ")
    assert heard == f"{reason}, the last one for this reason: {why}"
    assert [] == [text for text in third.got if '"bad"' in text]
    assert [f"request: {heard}"] == [text for text in bench.failures if text.startswith("request: ")]


def test_who_was_under_way_with_it_is_not_set_aside(bench: LinkBench, link: PartitionLink) -> None:
    """All of it is sent one by one to the next worker; it takes one worker more to be sure."""
    each(bench, kills='"bad"')
    bench.sessions[0].reads = False  # So that all is under way at the same time.
    for key in ("one", "two", "bad", "three"):
        link.update_allocation(ask_request(key))
    bench.sessions[0].reads = True
    fourth = runs_on(bench, link, 4)
    bench.listener.wait_for("placed one", "placed two", "placed three")

    assert ["one", "three", "two"] == sorted(bench.listener.all("placed "))
    assert 1 == len(bench.listener.all("rejected bad: "))
    assert [] == [text for text in fourth.got if '"bad"' in text]


def test_two_workers_that_are_lost_by_other_things_set_nothing_aside(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The same entry has to be alone both times: one may be killed while any entry is under way."""
    faults = iter(['"two"'])
    bench.changes = lambda session: setattr(session, "kills", next(faults, "nothing"))
    bench.sessions[0].kills = '"one"'
    bench.sessions[0].reads = False
    for key in ("one", "two"):
        link.update_allocation(ask_request(key))
    bench.sessions[0].reads = True
    runs_on(bench, link, 3)
    bench.listener.wait_for("placed one", "placed two")

    assert [] == bench.listener.all("rejected ")


def test_what_comes_after_the_question_that_is_not_answered_is_not_suspected(
    bench: LinkBench, link: PartitionLink
) -> None:
    """A worker carries requests out in their order."""
    each(bench, hangs='"bad"')
    link.update_application(application_request("bad"))
    wait_until(lambda: bench.sessions[0]._open, "the worker is asked")
    link.update_application(application_request("later"))
    link.update_allocation(ask_request("good", application="later"))
    runs_on(bench, link, 3)
    bench.listener.wait_for("accepted later", "placed good")

    assert 1 == len(bench.listener.all("rejected "))


def test_what_others_run_on_a_suspected_node_follows_it(bench: LinkBench, link: PartitionLink) -> None:
    """A recovery refuses allocations on nodes that it is not given."""
    foreign = ask_request("theirs", application="", node_id="new", memory=30)
    foreign.allocations[0].allocationTags["foreign"] = "default"
    bench.sessions[0].reads = False
    link.update_node(node_request("new"))
    link.update_allocation(foreign)
    bench.sessions[0].lose()
    second = runs_on(bench, link, 2)
    bench.listener.wait_for("accepted new")

    assert [] == bench.failures[1:]
    assert "theirs" in str(second.scheduler.snapshot())


def test_much_that_was_under_way_is_sent_at_once_the_first_time(
    bench: LinkBench, link: PartitionLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one takes too long then; a second loss in a row shows that it is needed."""
    monkeypatch.setattr("licorne.proxy.wire.door.under_way.SUSPECTS_MAX", 3)
    each(bench, kills='"bad"')
    bench.sessions[0].reads = False
    link.update_allocation(ask_request(*keys(5), "bad"))
    bench.sessions[0].reads = True
    runs_on(bench, link, 5)
    bench.listener.wait_for_count("placed ask", 5)

    together = [max(text.count("allocationKey") for text in session.got) for session in bench.sessions[1:3]]
    assert [6, 1] == together
    assert 1 == len(bench.listener.all("rejected "))


def test_a_change_is_no_entry_that_could_be_set_aside(bench: LinkBench, link: PartitionLink) -> None:
    """What ends, drains or changes is in the record, and no worker gets it again."""
    each(bench, kills="DRAIN_NODE")
    link.update_node(si.NodeRequest(rmID="rm", nodes=[si.NodeInfo(nodeID="node", action="DRAIN_NODE")]))
    runs_on(bench, link, 2)

    assert [] == bench.listener.all("rejected ")


def test_requests_that_wait_are_not_counted_as_sent(bench: LinkBench, link: PartitionLink) -> None:
    """What was sent before them is carried out nevertheless, so that what is noted does not grow."""
    bench.sessions[0].reads = False
    for key in keys(5):
        link.update_allocation(ask_request(key))
    noted = len(link._under_way)
    bench.sessions[0].reads = True
    wait_until(lambda: not len(link._under_way), "all is carried out")

    assert 5 == noted
    bench.listener.wait_for_count("placed ", 5)


def test_only_so_many_requests_are_noted() -> None:
    """The oldest are suspected no longer; what later ones refer to is sent before them in any case."""
    under_way = UnderWay("rm")
    for number in range(20_000):
        under_way.note(node_request(str(number)))

    assert 16_384 == len(under_way)
