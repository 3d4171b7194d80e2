"""Streams that end, are replaced, or register again at an awkward moment."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from support.proxy.manager_requests import ask_request, node_request
from support.proxy.served import (
    Call,
    Served,
    StreamManager,
    channel_to,
    opened,
    register,
    registration,
    served,
)
from support.proxy.wire_client import refusal_of
from support.waiting import WAIT_SECONDS, wait_until

from licorne.actors.services.rm_link import BACKLOG_MAX
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si

REGISTER = "/si.v1.Scheduler/RegisterResourceManager"
NODES = "/si.v1.Scheduler/UpdateNode"
OLD = [node_request(f"old-{number}") for number in range(20)]


class Held:
    """A method of the scheduler that waits until the test opens it; the first call alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, served: Served, method: str) -> None:
        self.reached = threading.Event()
        self.left = threading.Event()
        self._open = threading.Event()
        carry_out: Any = getattr(served.scheduler, method)

        def hold(*args: object, **named: object) -> object:
            if not self.reached.is_set():
                self.reached.set()
                assert self._open.wait(WAIT_SECONDS)
            try:
                return carry_out(*args, **named)
            finally:
                self.left.set()

        monkeypatch.setattr(served.scheduler, method, hold)

    def wait(self) -> None:
        assert self.reached.wait(WAIT_SECONDS)

    def open(self) -> None:
        self._open.set()


def state_of(served: Served, rm_id: str) -> str:
    """Return the state of an RM."""
    (found,) = [each.state.value for each in served.scheduler.resource_managers() if each.rm_id == rm_id]
    return found


def node_ids(served: Served) -> list[str]:
    """Return the nodes that the scheduler has."""
    document: Any = served.scheduler.snapshot()
    return [node["nodeID"] for nodes in document["nodes"].values() for node in nodes]


def test_an_rm_that_gives_up_its_registration_is_registered_with_streams_that_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call ends early, the registration does not: the RM may open its streams after all."""
    with served() as it, channel_to(it.address) as channel:
        held = Held(monkeypatch, it, "register_resource_manager")
        method: Any = channel.unary_unary(REGISTER)
        call = method.future(registration().SerializeToString())
        held.wait()
        call.cancel()
        held.open()
        wait_until(it.scheduler.resource_managers)
        wait_until(lambda: it.server_tasks() <= it.quiet_tasks)
        nodes = Call(channel, NODES).send(node_request("node"))

        response = si.NodeResponse.FromString(nodes.read())

        assert ["node"] == [entry.nodeID for entry in response.accepted]


def test_an_rm_that_registers_and_opens_no_stream_is_lost() -> None:
    """Also if it gave up its registration: nothing is placed for an RM that is not there."""
    with served(silence_seconds=0.1) as it, channel_to(it.address) as channel:
        register(channel, registration())
        wait_until(lambda: state_of(it, "rm") == "Stopped")


def test_a_session_that_ends_during_a_registration_is_a_lost_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The registration ends after its session: the RM does not stay as if it were connected."""
    with served() as it, channel_to(it.address) as channel:
        held = Held(monkeypatch, it, "register_resource_manager")
        session = opened(channel)
        session.send(v1.ManagerMessage(call=2, register=v1.Registration(request=registration())))
        held.wait()
        session.cancel()
        wait_until(lambda: it.server_tasks() <= it.quiet_tasks)
        held.open()
        wait_until(lambda: it.scheduler.resource_managers() and state_of(it, "rm") == "Stopped")


def test_a_newer_stream_replaces_the_older_one_and_gets_what_follows() -> None:
    """The older one ends with ABORTED, and takes no response with it."""
    with served() as it, channel_to(it.address) as channel:
        good = StreamManager(channel)
        good.place("first")
        for number in range(20):
            newer = Call(channel, "/si.v1.Scheduler/UpdateAllocation").send(
                ask_request(f"ask-{number}", rm_id="good")
            )
            code, _ = good.allocations.end()
            good.allocations = newer

            assert grpc.StatusCode.ABORTED is code
        good.place("last")


