"""The service `si.v1.Scheduler`: one unary call, and three streams for each resource manager (RM).

An RM registers, then opens a stream for each kind of request that it sends. The answers are in
`docs/server.md`:

* A stream belongs to the RM that its first message names. A newer stream of one kind replaces the older one.
* A request that is refused ends its stream with a status; the RM may open it again.
* An RM whose last stream ends has lost its connection. One that has closed all its streams has shut down.
* Responses of a kind that has no stream now wait for one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, final

import grpc
from google.protobuf.message import Message

from ....actors.runtime.pool import RequestThread
from ...si import si_pb2 as si
from ...si.messages import merged
from .access import Peer
from .buffers import Inbox, Outgoing, call_soon
from .calls import LAST_SECONDS, StatusError, parsed, status_of
from .core import Companion, ServerCore
from .later_answers import AnswersLater
from .remote_managers import RemoteManager

SERVICE: Final = "si.v1.Scheduler"
_SETTLING_SECONDS: Final = 0.25
"""A connection that breaks looks for a moment like one whose peer has closed its side."""

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


@dataclass(eq=False, slots=True)
class _Stream:
    """One open stream of an RM; it belongs to the event loop."""

    kind: _Kind
    task: asyncio.Task[Any]
    """It answers the call."""
    half_closed: bool = False
    end_status: StatusError | None = None
    """Why it ends before its RM has closed it."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class _StreamManager(RemoteManager):
    """An RM that is connected by the streams of `si.v1`. Methods without a mark run on the event loop."""

    def __init__(self, rm_id: str, extra: dict[str, str], *, uses_file: bool, core: ServerCore) -> None:
        super().__init__(rm_id, extra, uses_file=uses_file)
        self._core = core
        self.companion = core.companions.get(rm_id)
        self.outgoing: dict[str, Outgoing[Message]] = {
            kind.callback: Outgoing(core.loop, _size_of) for kind in _KINDS
        }
        self.streams: dict[str, _Stream] = {}
        """The open stream of each kind."""
        self.inbox: Inbox[tuple[_Stream, _Request]] = Inbox(core.loop)
        self.status: StatusError | None = None
        """Why all its streams end when what is queued is delivered."""
        self.waits_for_stream: asyncio.TimerHandle | None = None
        """Looks whether it has opened a stream; a timer keeps its manager until then."""
        self._works = False

    def send(self, callback: str, message: Message) -> None:
        """Send a callback's message, on the RM's link; hints and events have no stream."""
        outgoing = self.outgoing.get(callback)
        if outgoing is not None:
            outgoing.put(message)
        elif self.companion is not None:
            self.companion.call_back(self.rm_id, callback, message)

    def send_burst(self, burst: Sequence[tuple[str, Message]]) -> None:
        for callback, message in burst:
            if (outgoing := self.outgoing.get(callback)) is not None:
                outgoing.put_nowait(message)
            elif self.companion is not None:
                self.companion.call_back_nowait(self.rm_id, (callback, message))

    def has_room(self) -> bool:
        buffers: list[Outgoing[Message] | Companion] = [*self.outgoing.values()]
        if self.companion is not None:
            buffers.append(self.companion)
        return all(buffer.has_room() for buffer in buffers)

    def set_bounded(self, bounded: bool) -> None:  # noqa: FBT001 - it is the verb's object
        for outgoing in self.outgoing.values():
            outgoing.set_bounded(bounded)
        if self.companion is not None:
            self.companion.set_bounded(bounded)

    def end(self, status: StatusError) -> None:
        self.status = status
        if self.waits_for_stream is not None:
            self.waits_for_stream.cancel()
        self.inbox.close(drop=True)
        for outgoing in self.outgoing.values():
            outgoing.finish()
        for stream in self.streams.values():
            self._core.loop.call_later(LAST_SECONDS, self._core.calls.end, stream.task, status)

    def drop(self) -> None:
        self.inbox.close(drop=True)
        for outgoing in self.outgoing.values():
            outgoing.close()

    def check_is(self, rm_id: str) -> None:
        """Refuse a request in the name of another RM on a stream of this one.

        Raises:
            StatusError: It is (PERMISSION_DENIED).
        """
        if rm_id != self.rm_id:
            text = f"this stream is of RM {self.rm_id!r}, not of {rm_id!r}"
            raise StatusError(grpc.StatusCode.PERMISSION_DENIED, text)

    def attach(self, stream: _Stream) -> _Stream | None:
        """Add a stream; return the older one of its kind, which ends."""
        if not self._works:
            self._works = True
            name = f"licorne-requests-{self.rm_id}"
            RequestThread(target=self._work, name=name, daemon=True).start()
        before = self.streams.get(stream.kind.callback)
        self.streams[stream.kind.callback] = stream
        if before is not None:
            text = "a newer stream of the RM has replaced this one"
            self.end_stream(before, StatusError(grpc.StatusCode.ABORTED, text))
        return before

    def end_stream(self, stream: _Stream, status: StatusError) -> None:
        """End one stream after the message that is being written; what is queued waits for another one."""
        if stream.end_status is None:
            stream.end_status = status
            self.outgoing[stream.kind.callback].look_again()
            self._core.loop.call_later(LAST_SECONDS, self._core.calls.end, stream.task, status)

    def detach(self, stream: _Stream, reason: str) -> None:
        """Remove a stream that has ended; with the last one the connection is lost."""
        if self.streams.get(stream.kind.callback) is stream:
            del self.streams[stream.kind.callback]
            if not self.streams:
                self.lose(reason)

    def lose(self, reason: str) -> None:
        """Drop messages that can no longer be sent, and pause the RM."""
        self.drop()
        self._core.managers.connection_lost(self, reason)

    def has_closed_all(self) -> bool:
        """Return whether the RM has closed its side of all its streams."""
        return bool(self.streams) and all(stream.half_closed for stream in self.streams.values())

    def _work(self) -> None:
        """Carry out requests in order; on a separate thread. A peer that does not read is not served."""
        while (item := self.inbox.get()) is not None:
            stream, request = item
            for outgoing in self.outgoing.values():
                outgoing.wait_for_room()
            self.wait_until_delivered(self._core.scheduler)
            try:
                with self.turn:
                    self._core.managers.check_current(self)
                    self.hand_over(self._core.scheduler, stream.kind.callback, request)
            except Exception as error:  # noqa: BLE001 - it is the answer
                status = StatusError(*status_of(error))
                call_soon(self._core.loop, self.end_stream, stream, status)


