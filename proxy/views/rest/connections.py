"""Connections of the REST server: requests that take too long, and malformed ones, get a status.

A socket that is closed while bytes wait to be read resets the connection, and the client discards what it has
not read yet. So an answer that is given before its request has come to its end would be lost. Here such a
connection continues to read, and discards the bytes, until the client has ended it or time is up.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Final, final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

_HINTED: Final = frozenset({HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, HTTPStatus.NOT_IMPLEMENTED})
_DISCARD_IDLE_SECONDS: Final = 2.0
"""How long a client may send nothing before a connection ends that only discards."""
_PROGRESS_BYTES: Final = 256 << 10
"""How many bytes of an answer a client has to take in `write_seconds`, if that many are left."""
_AT_ONCE: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionTimes:
    """How long what a client does may take."""

    head_seconds: float = 10.0
    """To send the head of a request."""
    write_seconds: float = 20.0
    """To take the next part of an answer."""
    discard_seconds: float = 30.0
    """To send the rest of a request that has been answered already."""


@final
class ClosingTransport:
    """The transport of a connection, whose `close` loses no answer and waits for no client for ever.

    Args:
        transport: The transport that it wraps.
        loop: The event loop of that.
        times: How long a client may take.
        is_whole: Returns whether the client has sent all of its request.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        times: ConnectionTimes,
        is_whole: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._times = times
        self._is_whole = is_whole
        self._timer: asyncio.TimerHandle | None = None
        self._discards_until: float | None = None
        self._left_bytes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    @property
    def is_discarding(self) -> bool:
        """Whether what comes is thrown away."""
        return self._discards_until is not None

    def is_closing(self) -> bool:
        """Return whether nothing more is to be written."""
        return self.is_discarding or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write bytes when the client takes them."""
        self._transport.write(data)

    def close(self) -> None:
        """End the connection when all is written, and when the client has sent its request, or time is up."""
        if self.is_closing():
            return
        if self._is_whole():
            self.end()
        else:
            self.discard_rest()

    def end(self) -> None:
        """End the connection when all is written; what the client still sends resets it."""
        self._discards_until = None
        self._transport.close()
        self.watch_writing()

    def discard_rest(self) -> None:
        """Write what is to be written, and throw away what comes until the client ends, or time is up."""
        self._discards_until = self._loop.time() + self._times.discard_seconds
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self.discard()

    def discard(self) -> None:
        """Wait for more to throw away."""
        assert self._discards_until is not None, (
            "bytes of a request that is still read are dropped: please report"
        )
        left_seconds = self._discards_until - self._loop.time()
        if left_seconds > 0:
            self._set_timer(min(_DISCARD_IDLE_SECONDS, left_seconds), self.end)
        else:
            self.end()

    def watch_writing(self) -> None:
        """End the connection unless the client takes what waits to be written."""
        if self.is_discarding:
            return
        self._left_bytes = self._transport.get_write_buffer_size()
        if self._left_bytes:
            self._set_timer(self._times.write_seconds, self._end_if_stuck)
        else:
            self.stop_watching()

    def writing_goes_on(self) -> None:
        """Take note that little waits to be written; more may come, unless this is the end."""
        if self._transport.is_closing():
            self.watch_writing()
        elif not self.is_discarding:
            self.stop_watching()

    def stop_watching(self) -> None:
        """Let the client take its time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, seconds: float, action: Callable[[], None]) -> None:
        self.stop_watching()
        self._timer = self._loop.call_later(seconds, action)

    def _end_if_stuck(self) -> None:
        taken = self._left_bytes - self._transport.get_write_buffer_size()
        if taken < min(_PROGRESS_BYTES, self._left_bytes):
            self._abort()
        else:
            self.watch_writing()

    def _abort(self) -> None:
        connection = self._transport.get_extra_info("socket")
        if connection is not None:  # Otherwise the system goes on to offer what it holds to the client.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._transport.abort()


class BoundedConnection(H11Protocol):
    """A connection; its time begins when it is made, and with the first byte of each further request."""

    times: ClassVar[ConnectionTimes] = ConnectionTimes()
    _bounded: ClosingTransport
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        self._bounded = ClosingTransport(transport, self.loop, self.times, self._is_whole)
        super().connection_made(self._bounded)  # type: ignore[arg-type] # It has all methods of a transport.
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._bounded.is_discarding:
            self._bounded.discard()
            return
        if self._head_timer is None and self._awaits_head():
            self._watch()
        super().data_received(data)
        if not self._awaits_head():
            self._stop_watching()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_watching()
        super().connection_lost(exc)
        self._bounded.stop_watching()

    def pause_writing(self) -> None:
        """Have writers wait, and the client not for ever."""
        super().pause_writing()
        self._bounded.watch_writing()

    def resume_writing(self) -> None:
        """Let writers continue."""
        super().resume_writing()
        self._bounded.writing_goes_on()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the client is not done with the one that has been answered."""
        is_whole = self._is_whole()
        super().on_response_complete()
        if not is_whole:
            self._bounded.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn has one text for all
        """Refuse a malformed request, in the handler of the error that reports it."""
        hint = getattr(sys.exception(), "error_status_hint", None)
        self._refuse(HTTPStatus(hint) if hint in _HINTED else HTTPStatus.BAD_REQUEST)

    def shutdown(self) -> None:
        """End the connection when what is under way has been answered."""
        if self._bounded.is_discarding:
            self._bounded.end()
        else:
            super().shutdown()

    def _is_whole(self) -> bool:
        return self.conn.their_state not in {h11.SEND_BODY, h11.ERROR}

    def _awaits_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        self._head_timer = self.loop.call_later(
            self.times.head_seconds, self._refuse, HTTPStatus.REQUEST_TIMEOUT
        )

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer a malformed request, unless another answer has begun, and end the connection."""
        self._stop_watching()
        if self._bounded.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self._bounded.write(_refusal(status))
        self._bounded.discard_rest()


def _refusal(status: HTTPStatus) -> bytes:
    text = f"{status.phrase}\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    return (head + text).encode("ascii")


def bounded_connections(times: ConnectionTimes) -> type[H11Protocol]:
    """Return the class of connections whose clients may take so long."""
    return type("BoundedConnection", (BoundedConnection,), {"times": times})
