"""Connections of the REST server: one that sends no whole head of a request in time is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["HEAD_SECONDS", "BoundedConnection", "bounded_connections"]

HEAD_SECONDS: Final = 10.0
"""How long the head of a request may take."""
_REFUSAL: Final = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Content-Length: 16\r\nConnection: close\r\n\r\nRequest Timeout\n"
)


class BoundedConnection(H11Protocol):
    """A connection; its time begins when it is made, and with the first byte of each further request."""

    head_seconds: ClassVar[float] = HEAD_SECONDS
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes of the client."""
        if self._head_timer is None and self._awaits_head():
            self._watch()
        super().data_received(data)
        if not self._awaits_head():
            self._stop_watching()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_watching()
        super().connection_lost(exc)

    def _awaits_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        self._head_timer = self.loop.call_later(self.head_seconds, self._end)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _end(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.write(_REFUSAL)
            self.transport.close()


def bounded_connections(head_seconds: float) -> type[H11Protocol]:
    """Return the class of connections on which the head of each request may take so long."""
    return type("BoundedConnection", (BoundedConnection,), {"head_seconds": head_seconds})
