"""Compressed answers, for clients that take gzip."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final, final

from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Compression", "takes_gzip"]

_BYTES_MIN: Final = 1_400
_LEVEL: Final = 4
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
_STREAMS: Final = ("/ws/v1/events/stream",)
_STREAM_TYPE: Final = "text/event-stream"


def takes_gzip(accepted: str) -> bool:
    """Return whether a header `Accept-Encoding` lists gzip, in any case; only `q=0` as such excludes it."""
    for entry in accepted.split(","):
        coding, *parameters = (part.strip() for part in entry.split(";"))
        if coding.lower() == "gzip":
            return not any(re.sub(r"\s", "", parameter).lower() == "q=0" for parameter in parameters)
    return False


@final
class Compression:
    """Compresses answers of 1,400 bytes and more; streams of events stay as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["path"] in _STREAMS:
            await self._app(scope, receive, send)
            return
        wanted = takes_gzip(Headers(scope=scope).get("Accept-Encoding", ""))
        await self._app(scope, receive, _CompressedAnswer(send, wanted=wanted).send)


@final
class _CompressedAnswer:
    """One answer: its head waits for the first part of its body, whose size decides."""

    def __init__(self, send: Send, *, wanted: bool) -> None:
        self._send = send
        self._wanted = wanted
        self._head: Message | None = None
        self._compressor: zlib._Compress | None = None

    async def send(self, message: Message) -> None:
        """Send a part of the answer, compressed or not."""
        if message["type"] == "http.response.start":
            self._head = message
            return
        if message["type"] == "http.response.body":
            message = await self._body(message)
        await self._send(message)

    async def _body(self, message: Message) -> Message:
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._head is not None:
            head, self._head = self._head, None
            self._begin(MutableHeaders(scope=head), len(body), more=more)
            await self._send(head)
        if self._compressor is None:
            return message
        packed = self._compressor.compress(body)
        if not more:
            packed += self._compressor.flush()
        return {**message, "body": packed}

    def _begin(self, headers: MutableHeaders, size: int, *, more: bool) -> None:
        if headers.get("Content-Type", "").startswith(_STREAM_TYPE):
            return
        headers.add_vary_header("Accept-Encoding")
        if not self._wanted or "Content-Encoding" in headers or (size < _BYTES_MIN and not more):
            return
        headers["Content-Encoding"] = "gzip"
        del headers["Content-Length"]
        self._compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FORMAT)
