"""The routes of applications."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...model.views.shown import ListedApplication
from ..documents.applications import application_document
from .errors import RestError
from .pages import paged_response
from .requests import partition_of, queue_path_of, views_of
from .responses import json_response

__all__ = ["ROUTES"]

_BELOW: Final = "/ws/v1/partition/{partition}"
_STATUSES: Final = ("new", "accepted", "running", "completing", "failing", "resuming")


def _of_queue(request: Request) -> Response:
    partition, queue = partition_of(request), _known_queue(request)
    return _active(request, partition, queue=queue)


def _active_of_queue(request: Request) -> Response:
    partition, queue = partition_of(request), _known_queue(request)
    if request.path_params["state"].lower() != "active":
        raise RestError(HTTPStatus.BAD_REQUEST, "Only following application states are allowed: active")
    return _active(request, partition, queue=queue, status=_status(request))


def _in_state(request: Request) -> Response:
    partition, views = partition_of(request), views_of(request)
    state = request.path_params["state"].lower()
    if state == "active":
        return _active(request, partition, status=_status(request))
    if state == "completed":
        serials = sorted(views.listed_applications(partition).completed)
        return paged_response(request, views.completed(partition, serials), application_document)
    if state == "rejected":
        names = sorted(views.listed_applications(partition).rejected)
        return paged_response(request, views.rejected(partition, names), application_document)
    raise RestError(
        HTTPStatus.BAD_REQUEST,
        "Only following application states are allowed: active, rejected, completed",
    )


def _application(request: Request) -> Response:
    return _one(request, partition_of(request))


def _application_of_queue(request: Request) -> Response:
    return _one(request, partition_of(request), queue=_known_queue(request))


def _known_queue(request: Request) -> str:
    """Return the path of the queue in the path.

    Raises:
        RestError: There is none.
    """
    queue = queue_path_of(request)
    if not views_of(request).queue(partition_of(request), queue, subtree=False):
        raise RestError(HTTPStatus.NOT_FOUND, "Queue not found")
    return queue


def _status(request: Request) -> str:
    """Return the status that is asked for, in lower case; the empty text for none.

    Raises:
        RestError: It is none of an active application.
    """
    status = request.query_params.get("status", "").lower()
    if status and status not in _STATUSES:
        known = ", ".join(_STATUSES)
        raise RestError(HTTPStatus.BAD_REQUEST, f"Only following active statuses are allowed: {known}")
    return status


def _active(request: Request, partition: str, *, queue: str | None = None, status: str = "") -> Response:
    """Return the list of active applications: of a queue, in a status."""
    views = views_of(request)

    def wanted(listed: ListedApplication) -> bool:
        return queue in (None, listed.queue_path) and status in ("", listed.state.value.lower())

    active = views.listed_applications(partition).active
    names = sorted(listed.application_id for listed in active if wanted(listed))
    return paged_response(request, views.active(partition, names), application_document)


def _one(request: Request, partition: str, queue: str | None = None) -> Response:
    pages = views_of(request).active(partition, [request.path_params["application"]])
    found = [shown for page in pages for shown in page if queue in (None, shown.summary.queue_path)]
    if not found:
        raise RestError(HTTPStatus.NOT_FOUND, "Application not found")
    return json_response(application_document(found[0]))


_QUEUE: Final = f"{_BELOW}/queue/{{queue}}"

ROUTES = [
    Route(f"{_QUEUE}/applications", _of_queue),
    Route(f"{_QUEUE}/applications/{{state}}", _active_of_queue),
    Route(f"{_QUEUE}/application/{{application}}", _application_of_queue),
    Route(f"{_BELOW}/application/{{application}}", _application),
    Route(f"{_BELOW}/applications/{{state}}", _in_state),
]
