"""The older generation of `si.v1`: what it asks, read as messages of the model, and what it is answered.

An ask of the older generation is read as a current one, with additional terms: the number of its
allocations, and how long they may run (`ask_terms`). An allocation has a second name there, the `UUID` that
the scheduler gives; `licorne.model.values.allocation` explains which key of the model that is.

A request is refused before anything is done. The caller reads all parts of an allocation request first, its
allocations and its releases: then a request is taken as a whole or not at all.

Answers to its resource managers are those of the current one, and also have the fields that only the older
one reads: the `UUID` of an allocation, by which it is released, and `rejected`. An ask that the scheduler
gave up is in `releasedAsks` in place of `released`: it has no allocation that could be ended. The two
generations never gave one number to two fields, so no resource manager reads anything twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, cast, final

from ...model.errors import RequestError
from ...model.resources.resource import Resource
from ...model.values.allocation import FOREIGN_TAG, PART_MARK, ask_key_of, part_key, uuid_of
from ...model.values.events import EventRecord
from ...model.values.messages import (
    AllocationSubmission,
    Announcement,
    AskRelease,
    AskTerms,
    TerminationType,
    UuidRelease,
    full_partition_name,
)
from . import si_pb2 as si

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})
_TERMINATIONS: Final = {termination.value: termination for termination in TerminationType}
_KNOWN: Final = ", ".join(f"{termination.name} {termination.value}" for termination in TerminationType)


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
    """Read the additional terms of older asks; there is one for each such ask, and no other."""
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


@final
class Generation:
    """The generation that a resource manager uses: the older one from the first field that only it has."""

    __slots__ = ("is_older",)

    def __init__(self) -> None:
        self.is_older = False


class InGeneration(NamedTuple):
    """An announcement whose generation was decided when it was made, not when it is delivered."""

    announcement: Announcement
    is_older: bool


Delivery: TypeAlias = "Announcement | EventsHappened | InGeneration"
"""The queue of messages for a resource manager."""


def add_older_names(response: si.AllocationResponse) -> None:
    """Fill in an answer the fields that only the older generation reads, and name asks by their own keys."""
    for placed in response.new:
        key = placed.allocationKey
        placed.UUID, placed.allocationKey = uuid_of(key), ask_key_of(key)
    for released in response.released:
        key = released.allocationKey
        released.UUID, released.allocationKey = uuid_of(key), ask_key_of(key)
    if response.releasedAsks:
        _name_given_up(response)
    for rejected in response.rejectedAllocations:
        rejected.allocationKey = ask_key_of(rejected.allocationKey)
        response.rejected.add(
            allocationKey=rejected.allocationKey,
            applicationID=rejected.applicationID,
            reason=rejected.reason,
            code=rejected.code,
        )


def _name_given_up(response: si.AllocationResponse) -> None:
    """Name each ask that was given up once, however many of its allocations were asked for."""
    named = set()
    every = list(response.releasedAsks)
    del response.releasedAsks[:]
    for given_up in every:
        given_up.allocationKey = ask_key_of(given_up.allocationKey)
        name = (given_up.applicationID, given_up.allocationKey)
        if name not in named:
            named.add(name)
            response.releasedAsks.append(given_up)


@final
class EventsHappened:
    """Records for the callback `send_event` of one resource manager, queued as announcements are."""

    __slots__ = ("records",)

    def __init__(self, records: Sequence[EventRecord]) -> None:
        self.records = records

    def __repr__(self) -> str:
        return f"EventsHappened({len(self.records)} records)"


def write_events(records: Sequence[EventRecord]) -> list[si.EventRecord]:
    """Write records, in order; each has a resource, which may be empty."""
    return [_write_event(record) for record in records]


def _write_event(record: EventRecord) -> si.EventRecord:
    message = si.EventRecord(
        type=cast("si.EventRecord.Type", int(record.type)),
        objectID=record.object_id,
        message=record.message,
        timestampNano=record.time_ns,
        eventChangeType=cast("si.EventRecord.ChangeType", int(record.change)),
        eventChangeDetail=cast("si.EventRecord.ChangeDetail", int(record.detail)),
        referenceID=record.reference_id,
    )
    message.resource.SetInParent()
    for name, quantity in record.resource.items():
        message.resource.resources[name].value = quantity
    return message


class Termination(NamedTuple):
    """The reason of a release, and why the release is refused: empty if it is not."""

    kind: TerminationType
    refusal: str = ""


def termination_of(release: si.AllocationRelease) -> Termination:
    """Return the reason of a release.

    One with a reason that this version does not know is refused, since what ends depends on the reason; the
    rest of its request is carried out.
    """
    kind = _TERMINATIONS.get(release.terminationType)
    if kind is not None:
        return Termination(kind)
    return Termination(
        TerminationType.UNKNOWN_TERMINATION_TYPE,
        f"the release of {release.allocationKey or release.UUID!r} of application {release.applicationID!r} "
        f"has the terminationType {release.terminationType}; known are {_KNOWN}",
    )
