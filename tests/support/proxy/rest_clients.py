"""A stepped scheduler behind its REST interface, without a socket."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager

import anyio
from starlette.applications import Starlette
from starlette.testclient import TestClient
from support.proxy.manager_requests import ONE

from licorne import ResourceManager, Scheduler, rest_app


class Reader:
    """A scheduler, its REST interface, and a client of that."""

    def __init__(self, scheduler: Scheduler, tokens: Sequence[str] = ()) -> None:
        self.scheduler = scheduler
        self.application = rest_app(scheduler, tokens=tokens)
        self.client = TestClient(self.application, follow_redirects=False, raise_server_exceptions=False)

    def status(self, path: str) -> int:
        """Return the status of a path."""
        return int(self.client.get(path).status_code)

    def document(self, path: str) -> object:
        """Return the document of a path, which must be there."""
        answer = self.client.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        document: object = answer.json()
        return document


@contextmanager
def reader(configuration: str = ONE, tokens: Sequence[str] = ()) -> Iterator[Reader]:
    """Give a stepped scheduler with one RM, `rm`, behind its REST interface."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=configuration)
        yield Reader(scheduler, tokens)


def scope_of(path: str, method: str = "GET", query: str = "", **headers: str) -> dict[str, object]:
    """Return a request as a server hands it to an application, without the repairs of a client."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(errors="replace"),
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()],
        "client": ("127.0.0.1", 1),
    }


def status_of_path(application: Starlette, path: str, method: str = "GET") -> int:
    """Return the status of a path that is sent as it is."""
    statuses: list[int] = []

    async def receive() -> MutableMapping[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, object]) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            assert isinstance(status, int)
            statuses.append(status)

    anyio.run(application, scope_of(path, method), receive, send)
    (status,) = statuses
    return status
