"""What serves the page, or another user interface, and the live data of the page."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, final

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from ...model.errors import LicorneError
from ..scheduler.asking import NotKnownError
from .answers import node_document
from .errors import error_response
from .feed import LiveFeed, TooManyViewersError
from .files import FolderFiles, PageFiles
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.requests import Request
    from starlette.responses import Response

    from ..scheduler.scheduler import Scheduler

__all__ = ["Page"]

_NOT_KEPT: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
REASONS_MAX: Final = 100
"""About how many applications one request may ask why they wait: more than a screen shows."""
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
_STREAM: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@final
class Page:
    """The page of a scheduler: its files, its live data, and what keeps the timeline.

    Attributes:
        routes: The routes of the live data, below `/licorne/v1/`.
        files: The application with the files, at `/`.

    Args:
        scheduler: One that schedules by itself; a stepped one only while nothing steps it.
        ui_dir: A folder with the build of another user interface, served at `/` in place of the page.

    Raises:
        LicorneError: The folder has no `index.html`.
    """

    def __init__(self, scheduler: Scheduler, *, ui_dir: Path | None = None) -> None:
        self._scheduler = scheduler
        self._feed = LiveFeed(scheduler)
        self._timeline = Timeline(scheduler.live_view())
        self.routes = [
            Route("/licorne/v1/live", self._live),
            Route("/licorne/v1/page/node", self._node),
            Route("/licorne/v1/page/reasons", self._reasons),
            Route("/licorne/v1/page/timeline", self._timeline_of),
        ]
        files = PageFiles() if ui_dir is None else FolderFiles(ui_dir)
        self.files = Starlette(routes=[Route("/{path:path}", files.respond)])

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Keep the timeline while the server runs; otherwise it begins with the first request for data."""
        if not self._scheduler.stepped:
            self._timeline.start()
        try:
            yield
        finally:
            await self._timeline.close()
            await self._feed.close()

    async def _live(self, _: Request) -> Response:
        """Stream everything, then what changes."""
        self._timeline.start()
        try:
            self._feed.check_room()
        except TooManyViewersError as error:
            return error_response(503, str(error))
        return StreamingResponse(self._feed.messages(), media_type="text/event-stream", headers=_STREAM)

    def _node(self, request: Request) -> Response:
        """Say what a node has and what runs on it; may wait for a partition."""

        def read(rm_id: str, partition: str) -> Response:
            node_id = _given(request.query_params.get("node"), "node")
            facts = self._scheduler.live_view().node(rm_id, partition, node_id)
            if facts is None:
                return error_response(404, f"node {node_id!r} is not known")
            return JSONResponse(node_document(facts), headers=_NOT_KEPT)

        return _of_partition(request, read)

    def _reasons(self, request: Request) -> Response:
        """Say in few words why applications wait; may wait for a partition."""
        applications = request.query_params.getlist("application")
        if len(applications) > REASONS_MAX:
            return error_response(
                400, f"{len(applications)} applications are asked for, {REASONS_MAX} are the most"
            )

        def read(rm_id: str, partition: str) -> Response:
            reasons = self._scheduler.live_view().reasons(rm_id, partition, applications)
            return JSONResponse(reasons, headers=_NOT_KEPT)

        return _of_partition(request, read)

    async def _timeline_of(self, request: Request) -> Response:
        """Return what queues used in the last hour."""
        self._timeline.start()
        wanted = request.query_params
        try:
            partition = _given(wanted.get("partition"), "partition")
        except _BadRequestError as error:
            return error_response(400, str(error))
        since_ms = wanted.get("since", "0")
        if not _MILLISECONDS.fullmatch(since_ms):
            return error_response(400, f"since={since_ms!r} is no time in milliseconds")
        document = self._timeline.document(partition, wanted.get("parent", "root"), int(since_ms))
        return JSONResponse(document, headers=_NOT_KEPT)


class _BadRequestError(LicorneError):
    """A parameter is missing."""


def _of_partition(request: Request, read: Callable[[str, str], Response]) -> Response:
    """Return what is read of the partition that a request names by its RM and its name."""
    wanted = request.query_params
    try:
        return read(_given(wanted.get("rm"), "rm"), _given(wanted.get("partition"), "partition"))
    except _BadRequestError as error:
        return error_response(400, str(error))
    except NotKnownError as error:
        return error_response(404, str(error))


def _given(value: str | None, name: str) -> str:
    if not value:
        raise _BadRequestError(f"the parameter {name} is missing")
    return value
