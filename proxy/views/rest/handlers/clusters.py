"""The routes of the cluster and of its partitions as a whole."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ....core.documents.clusters import (
    ClusterDocument,
    PartitionDocument,
    WorkerDocument,
    cluster_document,
    partition_document,
)
from ....core.documents.operations import JSON, Operation
from ..requests import views_of
from ..responses import json_response


def _clusters(request: Request) -> Response:
    views = views_of(request)
    builds = views.builds()
    return json_response(
        [cluster_document(name, views.started_at_ns, builds) for name in views.partition_names()]
    )


def _partitions(request: Request) -> Response:
    return json_response([partition_document(values) for values in views_of(request).partitions()])


def _workers(_: Request) -> Response:
    """Return nothing: the partitions of a scheduler of this process have no workers."""
    return json_response([])


OPERATIONS = [
    Operation(
        "/ws/v1/clusters",
        _clusters,
        "cluster",
        "The partitions, with the resource managers and what they said of their programs",
        "One entry a partition",
        {JSON: list[ClusterDocument]},
    ),
    Operation(
        "/ws/v1/partitions",
        _partitions,
        "cluster",
        "The partitions with their capacity, their use, and how many applications are in each state",
        "The partitions, by resource manager and name",
        {JSON: list[PartitionDocument]},
    ),
    Operation(
        "/licorne/v1/workers",
        _workers,
        "questions",
        "Where each partition runs, and how it is",
        "One entry a partition behind a door; none where all run in the process that answers",
        {JSON: list[WorkerDocument]},
    ),
]
