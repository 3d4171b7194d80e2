"""A server of HTTP that answers with documents of a test: those of the recorded core, or others."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from support.proxy.page_cluster import serving

_FOLDER: Final = Path(__file__).parents[2] / "conformance" / "rest"
_PARTITION: Final = "/ws/v1/partition/default"
_FILES: Final = {
    "/ws/v1/partitions": "partitions",
    f"{_PARTITION}/queues": "queues",
    f"{_PARTITION}/nodes": "nodes",
    f"{_PARTITION}/applications/active": "applications_active",
    f"{_PARTITION}/usage/users": "usage_users",
    f"{_PARTITION}/usage/groups": "usage_groups",
    "/ws/v1/scheduler/healthcheck": "healthcheck",
    "/ws/v1/scheduler/node-utilizations": "node_utilizations",
    "/ws/v1/events/batch": "events_batch",
}
_TIME_NS: Final = 1_750_000_000_000_000_000
NOW_NS: Final = _TIME_NS + 90 * 10**9
"""90 seconds after each time in the recorded documents."""


def recorded_documents() -> dict[str, object]:
    """Return documents of the recorded core by path; their times, which were blanked, are one time."""
    documents: dict[str, object] = {}
    for path, name in _FILES.items():
        text = (_FOLDER / f"{name}.json").read_text(encoding="utf-8")
        text = text.replace('"InstanceUUID": "<time>"', '"InstanceUUID": "one"')
        documents[path] = json.loads(text.replace('"<time>"', str(_TIME_NS)))
    return documents


@final
class DocumentServer:
    """A server on a free port, which `stop` and `start` take away and bring back; `with` does both.

    Attributes:
        documents: What it answers, by path; what is not there has the status 404. A function gets the query,
            and its answer may be a `Response`.
        asked: The paths that were asked for, with their queries.
        tokens: The values of the header of authorization that came.
        address: The address, also while it is stopped.
    """

    def __init__(
        self, documents: dict[str, object] | None = None, *, tls: tuple[Path, Path] | None = None
    ) -> None:
        self.documents = recorded_documents() if documents is None else documents
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.address = ""
        self._tls = tls
        self._running = ExitStack()

    def start(self) -> None:
        """Listen, on the same port as before if it has listened before."""
        application = Starlette(routes=[Route("/{path:path}", self._answer)])
        port = int(self.address.rpartition(":")[2] or 0)
        self.address = self._running.enter_context(serving(application, port=port, tls=self._tls))

    def stop(self) -> None:
        """Listen no more; what asks is refused."""
        self._running.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _answer(self, request: Request) -> Response:
        query = request.url.query
        self.asked.append(f"{request.url.path}?{query}" if query else request.url.path)
        self.tokens.append(request.headers.get("authorization"))
        answer = self.documents.get(request.url.path)
        if callable(answer) and not isinstance(answer, Response):
            asked: Callable[[dict[str, str]], object] = answer
            answer = asked(dict(request.query_params))
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response("404 page not found\n", 404, media_type="text/plain")
        return Response(json.dumps(answer), media_type="application/json")
