"""The REST interface of a scheduler as an ASGI application."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, final

from anyio import CapacityLimiter
from loguru import logger
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request

from ...model.errors import LicorneError
from ..page.application import Page
from .access import Access
from .compression import Compression
from .errors import RestError, error_response
from .event_streams import EventTexts
from .limits import LimitsSettings, RequestLimits
from .pacing import Pace, Pacing
from .routes import all_routes
from .unrouted import EscapedSlashes, method_refused, not_found, redirect, repaired_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send

    from ..scheduler.scheduler import Scheduler

__all__ = ["rest_app"]


def rest_app(
    scheduler: Scheduler,
    *,
    tokens: Sequence[str] = (),
    limits: LimitsSettings | None = None,
    ui_dir: Path | None = None,
) -> Starlette:
    """Return the REST interface of a scheduler, with the page at `/`, for any ASGI server.

    It does not stop the scheduler. Once the scheduler has been stopped it answers 503.

    Args:
        scheduler: What readers see.
        tokens: The bearer tokens that are let in; without any, each reader is.
        limits: What readers may ask; those of `LimitsSettings` unless said otherwise.
        ui_dir: A folder with the build of another user interface, served at `/` in place of the page.

    Raises:
        LicorneError: The folder has no `index.html`.
    """
    pace = Pace(scheduler.is_busy, scheduler.announced)
    page = Page(scheduler, ui_dir=ui_dir)
    routes = all_routes(page.routes)
    application = Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestLimits, settings=limits or LimitsSettings()),
            Middleware(Access, tokens=tokens),
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
        lifespan=page.lifespan,
    )
    application.state.scheduler = scheduler
    application.state.pace = pace
    application.state.event_texts = EventTexts()
    application.state.checks = CapacityLimiter(1)
    application.router.redirect_slashes = False
    application.router.default = _Unrouted(routes, page.files)
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
