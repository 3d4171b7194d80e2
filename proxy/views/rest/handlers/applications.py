"""The routes of nodes and applications, whose long lists are made and sent page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .....model.values.messages import short_partition_name
from .....model.views.shown import ListedApplication
from ....core.documents.applications import ApplicationDocument, application_document
from ....core.documents.clusters import (
    NodeDocument,
    UtilizationsDocument,
    node_document,
    utilizations_document,
)
from ....core.documents.declarations import JSON, Operation, Parameter
from ..limits import Pace
from ..requests import pace_of, partition_of, queue_path_of, views_of
from ..responses import JSON_TYPE, RestError, json_bytes, json_response

_BELOW: Final = "/ws/v1/partition/{partition}"
_STATUSES: Final = ("new", "accepted", "running", "completing", "failing", "resuming")
_BELOW_NODES = "/ws/v1/partition/{partition}"
T = TypeVar("T")


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
        RestError: It does not exist.
    """
    queue = queue_path_of(request)
    if not views_of(request).queue(partition_of(request), queue, subtree=False):
        raise RestError(HTTPStatus.NOT_FOUND, "Queue not found")
    return queue


def _status(request: Request) -> str:
    """Return the status that is asked for, in lower case; the empty text if there is none.

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


_APPLICATIONS = [
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


def _nodes(request: Request) -> Response:
    return paged_response(request, views_of(request).nodes(partition_of(request)), node_document)


def _node(request: Request) -> Response:
    node = views_of(request).node(partition_of(request), request.path_params["node"])
    if node is None:
        raise RestError(HTTPStatus.NOT_FOUND, "Node not found")
    return json_response(node_document(node))


def _node_utilizations(request: Request) -> Response:
    views = views_of(request)
    return json_response(
        [
            utilizations_document(
                partition.rm_id,
                short_partition_name(partition.name),
                (node for page in views.nodes(partition.name) for node in page),
            )
            for partition in views.partitions()
        ]
    )


_NODES = [
    Operation(
        f"{_BELOW_NODES}/nodes",
        _nodes,
        "partition",
        "All nodes, by id, with what runs on them",
        "The nodes; those that go while the list is made are left out",
        {JSON: list[NodeDocument]},
    ),
    Operation(
        f"{_BELOW_NODES}/node/{{node}}",
        _node,
        "partition",
        "A node, with what runs on it",
        "The node",
        {JSON: NodeDocument},
    ),
    Operation(
        "/ws/v1/scheduler/node-utilizations",
        _node_utilizations,
        "cluster",
        "Which nodes are how full, for each partition and resource type, in ten classes",
        "One entry a partition",
        {JSON: list[UtilizationsDocument]},
    ),
]


def paged_response(
    request: Request, pages: Iterator[Sequence[T]], document: Callable[[T], Mapping[str, object]]
) -> Response:
    """Return the answer with a list of documents; what fails in the first page is an error of the request.

    Args:
        request: The request; the time that its pages take counts as time of readers.
        pages: The values, in pages; each page is asked for when the one before it has been sent.
        document: Makes the document of a value.
    """
    first = next(pages, ())
    second = next(pages, None)
    if second is None:
        return json_response([document(value) for value in first])
    body = _counted(pace_of(request), _parts(chain((first, second), pages), document))
    return StreamingResponse(body, headers={"Content-Type": JSON_TYPE})


def _counted(pace: Pace, parts: Iterator[bytes]) -> Iterator[bytes]:
    while True:
        with pace.step():
            part = next(parts, None)
        if part is None:
            return
        yield part


def _parts(pages: Iterator[Sequence[T]], document: Callable[[T], Mapping[str, object]]) -> Iterator[bytes]:
    """Yield the text of the list, a page a part."""
    before = b"["
    for page in pages:
        if page:  # All that was on it may be gone.
            yield before + json_bytes([document(value) for value in page])[1:-1]
            before = b","
    yield b"]\n" if before == b"," else b"[]\n"


OPERATIONS = [*_NODES, *_APPLICATIONS]
