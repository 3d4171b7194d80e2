"""The routes of applications."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from .....model.views.shown import ListedApplication
from ....core.documents.applications import ApplicationDocument, application_document
from ....core.documents.operations import JSON, Operation, Parameter
from ..errors import RestError
from ..requests import partition_of, queue_path_of, views_of
from ..responses import json_response
from .pages import paged_response

_BELOW: Final = "/ws/v1/partition/{partition}"
_STATUSES: Final = ("new", "accepted", "running", "completing", "failing", "resuming")


def _applications_of_queue(request: Request) -> Response:
    partition, queue = partition_of(request), _known_queue(request)
    return _active(request, partition, queue=queue)


def _active_applications_of_queue(request: Request) -> Response:
    partition, queue = partition_of(request), _known_queue(request)
    if request.path_params["state"].lower() != "active":
        raise RestError(HTTPStatus.BAD_REQUEST, "Only following application states are allowed: active")
    return _active(request, partition, queue=queue, status=_status(request))


def _applications(request: Request) -> Response:
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
        RestError: It is not that of an active application.
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

_MANY: Final = "The applications; those that end while the list is made are left out"
_STATUS: Final = Parameter(
    "status",
    "Of active applications only those in this status, in any case of letters; all if it is empty. "
    "Ignored for others",
    {"type": "string", "enum": ["", *_STATUSES]},
)


def _state(*states: str) -> Parameter:
    schema = {"type": "string", "enum": [*states]}
    return Parameter("state", "Which applications, in any case of letters", schema, "path", required=True)


OPERATIONS = [
    Operation(
        f"{_BELOW}/applications/{{state}}",
        _applications,
        "partition",
        "The applications that are active, have ended within three days, or were rejected",
        _MANY,
        {JSON: list[ApplicationDocument]},
        parameters=[_state("active", "completed", "rejected"), _STATUS],
        refusals=[400],
    ),
    Operation(
        f"{_QUEUE}/applications",
        _applications_of_queue,
        "partition",
        "The active applications of a leaf",
        _MANY,
        {JSON: list[ApplicationDocument]},
        refusals=[400],
    ),
    Operation(
        f"{_QUEUE}/applications/{{state}}",
        _active_applications_of_queue,
        "partition",
        "The active applications of a leaf, also those in one status",
        _MANY,
        {JSON: list[ApplicationDocument]},
        parameters=[_state("active"), _STATUS],
        refusals=[400],
    ),
    Operation(
        f"{_BELOW}/application/{{application}}",
        _application,
        "partition",
        "An active application with its asks, allocations and states",
        "The application",
        {JSON: ApplicationDocument},
    ),
    Operation(
        f"{_QUEUE}/application/{{application}}",
        _application_of_queue,
        "partition",
        "An active application, if it is in this leaf",
        "The application",
        {JSON: ApplicationDocument},
        refusals=[400],
    ),
]
