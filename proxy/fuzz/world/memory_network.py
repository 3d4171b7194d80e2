"""A network in memory: gRPC's streams without sockets, for unchanged servers and clients.

While it is in place, it replaces `grpc.aio.server` and `grpc.insecure_channel`, and event loops wait on the
controlled clock. The code of Licorne's server and client runs unchanged. A stream behaves as in HTTP/2:
messages arrive once and in order, perhaps late, and writers wait while a reader does not read; or the
connection is lost, with all messages in transit.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, final

import grpc

from .standard_parts import replaced

_WINDOW: Final = 16
"""How many messages are in transit to a reader before the writer waits."""
_ALIVE_SECONDS: Final = 30.0
"""The silence after which a connection is lost: see `licorne.proxy.wire.client.connection`."""
_END: Final = object()


@final
class _LostError(grpc.RpcError, grpc.Call):
    """The end of a stream, in gRPC's form at the client."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self._code = code
        self._text = text

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._text

    def _none(self, *_: Any) -> Any:
        return None

    initial_metadata = trailing_metadata = is_active = time_remaining = cancel = _none

    def add_callback(self, callback: Callable[[], None]) -> bool:  # noqa: ARG002 - it has ended already
        return False


@final
class _AbortedError(Exception):
    """Ends a handler that has ended its call, like gRPC's error."""


@final
class _Direction:
    """One direction of a stream. Data that is sent while a message is in transit arrives with it."""

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self._network = network
        self._address = address
        self._arrives_until = 0.0

    def wait(self) -> None:
        """Wait for the time of a message, unless one before has just waited: the bandwidth is large."""
        self._network.wait_while_silent(self._address)
        now = time.monotonic()
        if now >= self._arrives_until:
            seconds = self._network.delay_seconds()
            time.sleep(seconds)
            self._arrives_until = now + 2 * seconds


