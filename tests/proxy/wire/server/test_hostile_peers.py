"""Peers that send nonsense, too much or nothing, or do not read; others are served, nothing is left."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

import grpc
import pytest
from google.protobuf.message import Message
from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.proxy.served import (
    OPEN,
    Call,
    Served,
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
from licorne.proxy.si.messages import MESSAGE_BYTES_MAX
from licorne.proxy.wire.server.buffers import Outgoing
from licorne.proxy.wire.server.calls import STRANGERS_MAX

STREAMS: Final = ("UpdateNode", "UpdateApplication", "UpdateAllocation")
MALFORMED: Final = (
    pytest.param(b"\xff\xff\xff", id="no-field"),
    pytest.param(b"\x1a\x7fabc", id="cut-off"),
    pytest.param(b"\x1a\x02\xc3\x28\x22\x02\xc3\x28\x0a\x02\xc3\x28", id="no-utf-8"),
)
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SILENT: Final = 200
STEADY: Final = 30
"""How many looks in a row find no progress."""
SETTINGS: Final = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


def method_of(stream: str) -> str:
    return f"/si.v1.Scheduler/{stream}"


@contextmanager
def connected(it: Served, count: int = 1) -> Iterator[list[socket.socket]]:
    """Give raw connections."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", it.port), timeout=WAIT_SECONDS))
            for _ in range(count)
        ]


@pytest.fixture
def channel() -> Iterator[grpc.Channel]:
    """Give a channel to a server that serves others as well as before in the end."""
    with served() as it, it.unharmed(), channel_to(it.address) as channel:
        yield channel


def until_closed(connection: socket.socket) -> None:
    """Read until the server closes the connection, one way or the other."""
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass


# --------------------------------------------------------------------------------------- what is malformed


Ended: TypeAlias = tuple[grpc.StatusCode, str]


def end_of_stream(stream: str, channel: grpc.Channel, data: bytes) -> Ended:
    return Call(channel, method_of(stream)).send(data).end()


def end_of_registration(channel: grpc.Channel, data: bytes) -> Ended:
    return refusal_of(lambda: register(channel, data))


def end_of_session(channel: grpc.Channel, data: bytes) -> Ended:
    return Call(channel, OPEN).send(data).end()


def end_of_greeted_session(channel: grpc.Channel, data: bytes) -> Ended:
    return opened(channel, "rm").send(data).end()


SENDING: Final[dict[str, Callable[[grpc.Channel, bytes], Ended]]] = {
    **{stream: partial(end_of_stream, stream) for stream in STREAMS},
    "registration": end_of_registration,
    "first message of a session": end_of_session,
    "later message of a session": end_of_greeted_session,
}


@pytest.mark.parametrize("data", MALFORMED)
@pytest.mark.parametrize("send", SENDING.values(), ids=SENDING)
def test_bytes_that_are_no_message_end_their_call(
    channel: grpc.Channel, send: Callable[[grpc.Channel, bytes], Ended], data: bytes
) -> None:
    """The status quotes the first bytes."""
    code, text = send(channel, data)

    assert grpc.StatusCode.INVALID_ARGUMENT is code
    assert data[:16].hex(" ") in text


def test_a_message_above_the_limit_ends_its_call(channel: grpc.Channel) -> None:
    """Before the message has come as a whole."""
    large = b"\x00" * (MESSAGE_BYTES_MAX + 1)
    codes = [send(channel, large)[0] for send in SENDING.values()]

    assert [grpc.StatusCode.RESOURCE_EXHAUSTED] * 6 == codes


def test_unknown_numbers_of_enumerations_are_refused(channel: grpc.Channel) -> None:
    """What an unknown action or step would mean is not guessed; nothing has changed."""
    strange = node_request("node", rm_id="rm")
    strange.nodes[0].action = 99  # type: ignore[assignment]
    session = opened(channel, "rm")
    session.send(
        v1.ManagerMessage(call=3, update_node=strange),
        v1.ManagerMessage(call=4, step=v1.Step(method=99)),  # type: ignore[arg-type]
    )
    heard = [v1.SchedulerMessage.FromString(session.read()) for _ in range(3)]
    session.cancel()

    (rejected,) = [entry for message in heard for entry in message.update_node.rejected]
    (refused,) = [message.refusal.text for message in heard if message.HasField("refusal")]
    assert "its action 99 is unknown" in rejected.reason
    assert "unknown step 99" == refused


@pytest.mark.parametrize("body", ["\N{TURTLE}" * 4_000, "x" * 1_000_000])
def test_very_long_ids_are_quoted_in_part(channel: grpc.Channel, body: str) -> None:
    """A status travels in headers, which peers bound: the text is cut, and the code arrives."""
    call = Call(channel, method_of("UpdateNode")).send(node_request("node", rm_id=body))
    code, text = call.end()

    assert grpc.StatusCode.FAILED_PRECONDITION is code
    assert text.startswith(f"RM '{body[:100]}")


