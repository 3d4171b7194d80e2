"""The routes of nodes."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from .....model.values.messages import short_partition_name
from ....core.documents.nodes import NodeDocument, UtilizationsDocument, node_document, utilizations_document
from ....core.documents.operations import JSON, Operation
from ..errors import RestError
from ..requests import partition_of, views_of
from ..responses import json_response
from .pages import paged_response

_BELOW = "/ws/v1/partition/{partition}"


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


OPERATIONS = [
    Operation(
        f"{_BELOW}/nodes",
        _nodes,
        "partition",
        "All nodes, by id, with what runs on them",
        "The nodes; those that go while the list is made are left out",
        {JSON: list[NodeDocument]},
    ),
    Operation(
        f"{_BELOW}/node/{{node}}",
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
