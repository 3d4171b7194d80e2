"""The service `si.v1.Scheduler`: one unary call, and three streams for each resource manager (RM).

An RM registers, then opens a stream for each kind of request that it sends. What is answered is in
`docs/server.md`:

* A stream belongs to the RM that its first message names. A newer stream of one kind replaces the older one.
* A request that is refused ends its stream with a status; the RM may open it again.
* An RM whose last stream ends has lost its connection. One that has closed all its streams has shut down.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import grpc

from ..si import licorne_v1_pb2 as v1
from ..si import si_pb2 as si
from .buffers import Inbox, Outgoing
from .later_answers import AnswersLater
from .messages import merged, parsed
from .remote_managers import RemoteManager
from .statuses import NotRegisteredError, StatusError, status_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Sequence

    from google.protobuf.message import Message

    from .access import Peer
    from .core import Companion, ServerCore

__all__ = ["SERVICE", "SiStreams"]

SERVICE: Final = "si.v1.Scheduler"
_SETTLING_SECONDS: Final = 0.25
"""A connection that breaks looks for a moment like one whose peer has closed its side."""
_FIRST_STREAM_SECONDS: Final = 30.0
"""How long an RM that has registered may have no stream."""

_Request: TypeAlias = "si.AllocationRequest | si.ApplicationRequest | si.NodeRequest"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


@dataclass(frozen=True, slots=True)
class _Kind:
    """One of the three kinds of streams."""

    method: str
    request: type[si.AllocationRequest | si.ApplicationRequest | si.NodeRequest]
    callback: str
    """The method of the scheduler that takes the requests, and that of the RM that takes the responses."""


_KINDS: Final = (
    _Kind("UpdateAllocation", si.AllocationRequest, "update_allocation"),
    _Kind("UpdateApplication", si.ApplicationRequest, "update_application"),
    _Kind("UpdateNode", si.NodeRequest, "update_node"),
)


@dataclass(frozen=True, slots=True)
class _StreamEnd:
    """The end of a stream, in the place of a message: the stream that is meant, `None` for any."""

    stream: _Stream | None
    status: StatusError


@dataclass(eq=False, slots=True)
class _Stream:
    """One open stream of an RM."""

    kind: _Kind
    half_closed: bool = False
    replaced: bool = False
    writing: asyncio.Task[None] | None = None


class _StreamManager(RemoteManager):
    """An RM that is connected by the streams of `si.v1`. What is not marked runs on the event loop."""

    def __init__(
        self, rm_id: str, extra: dict[str, str], *, uses_file: bool, loop: AbstractEventLoop, core: ServerCore
    ) -> None:
        super().__init__(rm_id, extra, uses_file=uses_file)
        self._loop = loop
        self._core = core
        self.companion = core.companions.get(rm_id)
        self.outgoing: dict[str, Outgoing[Message | _StreamEnd]] = {
            kind.callback: Outgoing(loop) for kind in _KINDS
        }
        self.gone = ""
        """Why it has to register again; empty as long as it need not."""
        self.streams: dict[str, _Stream] = {}
        """The open stream of each kind."""
        self.inbox: Inbox[tuple[_Stream, _Request]] = Inbox(loop)
        threading.Thread(target=self._work, name=f"licorne-requests-{rm_id}", daemon=True).start()

    def send(self, callback: str, message: Message) -> None:
        """Send a callback's message, on the RM's link; hints and events have no stream."""
        outgoing = self.outgoing.get(callback)
        if outgoing is not None:
            outgoing.put(message)
        elif self.companion is not None:
            self.companion.call_back(self.rm_id, callback, message)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        self.send("send_event", v1.Events(events=events))

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        for outgoing in self.outgoing.values():
            outgoing.set_bounded(bounded)

    def end(self, reason: str) -> None:
        for outgoing in self.outgoing.values():
            outgoing.put_nowait(_StreamEnd(None, StatusError(grpc.StatusCode.ABORTED, reason)))
            outgoing.finish()
        self._loop.call_soon_threadsafe(self.inbox.close)

    def check_is(self, rm_id: str) -> None:
        """Refuse a request in the name of another RM on a stream of this one.

        Raises:
            StatusError: It is (PERMISSION_DENIED).
        """
        if rm_id != self.rm_id:
            text = f"this stream is of RM {self.rm_id!r}, not of {rm_id!r}"
            raise StatusError(grpc.StatusCode.PERMISSION_DENIED, text)

    def attach(self, stream: _Stream) -> None:
        """Add a stream; an older one of its kind ends."""
        before = self.streams.get(stream.kind.callback)
        self.streams[stream.kind.callback] = stream
        if before is not None and before.writing is not None:
            before.replaced = True
            before.writing.cancel()  # One stream at a time takes what is to be written.

    def detach(self, stream: _Stream, reason: str) -> None:
        """Remove a stream that has ended; with the last one the connection is lost."""
        if self.streams.get(stream.kind.callback) is stream:
            del self.streams[stream.kind.callback]
            if not self.streams:
                self.lose(reason)

    def lose(self, reason: str) -> None:
        """Drop what cannot be sent any more, and pause the RM."""
        self.gone = self.gone or reason
        for outgoing in self.outgoing.values():
            outgoing.close()
        self.inbox.close()
        self._core.managers.connection_lost(self, reason)

    def has_closed_all(self) -> bool:
        """Return whether the RM has closed its side of all its streams."""
        return bool(self.streams) and all(stream.half_closed for stream in self.streams.values())

    def _work(self) -> None:
        """Carry out requests in order; on a thread of its own."""
        while (item := self.inbox.get()) is not None:
            stream, request = item
            try:
                getattr(self._core.scheduler, stream.kind.callback)(request)
            except Exception as error:  # noqa: BLE001 - it is the answer
                status = StatusError(*status_of(error))
                self.outgoing[stream.kind.callback].put_nowait(_StreamEnd(stream, status))


@final
class _AskedStreamManager(AnswersLater, _StreamManager):
    """One whose companion answers questions about nodes."""

    @property
    def sender(self) -> Companion:  # type: ignore[override] # it never changes
        """The session that sends the questions."""
        assert self.companion is not None, "it is made for an RM with a companion: please report"
        return self.companion


@final
class SiStreams:
    """The handlers of the service; they run on the event loop."""

    def __init__(self, core: ServerCore) -> None:
        self._core = core

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handlers of all methods; they take and give bytes."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "RegisterResourceManager": grpc.unary_unary_rpc_method_handler(self._register)
        }
        for kind in _KINDS:
            methods[kind.method] = grpc.stream_stream_rpc_method_handler(self._handler_of(kind))
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    def _handler_of(self, kind: _Kind) -> Callable[[object, _Context], Any]:
        async def handle(_: object, context: _Context) -> None:
            await self._core.answering(context, lambda peer: self._run(kind, context, peer))

        return handle

    async def _register(self, data: bytes, context: _Context) -> bytes:
        return await self._core.answering(context, lambda peer: self._registered(data, peer))

    async def _registered(self, data: bytes, peer: Peer) -> bytes:
        request = parsed(si.RegisterResourceManagerRequest, data)
        peer.check_may_speak_for(request.rmID)
        self._core.check_not_stepped()
        companion = self._core.companions.get(request.rmID)
        asked = companion is not None and companion.has_predicates
        manager = (_AskedStreamManager if asked else _StreamManager)(
            request.rmID,
            dict(request.extraConfig),
            uses_file=not request.config,
            loop=self._core.loop,
            core=self._core,
        )
        try:
            await self._core.on_thread(lambda: self._core.register(request, manager))
        except BaseException:
            manager.inbox.close()
            raise
        self._core.loop.call_later(_FIRST_STREAM_SECONDS, self._check_has_streams, manager)
        return si.RegisterResourceManagerResponse().SerializeToString()

    @staticmethod
    def _check_has_streams(manager: _StreamManager) -> None:
        if not manager.streams:
            manager.lose(f"it opened no stream within {_FIRST_STREAM_SECONDS:g} s")

    async def _run(self, kind: _Kind, context: _Context, peer: Peer) -> None:
        """Serve one stream: this task writes, another one reads."""
        data = await context.read()
        if data is grpc.aio.EOF:
            return  # It has said nothing, and belongs to no RM.
        manager = self._manager_of(parsed(kind.request, data), peer)
        stream = _Stream(kind)
        manager.attach(stream)
        stream.writing = asyncio.create_task(self._write(manager, stream, context))
        reading = asyncio.create_task(self._read(manager, stream, context, data, peer))
        reason = "its connection was lost"
        try:
            await stream.writing
        except StatusError as error:
            reason = f"its last stream was ended: {error}"
            raise
        except asyncio.CancelledError as error:
            if not stream.replaced:
                raise
            text = "a newer stream of the RM has replaced this one"
            raise StatusError(grpc.StatusCode.ABORTED, text) from error
        finally:
            stream.writing.cancel()
            reading.cancel()
            manager.detach(stream, reason)

    def _manager_of(self, request: _Request, peer: Peer) -> _StreamManager:
        """Return the manager that a first message names.

        Raises:
            StatusError: It may not be named, has not registered, or is connected in another way.
        """
        peer.check_may_speak_for(request.rmID)
        manager = self._core.managers.current(request.rmID)
        if not isinstance(manager, _StreamManager):
            text = f"RM {request.rmID!r} is connected by licorne.v1: it has no streams of {SERVICE}"
            raise StatusError(grpc.StatusCode.FAILED_PRECONDITION, text)
        if manager.gone:
            raise NotRegisteredError(f"RM {request.rmID!r}: {manager.gone}; register again")
        return manager

    async def _read(
        self, manager: _StreamManager, stream: _Stream, context: _Context, data: Any, peer: Peer
    ) -> None:
        """Read requests until the RM closes its side; a refusal is left to the task that writes."""
        outgoing = manager.outgoing[stream.kind.callback]
        try:
            while data is not grpc.aio.EOF:
                request = parsed(stream.kind.request, data)
                peer.check_may_speak_for(request.rmID)
                manager.check_is(request.rmID)
                await manager.inbox.put((stream, request))
                data = await context.read()
        except StatusError as error:
            outgoing.put_nowait(_StreamEnd(stream, error))
            return
        await asyncio.sleep(_SETTLING_SECONDS)
        stream.half_closed = True
        if manager.has_closed_all():
            manager.gone = "it has shut down"
            await self._core.on_thread(lambda: self._core.managers.shut_down(manager))
            for each in manager.outgoing.values():
                each.finish()

    @staticmethod
    async def _write(manager: _StreamManager, stream: _Stream, context: _Context) -> None:
        """Write responses until there are no more.

        Raises:
            StatusError: The stream ends with a status.
        """
        outgoing = manager.outgoing[stream.kind.callback]
        while items := await outgoing.take():
            waiting = deque(merged(items))
            try:
                while waiting:
                    item = waiting.popleft()
                    if not isinstance(item, _StreamEnd):
                        await context.write(item.SerializeToString())
                    elif item.stream in (None, stream):
                        raise item.status
            finally:
                outgoing.put_back(waiting)  # For the stream that comes next.
