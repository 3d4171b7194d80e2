"""Answers with JSON, answers that are errors, answers to requests that no route takes, and events as texts.

The text is UTF-8 without blanks and ends with a newline; the characters of HTML are escaped, as in Go. Events
are turned into texts here wherever they are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple, Protocol, final
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....model.values.events import EventRecord
from ...core.documents.monitoring import ErrorDocument, event_document
from ...core.events.log import EventLog
from ...core.events.streams import EventStream

JSON_TYPE: Final = "application/json; charset=UTF-8"
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_INDENTING: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2)
_ESCAPED: Final = tuple((character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029")
SHARED: Final = "/ws/v1/"
"""Where the paths begin whose answers pages of other origins may read."""
_HEADERS: Final = "X-Requested-With,Content-Type,Accept,Origin"
_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}


def json_bytes(document: Mapping[str, object] | Sequence[object], *, indented: bool = False) -> bytes:
    """Return a document as JSON, without a newline at its end."""
    text = (_INDENTING if indented else _ENCODER).encode(document)
    for character, escaped in _ESCAPED:
        if character in text:
            text = text.replace(character, escaped)
    return text.encode(errors="replace")  # A lone half of a surrogate pair cannot be encoded.


def json_response(document: Mapping[str, object] | Sequence[object], *, status: int = 200) -> Response:
    """Return the answer that has a document."""
    return Response(
        json_bytes(document) + b"\n", status, media_type=None, headers={"Content-Type": JSON_TYPE}
    )


class RestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_response(status: int, message: str) -> Response:
    """Return the answer with an error: its status, and a document with the message."""
    document: ErrorDocument = {"status_code": status, "message": message, "description": message}
    return json_response(document, status=status)


def preflight_headers(request: Request, methods: str) -> Mapping[str, str]:
    """Return the headers for a browser that asks whether a page of another origin may make a request."""
    asks = {"Origin", "Access-Control-Request-Method"} <= {name.title() for name in request.headers}
    if not asks or not request.url.path.startswith(SHARED):
        return {}
    return {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": f"{_HEADERS},Authorization",
    }


@final
class CrossOrigin:
    """Adds the headers to all answers of a route, errors included."""

    def __init__(self, app: ASGIApp, methods: str) -> None:
        self._app = app
        self._headers = {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": _HEADERS,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def not_found() -> Response:
    """Return the answer to a path that is unknown."""
    return PlainTextResponse("404 page not found\n", HTTPStatus.NOT_FOUND, headers=_NO_SNIFFING)


def allowed_methods(methods: set[str]) -> str:
    """Return the methods of a path as a header lists them; OPTIONS is answered for every path."""
    return ", ".join(sorted({*methods, "OPTIONS"}))


def method_refused(request: Request, error: Exception) -> Response:
    """Return the answer to OPTIONS, which every path has, or the refusal of a method that a path has not."""
    allow = {"Allow": _allow(error)}  # type: ignore[arg-type] # Starlette hands over its own class of errors
    if request.method == "OPTIONS":
        return Response(headers={**allow, **preflight_headers(request, allow["Allow"])})
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return PlainTextResponse("Method Not Allowed\n", status, headers=_NO_SNIFFING | allow)


def _allow(error: HTTPException) -> str:
    named = (error.headers or {}).get("Allow", "")
    return allowed_methods({method for method in re.split(r",\s*", named) if method})


@final
class EscapedSlashes:
    """Answers requests whose path has a slash in a name, written as `%2F`: an ordinary unknown path.

    The server has resolved the escape in the path: there it is a slash like others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_unknown = scope["type"] == "http" and b"%2f" in (scope.get("raw_path") or b"").lower()
        await (not_found() if is_unknown else self._app)(scope, receive, send)


def repaired_path(path: str, method: str, routes: Sequence[Route]) -> str | None:
    """Return the path that a client meant: with other slashes or other case; `None` if none is close.

    A path with `.` or `..` in it is an ordinary unknown path.
    """
    cleaned = "/" + "/".join(step for step in path.split("/") if step)
    for wanted in (cleaned, cleaned + "/"):
        for route in routes:
            if method not in (route.methods or ()):
                continue
            found = re.fullmatch(route.path_regex.pattern, wanted, re.IGNORECASE | re.ASCII)
            if found is not None:
                meant = route.path_format.format(**found.groupdict())
                return None if meant == path else meant
    return None


