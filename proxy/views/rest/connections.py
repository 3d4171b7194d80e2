"""Connections of the REST server: a request that takes too long, and what is no request, gets a status."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .closing import ClosingTransport, ConnectionTimes

if TYPE_CHECKING:
    import asyncio

_HINTED: Final = frozenset({HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, HTTPStatus.NOT_IMPLEMENTED})


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
        """Let writers go on."""
        super().resume_writing()
        self._bounded.writing_goes_on()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless the client is not done with the one that has been answered."""
        is_whole = self._is_whole()
        super().on_response_complete()
        if not is_whole:
            self._bounded.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn says the same for all
        """Refuse what is no request in HTTP, in the handler of the error that says so."""
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
        """Answer what is no request, unless another answer has begun, and end the connection."""
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