@final
class _MemoryStream:
    """One call of the network: the client's side, and the context of the server's handler."""

    def __init__(
        self,
        network: MemoryNetwork,
        loop: asyncio.AbstractEventLoop,
        address: str,
        client: str,
        metadata: Any,
    ) -> None:
        self._network = network
        self.client = client
        self._loop = loop
        self._metadata = tuple(metadata or ())
        self._to_server: deque[object] = deque()
        self._arrived = asyncio.Event()
        self._to_client: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._under_way = 0
        self._room = asyncio.Event()
        self._sending = threading.Semaphore(_WINDOW)
        self._up, self._down = _Direction(network, address), _Direction(network, address)
        self._lost: _LostError | None = None
        self.task: asyncio.Task[None] | None = None
        self.deserialize: Callable[[bytes], Any] = bytes

    # ------------------------------------------------------------------------------- at the client

    def send_all(self, requests: Iterator[Any], serialize: Callable[[Any], bytes]) -> None:
        """Send the client's messages, on a thread of the stream."""
        for request in requests:
            self._sending.acquire()
            if self._lost is not None:
                return
            self._up.wait()
            self._on_loop(self._arrive, serialize(request))
        self._on_loop(self._arrive, _END)

    def __iter__(self) -> Iterator[Any]:
        while True:
            data = self._to_client.get()
            if self._lost is not None:
                raise self._lost
            if data is _END:
                return
            self._down.wait()
            self._on_loop(self._make_room)
            yield self.deserialize(data)

    def cut(self) -> None:
        """Lose the connection."""
        self.lose(grpc.StatusCode.UNAVAILABLE, "the connection was cut")

    def cancel(self) -> None:
        """End the call from the client."""
        self.lose(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")

    def lose(self, code: grpc.StatusCode, text: str) -> None:
        """End the call; messages in transit are lost."""
        if self._lost is None:
            self._lost = _LostError(code, text)
            self._to_client.put(_END)
            self._sending.release()
            self._on_loop(self._cancel_task)

    @property
    def is_lost(self) -> bool:
        """Whether the call has ended early."""
        return self._lost is not None

    def _on_loop(self, action: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # The loop is closed: the server is gone.
            self._loop.call_soon_threadsafe(action, *args)

    # --------------------------------------------------------------- at the server, on its event loop

    def _cancel_task(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def _arrive(self, data: object) -> None:
        self._to_server.append(data)
        self._arrived.set()

    def _make_room(self) -> None:
        self._under_way -= 1
        self._room.set()

    async def read(self) -> Any:
        """Return the next message as bytes, `EOF` at the end."""
        while not self._to_server:
            self._arrived.clear()
            await self._arrived.wait()
        data = self._to_server[0]
        if data is _END:
            return grpc.aio.EOF
        self._sending.release()
        return self._to_server.popleft()

    async def write(self, data: bytes) -> None:
        """Send a message to the client; wait while it does not read."""
        while self._under_way >= _WINDOW:
            self._room.clear()
            await self._room.wait()
        self._under_way += 1
        self._to_client.put(data)

    async def abort(self, code: grpc.StatusCode, text: str) -> None:
        """End the call with a status."""
        self._end(_LostError(code, text))
        raise _AbortedError

    def _end(self, lost: _LostError | None) -> None:
        if self._lost is None and lost is not None:
            self._to_client.put(_END)
            self._lost = lost
        self._to_client.put(_END)

    def peer(self) -> str:
        """Return the address of the client."""
        return "memory"

    def invocation_metadata(self) -> Any:
        """Return the metadata of the client's call."""
        return self._metadata

    def auth_context(self) -> dict[str, Any]:
        """Return nothing: TLS is not used."""
        return {}

    async def run(self, handle: Callable[..., Any]) -> None:
        """Run the handler of the call to its end."""
        try:
            await handle(None, self)
        except _AbortedError:
            pass
        except asyncio.CancelledError:
            self.lose(grpc.StatusCode.UNAVAILABLE, "the server has gone")
        else:
            self._end(None)


@final
class _MemoryServer:
    """Replaces `grpc.aio.server`."""

    def __init__(self, network: MemoryNetwork) -> None:
        self._network = network
        self._handlers: list[Any] = []
        self.address = ""
        self.streams: dict[_MemoryStream, None] = {}
        self.loop = asyncio.get_running_loop()

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """Add handlers of calls."""
        self._handlers += handlers

    def add_registered_method_handlers(self, *_: object) -> None:
        """Do nothing: `add_generic_rpc_handlers` has the same handlers."""

    def add_insecure_port(self, address: str) -> int:
        """Listen on a free port if the address does not name one."""
        host, _, port = address.rpartition(":")
        number = int(port) or self._network.free_port()
        self.address = f"{host}:{number}"
        self._network.servers[self.address] = self
        return number

    async def start(self) -> None:
        """Do nothing: it listens already."""

    async def stop(self, grace: float | None) -> None:
        """Accept no more calls, and end those that do not end in time."""
        self._network.servers = {
            address: server for address, server in self._network.servers.items() if server is not self
        }
        tasks = [stream.task for stream in self.streams if stream.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for task in tasks:
            task.cancel()

    def open(self, method: str, client: str, metadata: Any) -> tuple[_MemoryStream, Any]:
        """Make the stream of a call; on the client's thread."""
        details = SimpleNamespace(method=method, invocation_metadata=metadata)
        handler: Any = next(filter(None, (each.service(details) for each in self._handlers)))
        stream = _MemoryStream(self._network, self.loop, self.address, client, metadata)
        self.streams[stream] = None
        return stream, handler.stream_stream or partial(_answer_once, handler.unary_unary)

    def begin(self, stream: _MemoryStream, handle: Any) -> None:
        """Run the handler of a call; on the event loop."""
        stream.task = self.loop.create_task(stream.run(handle))
        stream.task.add_done_callback(lambda _: self.streams.pop(stream, None))


async def _answer_once(answer: Callable[..., Any], _: object, stream: _MemoryStream) -> None:
    """Serve a call of one request and one response."""
    await stream.write(await answer(await stream.read(), stream))


@final
class _MemoryChannel:
    """Replaces `grpc.insecure_channel`; the address may have a name of the client before a slash."""

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self._network = network
        self._client, _, self._address = address.rpartition("/")
        self._streams: list[_MemoryStream] = []

    def stream_stream(
        self, method: str, request_serializer: Any, response_deserializer: Any
    ) -> Callable[..., Any]:
        """Return the factory of the call."""

        def call(requests: Iterator[Any], metadata: Any = ()) -> Any:
            server = self._network.servers.get(self._address)
            if server is None:
                return _refused(f"nothing listens at {self._address}")
            stream, handle = server.open(method, self._client, metadata)
            stream.deserialize = response_deserializer
            self._streams.append(stream)
            with suppress(RuntimeError):
                server.loop.call_soon_threadsafe(server.begin, stream, handle)
            threading.Thread(
                target=stream.send_all, args=(requests, request_serializer), name="stream", daemon=True
            ).start()
            return stream

        return call

    def unary_unary(
        self, method: str, request_serializer: Any, response_deserializer: Any
    ) -> Callable[[Any], Any]:
        """Return the factory of a call of one request and one response."""
        begin = self.stream_stream(method, request_serializer, response_deserializer)
        return lambda request: next(iter(begin(iter([request]))))

    def close(self) -> None:
        """End all calls of the channel."""
        for stream in self._streams:
            stream.cancel()


class _Refused:
    """A call without a server."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __iter__(self) -> Iterator[Any]:
        raise _LostError(grpc.StatusCode.UNAVAILABLE, self._text)

    def cancel(self) -> None:
        """Do nothing: it has ended."""


def _refused(text: str) -> _Refused:
    return _Refused(text)


@final
class _MemoryLoop(asyncio.BaseEventLoop):
    """An event loop without sockets: it waits for other threads, and on the clock."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()

    def select(self, timeout: float | None) -> tuple[()]:
        """Wait until another thread wakes it, or for a time."""
        with suppress(queue.Empty):
            self._woken.get(block=timeout is None or timeout > 0, timeout=timeout)
            while True:
                self._woken.get_nowait()
        return ()

    def _process_events(self, event_list: object) -> None:
        """Do nothing: sockets are not used."""

    def _write_to_self(self) -> None:
        self._woken.put(None)


@final
class MemoryNetwork:
    """Servers by address, and the delays of messages to them.

    Args:
        delay_seconds: Returns how long a message takes now.
    """

    def __init__(self, delay_seconds: Callable[[], float]) -> None:
        self.delay_seconds = delay_seconds
        self.servers: dict[str, _MemoryServer] = {}
        self._silent_until: dict[str, float] = {}
        self._ports = 50_000

    def free_port(self) -> int:
        """Return an unused port."""
        self._ports += 1
        return self._ports

    def cut(self, number: int) -> None:
        """Lose one of the present connections, if any."""
        streams = self._streams()
        if streams:
            streams[number % len(streams)].cut()

    def cut_all(self, client: str = "") -> None:
        """Lose all present connections, or those of one client."""
        for stream in self._streams():
            if client in ("", stream.client):
                stream.cut()

    def cut_server(self, address: str) -> None:
        """Lose all connections with one server."""
        server = self.servers.get(address)
        for stream in () if server is None else [*server.streams]:
            stream.cut()

    def end_server(self, address: str) -> None:
        """Lose one server with all its connections, as if its process were killed."""
        self.cut_server(address)
        self.servers.pop(address, None)

    def silence(self, address: str, seconds: float) -> None:
        """Stop all messages from and to a server for a time; return when it ends.

        As with HTTP/2, connections without a sign of life for half a minute are lost.
        """
        self._silent_until[address] = time.monotonic() + seconds
        time.sleep(min(seconds, _ALIVE_SECONDS))
        if seconds > _ALIVE_SECONDS:
            self.cut_server(address)
            time.sleep(seconds - _ALIVE_SECONDS)

    def is_silent(self, address: str) -> bool:
        """Return whether a server is silent now."""
        return self._silent_until.get(address, 0.0) > time.monotonic()

    def wait_while_silent(self, address: str) -> None:
        """Wait while a server is silent."""
        while (seconds := self._silent_until.get(address, 0.0) - time.monotonic()) > 0:
            time.sleep(seconds)

    def _streams(self) -> list[_MemoryStream]:
        return [each for server in self.servers.values() for each in server.streams if not each.is_lost]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Replace gRPC and the event loops for a while."""
        with replaced() as change:
            change(grpc.aio, "server", lambda **_: _MemoryServer(self))
            change(grpc, "insecure_channel", lambda address, **_: _MemoryChannel(self, address))
            change(asyncio.events, "new_event_loop", _MemoryLoop)
            change(asyncio, "new_event_loop", _MemoryLoop)
            yield
