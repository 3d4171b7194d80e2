"""The routes of events: batches by id, and streams as lines of JSON and as server-sent events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final, final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ....core.documents.declarations import JSON, UINT64_MAX, Operation, Parameter, numbered
from ....core.documents.monitoring import EventBatchDocument, EventDocument, EventStreamDocument
from ....core.events.log import TooManyStreamsError
from ....core.events.streams import LOOK_INTERVAL_SECONDS
from ..limits import Pace
from ..requests import events_of, pace_of
from ..responses import JSON_TYPE, EventTexts, EventTextStream, RestError, json_bytes

_DIGITS: Final = re.compile("[0-9]+")
_PARSING: Final = "strconv.ParseUint: parsing"
WRITE_SECONDS: Final = 5.0
"""How long a client has to take what was sent, before its stream ends."""
PAUSE_SECONDS: Final = 15.0
"""After how long without events a client gets a sign that the stream continues."""
_BEHIND_MAX: Final = 0.5
"""A stream that has not got this much of the room for events does not wait: it would lose some."""
_RECORDS_MAX: Final = 500
_CLOSED: Final = "Event stream was closed by the producer"


def _number(request: Request, name: str, default: int) -> int:
    """Return a whole number of the query; the texts of errors are those of Go."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    shown = str(json_bytes([text]), "utf-8")[1:-1]
    if not _DIGITS.fullmatch(text):
        raise RestError(400, f"{_PARSING} {shown}: invalid syntax")
    if len(text) > 40 or int(text) > UINT64_MAX:
        raise RestError(400, f"{_PARSING} {shown}: value out of range")
    return int(text)


def _tracked(request: Request) -> EventTexts:
    """Return the events, if they are kept."""
    kept = events_of(request)
    if not kept.enabled:
        raise RestError(500, "Event tracking is disabled")
    return kept


def event_batch(request: Request) -> Response:
    """Answer with the events of a range of ids."""
    log = _tracked(request)
    size_max = log.batch_size_max
    count = _number(request, "count", size_max)
    if count == 0:
        raise RestError(400, '0 is not a valid value for "count"')
    batch = log.batch(_number(request, "start", 0), min(count, size_max))
    head = {"InstanceUUID": log.instance_uuid, "LowestID": batch.lowest_id, "HighestID": batch.highest_id}
    records = b"[%b]" % b",".join(batch.texts) if batch.texts else b"null"
    body = b'%b,"EventRecords":%b}\n' % (json_bytes(head)[:-1], records)
    return Response(body, media_type=None, headers={"Content-Type": JSON_TYPE})


def _opened(request: Request, log: EventTexts, history: int, start: int | None = None) -> EventTextStream:
    host = "" if request.client is None else request.client.host
    try:
        return log.stream(history, start=start, host=host)
    except TooManyStreamsError as error:
        raise RestError(503, "Too many streaming connections") from error


async def event_stream(request: Request) -> Response:
    """Answer with lines: the instance first, then one an event."""
    log = _tracked(request)
    stream = _opened(request, log, _number(request, "count", 0))
    begin = json_bytes({"InstanceUUID": log.instance_uuid}) + b"\n"
    return _response(request, stream, begin, line_of, JSON_TYPE)


async def server_sent_events(request: Request) -> Response:
    """Answer with server-sent events; a client that comes again continues after its last id."""
    log = _tracked(request)
    last = request.headers.get("Last-Event-ID", "")
    start = int(last) + 1 if _DIGITS.fullmatch(last) and len(last) <= 20 else None
    stream = _opened(request, log, _number(request, "count", 0), start)
    begin = b"event: instance\ndata: " + json_bytes({"InstanceUUID": log.instance_uuid}) + b"\n\n"
    return _response(request, stream, begin, message_of, "text/event-stream", pause=b":\n\n")


def _response(
    request: Request,
    stream: EventTextStream,
    begin: bytes,
    write: Callable[[int, bytes], bytes],
    content_type: str,
    *,
    pause: bytes = b"",
) -> Response:
    return EventStreamResponse(stream, begin, write, content_type, pace=pace_of(request), pause=pause)


_HISTORY: Final = numbered(
    "count",
    "With how many of the newest events that are kept the stream begins",
    least=0,
    most=UINT64_MAX,
    default=0,
)
OPERATIONS = [
    Operation(
        "/ws/v1/events/batch",
        event_batch,
        "events",
        "Events by their ids",
        "The events, with the ids that there are",
        {JSON: EventBatchDocument},
        parameters=[
            numbered(
                "count",
                "The maximum number; not 0. The server has another bound, 1,000 unless configured otherwise",
                least=1,
                most=UINT64_MAX,
            ),
            numbered(
                "start",
                "The id of the first event; an event that is no longer kept is left out",
                least=0,
                most=UINT64_MAX,
                default=0,
            ),
        ],
        refusals=[400, 500],
    ),
    Operation(
        "/ws/v1/events/stream",
        event_stream,
        "events",
        "Events as they happen, without end",
        "The lines, as they come",
        {JSON: EventStreamDocument | EventDocument},
        description="Lines of JSON. The first one is an object with `InstanceUUID`, each other one an event.",
        parameters=[_HISTORY],
        refusals=[400, 500],
    ),
    Operation(
        "/licorne/v1/events",
        server_sent_events,
        "events",
        "The same as server-sent events, without end",
        "The events, as they come",
        {"text/event-stream": str},
        description="The first one has the type `instance` and as data an object with `InstanceUUID`. "
        "Each other one has its id,\nand as data an event.\n",
        parameters=[
            _HISTORY,
            Parameter(
                "Last-Event-ID",
                "The last id that the client has; the stream continues after it. Other texts are ignored",
                {"type": "string"},
                "header",
            ),
        ],
        refusals=[400, 500],
    ),
]


def line_of(_: int, text: bytes) -> bytes:
    """Return the JSON of an event as a line."""
    return text + b"\n"


def message_of(number: int, text: bytes) -> bytes:
    """Return the JSON of an event as a server-sent event, which has its id."""
    return b"id: %d\ndata: %b\n\n" % (number, text)


@final
class EventStreamResponse(Response):
    """Sends events until the client leaves or is too slow, or the stream ends.

    Args:
        stream: The events; closed at the end.
        begin: The bytes that are sent first.
        write: Returns what is sent for an event, of its id and its JSON.
        content_type: The header.
        pace: Has it wait for its turn among the readers, unless it is far behind.
        pause: The bytes that are sent when there was no event for a while, if any.
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