def redirect(location: str, method: str, query: str = "") -> Response:
    """Return the answer that sends a client to another path of this server, for good."""
    target = quote(location) + (f"?{query}" if query else "")
    if method != "GET":
        return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": target})
    shown = target.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
    headers = {"Location": target, "Content-Type": "text/html; charset=utf-8"}
    body = f'<a href="{shown}">Moved Permanently</a>.\n\n'
    return Response(body, HTTPStatus.MOVED_PERMANENTLY, headers=headers)


_TEXTS_MAX: Final = 8_192


class TextBatch(NamedTuple):
    """Events whose ids follow each other, and the ids that are still there."""

    lowest_id: int
    highest_id: int
    texts: list[bytes]
    """The JSON of each."""


class EventTextStream(Protocol):
    """The events that come, one after the other; the event loop alone reads."""

    @property
    def next_id(self) -> int:
        """The id of the event that `take` returns first."""

    @property
    def behind(self) -> float:
        """How much of the room for events those have that it has not given yet; above 1 it loses some."""

    @property
    def is_over(self) -> bool:
        """Whether the events have ended."""

    def take(self, count_max: int) -> list[bytes]:
        """Return the next events that are there already, `count_max` at most; it does not wait."""

    def close(self) -> None:
        """End the stream."""


class EventTexts(Protocol):
    """The events that are kept; any thread may call."""

    @property
    def enabled(self) -> bool:
        """Whether events are kept."""

    @property
    def instance_uuid(self) -> str:
        """Another one whenever ids begin again."""

    @property
    def batch_size_max(self) -> int:
        """How many events a batch has at most."""

    def batch(self, start: int, count: int) -> TextBatch:
        """Return up to `count` events from an id on; none if that one is no longer kept."""

    def stream(self, history: int, *, start: int | None, host: str) -> EventTextStream:
        """Return a stream of all events from now on, after up to `history` of those that are kept.

        Args:
            history: How many.
            start: The id of the first one instead, or of the next one that is kept.
            host: Where the reader is; the number of its streams is bounded.

        Raises:
            TooManyStreamsError: There are as many streams as there may be.
            RequestError: The events have ended.
        """


@final
class LoggedEvents:
    """The events of a scheduler of this process; the JSON of the newest is made once for all streams."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._texts: dict[int, bytes] = {}

    @property
    def enabled(self) -> bool:
        """Whether events are kept."""
        return self._log.enabled

    @property
    def instance_uuid(self) -> str:
        """Another one after each start of the scheduler."""
        return self._log.instance_uuid

    @property
    def batch_size_max(self) -> int:
        """How many events a batch has at most."""
        return self._log.batch_size_max

    def batch(self, start: int, count: int) -> TextBatch:
        """Return up to `count` events from an id on; none if that one is no longer kept."""
        found = self._log.batch(start, count)
        texts = [json_bytes(event_document(record)) for record in found.records]
        return TextBatch(found.lowest_id, found.highest_id, texts)

    def stream(self, history: int, *, start: int | None, host: str) -> EventTextStream:
        """Return a stream of all events from now on, after up to `history` of those that are kept."""
        return _LoggedStream(self._log.stream(history, start=start, host=host), self)

    def text_of(self, number: int, record: EventRecord) -> bytes:
        """Return the JSON of the event with an id; for the event loop."""
        text = self._texts.get(number)
        if text is None:
            text = self._texts[number] = json_bytes(event_document(record))
            if len(self._texts) > _TEXTS_MAX:
                del self._texts[next(iter(self._texts))]
        return text


@final
class _LoggedStream:
    def __init__(self, stream: EventStream, events: LoggedEvents) -> None:
        self._stream = stream
        self._events = events

    @property
    def next_id(self) -> int:
        return self._stream.next_id

    @property
    def behind(self) -> float:
        return self._stream.behind

    @property
    def is_over(self) -> bool:
        return self._stream.is_over

    def take(self, count_max: int) -> list[bytes]:
        first = self._stream.next_id
        records = self._stream.take(count_max)
        return [self._events.text_of(number, record) for number, record in enumerate(records, first)]

    def close(self) -> None:
        self._stream.close()