@final
class _AskedStreamManager(AnswersLater, _StreamManager):
    """One whose companion answers questions about nodes."""

    @property
    def sender(self) -> Companion:  # type: ignore[override] # it never changes
        """The session that sends the questions."""
        assert self.companion is not None, "it is made for an RM with a companion: please report"
        return self.companion


def _size_of(message: Message) -> int:
    return message.ByteSize()


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
        return await self._core.answering(context, lambda peer: self._registered(data, peer, context.peer()))

    async def _registered(self, data: bytes, peer: Peer, address: str) -> bytes:
        request = parsed(si.RegisterResourceManagerRequest, data)
        peer.check_may_speak_for(request.rmID)
        self._core.check_not_stepped()
        companion = self._core.companions.get(request.rmID)
        asked = companion is not None and companion.has_predicates
        manager = (_AskedStreamManager if asked else _StreamManager)(
            request.rmID, dict(request.extraConfig), uses_file=not request.config, core=self._core
        )
        manager.connected_by = f"si.v1 from {address}"
        registering = asyncio.ensure_future(
            self._core.on_thread(lambda: self._core.register(request, manager), configuration=request.config)
        )
        # Also where the client does not wait for the answer: it is registered all the same.
        registering.add_done_callback(lambda done: self._await_streams(manager, done))
        await asyncio.shield(registering)
        return si.RegisterResourceManagerResponse().SerializeToString()

    def _await_streams(self, manager: _StreamManager, registering: asyncio.Future[None]) -> None:
        """Require that a registered RM opens a stream soon."""
        if not registering.cancelled() and registering.exception() is None and manager.status is None:
            seconds = self._core.calls.silence_seconds
            manager.waits_for_stream = self._core.loop.call_later(seconds, self._check_has_streams, manager)

    def _check_has_streams(self, manager: _StreamManager) -> None:
        if not manager.streams and manager.lost is None:
            manager.lose(f"it opened no stream within {self._core.calls.silence_seconds:g} s")

    async def _run(self, kind: _Kind, context: _Context, peer: Peer) -> None:
        """Serve one stream: this task writes, another one reads."""
        with self._core.calls.stranger() as task:
            data = await context.read()
            if data is grpc.aio.EOF:
                return  # It has sent nothing, and belongs to no RM.
            manager = self._manager_of(parsed(kind.request, data), peer)
        stream = _Stream(kind, task)
        before = manager.attach(stream)
        reading = asyncio.create_task(self._read(manager, stream, context, data, peer))
        reason = "its connection was lost"
        try:
            if before is not None:
                await before.ended.wait()
            await self._write(manager, stream, context)
        except StatusError as error:
            reason = f"its last stream was ended: {error}"
            raise
        finally:
            stream.ended.set()
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
        return manager

    async def _read(
        self, manager: _StreamManager, stream: _Stream, context: _Context, data: Any, peer: Peer
    ) -> None:
        """Read requests until the RM closes its side; a refusal is left to the task that writes."""
        try:
            while data is not grpc.aio.EOF:
                request = parsed(stream.kind.request, data)
                peer.check_may_speak_for(request.rmID)
                manager.check_is(request.rmID)
                await manager.inbox.put((stream, request), len(data))
                data = await context.read()
            await asyncio.sleep(_SETTLING_SECONDS)
            stream.half_closed = True
            if manager.has_closed_all():
                await self._core.on_thread(lambda: self._core.managers.shut_down(manager))
                for each in manager.outgoing.values():
                    each.finish()
        except Exception as error:  # noqa: BLE001 - it is the answer
            manager.end_stream(stream, StatusError(*status_of(error)))

    @staticmethod
    async def _write(manager: _StreamManager, stream: _Stream, context: _Context) -> None:
        """Write responses until the end.

        Raises:
            StatusError: The stream ends with a status.
        """
        outgoing = manager.outgoing[stream.kind.callback]
        while items := await outgoing.take(lambda: stream.end_status is not None):
            messages = deque(merged(items, lambda item: item, lambda _, __: True))
            try:
                while messages and stream.end_status is None:
                    await context.write(messages[0].SerializeToString())
                    messages.popleft()
            finally:
                outgoing.put_back(messages)
        status = stream.end_status or manager.status
        if status is not None:
            raise status
