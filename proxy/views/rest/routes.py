"""All routes of the REST interface; here those of the parts are put together.

A module with endpoints has a table `OPERATIONS`; its endpoints find the scheduler by `requests.scheduler_of`.
An endpoint that is no coroutine runs on a thread: it may wait for the scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, wraps
from inspect import iscoroutinefunction
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...core.documents.operations import Operation
from ..page.application import Page
from .cross_origin import SHARED, CrossOrigin
from .description import description_of
from .handlers import (
    applications,
    clusters,
    configurations,
    debugging,
    events,
    monitoring,
    nodes,
    questions,
    queues,
)
from .requests import pace_of
from .unrouted import allowed_methods


@cache
def description() -> bytes:
    """Return the description of all operations, OpenAPI 3.1 as YAML in UTF-8."""
    return description_of([*OPERATIONS, *Page.OPERATIONS])


async def _description(_: Request) -> Response:
    return Response(description(), headers={"Content-Type": _TYPE})


_TYPE: Final = "application/yaml"
OPERATIONS: Final[Sequence[Operation]] = [
    Operation(
        "/openapi.yaml",
        _description,
        "cluster",
        "This description",
        "The description",
        {_TYPE: dict[str, object]},
        is_open=True,
    ),
    *clusters.OPERATIONS,
    *configurations.OPERATIONS,
    *queues.OPERATIONS,
    *nodes.OPERATIONS,
    *applications.OPERATIONS,
    *events.OPERATIONS,
    *questions.OPERATIONS,
    *debugging.OPERATIONS,
    *monitoring.OPERATIONS,
]
"""All operations but those of the page."""


def all_routes(operations: Iterable[Operation]) -> list[Route]:
    """Return fresh routes of operations, with the headers for pages of other origins, and without HEAD."""
    return [_route(each) for each in operations]


def _route(operation: Operation) -> Route:
    made = Route(operation.path, _counted(operation.endpoint), methods=[operation.method])
    assert made.methods is not None, f"{operation.path} has no methods: please report"
    made.methods.discard("HEAD")
    # Starlette's `$` also matches before a newline, which would be cut off.
    made.path_regex = re.compile(made.path_regex.pattern.removesuffix("$") + r"\Z")
    if operation.path.startswith(SHARED):
        made.app = CrossOrigin(made.app, allowed_methods(made.methods))
    return made


def _counted(endpoint: Callable[[Request], object]) -> Callable[[Request], object]:
    """Return an endpoint whose time on a thread of its own counts as time of readers."""
    if iscoroutinefunction(endpoint):
        return endpoint

    @wraps(endpoint)
    def counted(request: Request) -> object:
        with pace_of(request).step():
            return endpoint(request)

    return counted