def test_metadata_of_many_kib_is_refused(channel: grpc.Channel) -> None:
    """The call ends, the server and the connection go on."""
    code, _ = Call(channel, OPEN, (("x-large", "x" * 200_000),)).end()

    assert grpc.StatusCode.RESOURCE_EXHAUSTED is code


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096, PREFACE + b"\xff" * 4096])
def test_bytes_that_are_no_http_2_close_their_connection(data: bytes) -> None:
    """Whether or not they begin as if they were."""
    with served() as it, it.unharmed(), connected(it) as (connection,):
        connection.sendall(data)
        until_closed(connection)


# ------------------------------------------------------------------------------------------ what is silent


def test_connections_that_say_nothing_cost_no_thread_and_are_closed() -> None:
    """200 of them; those that begin and go on byte by byte are closed as well."""
    with served(handshake_seconds=1) as it, it.unharmed(), connected(it, SILENT) as connections:
        for connection in connections[: SILENT // 2]:
            connection.sendall(PREFACE[:4])
        for connection in connections:
            until_closed(connection)


def test_a_peer_that_vanishes_is_found_by_keepalive() -> None:
    """It answers nothing any more, and its end stays open: its RM is paused, then stopped."""
    with (
        served(keepalive_seconds=0.2, keepalive_timeout_seconds=0.2) as it,
        it.unharmed(),
        CuttingProxy(it.port) as proxy,
        channel_to(proxy.address) as channel,
    ):
        opened(channel, "gone")
        proxy.silence()
        wait_until(lambda: "Stopped" in states(it, "gone"), "the end of the RM")


def states(it: Served, rm_id: str) -> list[str]:
    return [each.state.value for each in it.scheduler.resource_managers() if each.rm_id == rm_id]


def test_a_session_without_hello_ends() -> None:
    """Its client has not begun to speak in time."""
    with served(silence_seconds=0.1) as it, it.unharmed(), channel_to(it.address) as channel:
        code, text = Call(channel, OPEN).end()

        assert (grpc.StatusCode.DEADLINE_EXCEEDED, "no first message came within 0.1 s") == (code, text)


def test_sessions_that_say_hello_alone_cost_no_thread() -> None:
    """200 of them; a thread is there from the first request on."""
    with served() as it, it.unharmed(), ExitStack() as stack:
        channels = [stack.enter_context(channel_to(it.address)) for _ in range(4)]
        sessions = [opened(channels[number % 4]) for number in range(SILENT)]
        working = [thread for thread in threading.enumerate() if thread.name == "licorne-session"]
        for session in sessions:
            session.cancel()

        assert [] == working


def test_strangers_do_not_keep_others_out() -> None:
    """When too many streams have no RM, the oldest ends: one that registers now is let in."""
    with served() as it, it.unharmed(), ExitStack() as stack:
        channels = [stack.enter_context(channel_to(it.address)) for _ in range(6)]
        strangers = [Call(channels[number // 99], OPEN) for number in range(STRANGERS_MAX)]
        wait_until(lambda: it.server_tasks() > STRANGERS_MAX)
        session = opened(channels[5], "late")
        ended = [stranger.stream.code() for stranger in strangers if stranger.stream.done()]
        for call in (session, *strangers):
            call.cancel()

        assert set(ended) <= {grpc.StatusCode.RESOURCE_EXHAUSTED}


# ---------------------------------------------------------------------------------------- out of order


def greeted(channel: grpc.Channel, companion_of: str) -> Call:
    """Open a session as the companion of an RM."""
    session = Call(channel, OPEN)
    session.send(v1.ManagerMessage(call=1, hello=v1.Hello(version="test", companion_of=companion_of)))
    session.read()
    return session


def test_companions_of_rms_that_have_not_registered_are_strangers() -> None:
    """They do not keep others out."""
    with served() as it, ExitStack() as stack:
        channels = [stack.enter_context(channel_to(it.address)) for _ in range(6)]
        companions = [greeted(channels[number // 99], f"rm-{number}") for number in range(STRANGERS_MAX + 1)]
        assert grpc.StatusCode.RESOURCE_EXHAUSTED is companions[0].end()[0]
        register(channels[5], registration("rm-1"))
        strangers = [Call(channels[5], OPEN) for _ in range(2)]
        assert grpc.StatusCode.RESOURCE_EXHAUSTED is companions[2].end()[0]
        assert companions[1].stream.is_active()
        for call in (*companions, *strangers):
            call.cancel()


def test_an_rm_has_one_companion() -> None:
    """A further one takes its place."""
    with served() as it, channel_to(it.address) as channel:
        register(channel, registration("rm"))
        first = greeted(channel, "rm")
        second = greeted(channel, "rm")
        assert (grpc.StatusCode.ABORTED, "RM 'rm' has another session as its companion") == first.end()
        assert second.stream.is_active()
        second.cancel()


@pytest.mark.parametrize(
    ("method", "message", "text"),
    [
        *(
            pytest.param(method_of(name), request, "RM 'rm' has not registered", id=f"{name} too early")
            for name, request in (
                ("UpdateNode", node_request("node")),
                ("UpdateApplication", application_request("app")),
                ("UpdateAllocation", ask_request("ask")),
            )
        ),
        pytest.param(
            OPEN,
            v1.ManagerMessage(update_node=node_request("node")),
            "the first message is hello, not update_node",
            id="a message before hello",
        ),
    ],
)
def test_what_comes_too_early_ends_its_stream(
    channel: grpc.Channel, method: str, message: Message, text: str
) -> None:
    """Its RM is not known."""
    end = Call(channel, method).send(message).end()

    assert (grpc.StatusCode.FAILED_PRECONDITION, text) == end


def test_a_stream_that_speaks_for_two_managers_ends(channel: grpc.Channel) -> None:
    """It belongs to the first one; the other one is unharmed."""
    register(channel, registration("one"))
    call = Call(channel, method_of("UpdateNode"))
    end = call.send(node_request("node", rm_id="one"), node_request("node", rm_id="two")).end()

    assert (grpc.StatusCode.PERMISSION_DENIED, "this stream is of RM 'one', not of 'two'") == end


# -------------------------------------------------------------------------------------- what is too much


class Flood:
    """Sends the same message on a stream as fast as the server takes it."""

    def __init__(self, channel: grpc.Channel, method: str, firsts: list[Any], message: Any) -> None:
        self.sent = 0
        self._ended = threading.Event()

        def messages() -> Iterator[bytes]:
            for first in firsts:
                yield first.SerializeToString()
            data = message.SerializeToString()
            while not self._ended.is_set():
                self.sent += 1
                yield data

        multi: Any = channel.stream_stream(method)
        self.stream: Any = multi(messages())

    def until_steady(self) -> None:
        """Wait until the server takes no more."""
        seen: list[int] = []

        def is_steady() -> bool:
            seen.append(self.sent)
            return len(seen) > STEADY and self.sent > 0 and seen[-STEADY] == self.sent

        wait_until(is_steady)

    def end(self) -> None:
        self._ended.set()
        self.stream.cancel()


def unknown_asks(rm_id: str) -> si.AllocationRequest:
    """Return asks that are rejected: the answer is larger than they are."""
    return ask_request(*(f"{number}-{'x' * 2_000}" for number in range(20)), rm_id=rm_id, application="none")


def test_very_many_small_streams_leave_nothing_behind(channel: grpc.Channel) -> None:
    """500 sessions, one after the other, half of them with an RM."""
    for number in range(500):
        opened(channel, "rm" if number % 2 else None).cancel()


def flooding(it: Served, channel: grpc.Channel, service: str) -> Flood:
    """Return an RM that sends and does not read, when the server takes no more of it."""
    asks = unknown_asks("slow")
    if service == "session":
        firsts = [
            v1.ManagerMessage(hello=v1.Hello()),
            v1.ManagerMessage(register=v1.Registration(request=registration("slow"))),
        ]
        flood = Flood(channel, OPEN, firsts, v1.ManagerMessage(update_allocation=asks))
    else:
        register(channel, registration("slow"))
        flood = Flood(channel, method_of("UpdateAllocation"), [], asks)
    flood.until_steady()
    assert it.scheduler.callbacks_waiting("slow") < BACKLOG_MAX
    return flood


@pytest.fixture
def _small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have less wait for a peer than usual, which is sooner there."""
    defaults: Any = Outgoing.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "size_max", 32)


@pytest.mark.usefixtures("_small_buffers")
@pytest.mark.parametrize("service", ["session", "streams"])
def test_an_rm_that_does_not_read_is_not_served_and_may_come_back(service: str) -> None:
    """What waits for it is bounded; when it registers elsewhere, nothing waits for its older connection."""
    with served() as it, it.unharmed(), channel_to(it.address) as channel:
        flood = flooding(it, channel, service)
        with channel_to(it.address) as another:
            session = opened(another, "slow")
            session.send(v1.ManagerMessage(call=3, update_node=node_request("node", rm_id="slow")))
            answered = v1.SchedulerMessage.FromString(session.read())
            session.cancel()
        flood.end()

        assert answered.call in (0, 3)
        assert not answered.HasField("refusal")


@pytest.mark.usefixtures("_small_buffers")
@pytest.mark.parametrize("service", ["session", "streams"])
def test_a_server_stops_while_a_peer_does_not_read(service: str) -> None:
    """Its last callbacks are dropped: no thread waits for it."""
    with served() as it, channel_to(it.address) as channel:
        flood = flooding(it, channel, service)
        it.stop()
        it.server._thread.join(WAIT_SECONDS)
        flood.end()

        assert not it.server._thread.is_alive()
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("licorne-rm")]
