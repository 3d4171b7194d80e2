"""All routes of the REST interface; here those of the parts are put together.

A module with routes has a list `ROUTES`, of `starlette.routing.Route`, whose endpoints find the scheduler by
`requests.scheduler_of`. An endpoint that is no coroutine runs on a thread: it may wait for the scheduler.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import iscoroutinefunction

from starlette.requests import Request
from starlette.routing import Route

from . import (
    applications,
    clusters,
    configurations,
    debugging,
    description,
    events,
    monitoring,
    nodes,
    questions,
    queues,
)
from .cross_origin import SHARED, CrossOrigin
from .requests import pace_of
from .unrouted import allowed_methods

__all__ = ["all_routes"]

_PARTS: Sequence[Sequence[Route]] = [
    clusters.ROUTES,
    configurations.ROUTES,
    queues.ROUTES,
    nodes.ROUTES,
    applications.ROUTES,
    events.ROUTES,
    questions.ROUTES,
    debugging.ROUTES,
    description.ROUTES,
    monitoring.ROUTES,
]


def all_routes(others: Sequence[Route]) -> list[Route]:
    """Return fresh routes of all parts, with the headers for pages of other origins, and without HEAD.

    Args:
        others: The routes that are made for one application.
    """
    return [_prepared(route) for part in (*_PARTS, others) for route in part]


def _prepared(route: Route) -> Route:
    methods = sorted((route.methods or {"GET"}) - {"HEAD"})
    made = Route(route.path, _counted(route.endpoint), methods=methods, name=route.name)
    assert made.methods is not None, f"{route.path} has no methods: please report"
    made.methods.discard("HEAD")
    # Starlette's `$` also matches before a newline, which would be cut off.
    made.path_regex = re.compile(made.path_regex.pattern.removesuffix("$") + r"\Z")
    if route.path.startswith(SHARED):
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
