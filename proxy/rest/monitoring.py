"""The routes for those who watch over a scheduler: metrics, history and health."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import Response
from starlette.routing import Route

from ..health.report import health_document
from ..metrics.exporter import exposition
from .errors import RestError
from .requests import scheduler_of
from .responses import json_response

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["ROUTES"]


def _metrics(request: Request) -> Response:
    body, content_type = exposition(scheduler_of(request))
    return Response(body, media_type=None, headers={"Content-Type": content_type})


def _application_history(request: Request) -> Response:
    return json_response(scheduler_of(request).history.applications())


def _container_history(request: Request) -> Response:
    return json_response(scheduler_of(request).history.containers())


def _health(request: Request) -> Response:
    report = scheduler_of(request).health()
    if report is None:
        raise RestError(HTTPStatus.NOT_FOUND, "Health check is not available")
    return json_response(health_document(report))


ROUTES = [
    Route("/ws/v1/metrics", _metrics),
    Route("/ws/v1/history/apps", _application_history),
    Route("/ws/v1/history/containers", _container_history),
    Route("/ws/v1/scheduler/healthcheck", _health),
]