def test_a_refused_stream_leaves_its_responses_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was placed meanwhile is not lost: a new stream of the kind gets it."""
    with served() as it, channel_to(it.address) as channel:
        good = StreamManager(channel)
        held = Held(monkeypatch, it, "update_allocation")
        good.allocations.send(ask_request("placed", rm_id="good"), b"\xff\xff")
        held.wait()
        code, _ = good.allocations.end()
        held.open()
        good.allocations = Call(channel, "/si.v1.Scheduler/UpdateAllocation")
        good.allocations.send(ask_request("later", rm_id="good"))
        keys: list[str] = []
        while "later" not in keys:
            response = si.AllocationResponse.FromString(good.allocations.read())
            keys += [entry.allocationKey for entry in response.new]

        assert (grpc.StatusCode.INVALID_ARGUMENT, ["placed", "later"]) == (code, keys)


def by_session(channel: grpc.Channel) -> Call:
    """Register an RM in a session, which takes requests about nodes."""
    return opened(channel, "rm")


def by_streams(channel: grpc.Channel) -> Call:
    """Register an RM by `si.v1`, and open its stream of nodes."""
    register(channel, registration())
    return Call(channel, NODES)


@pytest.mark.parametrize(
    ("connect", "requests"),
    [
        (by_session, [v1.ManagerMessage(update_node=request) for request in OLD]),
        (by_streams, OLD),
    ],
)
def test_requests_of_an_old_connection_do_not_reach_the_new_one(
    monkeypatch: pytest.MonkeyPatch, connect: Callable[[grpc.Channel], Call], requests: list[Message]
) -> None:
    """What waits in the old inbox is dropped; the request under way is carried out before."""
    with served() as it, channel_to(it.address) as first, channel_to(it.address) as second:
        old = connect(first)
        held = Held(monkeypatch, it, "update_node")
        old.send(*requests)
        held.wait()
        registering = threading.Thread(target=connect, args=(second,))
        registering.start()
        held.open()
        registering.join()
        code, _ = old.end()

        assert (grpc.StatusCode.ABORTED, []) == (code, node_ids(it))


def test_two_registrations_at_the_same_moment_leave_one_connection() -> None:
    """One of them ends with ABORTED, the other one is served."""
    with served() as it, channel_to(it.address) as first, channel_to(it.address) as second:
        for _ in range(10):
            lost = one_of_two_ends(it, [opened(first), opened(second)])

            assert grpc.StatusCode.ABORTED is lost.stream.code()


def one_of_two_ends(it: Served, sessions: list[Call]) -> Call:
    """Register an RM in two sessions at once; return the one that ends, when the other one was served."""
    ended: list[Call] = []

    def read(session: Call) -> None:
        session.end()
        ended.append(session)

    for session in sessions:
        session.send(v1.ManagerMessage(call=2, register=v1.Registration(request=registration())))
    threads = [threading.Thread(target=read, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    wait_until(lambda: ended)
    (lost,) = ended
    (kept,) = [session for session in sessions if session is not lost]
    kept.send(v1.ManagerMessage(call=3, update_node=node_request("node")))
    wait_until(lambda: node_ids(it) == ["node"])
    kept.cancel()
    for thread in threads:
        thread.join()
    return lost


def test_a_failure_after_the_half_close_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours is a status, and does not leave the RM waiting."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with served() as it, channel_to(it.address) as channel:
        monkeypatch.setattr(it.scheduler, "stop_manager", fail)
        register(channel, registration())
        nodes = Call(channel, NODES).send(node_request("node"))
        nodes.half_close()
        code, text = nodes.end()
        monkeypatch.undo()

        assert (grpc.StatusCode.INTERNAL, True) == (code, "ZeroDivisionError" in text)


def test_calls_to_a_server_that_stops_are_unavailable() -> None:
    """An RM sees a status that tells it to come back, whatever it was doing."""
    with served() as it, channel_to(it.address) as channel:
        good = StreamManager(channel)
        session = opened(channel, "other")
        ends: list[tuple[grpc.StatusCode, str]] = []
        calls = (good.nodes, good.applications, good.allocations, session)
        threads = [threading.Thread(target=lambda call=call: ends.append(call.end())) for call in calls]
        for thread in threads:
            thread.start()
        it.stop()
        for thread in threads:
            thread.join()

        assert [(grpc.StatusCode.UNAVAILABLE, "the server stops")] * 4 == ends


def test_requests_wait_while_too_many_callbacks_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a request is one callback more."""
    asked = threading.Event()
    waiting = [BACKLOG_MAX]

    def callbacks_waiting(_: str) -> int:
        asked.set()
        return waiting[0]

    with served() as it, channel_to(it.address) as channel:
        good = StreamManager(channel)
        monkeypatch.setattr(it.scheduler, "callbacks_waiting", callbacks_waiting)
        good.nodes.send(node_request("second", rm_id="good"))
        assert asked.wait(WAIT_SECONDS)
        before = node_ids(it)
        waiting[0] = 0
        wait_until(lambda: node_ids(it) == ["node", "second"])

        assert ["node"] == before


def test_large_requests_wait_until_the_partitions_have_carried_out_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mailboxes of partitions are bounded in messages, not in bytes."""
    monkeypatch.setattr("licorne.proxy.wire.server.remote_managers.HANDED_BYTES_MAX", 10_000)
    asked: list[str] = []

    with served() as it, channel_to(it.address) as channel:
        monkeypatch.setattr(it.scheduler, "queue_and_user", lambda *_, rm_id: asked.append(rm_id))
        good = StreamManager(channel)
        for number in range(30):
            good.place(f"{number}-{'x' * 1_000}")

        assert ["good"] * 3 == asked


def test_an_rm_that_registers_again_and_again_leaves_nothing_behind() -> None:
    """Nothing keeps what an earlier registration had, not even for a while."""
    with served() as it, channel_to(it.address) as channel:
        earlier = [*map(id, managers())]
        for _ in range(50):
            register(channel, registration())

        def known() -> int:
            return sum(id(each) not in earlier for each in managers())

        wait_until(lambda: gc.collect() >= 0 and known() <= 1, "the end of earlier ones")


def managers() -> list[object]:
    """Return all managers in this process, also those that another test has left behind."""
    return [each for each in gc.get_objects() if type(each).__name__ == "_StreamManager"]


def test_no_more_than_a_thousand_managers_register(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an RM had is kept to be looked at, so that their number has a bound; a known one comes back."""
    monkeypatch.setattr("licorne.proxy.wire.server.remote_managers.MANAGERS_MAX", 2)
    with served() as it, channel_to(it.address) as channel:
        register(channel, registration("one"))
        register(channel, registration("two"))
        code, text = refusal_of(lambda: register(channel, registration("three")))
        register(channel, registration("one"))

        assert (grpc.StatusCode.RESOURCE_EXHAUSTED, "RM 'three' is one too many: 2 have registered") == (
            code,
            text,
        )
