"""Two doors over one worker: the newer one has it, and the older one says so and stops trying."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from support.door.fake_sessions import LinkBench
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.proxy.served import Served, served
from support.waiting import WAIT_SECONDS, wait_until

from licorne import CallbackFailure, Door, RemoteScheduler, ReplacedError, RequestError
from licorne.model.values.states import ManagerState
from licorne.proxy.wire.client.errors import ConnectionLostError
from licorne.proxy.wire.door.launchers.fixed import FixedLauncher
from licorne.proxy.wire.door.workers import LinkState
from licorne.proxy.wire.server.server import ServerSettings, ServerThread


class Replaceable(Listener):
    """A listener that may be told that another one has taken its place."""

    def replaced(self, reason: str) -> None:
        self._hear([f"replaced: {reason}"])


@pytest.fixture
def worker() -> Iterator[Served]:
    """Return a worker."""
    with served() as worker:
        yield worker


@contextmanager
def a_door(worker: Served) -> Iterator[tuple[Door, list[str]]]:
    """Give a door that is newer than those before it, and what it reports."""
    reported: list[str] = []
    launcher = FixedLauncher({"default": worker.address})

    def report(failure: CallbackFailure) -> None:
        reported.append(f"{failure.callback}: {failure.error}")

    with Door(launcher, on_error=report) as door:
        yield door, reported


def begin(door: Door | RemoteScheduler, listener: Listener, key: str) -> None:
    """Register, and have something run."""
    door.register("rm", listener, configuration=ONE)
    door.update_node(node_request("n1"))
    door.update_application(application_request("app"))
    door.update_allocation(ask_request(key))
    listener.wait_for(f"placed {key}")


def test_the_newer_of_two_doors_has_the_worker(worker: Served) -> None:
    """The RM of the older one hears that it is replaced, and nothing of an end; no door fights."""
    first, second = Replaceable(), Listener()
    with a_door(worker) as (older, reported), a_door(worker) as (newer, _):
        begin(older, first, "one")
        heard = [*first.heard]
        begin(newer, second, "two")
        first.wait_for_count("replaced: ", 1)
        newer.update_allocation(ask_request("three"))
        second.wait_for("placed three")

        assert [*heard, first.heard[-1]] == first.heard
        assert "(a door: process " in first.heard[-1]
        (line,) = reported
        assert line.startswith("partition 'default': given up: RM 'rm' has registered again, from another")
        (place,) = older.places()
        assert LinkState.CLOSED is place.state
        assert "has registered again" in place.reason
        with pytest.raises(RequestError, match="which has stopped: RM 'rm' has registered again"):
            older.update_allocation(ask_request("late"))


def test_an_older_door_is_refused_by_the_worker(worker: Served) -> None:
    """An RM that registers there hears why; what runs at the newer one goes on."""
    second = Listener()
    with a_door(worker) as (older, reported), a_door(worker) as (newer, _):
        begin(newer, second, "two")
        with pytest.raises(ReplacedError, match="partition 'default': RM 'rm' belongs to a newer door"):
            older.register("rm", Listener(), configuration=ONE)
        newer.update_allocation(ask_request("three"))
        second.wait_for("placed three")

        assert 1 == len(reported)
        assert () == older.places()


def test_an_rm_in_another_process_hears_from_its_door_that_it_is_replaced(worker: Served) -> None:
    """Its connection with the older door does not fight, and the door has stopped it."""
    first, second = Replaceable(), Listener()
    with ExitStack() as stack:
        older, _ = stack.enter_context(a_door(worker))
        newer, _ = stack.enter_context(a_door(worker))
        server = stack.enter_context(ServerThread(older, ServerSettings()))
        scheduler = stack.enter_context(RemoteScheduler(server.address))
        begin(scheduler, first, "one")
        begin(newer, second, "two")
        first.wait_for_count("replaced: ", 1)
        assert [] == first.all("released ")
        with pytest.raises(ReplacedError, match="has registered again, from another connection"):
            scheduler.update_allocation(ask_request("late"))
        assert [ManagerState.STOPPED] == [each.state for each in older.resource_managers()]
        newer.update_allocation(ask_request("three"))
        second.wait_for("placed three")


def test_a_worker_that_ends_a_session_with_a_reason_is_not_lost() -> None:
    """It runs, and answers: to kill it would help nobody. The link connects with it again."""
    bench = LinkBench(ONE)
    link = bench.link()
    link.start()
    link.started.result(WAIT_SECONDS)
    bench.session(1).lose(ConnectionLostError("RESOURCE_EXHAUSTED: too large", by_server=True))
    second = bench.session(2)
    wait_until(lambda: link.place.state is LinkState.RUNNING, "it runs again")
    assert ("too large" in link.place.reason, second.worker) == (True, bench.session(1).worker)
    second.lose(ReplacedError("another door has it"))
    wait_until(lambda: "default is given up: another door has it" in bench.failures, "it is given up")

    assert ([], 2) == (bench.lost_workers, len(bench.sessions))
    link.close()
    bench.stop()
