"""A link between a resource manager (RM) and a partition whose sessions are lost at chosen moments."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

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

from licorne.proxy.wire.door.link import PartitionLink
from licorne.proxy.wire.door.workers import LinkState


@pytest.fixture
def bench() -> Iterator[LinkBench]:
    """Return what is around a link."""
    bench = LinkBench(ONE)
    yield bench
    bench.delivers.set()
    bench.launches.set()
    bench.stop()


@pytest.fixture
def link(bench: LinkBench) -> Iterator[PartitionLink]:
    """Return a link that has not been started."""
    link = bench.link()
    yield link
    link.close()
    wait_until(lambda: not threads(), "the thread of the link has ended")


def threads() -> list[str]:
    """Return the threads of links."""
    return [each.name for each in threading.enumerate() if each.name.startswith("licorne-link-")]


def begin(bench: LinkBench, link: PartitionLink) -> FakeSession:
    """Have a node and an application; return the session."""
    link.start()
    link.started.result(WAIT_SECONDS)
    link.update_node(node_request("node"))
    link.update_application(application_request("app"))
    bench.listener.wait_for("accepted node", "accepted app")
    return bench.session(1)


def runs_on(link: PartitionLink, number: int) -> None:
    """Wait until it runs on the worker of a number."""
    wait_until(
        lambda: (link.place.state, link.place.worker_number) == (LinkState.RUNNING, number),
        f"it runs on worker {number}",
    )


def keys_on(session: FakeSession) -> list[str]:
    """Return what a worker has placed."""
    snapshot: Any = session.scheduler.snapshot()
    return sorted(
        allocation["allocationKey"]
        for node in snapshot["nodes"]["default"]
        for allocation in node.get("allocations") or ()
    )


def test_a_placement_that_is_heard_after_the_copy_of_the_book_is_dropped(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The ask was given to the next worker, which has placed it, too."""
    first = begin(bench, link)
    first.speaks.clear()
    link.update_allocation(ask_request("one", memory=10))
    wait_until(lambda: keys_on(first) == ["one"], "it is placed")
    assert first.holds_back.wait(WAIT_SECONDS)
    first.lose()
    runs_on(link, 2)
    bench.listener.wait_for("placed one")

    first.speaks.set()
    wait_until(lambda: not first.holds_back.is_set(), "the link was told")
    link.update_allocation(ask_request("two", memory=10))
    bench.listener.wait_for("placed two")
    assert ["one", "two"] == bench.listener.all("placed ")
    assert ["one", "two"] == keys_on(bench.session(2))


