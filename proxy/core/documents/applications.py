"""The documents of applications, of their asks, allocations and preemptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Required

from typing_extensions import TypedDict

from ....model.applications.report import ApplicationSummary, ShownApplication, ShownAsk, ShownTaskGroup
from ....model.state.preemption_log import PreemptionCause, PreemptionRecord, VictimNeed
from ....model.values.allocation import Allocation
from ....model.values.documents import quantities_shown
from ....model.values.messages import short_partition_name
from .declarations import (
    ApplicationStateName,
    ByInstanceType,
    Int32,
    Int64,
    Names,
    Quantities,
    Texts,
    TimeNs,
    names_of,
    without_empty,
)


class AllocationDocument(TypedDict, total=False):
    """An allocation."""

    allocationKey: Required[str]
    allocationTags: Texts
    requestTime: TimeNs
    allocationTime: TimeNs
    allocationDelay: int
    """Nanoseconds."""
    resource: Quantities
    priority: str
    """A number as a text."""
    nodeId: str
    applicationId: str
    placeholder: bool
    placeholderUsed: bool
    """It has taken the place of a placeholder."""
    taskGroupName: str
    preempted: bool
    originator: bool


class ForeignAllocationDocument(TypedDict, total=False):
    """An allocation of another scheduler on the node."""

    allocationKey: Required[str]
    allocationTags: Texts
    allocationTime: TimeNs
    resource: Quantities
    priority: str
    """A number as a text."""
    nodeId: str
    preemptable: bool


class StateEntryDocument(TypedDict):
    """When an application came into a state."""

    time: TimeNs
    applicationState: ApplicationStateName


class TaskGroupDocument(TypedDict, total=False):
    """A task group of a gang, and what became of its placeholders."""

    taskGroupName: str
    count: int
    minResource: Quantities
    replaced: int
    timedout: int


class ResourceHistoryDocument(TypedDict, total=False):
    """The use of an application."""

    resourceUsage: ByInstanceType
    preemptedResource: ByInstanceType
    placeholderResource: ByInstanceType


class ApplicationDocument(TypedDict, total=False):
    """An application with its asks and allocations."""

    applicationID: Required[str]
    usedResource: Quantities
    maxUsedResource: Quantities
    pendingResource: Quantities
    partition: Required[str]
    """Its short name."""
    queueName: Required[str]
    submissionTime: TimeNs
    finishedTime: TimeNs
    applicationState: ApplicationStateName
    user: str
    groups: Names
    rejectedMessage: str
    stateLog: list[StateEntryDocument]
    placeholderData: list[TaskGroupDocument]
    hasReserved: bool
    reservations: Names
    maxRequestPriority: Int32
    startTime: Required[int]
    """Milliseconds since 1970; the start of the year 1 for an application that has not started."""
    resourceHistory: Required[ResourceHistoryDocument]
    backoffDeadline: Int64
    requests: list[AskDocument]
    allocations: list[AllocationDocument]


class AskMessageDocument(TypedDict):
    """Why an ask was not placed, and how often."""

    message: str
    count: int
    lastOccurrence: TimeNs


class AskDocument(TypedDict, total=False):
    """An ask that waits."""

    allocationKey: Required[str]
    allocationTags: Texts
    requestTime: TimeNs
    resource: Quantities
    priority: str
    """A number as a text."""
    requiredNodeId: str
    applicationId: str
    placeholder: bool
    taskGroupName: str
    allocationLog: list[AskMessageDocument]
    triggeredPreemption: bool
    originator: bool
    schedulingAttempted: bool
    triggeredScaleUp: bool


_NEVER_MS: Final = -62_135_596_800_000
"""The start of the year 1, which stands for a time that has not come in the recorded REST interface."""


@without_empty
def application_document(shown: ShownApplication) -> ApplicationDocument:
    """Return the ApplicationInfo document."""
    summary = shown.summary
    started_ns = summary.started_at_ns
    return {
        "applicationID": summary.application_id,
        "usedResource": quantities_shown(shown.allocated),
        "maxUsedResource": quantities_shown(shown.most_used),
        "pendingResource": quantities_shown(shown.pending),
        "partition": short_partition_name(shown.partition),
        "queueName": summary.queue_path,
        "submissionTime": summary.submitted_at_ns,
        "finishedTime": summary.finished_at_ns or 0,
        "applicationState": summary.state.value,
        "user": summary.user.name,
        "groups": list(summary.user.groups),
        "rejectedMessage": shown.rejection,
        "stateLog": [{"time": time, "applicationState": state.value} for time, state in shown.log],
        "placeholderData": [_task_group_document(group) for group in shown.task_groups],
        "hasReserved": bool(shown.reserved_keys),
        "reservations": list(shown.reserved_keys),
        "maxRequestPriority": shown.max_priority,
        "startTime": _NEVER_MS if started_ns is None else started_ns // 1_000_000,
        "resourceHistory": _history(summary),
        "backoffDeadline": shown.backoff_until_ns or 0,
        "requests": [_ask_document(ask) for ask in shown.asks],
        "allocations": [
            allocation_document(allocation, preempted=preempted)
            for allocation, preempted in shown.allocations
        ],
    }


@without_empty
def _history(summary: ApplicationSummary) -> ResourceHistoryDocument:
    return {
        "resourceUsage": _tracked(summary.used),
        "preemptedResource": _tracked(summary.used_preempted),
        "placeholderResource": _tracked(summary.used_by_placeholders),
    }


def snapshot_application(shown: ShownApplication) -> ApplicationDocument:
    """Return the document as a snapshot has it: `usedResource` may be empty, and a start may be missing."""
    document = application_document(shown)
    document.setdefault("usedResource", {})
    if shown.summary.started_at_ns is None:
        document.pop("startTime")  # type: ignore[misc] # required in the REST interface alone
    return document


def summary_document(summary: ApplicationSummary) -> dict[str, object]:
    """Return what an application has used, in the words of the recorded core; times are milliseconds."""
    times_ns = (summary.submitted_at_ns, summary.started_at_ns, summary.finished_at_ns)
    submitted, started, finished = (None if time is None else time // 1_000_000 for time in times_ns)
    return {
        "ApplicationID": summary.application_id,
        "SubmissionTime": submitted,
        "StartTime": started,
        "FinishTime": finished,
        "User": summary.user.name,
        "Queue": summary.queue_path,
        "State": summary.state.value,
        "ResourceUsage": _tracked(summary.used),
        "PreemptedResource": _tracked(summary.used_preempted),
        "PlaceholderResource": _tracked(summary.used_by_placeholders),
    }


def _tracked(resources: Mapping[str, Mapping[str, int]]) -> ByInstanceType:
    return {instance: quantities_shown(quantities) for instance, quantities in resources.items()}


@without_empty
def _task_group_document(group: ShownTaskGroup) -> TaskGroupDocument:
    return {
        "taskGroupName": group.name,
        "count": group.placeholders,
        "minResource": dict(group.minimum.items()),
        "replaced": group.replaced,
        "timedout": group.timed_out,
    }


@without_empty
def _ask_document(shown: ShownAsk) -> AskDocument:
    """Return the document of an ask that waits."""
    ask = shown.ask
    log: list[AskMessageDocument] = [
        {"message": text, "count": count, "lastOccurrence": last_ns} for text, count, last_ns in shown.log
    ]
    return {
        "allocationKey": ask.allocation_key,
        "allocationTags": dict(ask.tags),
        "requestTime": ask.created_at_ns,
        "resource": dict(ask.resource.items()),
        "priority": str(ask.priority),
        "requiredNodeId": ask.required_node,
        "applicationId": ask.application_id,
        "placeholder": ask.placeholder,
        "taskGroupName": ask.task_group_name,
        "allocationLog": log,
        "triggeredPreemption": shown.preemption_triggered,
        "originator": ask.originator,
        "schedulingAttempted": shown.attempted,
        "triggeredScaleUp": shown.scale_up_triggered,
    }


@without_empty
def allocation_document(allocation: Allocation, *, preempted: bool) -> AllocationDocument:
    """Return the document of an allocation on its node."""
    ask = allocation.ask
    replaced = allocation.placeholder_created_at_ns
    requested = ask.created_at_ns if replaced is None else replaced
    return {
        "allocationKey": ask.allocation_key,
        "allocationTags": dict(ask.tags),
        "requestTime": requested,
        "allocationTime": ask.created_at_ns,
        "allocationDelay": ask.created_at_ns - requested,
        "resource": dict(ask.resource.items()),
        "priority": str(ask.priority),
        "nodeId": allocation.node_id,
        "applicationId": ask.application_id,
        "placeholder": ask.placeholder,
        "placeholderUsed": replaced is not None,
        "taskGroupName": ask.task_group_name,
        "preempted": preempted,
        "originator": ask.originator,
    }


@without_empty
def foreign_document(allocation: Allocation) -> ForeignAllocationDocument:
    """Return the document of a foreign allocation."""
    ask = allocation.ask
    return {
        "allocationKey": ask.allocation_key,
        "allocationTags": dict(ask.tags),
        "allocationTime": ask.created_at_ns,
        "resource": dict(ask.resource.items()),
        "priority": str(ask.priority),
        "nodeId": allocation.node_id,
        "preemptable": ask.allow_preempt_self,
    }


class FramePrioritiesDocument(TypedDict):
    """Two priorities where they are compared."""

    frame: str
    """The first queue that the ask and the victim are in; empty for priorities without offsets."""
    ask: int
    victim: int


class VictimDocument(TypedDict):
    """An allocation that was chosen to end."""

    allocationKey: str
    applicationID: str
    queueName: str
    nodeID: str
    resource: Quantities
    reason: str
    neededFor: Annotated[str, names_of(VictimNeed)]
    """The asks that would lack room without it."""
    gives: Names
    """The types that it gives to a guarantee; empty if it serves no guarantee."""
    priorities: FramePrioritiesDocument | None
    """Absent where a maximum is enforced."""


class PreemptorDocument(TypedDict):
    """An ask that a preemption makes room for, and its node."""

    allocationKey: str
    applicationID: str
    queueName: str
    nodeID: str
    resource: Quantities


class QueueBalanceDocument(TypedDict):
    """The amounts that a queue is owed, and uses above its guarantee: before a preemption, and after it."""

    queueName: str
    guaranteed: Quantities | None
    owedBefore: Quantities
    owedAfter: Quantities
    aboveBefore: Quantities
    aboveAfter: Quantities


class NodeRoomDocument(TypedDict):
    """The free room of a node before a preemption, and once its victims have ended and its asks run."""

    nodeID: str
    before: Quantities
    after: Quantities


class JustificationDocument(TypedDict):
    """The figures of a preemption, by which it can be checked."""

    preemptors: list[PreemptorDocument]
    """The asks that it is for; empty where a maximum is enforced."""
    queues: list[QueueBalanceDocument]
    """Each queue that an ask or a victim is in."""
    nodes: list[NodeRoomDocument]
    takenOver: Names
    """Allocations that ended already for no ask, and end for this one from now on."""


class PreemptedDocument(TypedDict):
    """An allocation that was preempted, and the ask that it made room for."""

    time: TimeNs
    cause: Annotated[str, names_of(PreemptionCause)]
    queueName: str
    """The queue of the ask, or the one whose maximum is enforced."""
    applicationID: str
    """Empty where a maximum is enforced."""
    allocationKey: str
    victimQueueName: str
    victimUser: str
    victimApplicationID: str
    victimAllocationKey: str
    nodeID: str
    """The node of the victim."""
    resource: Quantities
    reason: str
    lostNs: Int64
    """How long it has worked since its start, or its last checkpoint."""


def preempted_documents(record: PreemptionRecord) -> list[PreemptedDocument]:
    """Return the documents of the victims of a preemption."""
    return [
        {
            "time": record.time_ns,
            "cause": record.cause.name,
            "queueName": record.ask_queue_path or record.queue_path,
            "applicationID": record.application_id,
            "allocationKey": record.allocation_key,
            "victimQueueName": victim.queue_path,
            "victimUser": victim.user,
            "victimApplicationID": victim.application_id,
            "victimAllocationKey": victim.allocation_key,
            "nodeID": victim.node_id,
            "resource": victim.resource.as_dict(),
            "reason": victim.reason,
            "lostNs": victim.lost_ns(record.time_ns),
        }
        for victim in record.victims
    ]


class PreemptionDocument(TypedDict):
    """A preemption and its victims."""

    time: TimeNs
    cause: Annotated[str, names_of(PreemptionCause)]
    queueName: str
    applicationID: str
    allocationKey: str
    nodeID: str
    reason: str
    loop: str
    """That it repeats an earlier one without effect, in words; empty if it does not."""
    victims: list[VictimDocument]
    justification: JustificationDocument
