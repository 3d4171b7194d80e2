"""A client whose server goes away: it connects again, registers again, and tells the program."""

from __future__ import annotations

import signal
import threading

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.proxy.processes import serving, start_server
from support.proxy.waiting import wait_until

from licorne import CallbackFailure, ConnectionLostError, RemoteScheduler, RequestError
from licorne.proxy.client.callbacks import WAITING_MAX
from licorne.proxy.si import si_pb2 as si


class Returning(Listener):
    """Sends what it has whenever it is connected again."""

    def __init__(self) -> None:
        super().__init__()
        self.scheduler: RemoteScheduler | None = None
        self.times = 0

    def reconnected(self) -> None:
        self.times += 1
        assert self.scheduler is not None
        self.scheduler.register("rm", self, configuration=ONE)
        self.scheduler.update_node(node_request("n1"))
        self.scheduler.update_application(application_request("app"))
        self.scheduler.update_allocation(ask_request(f"task-{self.times}"))


def test_a_killed_server_is_found_again() -> None:
    """On the same port; the RM has registered with what it sent, and starts with nothing."""
    first = start_server()
    listener = Returning()
    with RemoteScheduler(first.address) as scheduler:
        listener.scheduler = scheduler
        plain = Listener()
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.register("plain", plain)
        first.process.send_signal(signal.SIGKILL)
        first.process.communicate()
        wait_until(lambda: not scheduler.is_connected, "the connection is lost")
        with pytest.raises(ConnectionLostError, match=first.address):
            scheduler.update_node(node_request("n2"))

        with serving("--address", first.address):
            wait_until(lambda: listener.times, "it is connected again", seconds=20)
            listener.wait_for("accepted n1", "placed task-1")
            scheduler.update_node(node_request("p1", rm_id="plain"))
            plain.wait_for("accepted p1")
            scheduler.validate()


def test_there_must_be_a_server_to_begin_with() -> None:
    """The error names the address and what is wrong."""
    with serving() as server:
        address = server.address
    with pytest.raises(ConnectionLostError, match=rf"{address}.*UNAVAILABLE"):
        RemoteScheduler(address, timeout=5)


def test_calls_after_a_stop_are_refused() -> None:
    """As with a scheduler in process."""
    with serving() as server:
        with RemoteScheduler(server.address) as scheduler:
            scheduler.register("rm", Listener())
        with pytest.raises(RequestError, match="has been stopped"):
            scheduler.update_node(node_request("n1"))
        scheduler.stop()


def test_requests_of_an_rm_that_has_not_registered_are_refused_at_once() -> None:
    """With the words of a scheduler in process."""
    refusal = pytest.raises(RequestError, match='received NodeRequest, but RmID="other" not registered')
    with serving() as server, RemoteScheduler(server.address) as scheduler, refusal:
        scheduler.update_node(node_request("n1", rm_id="other"))


def test_a_request_that_is_refused_later_is_reported() -> None:
    """The session goes on."""
    failures: list[CallbackFailure] = []
    listener = Listener()
    with serving() as server, RemoteScheduler(server.address, on_error=failures.append) as scheduler:
        scheduler.register("rm", listener)
        nameless = si.AllocationRequest(rmID="rm")
        nameless.releases.allocationAsksToRelease.add()
        scheduler.update_allocation(nameless)
        wait_until(lambda: failures, "the refusal is reported")
        scheduler.update_node(node_request("n1"))
        listener.wait_for("accepted n1")
    assert "neither allocationKey nor applicationID" in str(failures[0].error)


def test_callbacks_may_call_the_scheduler() -> None:
    """Also calls that wait for an answer, which stands behind other callbacks on the connection."""
    listener = Listener()
    with serving() as server, RemoteScheduler(server.address) as scheduler:
        asked: list[object] = []

        def react(text: str) -> None:
            if text == "accepted n0":
                asked.append(scheduler.snapshot()["nodes"])

        listener.react = react
        scheduler.register("rm", listener)
        count = WAITING_MAX + 100
        for number in range(0, count, 100):
            scheduler.update_node(node_request(*(f"n{each}" for each in range(number, number + 100))))
        listener.wait_for(f"accepted n{count - 1}")
    assert len(asked) == 1


def test_an_rm_that_stops_in_a_callback_ends_the_connection() -> None:
    """It does not wait for itself."""
    listener = Listener()
    stopped = threading.Event()
    with serving() as server:
        scheduler = RemoteScheduler(server.address)

        def react(_: str) -> None:
            scheduler.stop()
            stopped.set()

        listener.react = react
        scheduler.register("rm", listener)
        scheduler.update_node(node_request("n1"))
        assert stopped.wait(20)
