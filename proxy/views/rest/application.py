"""The REST interface of a scheduler as an ASGI application."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

from anyio import CapacityLimiter
from loguru import logger
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....model.errors import LicorneError
from ...core.documents.operations import Operation
from ...core.scheduler.scheduler import Scheduler
from ...si.arguments import check_names, check_type
from ..page.application import Page
from .event_texts import EventTexts, LoggedEvents
from .limits import LimitsSettings, Pace, Pacing, RequestLimits
from .requests import Access, check_tokens
from .responses import (
    EscapedSlashes,
    RestError,
    error_response,
    method_refused,
    not_found,
    redirect,
    repaired_path,
)
from .routes import OPERATIONS, all_routes


def rest_app(
    scheduler: Scheduler,
    *,
    tokens: Sequence[str] = (),
    hosts: Sequence[str] = (),
    limits: LimitsSettings | None = None,
    ui_dir: Path | str | None = None,
    closed: Sequence[str] = (),
) -> Starlette:
    """Return the REST interface of a scheduler, with the page at `/`, for any ASGI server.

    It does not stop the scheduler. Once the scheduler has been stopped it answers 503.

    Args:
        scheduler: What readers see.
        tokens: The bearer tokens that are let in; without any, each reader is.
        hosts: The names by which readers may ask where no token is required, besides addresses, names without
            dots and those of private zones: others may be those of a web page, see `docs/rest.md`.
        limits: What readers may ask; those of `LimitsSettings` unless said otherwise.
        ui_dir: A folder with the build of another user interface, served at `/` in place of the page.
        closed: The beginnings of paths that are refused where no token is required.

    Raises:
        LicorneError: The folder has no `index.html`.
    """
    check_type("scheduler, which is in this process", scheduler, Scheduler)
    check_type("ui_dir", ui_dir, Path, str, type(None))
    check_tokens(tokens)
    check_names("hosts", hosts)
    check_type("limits", limits, LimitsSettings, type(None))
    pace = Pace(scheduler.monitoring.is_busy, scheduler.monitoring.announced)
    page = Page(scheduler, ui_dir=None if ui_dir is None else Path(ui_dir))
    application = application_of(
        [*OPERATIONS, *page.operations],
        page.files,
        page.lifespan,
        events=LoggedEvents(scheduler.events),
        pace=pace,
        tokens=tokens,
        hosts=hosts,
        limits=limits or LimitsSettings(),
        closed=closed,
    )
    application.state.scheduler = scheduler
    application.state.more_metrics = tuple
    return application


def application_of(
    operations: Sequence[Operation],
    files: Starlette,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]],
    *,
    events: EventTexts,
    pace: Pace,
    tokens: Sequence[str],
    hosts: Sequence[str],
    limits: LimitsSettings,
    closed: Sequence[str] = (),
) -> Starlette:
    """Return an application with operations behind the limits, the access and the pace of readers.

    Args:
        operations: What it answers.
        files: Answers what no operation does.
        lifespan: Entered while it is served.
        events: What the routes of events read.
        pace: Counts the time of readers.
        tokens: The bearer tokens that are let in; without any, each reader is.
        hosts: As for `rest_app`.
        limits: What readers may ask.
        closed: As for `rest_app`.
    """
    routes = all_routes(operations)
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestLimits, settings=limits),
            Middleware(Access, tokens=tokens, hosts=hosts, closed=closed),
            Middleware(Pacing, pace=pace),
            Middleware(Compression),
            Middleware(EscapedSlashes),
        ],
        exception_handlers={
            HTTPStatus.METHOD_NOT_ALLOWED: method_refused,
            RestError: _refused,
            ClientDisconnect: _left,
            LicorneError: _unavailable,
            Exception: _broken,
        },
        lifespan=lifespan,
    )
    application.state.pace = pace
    application.state.events = events
    application.state.checks = CapacityLimiter(1)
    application.router.redirect_slashes = False
    application.router.default = _Unrouted(routes, files)
    return application


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RestError), f"a handler for REST errors got {error!r}: please report"
    return error_response(error.status, error.message)


def _left(_: Request, error: Exception) -> Response:
    """Return an answer for the record; the client has gone."""
    return error_response(HTTPStatus.BAD_REQUEST, f"the request did not come to its end: {error!r}")


def _unavailable(_: Request, error: Exception) -> Response:
    return error_response(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


def _broken(_: Request, error: Exception) -> Response:
    """Return the answer to a request that met a bug of ours, and log that."""
    logger.opt(exception=error).error("a request over REST met an internal error, please report")
    text = f"internal error ({type(error).__name__}): please report it"
    return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, text)


@final
class _Unrouted:
    """Answers requests whose path no route has: by a better path, by a file, or not at all."""

    def __init__(self, routes: Sequence[Route], files: Starlette) -> None:
        self._routes = routes
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        path = repaired_path(scope["path"], request.method, self._routes)
        if path is not None:
            await redirect(path, request.method, request.url.query)(scope, receive, send)
        elif request.method in {"GET", "HEAD"}:
            await self._files(scope, receive, send)
        else:
            await not_found()(scope, receive, send)


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
