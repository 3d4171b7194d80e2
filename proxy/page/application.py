"""The application that serves the page, or another user interface, and the live data of the page."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, final

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from ...model.errors import LicorneError, RequestError
from .answers import node_document
from .errors import error_response
from .feed import LiveFeed, TooManyViewersError
from .files import FolderFiles, PageFiles
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from ...model.values.documents import Document
    from ..scheduler.scheduler import Scheduler

__all__ = ["page_app"]

_NOT_KEPT: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_STREAM: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def page_app(scheduler: Scheduler, *, ui_dir: Path | None = None) -> Starlette:
    """Return the application with the page at `/`, and its live data below `/licorne/v1/`.

    An application that mounts this one should enter the lifespan of its router: the timeline then begins at
    once. Otherwise it begins with the first request for live data.

    Args:
        scheduler: One that schedules by itself; a stepped one only while nothing steps it.
        ui_dir: A folder with the build of another user interface, served at `/` in place of the page.

    Raises:
        LicorneError: The folder has no `index.html`.
    """
    page = _Page(scheduler)
    files = PageFiles() if ui_dir is None else FolderFiles(ui_dir)
    routes = [
        Route("/licorne/v1/live", page.live),
        Route("/licorne/v1/page/node", page.node),
        Route("/licorne/v1/page/timeline", page.timeline),
        Route("/{path:path}", files.respond),
    ]
    app = Starlette(routes=routes, lifespan=page.lifespan)
    app.state.feed = page.feed
    return app


@final
class _Page:
    """What answers the requests of the page."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.feed = LiveFeed(scheduler)
        self._timeline = Timeline(scheduler.live_view())

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Keep the timeline while the server runs."""
        if not self._scheduler.stepped:
            self._timeline.start()
        try:
            yield
        finally:
            await self._timeline.close()
            await self.feed.close()

    async def live(self, _: Request) -> Response:
        """Stream everything, then what changes."""
        self._timeline.start()
        try:
            self.feed.check_room()
        except TooManyViewersError as error:
            return error_response(503, str(error))
        return StreamingResponse(self.feed.messages(), media_type="text/event-stream", headers=_STREAM)

    async def node(self, request: Request) -> Response:
        """Say what a node has and what runs on it."""
        wanted = request.query_params

        def answer() -> Document:
            node_id = _given(wanted.get("node"), "node")
            facts = self._scheduler.live_view().node(
                _given(wanted.get("rm"), "rm"), _given(wanted.get("partition"), "partition"), node_id
            )
            if facts is None:
                raise RequestError(f"node {node_id!r} is not known")
            return node_document(facts)

        return await _answered(answer)

    async def timeline(self, request: Request) -> Response:
        """Return what queues used in the last hour."""
        self._timeline.start()
        wanted = request.query_params
        try:
            partition = _given(wanted.get("partition"), "partition")
            since_ms = int(wanted.get("since", "0"))
        except _BadRequestError as error:
            return error_response(400, str(error))
        except ValueError:
            return error_response(400, f"since={wanted['since']!r} is no time in milliseconds")
        document = self._timeline.document(partition, wanted.get("parent", "root"), since_ms)
        return JSONResponse(document, headers=_NOT_KEPT)


class _BadRequestError(LicorneError):
    """A parameter is missing."""


def _given(value: str | None, name: str) -> str:
    if not value:
        raise _BadRequestError(f"the parameter {name} is missing")
    return value


async def _answered(answer: Callable[[], Document]) -> Response:
    """Return the answer of a function that may wait for a partition."""
    work: Awaitable[Document] = asyncio.to_thread(answer)
    try:
        return JSONResponse(await work, headers=_NOT_KEPT)
    except _BadRequestError as error:
        return error_response(400, str(error))
    except RequestError as error:
        return error_response(404, str(error))
