"""The streams of `si.v1` as a resource manager (RM) in another language holds them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, final

import grpc

from licorne.proxy.si import si_pb2 as si

from .listening import WAIT_SECONDS

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["RESPONSES", "WireStream", "WireStreams"]

RESPONSES: Final[dict[str, Any]] = {
    "UpdateAllocation": si.AllocationResponse,
    "UpdateApplication": si.ApplicationResponse,
    "UpdateNode": si.NodeResponse,
}


@final
class WireStream:
    """One open stream; what comes is kept until it is read."""

    def __init__(self, channel: grpc.Channel, method: str) -> None:
        self._sending: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._received: queue.SimpleQueue[Message | grpc.RpcError | None] = queue.SimpleQueue()
        method_call: Any = channel.stream_stream(
            f"/si.v1.Scheduler/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=RESPONSES[method].FromString,
        )
        self.call = method_call(self._requests())
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _requests(self) -> Iterator[Message]:
        while (message := self._sending.get()) is not None:
            yield message

    def _read(self) -> None:
        try:
            for message in self.call:
                self._received.put(message)
        except grpc.RpcError as error:
            self._received.put(error)
        else:
            self._received.put(None)

    def send(self, message: Message) -> None:
        """Send a request."""
        self._sending.put(message)

    def next(self) -> Any:
        """Return the next response; `None` when the stream has ended with OK.

        Raises:
            grpc.RpcError: It has ended with another status.
        """
        received = self._received.get(timeout=WAIT_SECONDS)
        if isinstance(received, grpc.RpcError):
            raise received
        return received

    def read_to_end(self) -> None:
        """Read all responses until the stream has ended with OK.

        Raises:
            grpc.RpcError: It has ended with another status.
        """
        while self.next() is not None:
            pass

    def close(self) -> None:
        """Close this side."""
        self._sending.put(None)

    def cancel(self) -> None:
        """Break the stream off, as a lost connection does."""
        self._sending.put(None)
        self.call.cancel()
        self._reader.join()


@final
class WireStreams:
    """The three streams of an RM."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.allocations = WireStream(channel, "UpdateAllocation")
        self.applications = WireStream(channel, "UpdateApplication")
        self.nodes = WireStream(channel, "UpdateNode")
        self.all = (self.allocations, self.applications, self.nodes)