def test_a_placement_that_waits_for_the_manager_is_in_the_copy_of_the_book(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The recovery begins when it is in the queue of the RM."""
    first = begin(bench, link)
    bench.delivers.clear()
    link.update_allocation(ask_request("one", memory=10))
    assert bench.is_delivering.wait(WAIT_SECONDS)
    first.lose()
    second = bench.session(2)
    assert 0 == second.registrations

    bench.delivers.set()
    runs_on(link, 2)
    assert ["one"] == bench.listener.all("placed ")
    assert ["one"] == keys_on(second)


def test_a_release_that_the_lost_worker_has_not_heard_is_answered(
    bench: LinkBench, link: PartitionLink
) -> None:
    """It waits in the door, and the next worker does not get what has ended."""
    first = begin(bench, link)
    link.update_allocation(ask_request("one", memory=10))
    bench.listener.wait_for("placed one")
    first.reads = False
    link.update_allocation(release_request("one"))
    link.update_allocation(ask_request("two", memory=10))
    assert 2 == link.place.waiting
    first.lose()

    bench.listener.wait_for("placed two", "released one STOPPED_BY_RM")
    runs_on(link, 2)
    assert ["one", "two"] == bench.listener.all("placed ")
    assert ["two"] == keys_on(bench.session(2))


def test_a_session_that_is_lost_while_it_is_made_is_followed_by_another(
    bench: LinkBench, link: PartitionLink
) -> None:
    """Before it registers, and when all has been handed over."""
    lost: list[int] = []

    def lose_at_look(session: FakeSession) -> None:
        looks = [0]

        def look() -> None:
            looks[0] += 1
            if looks[0] == len(lost) + 1 and len(lost) < 2:
                lost.append(looks[0])
                session.lose()

        session.looked_at = look

    first = begin(bench, link)
    link.update_allocation(ask_request("one", memory=10))
    bench.listener.wait_for("placed one")
    bench.changes = lose_at_look
    first.lose()
    wait_until(lambda: len(lost) == 2 and link.is_running, "it runs again")
    assert [1, 2] == lost
    assert ["one"] == bench.listener.all("placed ")
    assert ["one"] == keys_on(bench.sessions[-1])


def test_a_link_that_is_closed_while_a_worker_starts_registers_no_more(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The RM has registered again by another link: it must not lose what that one has."""
    bench.launching = lambda: link.close("it has registered again")
    link.start()
    wait_until(lambda: not threads(), "the thread of the link has ended")
    assert [0] * len(bench.sessions) == [session.registrations for session in bench.sessions]
    assert [] == bench.lost_workers


def test_a_link_that_is_closed_while_it_registers_has_registered_before_the_next_one(
    bench: LinkBench, link: PartitionLink
) -> None:
    """Two links of one RM register at a worker one after the other, in their order."""
    order: list[str] = []
    registers, goes_on = threading.Event(), threading.Event()

    def hold(session: FakeSession) -> None:
        def registering() -> None:
            registers.set()
            goes_on.wait(WAIT_SECONDS)
            order.append("first")

        session.registering = registering

    bench.changes = hold
    link.start()
    assert registers.wait(WAIT_SECONDS)
    bench.changes = lambda session: setattr(session, "registering", lambda: order.append("second"))
    link.close("it has registered again")
    second = bench.link()
    second.start()
    bench.session(2)
    goes_on.set()
    second.started.result(WAIT_SECONDS)
    second.close()
    assert ["first", "second"] == order


def test_a_worker_that_is_lost_when_the_link_is_closed_is_reported(
    bench: LinkBench, link: PartitionLink
) -> None:
    """The next link of the partition must not wait for it."""
    first = begin(bench, link)
    first.looked_at = lambda: None
    first._is_connected = False
    link.close()
    wait_until(lambda: not threads(), "the thread of the link has ended")
    assert [first.worker] == bench.lost_workers


def test_a_closed_link_does_not_wait_for_a_worker_that_says_nothing(
    bench: LinkBench, link: PartitionLink
) -> None:
    """It was closed between its registration and the recovery."""
    first = begin(bench, link)

    def close_at_registration(session: FakeSession) -> None:
        session.speaks.clear()
        session.registering = link.close

    bench.changes = close_at_registration
    first.lose()
    second = bench.session(2)
    wait_until(lambda: not threads(), "the thread of the link has ended")
    second.lose()


def test_a_halt_reaches_a_worker_that_is_about_to_run(bench: LinkBench, link: PartitionLink) -> None:
    """The last thing that the link does before is to look whether the session is there."""

    def halt_at_look(session: FakeSession) -> None:
        looks: list[str] = []

        def look() -> None:
            looks.append("look")
            if len(looks) == 2:
                link.halt("pause", "its connection is lost")

        session.looked_at = look

    bench.changes = halt_at_look
    link.start()
    link.started.result(WAIT_SECONDS)
    wait_until(lambda: bench.session(1).halts, "it is paused")


def test_a_worker_that_is_lost_while_it_is_configured_has_refused_nothing(
    bench: LinkBench, link: PartitionLink
) -> None:
    """Nothing is reported, and the next one has the configuration."""
    first = begin(bench, link)
    bench.configure(ONE.replace("{name: leaf}", "{name: leaf}, {name: more}"))
    first._is_connected = False
    link.configure()
    runs_on(link, 2)
    assert [] == bench.failures
    assert "root.more" in str(bench.session(2).scheduler.snapshot()["queues"])


def test_nobody_waits_for_a_launcher_that_waits(bench: LinkBench, link: PartitionLink) -> None:
    """Requests are taken, and the partition gets them when there is a worker."""
    first = begin(bench, link)
    bench.launches.clear()
    first.lose()
    link.update_allocation(ask_request("one", memory=10))
    link.wait_for_room()
    assert LinkState.STARTING is link.place.state
    bench.launches.set()
    bench.listener.wait_for("placed one")


def test_a_manager_asks_inside_a_callback_while_others_wait_for_it(
    bench: LinkBench, link: PartitionLink
) -> None:
    """A callback holds no lock that a request needs."""

    def ask_again(text: str) -> None:
        if text == "placed one":
            link.update_allocation(ask_request("two", memory=10))

    bench.listener.react = ask_again
    begin(bench, link)
    link.update_allocation(ask_request("one", memory=10))
    bench.listener.wait_for("placed two")
