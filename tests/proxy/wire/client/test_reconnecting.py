"""A client whose server goes away: it connects again, registers again, and tells the program."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import ExitStack
from typing import Any, Self

import grpc
import pytest
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.proxy.processes import serving, start_server
from support.proxy.served import served
from support.waiting import WAIT_SECONDS, wait_until

from licorne import CallbackFailure, ConnectionLostError, RemoteScheduler, RequestError, Scheduler
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.callbacks import WAITING_MAX
from licorne.proxy.wire.client.connection import Connection, Transport, first_connection
from licorne.proxy.wire.server.access import AccessRules
from licorne.proxy.wire.server.server import ServerSettings, ServerThread


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
            wait_until(lambda: listener.times, "it is connected again")
            listener.wait_for("accepted n1", "placed task-1")
            scheduler.update_node(node_request("p1", rm_id="plain"))
            plain.wait_for("accepted p1")
            scheduler.validate()


def test_there_must_be_a_server_to_begin_with() -> None:
    """The error names the address and what is wrong."""
    with serving() as server:
        address = server.address
    with pytest.raises(ConnectionLostError, match=rf"{address}.*UNAVAILABLE"):
        RemoteScheduler(address, timeout=2)


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


def test_the_callback_before_hears_the_end_of_what_it_had_when_an_rm_registers_again() -> None:
    """The new one hears of its own alone, as in one process: what runs for it has not ended."""
    before, after = Listener(), Listener()
    with served() as server, RemoteScheduler(server.address) as scheduler:
        for listener in (before, after):
            scheduler.register("rm", listener, configuration=ONE)
            scheduler.update_node(node_request("n1"))
            scheduler.update_application(application_request("app"))
            scheduler.update_allocation(ask_request("task"))
            listener.wait_for("placed task")

    ended = [[text for text in each.heard if text.startswith("released task")] for each in (before, after)]
    assert [["released task STOPPED_BY_RM"], []] == ended


def test_a_call_that_waits_to_be_sent_does_not_keep_a_lost_connection_from_ending() -> None:
    """It may take the room that the end of the connection has made for itself."""

    class Taken(queue.Queue[v1.ManagerMessage | None]):
        """A queue of one, in which another thread takes the first room that there is."""

        waiting = 1

        def get_nowait(self) -> v1.ManagerMessage | None:
            item = super().get_nowait()
            if self.waiting:
                self.waiting -= 1
                self.put_nowait(v1.ManagerMessage())
            return item

    with served() as server, RemoteScheduler(server.address) as scheduler:
        connection = scheduler._connection
        assert connection is not None
        requests = connection._sending
        connection._sending = sending = Taken(1)
        sending.put_nowait(v1.ManagerMessage())
        connection._lose("it was cut", is_passing=True)
        requests.put(None)

        assert [None] == [sending.get() for _ in range(sending.qsize())]
        assert "it was cut" in str(connection.lost)


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
        assert stopped.wait(WAIT_SECONDS)


class ShortLived:
    """A server whose sessions end behind the answer to `hello`, as many of them as are given, from one on."""

    def __init__(self, ending: range) -> None:
        self._ending = ending
        self.sessions = 0
        handler = grpc.stream_stream_rpc_method_handler(
            self._serve, v1.ManagerMessage.FromString, v1.SchedulerMessage.SerializeToString
        )
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("licorne.v1.Session", {"Open": handler})]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None)

    def _serve(self, messages: Iterator[v1.ManagerMessage], _: object) -> Iterator[v1.SchedulerMessage]:
        number = self.sessions
        self.sessions += 1
        yield v1.SchedulerMessage(call=next(messages).call, answer=v1.Answer())
        for message in () if number in self._ending else messages:
            if message.HasField("update_node"):
                return
            if message.call:
                yield v1.SchedulerMessage(call=message.call, answer=v1.Answer())


@pytest.mark.parametrize("ending", [range(3), range(1, 4)], ids=["first", "later"])
def test_a_session_that_ends_right_after_its_greeting_is_replaced(ending: range) -> None:
    """Whether it is the first one or one of those that come after a loss: sooner or later one lasts."""
    with ShortLived(ending) as server, RemoteScheduler(server.address) as scheduler:
        if 0 not in ending:
            scheduler.register("rm", Listener())
            scheduler.update_node(node_request("n1"))  # It ends the session.
        wait_until(lambda: server.sessions > ending[-1] + 1 and scheduler.is_connected, "one that lasts")
        scheduler.register("late", Listener())


def test_a_connection_that_is_lost_before_its_use_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its end is noted between the greeting and the use: by chance that is rare."""
    connect = Transport.connect
    made: list[Connection] = []

    def lost_once(*arguments: Any) -> Connection:
        connection = connect(*arguments)
        if not made:
            connection.close()
        made.append(connection)
        return connection

    monkeypatch.setattr(Transport, "connect", lost_once)
    with serving() as server, RemoteScheduler(server.address) as scheduler:
        wait_until(lambda: scheduler.is_connected, "another connection")
        assert 2 == len(made)
        scheduler.register("rm", Listener())


def test_a_server_that_does_not_listen_yet_is_waited_for() -> None:
    """For as long as a call may wait."""
    with serving() as server:
        address = server.address
    with ExitStack() as stack, futures.ThreadPoolExecutor(1) as pool:
        connecting = pool.submit(RemoteScheduler, address)
        stack.enter_context(serving("--address", address))
        stack.enter_context(connecting.result(WAIT_SECONDS)).register("rm", Listener())


@pytest.mark.parametrize("has_listened", [False, True])
def test_a_server_that_has_ended_is_not_waited_for(*, has_listened: bool) -> None:
    """One that has listened, and refuses connections, does not come back by itself."""
    attempts: list[float] = []

    def connect(seconds: float) -> Connection:
        attempts.append(seconds)
        refused = len(attempts) < 3
        raise ConnectionLostError("Connection refused" if refused else "no token", is_passing=refused)

    with pytest.raises(ConnectionLostError, match="refused" if has_listened else "token"):
        first_connection(connect, WAIT_SECONDS, has_listened=has_listened)

    assert len(attempts) == (1 if has_listened else 3)


def test_a_server_that_refuses_the_client_is_not_waited_for() -> None:
    """It would refuse it again."""
    rules = AccessRules([("a-token-of-16-and-more", None)])
    with (
        ServerThread(Scheduler(), ServerSettings(access=rules)) as server,
        pytest.raises(ConnectionLostError, match="UNAUTHENTICATED"),
    ):
        RemoteScheduler(server.address, timeout=600)


def test_a_server_that_vanishes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers nothing any more, and its end stays open."""
    monkeypatch.setattr("licorne.proxy.wire.client.connection._KEEPALIVE_SECONDS", 0.2)
    monkeypatch.setattr("licorne.proxy.wire.client.connection._SIGN_SECONDS", 0.2)
    with served() as it, CuttingProxy(it.port) as proxy, RemoteScheduler(proxy.address) as scheduler:
        proxy.silence()
        wait_until(lambda: not scheduler.is_connected, "the loss is noticed")
