"""A server of HTTP that answers with documents of a test: those of the recorded core, or others."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["NOW_NS", "DocumentServer", "recorded_documents"]

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
    """

    def __init__(
        self, documents: dict[str, object] | None = None, *, tls: tuple[Path, Path] | None = None
    ) -> None:
        self.documents = recorded_documents() if documents is None else documents
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self._tls = tls
        self._port = 0
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """The address, also while it is stopped."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, on the same port as before if it has listened before."""
        listening = socket.create_server(("127.0.0.1", self._port))
        self._port = listening.getsockname()[1]
        certificate, key = self._tls or (None, None)
        config = uvicorn.Config(
            Starlette(routes=[Route("/{path:path}", self._answer)]),
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        server = uvicorn.Server(config)

        def serve() -> None:
            with listening:
                asyncio.run(server.serve([listening]))

        self._server, self._thread = server, threading.Thread(target=serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more; what asks is refused."""
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join()

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
