"""The documents for those who watch a scheduler: RMs, locks, health, events, state dump, page, errors.

The page and `licorne top` show the numbers in an event by the words at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Required

from pydantic import Field
from typing_extensions import TypedDict

from ....model.values.events import ChangeDetail, ChangeType, EventRecord, EventType
from ....model.values.states import ManagerState
from .applications import ApplicationDocument
from .clusters import ClusterDocument, NodeDocument, PartitionDocument
from .configurations import ConfigurationDocument
from .declarations import Int64, Names, Texts, TimeNs, values_of, without_empty
from .queues import QueueDocument, RuleDocument


class ErrorDocument(TypedDict):
    """An error."""

    status_code: int
    """That of the answer."""
    message: str
    description: str
    """The same as the message."""


class ValidationDocument(TypedDict, total=False):
    """Whether a configuration could be used."""

    allowed: Required[bool]
    reason: str
    """All that is wrong, each with line and column; where it is not allowed."""


class ManagedPartitionDocument(TypedDict):
    """A partition of the resource manager."""

    name: str
    nodes: Annotated[int, Field(ge=0)]
    applications: Annotated[int, Field(ge=0)]
    """Those that are active."""
    allocations: Annotated[int, Field(ge=0)]


class ManagerDocument(TypedDict):
    """A resource manager."""

    rmID: str
    state: Annotated[str, values_of(ManagerState)]
    since: int
    """When it entered the state."""
    reason: str
    """Why it was paused or stopped; empty while it runs."""
    lost: bool
    """Its connection was lost."""
    connection: str
    """How it is connected."""
    buildInformation: dict[str, str]
    callbacksWaiting: Annotated[int, Field(ge=0)]
    partitions: list[ManagedPartitionDocument]


class LockClassDocument(TypedDict):
    """A class of locks."""

    name: str
    leaf: bool
    """No other lock is taken while it is held."""
    exclusive: bool
    """A thread holds one of this class at most."""


class LocksDocument(TypedDict):
    """The classes of locks, and the orders in which they are taken."""

    classes: list[LockClassDocument]
    declared: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    """Pairs of classes, the second of which may be taken while the first is held."""
    observed: list[Annotated[list[str | int], Field(min_length=3, max_length=3)]] | None
    """Likewise what was observed, with how often; null in a process that does not check its locks."""


class PolicyFailureDocument(TypedDict):
    """A question that a policy could not answer."""

    method: str
    subject: str
    """The id of what it was asked about."""
    error: str
    at: TimeNs


class PolicyDocument(TypedDict, total=False):
    """A policy that the program has given, and what it has answered in all partitions."""

    name: Required[str]
    """A configuration names it `policy/NAME`."""
    madeOf: Required[str]
    """Its class, `module:Class`."""
    version: str
    """Its attribute `version`, if it has one."""
    methods: Required[list[str]]
    """Where it decides."""
    dependsOn: Required[list[str]]
    answers: Required[Annotated[int, Field(ge=0)]]
    """How often it was asked."""
    failures: Required[Annotated[int, Field(ge=0)]]
    """How often it raised, or answered with no answer."""
    meanNs: Required[Annotated[int, Field(ge=0)]]
    """How long an answer took on average; by the virtual clock in a stepped scheduler."""
    longestNs: Required[Annotated[int, Field(ge=0)]]
    lastFailure: PolicyFailureDocument


class CheckDocument(TypedDict):
    """One check of the health."""

    Name: str
    Succeeded: bool
    Description: str
    DiagnosisMessage: str


class HealthDocument(TypedDict):
    """The results of the health checks."""

    Healthy: bool
    HealthChecks: list[CheckDocument]


class ApplicationCountDocument(TypedDict):
    """How many applications there were at a moment."""

    timestamp: TimeNs
    totalApplications: str
    """A number as a text."""


class ContainerCountDocument(TypedDict):
    """How many allocations there were at a moment."""

    timestamp: TimeNs
    totalContainers: str
    """A number as a text."""


class DumpedNodesDocument(TypedDict):
    """The nodes of a partition."""

    partitionName: str
    nodesInfo: list[NodeDocument]


class DumpedRulesDocument(TypedDict):
    """The placement rules of a partition."""

    partition: str
    rules: list[RuleDocument]


class OpenStreamDocument(TypedDict):
    """A stream of events that is open."""

    Name: str
    """The host that reads it."""
    CreatedAt: str
    """When it began, as a text."""


class StateDumpDocument(TypedDict, total=False):
    """All documents of a scheduler."""

    timestamp: Required[TimeNs]
    partitions: Required[list[PartitionDocument]]
    applications: Required[list[ApplicationDocument]]
    appHistory: Required[list[ApplicationCountDocument]]
    nodes: Required[list[DumpedNodesDocument]]
    clusterInfo: Required[list[ClusterDocument]]
    containerHistory: Required[list[ContainerCountDocument]]
    queues: Required[list[QueueDocument]]
    rmDiagnostics: Required[dict[str, Any]]
    """The diagnostics of the resource managers."""
    logLevel: Required[str]
    config: ConfigurationDocument
    eventStreams: list[OpenStreamDocument]
    placementRules: Required[list[DumpedRulesDocument]]


class EventQuantityDocument(TypedDict, total=False):
    """One quantity."""

    value: Int64


class EventResourceDocument(TypedDict, total=False):
    """The quantities of an event."""

    resources: dict[str, EventQuantityDocument]


class EventDocument(TypedDict, total=False):
    """An event; without what is zero or empty."""

    type: int
    """The kind of its object: a request (1), application (2), node (3), queue (4), user or group (5)."""
    objectID: str
    referenceID: str
    message: str
    timestampNano: TimeNs
    eventChangeType: int
    """None (0), set (1), added (2), removed (3)."""
    eventChangeDetail: int
    resource: Required[EventResourceDocument]


class EventBatchDocument(TypedDict):
    """Events whose ids follow each other, and the ids that are still there."""

    InstanceUUID: str
    """Another one after each start of the scheduler."""
    LowestID: int
    HighestID: int
    EventRecords: list[EventDocument] | None


class EventStreamDocument(TypedDict):
    """The first line of a stream."""

    InstanceUUID: str


@without_empty
def event_document(record: EventRecord) -> EventDocument:
    """Return an event for display: without zero or empty fields, but always with a resource."""
    resources: dict[str, EventQuantityDocument] = {
        name: {"value": quantity} if quantity else {} for name, quantity in record.resource.items()
    }
    return {
        "type": int(record.type),
        "objectID": record.object_id,
        "message": record.message,
        "timestampNano": record.time_ns,
        "eventChangeType": int(record.change),
        "eventChangeDetail": int(record.detail),
        "referenceID": record.reference_id,
        "resource": {"resources": resources} if resources else {},
    }


class PageAllocationDocument(TypedDict):
    """An allocation, as the page shows it."""

    allocationKey: str
    applicationID: str
    resource: str
    """As a person reads it."""
    priority: int
    placeholder: bool


class PageNodeDocument(TypedDict):
    """A node, as the page shows it."""

    nodeID: str
    attributes: Texts
    schedulable: bool
    capacity: str
    """As a person reads it."""
    allocated: str
    occupied: str
    available: str
    allocations: Annotated[list[PageAllocationDocument], Field(max_length=500)]
    allocationsTotal: int
    foreign: Annotated[list[PageAllocationDocument], Field(max_length=500)]
    foreignTotal: int
    reservations: Names


class TimelineDocument(TypedDict):
    """The use and the waiting requests of queues, over time."""

    interval: float
    """Milliseconds between two points."""
    span: float
    """How long points are kept in milliseconds."""
    kept: float
    """How far back a history reaches in milliseconds; 0 without one."""
    types: list[str]
    """The resource types of the quantities below."""
    times: list[int]
    """Milliseconds since 1970."""
    queues: dict[str, list[Annotated[list[list[int | None]], Field(min_length=2, max_length=2)] | None]]
    """For each queue and time what is allocated and what waits, by the types; null where it was not there."""


TYPE_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        EventType.REQUEST: "request",
        EventType.APP: "application",
        EventType.NODE: "node",
        EventType.QUEUE: "queue",
        EventType.USERGROUP: "user/group",
    }
)
"""The kind of object, by the number of the type."""

CHANGE_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {ChangeType.SET: "set", ChangeType.ADD: "added", ChangeType.REMOVE: "removed"}
)
"""The kind of change, by the number of the change."""

DETAIL_WORDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        ChangeDetail.REQUEST_CANCEL: "request withdrawn",
        ChangeDetail.REQUEST_TIMEOUT: "request timed out",
        ChangeDetail.APP_ALLOC: "allocation {}",
        ChangeDetail.APP_REQUEST: "request {}",
        ChangeDetail.APP_REJECT: "rejected",
        ChangeDetail.APP_NEW: "new",
        ChangeDetail.APP_ACCEPTED: "accepted",
        ChangeDetail.APP_RUNNING: "running",
        ChangeDetail.APP_COMPLETING: "completing",
        ChangeDetail.APP_COMPLETED: "completed",
        ChangeDetail.APP_FAILING: "failing",
        ChangeDetail.APP_FAILED: "failed",
        ChangeDetail.APP_RESUMING: "resuming",
        ChangeDetail.APP_EXPIRED: "expired",
        ChangeDetail.APP_CANNOTRUN_QUEUE: "may not run: its queue has its maximum of applications",
        ChangeDetail.APP_RUNNABLE_QUEUE: "may run in its queue",
        ChangeDetail.APP_CANNOTRUN_QUOTA: "may not run: its user or group has its maximum of applications",
        ChangeDetail.APP_RUNNABLE_QUOTA: "may run for its user and group",
        ChangeDetail.NODE_DECOMISSION: "decommissioned",
        ChangeDetail.NODE_SCHEDULABLE: "state changed",
        ChangeDetail.NODE_ALLOC: "allocation {}",
        ChangeDetail.NODE_CAPACITY: "capacity {}",
        ChangeDetail.NODE_OCCUPIED: "use by others {}",
        ChangeDetail.NODE_RESERVATION: "reservation {}",
        ChangeDetail.QUEUE_DYNAMIC: "dynamic queue {}",
        ChangeDetail.QUEUE_TYPE: "kind of queue {}",
        ChangeDetail.QUEUE_MAX: "maximum {}",
        ChangeDetail.QUEUE_GUARANTEED: "guarantee {}",
        ChangeDetail.QUEUE_APP: "application {}",
        ChangeDetail.QUEUE_PREEMPTION: "preemption for a lowered maximum",
        ChangeDetail.ALLOC_CANCEL: "allocation ended by the resource manager",
        ChangeDetail.ALLOC_PREEMPT: "allocation preempted",
        ChangeDetail.ALLOC_TIMEOUT: "allocation timed out",
        ChangeDetail.ALLOC_REPLACED: "placeholder replaced",
        ChangeDetail.ALLOC_NODEREMOVED: "allocation ended with its node",
        ChangeDetail.UG_USER_LIMIT: "limit of the user {}",
        ChangeDetail.UG_GROUP_LIMIT: "limit of the group {}",
        ChangeDetail.UG_APP_LINK: "application {} in the group",
        ChangeDetail.UG_USER_RESOURCE: "use of the user changed",
        ChangeDetail.UG_GROUP_RESOURCE: "use of the group changed",
    }
)
"""What happened, by the number of the detail; `{}` stands for the word of the change."""


def change_text(event: EventDocument) -> str:
    """Return what happened in an event, in words; numbers without words as they are."""
    detail, change = event.get("eventChangeDetail", 0), event.get("eventChangeType", 0)
    word = CHANGE_WORDS.get(change, "")
    return DETAIL_WORDS.get(detail, str(detail)).replace("{}", word).strip() if detail else word
