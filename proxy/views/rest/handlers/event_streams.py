"""The answer that is a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ....core.events.streams import LOOK_INTERVAL_SECONDS
from ..event_texts import EventTextStream
from ..pacing import Pace
from ..responses import json_bytes

WRITE_SECONDS: Final = 5.0
"""How long a client has to take what was sent, before its stream ends."""
PAUSE_SECONDS: Final = 15.0
"""After how long without events a client gets a sign that the stream goes on."""
_BEHIND_MAX: Final = 0.5
"""A stream that has not got this much of the room for events does not wait: it would lose some."""
_RECORDS_MAX: Final = 500
_CLOSED: Final = "Event stream was closed by the producer"


def line_of(_: int, text: bytes) -> bytes:
    """Return the JSON of an event as a line."""
    return text + b"\n"


def message_of(number: int, text: bytes) -> bytes:
    """Return the JSON of an event as a server-sent event, which has its id."""
    return b"id: %d\ndata: %b\n\n" % (number, text)


@final
class EventStreamResponse(Response):
    """Sends events until the client goes, is too slow, or there are no more.

    Args:
        stream: The events; closed at the end.
        begin: What is sent first.
        write: Returns what is sent for an event, of its id and its JSON.
        content_type: The header.
        pace: Has it wait for its turn among the readers, unless it is far behind.
        pause: What is sent when there was no event for a while, if anything.
    """

    def __init__(
        self,
        stream: EventTextStream,
        begin: bytes,
        write: Callable[[int, bytes], bytes],
        content_type: str,
        *,
        pace: Pace,
        pause: bytes = b"",
    ) -> None:
        super().__init__(headers={"Content-Type": content_type, "Cache-Control": "no-cache"})
        del self.headers["Content-Length"]
        self._stream = stream
        self._pace = pace
        self._begin = begin
        self._write = write
        self._pause = pause

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        del scope
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stream.close()
            leaving.cancel()
            sending.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send_all(self, send: Send) -> None:
        head = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(head)
        await _send_part(send, self._begin)
        silent_seconds = 0.0
        while not self._stream.is_over:
            if 0 < self._stream.behind < _BEHIND_MAX:
                await self._pace.turn()
            number = self._stream.next_id
            texts = self._stream.take(_RECORDS_MAX)
            if texts:
                silent_seconds = 0.0
                parts = [self._write(place, text) for place, text in enumerate(texts, number)]
                await _send_part(send, b"".join(parts))
            if len(texts) == _RECORDS_MAX:
                continue
            await asyncio.sleep(LOOK_INTERVAL_SECONDS)
            silent_seconds += LOOK_INTERVAL_SECONDS
            if self._pause and silent_seconds >= PAUSE_SECONDS:
                silent_seconds = 0.0
                await _send_part(send, self._pause)
        await _send_part(send, self._write_end())
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _write_end(self) -> bytes:
        text = json_bytes({"status_code": 200, "message": _CLOSED, "description": _CLOSED})
        return text + b"\n" if not self._pause else b"event: end\ndata: " + text + b"\n\n"


async def _send_part(send: Send, part: bytes) -> None:
    """Send a part of the body; a client that does not take it in time has lost its stream."""
    sent = send({"type": "http.response.body", "body": part, "more_body": True})
    await asyncio.wait_for(sent, WRITE_SECONDS)


async def _disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
