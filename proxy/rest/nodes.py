"""The routes of nodes."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...model.values.messages import short_partition_name
from ..documents.nodes import node_document, utilizations_document
from .errors import RestError
from .pages import paged_response
from .requests import partition_of, views_of
from .responses import json_response

__all__ = ["ROUTES"]

_BELOW = "/ws/v1/partition/{partition}"


def _nodes(request: Request) -> Response:
    return paged_response(request, views_of(request).nodes(partition_of(request)), node_document)


def _node(request: Request) -> Response:
    node = views_of(request).node(partition_of(request), request.path_params["node"])
    if node is None:
        raise RestError(HTTPStatus.NOT_FOUND, "Node not found")
    return json_response(node_document(node))


def _utilizations(request: Request) -> Response:
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


ROUTES = [
    Route(f"{_BELOW}/nodes", _nodes),
    Route(f"{_BELOW}/node/{{node}}", _node),
    Route("/ws/v1/scheduler/node-utilizations", _utilizations),
]
