"""The routes of the cluster and of its partitions as a whole."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..documents.clusters import cluster_document, partition_document
from .requests import views_of
from .responses import json_response

__all__ = ["ROUTES"]


def _clusters(request: Request) -> Response:
    views = views_of(request)
    builds = views.builds()
    return json_response(
        [cluster_document(name, views.started_at_ns, builds) for name in views.partition_names()]
    )


def _partitions(request: Request) -> Response:
    return json_response([partition_document(values) for values in views_of(request).partitions()])


ROUTES = [
    Route("/ws/v1/clusters", _clusters),
    Route("/ws/v1/partitions", _partitions),
]
