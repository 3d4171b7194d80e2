"""Refuse what only the older generation of `si.v1` says, by name, before anything is done.

The messages of both generations read without loss, but the scheduler acts upon the current one only. To
overlook such a field would lose an ask, or worse: a release by `UUID` has no `allocationKey`, which today
means all allocations of the application. Who acts upon an allocation request reads both of its parts first,
its allocations and its releases: then a request is taken whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ...model.errors import RequestError

if TYPE_CHECKING:
    from . import si_pb2 as si

__all__ = ["refuse_older_allocations", "refuse_older_nodes"]


def refuse_older_allocations(request: si.AllocationRequest) -> None:
    """Check a request for fields of the older generation, except within its allocations.

    Raises:
        RequestError: The request has such a field.
    """
    if request.asks:
        first = request.asks[0].allocationKey
        refuse_older_field(
            request.rmID, f"asks (the first is {first!r})", "send them as allocations without nodeID"
        )
    if not request.HasField("releases"):
        return
    releases = request.releases
    if releases.allocationAsksToRelease:
        first = releases.allocationAsksToRelease[0].allocationKey
        refuse_older_field(
            request.rmID,
            f"releases.allocationAsksToRelease (the first is {first!r})",
            "send them as allocationsToRelease",
        )
    for release in releases.allocationsToRelease:
        if release.UUID:
            refuse_older_field(
                request.rmID,
                f"releases.allocationsToRelease.UUID ({release.UUID!r})",
                "name the allocation by its allocationKey",
            )


def refuse_older_nodes(request: si.NodeRequest) -> None:
    """Check a request for fields of the older generation.

    Raises:
        RequestError: The request has such a field.
    """
    for node in request.nodes:
        if node.HasField("occupiedResource"):
            refuse_older_field(
                request.rmID,
                f"nodes.occupiedResource (of node {node.nodeID!r})",
                "send what others use as foreign allocations",
            )
        if node.existingAllocations:
            refuse_older_field(
                request.rmID,
                f"nodes.existingAllocations (of node {node.nodeID!r})",
                "send them as allocations with nodeID, after their applications",
            )


def refuse_older_field(rm_id: str, field: str, instead: str) -> NoReturn:
    """Refuse a request because of one field.

    Raises:
        RequestError: Always; the field and what to send instead are named.
    """
    raise RequestError(
        f"resource manager {rm_id!r} uses {field}: a field of the older generation of si.v1, "
        f"which this scheduler does not act upon; {instead}"
    )
