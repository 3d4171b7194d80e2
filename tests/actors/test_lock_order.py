"""The declared order of locks and asks: what it says, and that the engines make use of all of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from support.proxy.deferring import KnowingListener
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.running_scheduler import begin, reserved_in, running
from support.proxy.waiting import wait_until

from licorne import Scheduler
from licorne.actors.engines.engine import ActorsEngine
from licorne.actors.engines.partition_actor import TURNS_PER_FLUSH
from licorne.actors.locks.guards import LOCK_ORDER
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.lockcheck import session
from licorne.lockcheck.reports.certificate import certify
from licorne.proxy.scheduler.scheduler import EngineName
from licorne.proxy.si import si_pb2 as si

ENGINES: Final[tuple[EngineName, ...]] = ("actors", "threads")
PAGE = Path(__file__).parents[2] / "docs" / "threads.md"


def test_every_declared_nesting_is_made() -> None:
    """A declared edge that never occurs would allow what is not intended."""
    with session(LOCK_ORDER) as checked:
        for engine in ENGINES:
            end_a_partition_with_a_reservation(engine)
            reload_while_something_runs(engine)
            explain_while_something_waits(engine)
            answer_predicates_later(engine)
        for looks in range(TURNS_PER_FLUSH):
            reload_while_no_worker_has_time(looks)
        place_in_a_partition_that_threads_share()
        reload_while_something_runs("threads", share_partitions=True)
        explain_while_something_waits("threads", share_partitions=True)
    certificate = certify(checked.summary())

    assert certificate.holds, certificate.text()
    assert () == certificate.unexercised, certificate.text()


def end_a_partition_with_a_reservation(engine: EngineName) -> None:
    """End it while an application that runs on one of its nodes has reserved the other one."""
    with Scheduler(engine=engine, stepped=True) as scheduler:
        scheduler.register("rm", Listener(), configuration=TWO)
        scheduler.update_node(node_request("first", "second", memory=3, partition="second"))
        scheduler.update_application(application_request("app", "stays", partition="second"))
        scheduler.update_allocation(an_ask("placed", "app", "first"))
        scheduler.update_allocation(an_ask("in the way", "stays", "second"))
        scheduler.run_until_idle()
        scheduler.update_allocation(an_ask("late", "app", "second"))
        scheduler.run_until_idle()
        assert 1 == reserved_in(scheduler)
        scheduler.update_configuration(configuration_request(ONE))
        assert 0 == reserved_in(scheduler)
        scheduler.validate()


def reload_while_something_runs(engine: EngineName, *, share_partitions: bool = False) -> None:
    """Queues that may be empty are looked at later, for which a timer is set; then end it all."""
    listener = Listener()
    with running(engine, share_partitions=share_partitions) as scheduler:
        begin(scheduler, listener)
        scheduler.update_allocation(ask_request("ask"))
        listener.wait_for("placed ask")
        scheduler.update_configuration(configuration_request(TWO))
        scheduler.register("rm", listener, configuration=ONE)


def is_at_rest(dispatcher: Dispatcher) -> bool:
    """Return whether all workers wait, and nothing waits for them."""
    threads, waiting, queued = dispatcher.load()
    return threads == waiting and not queued


def reload_while_no_worker_has_time(looks: int) -> None:
    """The thread that asks a partition then handles the partition's earlier messages: it places an ask.

    After some turns it also has the announcement delivered; `looks` are turns before the reload.
    """
    listener = Listener()
    with running("actors") as scheduler:
        begin(scheduler, listener)
        engine = scheduler._engine
        assert isinstance(engine, ActorsEngine)
        wait_until(lambda: is_at_rest(engine.dispatcher), "no worker has anything to do")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine.dispatcher, "push", lambda _: None)
            scheduler.update_allocation(ask_request("ask"))
            for _ in range(1 + looks):  # The ask is taken in, and the partition tells itself to work.
                scheduler.snapshot()
            scheduler.update_configuration(configuration_request(TWO))
            for _ in range(TURNS_PER_FLUSH):  # Each look is one more turn.
                scheduler.snapshot()
        listener.wait_for("placed ask")


def explain_while_something_waits(engine: EngineName, *, share_partitions: bool = False) -> None:
    """Whether the manager is far behind is one of the reasons, and its link knows."""
    with running(engine, share_partitions=share_partitions) as scheduler:
        begin(scheduler, Listener())
        scheduler.update_allocation(ask_request("ask", memory=2000))
        assert scheduler.explain("app").asks


def answer_predicates_later(engine: EngineName) -> None:
    """What is asked is noted for the wait for the answers."""
    with Scheduler(engine=engine, stepped=True) as scheduler:
        scheduler.register("rm", KnowingListener(), configuration=ONE)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("ask"))
        assert 1 == scheduler.run_until_idle()


def place_in_a_partition_that_threads_share() -> None:
    """They have it for reading, and what they change below it for writing."""
    listener = Listener()
    with running("threads", threads=2, share_partitions=True) as scheduler:
        begin(scheduler, listener)
        scheduler.update_allocation(ask_request("ask"))
        listener.wait_for("placed ask")


def an_ask(key: str, application: str, node_id: str) -> si.AllocationRequest:
    request = ask_request(key, application=application, memory=2, partition="second")
    request.allocations[0].allocationTags["yunikorn.apache.org/requiredNode"] = node_id
    return request


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_application_has_reserved_is_freed_when_its_partition_ends(engine: EngineName) -> None:
    """As part of the test run, so that the certificate of the run has this nesting."""
    end_a_partition_with_a_reservation(engine)


def test_the_page_shows_the_declaration_as_it_describes_itself() -> None:
    """A change of it needs a new drawing."""
    (shown,) = re.findall(r"<!-- order -->\n(.*?)\n<!-- end -->", PAGE.read_text("utf-8"), re.DOTALL)

    assert LOCK_ORDER.describe() == shown
