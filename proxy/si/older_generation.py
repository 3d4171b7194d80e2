"""The older generation of `si.v1`: its asks are read, and fields that are not supported are refused by name.

An ask of the older generation is read as a current one, with a limit how long its allocation may run
(`execution_limits`). A request is refused before anything is done: to ignore a field would lose an ask, or
release too much. The caller reads all parts of an allocation request first, its allocations and its releases:
then a request is taken as a whole or not at all.

An allocation has one name here. Where the older generation has a second one, the `UUID` that the scheduler
gives, it is the `allocationKey` again: see `older_answers`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from ...model.errors import RequestError
from ...model.values.messages import (
    AllocationSubmission,
    AskRelease,
    ExecutionLimit,
    TerminationType,
    full_partition_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.resources.resource import Resource
    from . import si_pb2 as si

__all__ = ["ask_releases", "execution_limits", "older_asks", "refuse_older_allocations", "refuse_older_nodes"]

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


def older_asks(
    request: si.AllocationRequest, read_resource: Callable[[si.Resource], Resource]
) -> list[AllocationSubmission]:
    """Read the asks of the older generation, in order.

    A placeholder without a task group is a plain ask, by the rules of that generation.
    """
    return [
        AllocationSubmission(
            allocation_key=ask.allocationKey,
            application_id=ask.applicationID,
            partition=full_partition_name(ask.partitionName, request.rmID),
            resource=read_resource(ask.resourceAsk),
            priority=ask.priority,
            tags=dict(sorted(ask.tags.items())) if ask.tags else _NO_TEXTS,
            node_id="",
            task_group_name=ask.taskGroupName,
            placeholder=ask.placeholder and bool(ask.taskGroupName),
            originator=ask.Originator,
            allow_preempt_self=ask.preemptionPolicy.allowPreemptSelf,
            allow_preempt_other=ask.preemptionPolicy.allowPreemptOther,
        )
        for ask in request.asks
    ]


def execution_limits(request: si.AllocationRequest) -> tuple[ExecutionLimit, ...]:
    """Read how long the allocations of older asks may run; there is one for each such ask, and no other."""
    return tuple(
        ExecutionLimit(
            partition=full_partition_name(ask.partitionName, request.rmID),
            application_id=ask.applicationID,
            allocation_key=ask.allocationKey,
            timeout_ms=ask.executionTimeoutMilliSeconds,
        )
        for ask in request.asks
    )


def ask_releases(request: si.AllocationRequest) -> tuple[AskRelease, ...]:
    """Read which asks are withdrawn, in order.

    Raises:
        RequestError: One names neither an ask nor an application.
    """
    read = []
    for release in request.releases.allocationAsksToRelease:
        if not release.allocationKey and not release.applicationID:
            raise RequestError(
                f"resource manager {request.rmID!r} sends a releases.allocationAsksToRelease with neither "
                "allocationKey nor applicationID: name the ask, or the application whose asks end"
            )
        read.append(
            AskRelease(
                partition=full_partition_name(release.partitionName, request.rmID),
                application_id=release.applicationID,
                allocation_key=release.allocationKey,
                termination=TerminationType.STOPPED_BY_RM,
                message=release.message,
            )
        )
    return tuple(read)


def refuse_older_allocations(request: si.AllocationRequest) -> None:
    """Check a request for fields that are not supported, except within its allocations.

    Raises:
        RequestError: The request has such a field.
    """
    for ask in request.asks:
        # An absent number reads as zero: then one allocation is meant.
        if ask.maxAllocations not in {0, 1}:
            refuse_older_field(
                request.rmID,
                f"asks.maxAllocations ({ask.maxAllocations} of ask {ask.allocationKey!r})",
                "send an ask for each allocation",
            )
    if not request.HasField("releases"):
        return
    for release in request.releases.allocationsToRelease:
        if release.UUID and release.allocationKey not in {"", release.UUID}:
            refuse_older_field(
                request.rmID,
                f"releases.allocationsToRelease.UUID ({release.UUID!r} of {release.allocationKey!r})",
                "name the allocation by its allocationKey",
            )


def refuse_older_nodes(request: si.NodeRequest) -> None:
    """Check a request for fields of the older generation.

    Raises:
        RequestError: The request has such a field.
    """
    for node in request.nodes:
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
