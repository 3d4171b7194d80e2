"""A server in this process and resource managers (RMs) on raw channels."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from operator import le
from typing import Any, Final, Self

import grpc
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS, wait_until

from licorne import Scheduler
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.server.server import ServerSettings, ServerThread

OPEN: Final = "/licorne.v1.Session/Open"
_MOMENT_SECONDS: Final = 0.01
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)


@contextmanager
def channel_to(address: str) -> Iterator[grpc.Channel]:
    """Give a channel with a connection of its own."""
    with grpc.insecure_channel(address, options=_OPTIONS) as channel:
        yield channel


class Call:
    """A stream that sends bytes when the test says so, and reads when the test says so."""

    def __init__(
        self, channel: grpc.Channel, method: str, metadata: tuple[tuple[str, str], ...] = ()
    ) -> None:
        self._sending: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        multi: Any = channel.stream_stream(method)
        self.stream: Any = multi(iter(self._sending.get, None), metadata=metadata)

    def send(self, *messages: Any) -> Self:
        """Send messages, or bytes as they are."""
        for message in messages:
            self._sending.put(message if isinstance(message, bytes) else message.SerializeToString())
        return self

    def half_close(self) -> None:
        """Send no more."""
        self._sending.put(None)

    def read(self) -> bytes:
        """Return the next message."""
        return bytes(next(self.stream))

    def cancel(self) -> None:
        self._sending.put(None)
        self.stream.cancel()

    def end(self) -> tuple[grpc.StatusCode, str]:
        """Read to the end of the stream, and return its status."""
        try:
            for _ in self.stream:
                pass
        except grpc.RpcError:
            pass
        self._sending.put(None)
        return self.stream.code(), self.stream.details()


def registration(rm_id: str = "rm", config: str = ONE) -> si.RegisterResourceManagerRequest:
    return si.RegisterResourceManagerRequest(rmID=rm_id, policyGroup="queues", config=config)


def register(channel: grpc.Channel, request: bytes | si.RegisterResourceManagerRequest) -> None:
    """Register by `si.v1`."""
    data = request if isinstance(request, bytes) else request.SerializeToString()
    method: Any = channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager")
    method(data, timeout=WAIT_SECONDS)


def opened(channel: grpc.Channel, rm_id: str | None = None) -> Call:
    """Open a session, and register an RM in it if one is named."""
    session = Call(channel, OPEN)
    session.send(v1.ManagerMessage(call=1, hello=v1.Hello(version="test")))
    session.read()
    if rm_id is not None:
        session.send(
            v1.ManagerMessage(call=2, register=v1.Registration(request=registration(rm_id))),
        )
        answered = v1.SchedulerMessage.FromString(session.read())
        assert not answered.HasField("refusal"), answered
    return session


class StreamManager:
    """A well-behaved RM of `si.v1`: a node, an application, and asks that are placed one by one."""

    def __init__(self, channel: grpc.Channel, rm_id: str = "good") -> None:
        self.rm_id = rm_id
        register(channel, registration(rm_id))
        self.nodes, self.applications, self.allocations = (
            Call(channel, f"/si.v1.Scheduler/{name}")
            for name in ("UpdateNode", "UpdateApplication", "UpdateAllocation")
        )
        self.nodes.send(node_request("node", rm_id=rm_id, memory=1_000_000))
        self.nodes.read()
        self.applications.send(application_request("app", rm_id=rm_id))
        self.applications.read()

    def place(self, key: str) -> None:
        """Ask for something, and wait until it is placed."""
        self.allocations.send(ask_request(key, rm_id=self.rm_id))
        while True:
            response = si.AllocationResponse.FromString(self.allocations.read())
            if any(entry.allocationKey == key for entry in response.new):
                return

    def close(self) -> None:
        for call in (self.nodes, self.applications, self.allocations):
            call.cancel()


class Served:
    """A running server, and what it uses."""

    def __init__(self, server: ServerThread, scheduler: Scheduler) -> None:
        self.server = server
        self.scheduler = scheduler
        self.address = server.address
        self.port = int(server.address.rpartition(":")[2])
        self._keys = iter(range(1_000_000))
        self.quiet_tasks = self.server_tasks()
        """How many tasks there are without a call."""

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """Check that an RM is served behind the block as before it, and no thread and no task is left of it.

        Raises:
            AssertionError: It is not, or one is.
        """
        with channel_to(self.address) as channel:
            good = StreamManager(channel)
            good.place(f"ask-{next(self._keys)}")
            before = self._used()
            yield
            good.place(f"ask-{next(self._keys)}")
            wait_until(lambda: all(map(le, self._used(), before)), f"{before} threads and tasks")
            good.close()

    def stop(self) -> None:
        """Begin to stop the server."""
        loop, stopping, _ = self.server._started.result()
        loop.call_soon_threadsafe(stopping.set)

    def _used(self) -> tuple[int, int]:
        """Return the number of threads of ours, and of tasks of the event loop."""
        names = [thread.name for thread in threading.enumerate()]
        ours = [name for name in names if name.startswith("licorne-") and "_" not in name]
        return len(ours), self.server_tasks()

    def server_tasks(self) -> int:
        """Return the number of tasks of the event loop."""
        return len(asyncio.all_tasks(self.server._started.result()[0]))


@contextmanager
def served(**settings: Any) -> Iterator[Served]:
    """Run a server on a free port; an RM that is lost is stopped soon."""
    scheduler = Scheduler()
    chosen = ServerSettings(**{"stop_after_seconds": 0.1, **settings})
    with ServerThread(scheduler, chosen) as server:
        yield Served(server, scheduler)
