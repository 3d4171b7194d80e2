"""The server of the page, or of another user interface, and of the live data of the page."""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import resources
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from ....model.errors import LicorneError, RequestError
from ....model.resources.resource import Resource
from ...core.documents.declarations import JSON, Operation, Parameter, numbered, text
from ...core.documents.monitoring import (
    CHANGE_WORDS,
    DETAIL_WORDS,
    TYPE_WORDS,
    PageNodeDocument,
    TimelineDocument,
)
from ...core.scheduler.answering.questions import NotKnownError
from ...core.scheduler.answering.views import LiveQueues, LiveView
from ...core.scheduler.scheduler import Scheduler
from ..history.questions import HistoryFile, Period
from ..history.store import HOUR_NS
from .answers import node_document
from .feed import LiveFeed, TooManyViewersError, Types

_NOT_KEPT: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_SUMS_KEPT_SECONDS: Final = 2.0
REASONS_MAX: Final = 100
"""About how many applications one request may ask why they wait: more than a screen shows."""
_MILLISECONDS: Final = re.compile(r"[0-9]{1,18}")
_HOURS: Final = re.compile(r"[0-9]{1,5}")
_STREAM: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_KEPT_PARTITION: Final = text("partition", "Its name", required=True)
_KEPT_MANAGER: Final = text("rm", "The resource manager", required=True)
_INDEX: Final = "index.html"
_WORDS: Final = "event_words.js"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing of another origin is loaded, and nothing that stands in the document itself is executed."""
_SAFE: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_ASK_AGAIN: Final = "no-cache"
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_HASHED: Final = re.compile(r"[.-][0-9a-zA-Z]{8,}\.[a-z0-9]+$")
"""File names of a build that change with the content, such as `main.4f1c2d3e.js`."""
_API: Final = ("ws/", "licorne/", "debug/")
"""Paths that are never files: where no route answers them, they are unknown."""
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Operating systems differ in the types of these.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("text/javascript", ".mjs")
mimetypes.add_type("font/woff2", ".woff2")
mimetypes.add_type("application/manifest+json", ".webmanifest")


@final
class Page:
    """The page of a scheduler: its files, its live data, and what keeps the timeline.

    Attributes:
        operations: `OPERATIONS`, with endpoints of this page.
        files: The application with the files, at `/`.

    Args:
        scheduler: One that is not stepped; a stepped one only while nothing steps it.
        ui_dir: A folder with the build of another user interface, served at `/` instead of the page.

    Raises:
        LicorneError: The folder has no `index.html`.
    """

    def __init__(self, scheduler: Scheduler, *, ui_dir: Path | None = None) -> None:
        self._scheduler = scheduler
        self._feed = LiveFeed(scheduler)
        self._timeline = Timeline(scheduler.monitoring.live_view)
        self._waiting: dict[tuple[str, str], tuple[float, dict[str, int]]] = {}
        """The last sums of each partition with their times: all viewers share them."""
        self.operations = [each._replace(endpoint=partial(each.endpoint, self)) for each in self.OPERATIONS]
        self.files = files_of_page(ui_dir)

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

    def _page_node(self, request: Request) -> Response:
        """Answer with the contents of a node; may wait for a partition."""

        def read(rm_id: str, partition: str) -> Response:
            node_id = _given(request.query_params.get("node"), "node")
            facts = self._scheduler.monitoring.live_view.node(rm_id, partition, node_id)
            if facts is None:
                return error_response(404, f"node {node_id!r} is not known")
            return JSONResponse(node_document(facts), headers=_NOT_KEPT)

        return _of_partition(request, read)

    def _page_reasons(self, request: Request) -> Response:
        """Answer in few words why applications wait; may wait for a partition."""
        applications = request.query_params.getlist("application")
        if len(applications) > REASONS_MAX:
            return error_response(
                400, f"{len(applications)} applications are asked for, {REASONS_MAX} are the most"
            )

        def read(rm_id: str, partition: str) -> Response:
            reasons = self._scheduler.monitoring.live_view.reasons(rm_id, partition, applications)
            return JSONResponse(reasons, headers=_NOT_KEPT)

        return _of_partition(request, read)

    def _page_waiting(self, request: Request) -> Response:
        """Say how many applications wait for which reason; may wait for a partition."""

        def read(rm_id: str, partition: str) -> Response:
            kept = self._waiting.get((rm_id, partition))
            now = time.monotonic()
            if kept is None or now - kept[0] >= _SUMS_KEPT_SECONDS:
                kept = (now, self._scheduler.monitoring.live_view.waiting(rm_id, partition))
                self._waiting[rm_id, partition] = kept
            return JSONResponse(kept[1], headers=_NOT_KEPT)

        return _of_partition(request, read)

    async def _page_timeline(self, request: Request) -> Response:
        """Return what queues used in the last hour."""
        self._timeline.start()
        wanted = request.query_params
        try:
            partition = _given(wanted.get("partition"), "partition")
        except _BadRequestError as error:
            return error_response(400, str(error))
        since_ms = wanted.get("since", "0")
        if not _MILLISECONDS.fullmatch(since_ms):
            return error_response(400, f"expected a time in milliseconds, got since={since_ms!r}")
        document = self._timeline.document(partition, wanted.get("parent", "root"), int(since_ms))
        hours, path = wanted.get("hours", "0"), self._scheduler.monitoring.history_file
        if not _HOURS.fullmatch(hours):
            return error_response(400, f"expected a number of hours, got hours={hours!r}")
        if int(hours) and path is None:
            return error_response(404, "no history is kept: licorne serve --history FILE does")
        if path is not None:
            until_ns = self._scheduler.monitoring.now_ns()
            period = Period(until_ns - int(hours) * HOUR_NS, until_ns, partition)
            parent = wanted.get("parent", "root")
            try:
                await asyncio.to_thread(_add_history, document, HistoryFile(path), period, parent)
            except LicorneError as error:
                return error_response(503, str(error))
        return JSONResponse(document, headers=_NOT_KEPT)

    OPERATIONS: ClassVar[Sequence[Operation]] = [
        Operation(
            "/licorne/v1/live",
            _live,
            "page",
            "Everything that the page shows, then what changes, as server-sent events without end",
            "The events",
            {"text/event-stream": str},
        ),
        Operation(
            "/licorne/v1/page/node",
            _page_node,
            "page",
            "The capacity of a node and the work on it, as texts",
            "The node",
            {JSON: PageNodeDocument},
            parameters=[_KEPT_MANAGER, _KEPT_PARTITION, text("node", "The id of the node", required=True)],
            refusals=[400, 404],
        ),
        Operation(
            "/licorne/v1/page/reasons",
            _page_reasons,
            "page",
            "In few words, why applications wait",
            "The first blocker of each; those of which nothing waits are left out",
            {JSON: dict[str, str]},
            parameters=[
                _KEPT_MANAGER,
                _KEPT_PARTITION,
                Parameter(
                    "application",
                    f"The ids of the applications, {REASONS_MAX} at most",
                    {"type": "array", "items": {"type": "string"}},
                ),
            ],
            refusals=[400, 404],
        ),
        Operation(
            "/licorne/v1/page/waiting",
            _page_waiting,
            "page",
            "How many applications wait, by their first blocker in few words",
            "The numbers, the largest first",
            {JSON: dict[str, int]},
            parameters=[_KEPT_MANAGER, _KEPT_PARTITION],
            refusals=[400, 404],
        ),
        Operation(
            "/licorne/v1/page/timeline",
            _page_timeline,
            "page",
            "The use of a queue and those directly below it in the last hour, or in more with a history",
            "The points",
            {JSON: TimelineDocument},
            parameters=[
                text(
                    "partition",
                    "Its full name, `[rm]default`; one that is unknown has no points",
                    required=True,
                ),
                Parameter("parent", "The queue", {"type": "string", "default": "root"}),
                numbered(
                    "since",
                    "Points after this time alone, milliseconds since 1970",
                    least=0,
                    most=10**18 - 1,
                    default=0,
                ),
                numbered(
                    "hours",
                    "Instead, the means of this many hours, from the history of the server",
                    least=0,
                    most=99_999,
                    default=0,
                ),
            ],
            refusals=[400, 404],
        ),
    ]
    """The operations of a page; their endpoints take the page first."""


def files_of_page(ui_dir: Path | None) -> Starlette:
    """Return the application with the files of the page, or of a folder with another user interface.

    Raises:
        LicorneError: The folder has no `index.html`.
    """
    files = PageFiles() if ui_dir is None else FolderFiles(ui_dir)
    return Starlette(routes=[Route("/{path:path}", files.respond)])


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


def error_response(status: int, message: str) -> JSONResponse:
    """Return the response of an error."""
    document = {"status_code": status, "message": message, "description": message}
    return JSONResponse(document, status_code=status, headers={"Cache-Control": "no-store"})


INTERVAL_SECONDS: Final = 10
POINTS_MAX: Final = 360
QUEUES_MAX: Final = 500
"""Queues of a partition beyond this number are not kept: the first in the order of the tree are."""


class _Point(NamedTuple):
    time_ns: int
    queues: dict[str, tuple[Resource, Resource]]
    """Path -> what is allocated, and what is pending."""


@final
class Timeline:
    """The last hour of each partition. One thread at a time may use it: that of the event loop."""

    def __init__(self, view: LiveView) -> None:
        self._view = view
        self._rings: dict[str, deque[_Point]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to read, on the running event loop; once is enough."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop reading."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            with suppress(RequestError):  # Stopped, or a predicate asks: the next reading may succeed.
                self.take(await asyncio.to_thread(self._view.queues))
            await asyncio.sleep(INTERVAL_SECONDS)

    def take(self, reading: tuple[LiveQueues, ...]) -> None:
        """Add a reading of all partitions; what a partition that has gone had is dropped."""
        rings = {}
        for each in reading:
            ring = self._rings.get(each.partition)
            rings[each.partition] = ring = deque(maxlen=POINTS_MAX) if ring is None else ring
            kept = {row.path: (row.allocated, row.pending) for row in each.queues[:QUEUES_MAX]}
            ring.append(_Point(each.time_ns, kept))
        self._rings = rings

    def document(self, partition: str, parent: str, since_ms: int) -> TimelineDocument:
        """Return the points after a time, for a queue and the queues right below it.

        Each queue has a list a point; `null` where it did not exist.
        """
        points = [point for point in self._rings.get(partition, ()) if point.time_ns // 1_000_000 > since_ms]
        prefix = f"{parent}."
        paths = dict.fromkeys(
            path
            for point in points
            for path in point.queues
            if path == parent or (path.startswith(prefix) and "." not in path[len(prefix) :])
        )
        types = Types()
        queues = {path: [_values(point, path, types) for point in points] for path in paths}
        return {
            "interval": INTERVAL_SECONDS * 1000,
            "span": INTERVAL_SECONDS * 1000 * POINTS_MAX,
            "kept": 0,
            "types": [*types.names],
            "times": [point.time_ns // 1_000_000 for point in points],
            "queues": queues,
        }


def _values(point: _Point, path: str, types: Types) -> list[list[int | None]] | None:
    found = point.queues.get(path)
    return None if found is None else [types.of_items(resource.items()) for resource in found]


def _add_history(document: TimelineDocument, file: HistoryFile, period: Period, parent: str) -> None:
    """Add how far back a history reaches; unless the period is empty, its points replace those in memory."""
    first_ns = file.first_ns()
    document["kept"] = 0 if first_ns is None else (period.until_ns - first_ns) // 1_000_000
    if period.since_ns == period.until_ns:
        return
    interval_ns, uses = file.queue_use(period, parent)
    begins = [use.time_ns for use in uses]
    times = range(min(begins), max(begins) + 1, interval_ns) if begins else range(0)
    types = Types()
    for use in uses:
        types.of_items([(use.type, 0)])
    queues: dict[str, list[list[list[int | None]] | None]] = {}
    for use in uses:
        points = queues.setdefault(use.path, [None] * len(times))
        place, none = times.index(use.time_ns), [None] * len(types.names)
        used, waiting = points[place] = points[place] or [[*none], [*none]]
        at = types.names.index(use.type)
        used[at], waiting[at] = use.used, use.waiting
    document["interval"] = interval_ns // 1_000_000
    document["span"] = (period.until_ns - period.since_ns) // 1_000_000
    document["times"] = [at_ns // 1_000_000 for at_ns in times]
    document["queues"] = queues
    document["types"] = types.names


def _unknown() -> Response:
    return PlainTextResponse("404 page not found\n", 404, headers={"X-Content-Type-Options": "nosniff"})


class _File(NamedTuple):
    content: bytes
    headers: Mapping[str, str]


@final
class PageFiles:
    """The files of our own page, held in memory."""

    def __init__(self) -> None:
        folder = resources.files(__package__) / "static"
        self._files = {
            entry.name: _file(entry.name, entry.read_bytes())
            for entry in folder.iterdir()
            if entry.is_file() and "." + entry.name.rpartition(".")[2] in _TYPES
        }
        self._files[_WORDS] = _file(_WORDS, _words_script())

    async def respond(self, request: Request) -> Response:
        """Return a file, or for a browser that has it already an answer without content."""
        name = request.path_params["path"] or _INDEX
        found = self._files.get(name)
        if found is None:
            return _unknown()
        if request.headers.get("if-none-match") == found.headers["ETag"]:
            return Response(status_code=304, headers=dict(found.headers))
        return Response(found.content, headers=dict(found.headers))


def _words_script() -> bytes:
    """Return the words for what is in an event, as a script that exports them."""
    words = {"TYPES": TYPE_WORDS, "CHANGES": CHANGE_WORDS, "DETAILS": DETAIL_WORDS}
    lines = (f"export const {name} = {json.dumps(dict(texts))};\n" for name, texts in words.items())
    return "".join(lines).encode()


def _file(name: str, content: bytes) -> _File:
    headers = {
        **_SAFE,
        "Content-Security-Policy": _POLICY,
        "Content-Type": _TYPES["." + name.rpartition(".")[2]],
        "Cache-Control": _ASK_AGAIN,
        "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    }
    return _File(content, headers)


@final
class FolderFiles:
    """The files of a folder with the build of another user interface; a route of that is its `index.html`.

    Raises:
        LicorneError: The folder has no `index.html`.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / _INDEX).is_file():
            raise LicorneError(f"--ui-dir {folder}: there is no {_INDEX} in it")
        self._files = StaticFiles(directory=folder)

    async def respond(self, request: Request) -> Response:
        """Return a file of the folder, for an unknown path without a suffix `index.html`."""
        path = self._files.get_path({**request.scope, "path": "/" + request.path_params["path"]})
        if request.path_params["path"].startswith(_API):
            return _unknown()
        for name in (path if path != "." else _INDEX, _INDEX):
            try:
                response = await self._files.get_response(name, request.scope)
            except HTTPException as error:
                if error.status_code != 404 or "." in path.rpartition("/")[2]:
                    return _unknown()
                continue
            response.headers.update(_SAFE)
            hashed = _HASHED.search(name) is not None
            response.headers["Cache-Control"] = _FOR_EVER if hashed else _ASK_AGAIN
            return response
        return _unknown()
