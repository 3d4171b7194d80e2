"""The older generation of `si.v1`, read as messages of the model.

An ask of the older generation is read as a current one, with terms of its own: for how many allocations it
is, and how long they may run (`ask_terms`). An allocation has a second name there, the `UUID` that the
scheduler gives; `licorne.model.values.allocation` says which key of the model that is.

A request is refused before anything is done. The caller reads all parts of an allocation request first, its
allocations and its releases: then a request is taken as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ...model.errors import RequestError
from ...model.resources.resource import Resource
from ...model.values.allocation import FOREIGN_TAG, PART_MARK, part_key
from ...model.values.messages import (
    AllocationSubmission,
    AskRelease,
    AskTerms,
    TerminationType,
    UuidRelease,
    full_partition_name,
)
from . import si_pb2 as si
from .termination_types import termination_of

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


def older_asks(
    request: si.AllocationRequest, read_resource: Callable[[si.Resource], Resource]
) -> list[AllocationSubmission]:
    """Read the asks of the older generation, in order.

    A placeholder without a task group is a plain ask, by the rules of that generation.

    Raises:
        RequestError: A key is like those by which the scheduler names the allocations of an ask.
    """
    for ask in request.asks:
        check_ask_key(ask.allocationKey, request.rmID)
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


def ask_terms(request: si.AllocationRequest) -> tuple[AskTerms, ...]:
    """Read what older asks say besides; there is one for each such ask, and no other."""
    return tuple(
        AskTerms(
            partition=full_partition_name(ask.partitionName, request.rmID),
            application_id=ask.applicationID,
            allocation_key=ask.allocationKey,
            timeout_ms=ask.executionTimeoutMilliSeconds,
            # An absent number reads as zero: then one allocation is meant.
            allocations=ask.maxAllocations or 1,
        )
        for ask in request.asks
    )


def uses_uuids(request: si.AllocationRequest) -> bool:
    """Return whether a release of the request names its allocation by a UUID."""
    return any(release.UUID for release in request.releases.allocationsToRelease)


def uuid_releases(request: si.AllocationRequest) -> tuple[UuidRelease, ...]:
    """Read which allocations end, in order, as the older generation means it."""
    return tuple(
        UuidRelease(
            partition=full_partition_name(release.partitionName, request.rmID),
            application_id=release.applicationID,
            allocation_key=release.allocationKey,
            termination=(termination := termination_of(release)).kind,
            message=release.message,
            refusal=termination.refusal,
            uuid=release.UUID,
        )
        for release in request.releases.allocationsToRelease
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


def named_allocation(message: si.Allocation, rm_id: str, *, node_id: str) -> str:
    """Return the key of the model for an allocation of the older generation, on the node that is given.

    Raises:
        RequestError: It is an ask, which has no UUID; or its key is not one that an RM may give.
    """
    if not node_id:
        raise RequestError(
            f"resource manager {rm_id!r} sends the ask {message.allocationKey!r} with the UUID "
            f"{message.UUID!r}: only an allocation with a nodeID has one"
        )
    check_ask_key(message.allocationKey, rm_id)
    if FOREIGN_TAG in message.allocationTags:
        return message.allocationKey or message.UUID
    return part_key(message.allocationKey, message.UUID)


def check_ask_key(key: str, rm_id: str) -> None:
    """Check that a key of the older generation is not like those by which the scheduler names allocations.

    Raises:
        RequestError: It is.
    """
    if PART_MARK in key:
        raise RequestError(
            f"resource manager {rm_id!r} uses the allocation key {key!r}: in the older generation of si.v1 "
            f"a key must not contain {PART_MARK!r}, by which this scheduler names the allocations of an ask"
        )
