"""The routes for those who watch over a scheduler: metrics, history, health and state dumps."""

from __future__ import annotations

from contextlib import ExitStack
from http import HTTPStatus
from typing import IO, TYPE_CHECKING, Final

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ..dumps.state_dump import state_dump_file
from ..health.report import health_document
from ..metrics.exporter import exposition
from .errors import RestError
from .requests import scheduler_of
from .responses import JSON_TYPE, json_response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

__all__ = ["ROUTES"]

_PIECE: Final = 2**16
"""How many bytes of a state dump are sent at once."""


def _metrics(request: Request) -> Response:
    body, content_type = exposition(scheduler_of(request))
    return Response(body, media_type=None, headers={"Content-Type": content_type})


def _application_history(request: Request) -> Response:
    return json_response(scheduler_of(request).history.applications())


def _container_history(request: Request) -> Response:
    return json_response(scheduler_of(request).history.containers())


def _health(request: Request) -> Response:
    scheduler = scheduler_of(request)
    report = scheduler.health()
    if report is None and not scheduler.stepped:
        report = scheduler.check_health()  # The checks begin with a registration: there has been none yet.
    if report is None:
        raise RestError(HTTPStatus.NOT_FOUND, "Health check is not available")
    return json_response(health_document(report))


def _state_dump(request: Request) -> Response:
    """Make a state dump, then send it: a client that reads slowly keeps no other one waiting."""
    kept = ExitStack()
    file = kept.enter_context(state_dump_file(scheduler_of(request)))
    return StreamingResponse(_pieces(file, kept), headers={"Content-Type": JSON_TYPE})


def _pieces(file: IO[bytes], kept: ExitStack) -> Iterator[bytes]:
    with kept:
        while piece := file.read(_PIECE):
            yield piece


ROUTES = [
    Route("/ws/v1/metrics", _metrics),
    Route("/ws/v1/history/apps", _application_history),
    Route("/ws/v1/history/containers", _container_history),
    Route("/ws/v1/scheduler/healthcheck", _health),
    Route("/debug/fullstatedump", _state_dump),
]
