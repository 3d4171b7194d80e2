"""The routes of events: batches by id, and streams as lines of JSON and as server-sent events."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..documents.events import batch_document
from ..events.log import EventLog, TooManyStreamsError
from ..events.streams import EventStream
from .errors import RestError
from .event_streams import EventStreamResponse, EventTexts, line_of, message_of
from .requests import pace_of, scheduler_of
from .responses import JSON_TYPE, json_bytes, json_response

__all__ = ["ROUTES"]

_UINT64_MAX: Final = 2**64 - 1
_DIGITS: Final = re.compile("[0-9]+")
_PARSING: Final = "strconv.ParseUint: parsing"


def _number(request: Request, name: str, default: int) -> int:
    """Return a whole number of the query; the texts of errors are those of Go."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    shown = str(json_bytes([text]), "utf-8")[1:-1]
    if not _DIGITS.fullmatch(text):
        raise RestError(400, f"{_PARSING} {shown}: invalid syntax")
    if len(text) > 40 or int(text) > _UINT64_MAX:
        raise RestError(400, f"{_PARSING} {shown}: value out of range")
    return int(text)


def _tracked(request: Request) -> EventLog:
    """Return the events of the scheduler, if they are kept."""
    log = scheduler_of(request).events
    if not log.enabled:
        raise RestError(500, "Event tracking is disabled")
    return log


def _batch(request: Request) -> Response:
    log = _tracked(request)
    size_max = log.batch_size_max
    count = _number(request, "count", size_max)
    if count == 0:
        raise RestError(400, '0 is not a valid value for "count"')
    batch = log.batch(_number(request, "start", 0), min(count, size_max))
    return json_response(
        batch_document(batch.instance_uuid, batch.lowest_id, batch.highest_id, batch.records)
    )


def _opened(request: Request, log: EventLog, history: int, start: int | None = None) -> EventStream:
    host = "" if request.client is None else request.client.host
    try:
        return log.stream(history, start=start, host=host)
    except TooManyStreamsError as error:
        raise RestError(503, "Too many streaming connections") from error


async def _stream(request: Request) -> Response:
    """Answer with lines: the instance first, then one an event."""
    log = _tracked(request)
    stream = _opened(request, log, _number(request, "count", 0))
    begin = json_bytes({"InstanceUUID": log.instance_uuid}) + b"\n"
    return _response(request, stream, begin, line_of, JSON_TYPE)


async def _server_sent(request: Request) -> Response:
    """Answer with server-sent events; a client that comes again goes on after the last id that it has."""
    log = _tracked(request)
    last = request.headers.get("Last-Event-ID", "")
    start = int(last) + 1 if _DIGITS.fullmatch(last) and len(last) <= 20 else None
    stream = _opened(request, log, _number(request, "count", 0), start)
    begin = b"event: instance\ndata: " + json_bytes({"InstanceUUID": log.instance_uuid}) + b"\n\n"
    return _response(request, stream, begin, message_of, "text/event-stream", pause=b":\n\n")


def _response(
    request: Request,
    stream: EventStream,
    begin: bytes,
    write: Callable[[int, bytes], bytes],
    content_type: str,
    *,
    pause: bytes = b"",
) -> Response:
    texts: EventTexts = request.app.state.event_texts
    return EventStreamResponse(
        stream, begin, write, content_type, texts=texts, pace=pace_of(request), pause=pause
    )


ROUTES = [
    Route("/ws/v1/events/batch", _batch),
    Route("/ws/v1/events/stream", _stream),
    Route("/licorne/v1/events", _server_sent),
]
