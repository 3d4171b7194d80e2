"""The documents of applications, of their asks, and of allocations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...model.applications.views import (
    ApplicationSummary,
    ShownApplication,
    ShownAsk,
    ShownTaskGroup,
)
from ...model.values.allocation import Allocation
from ...model.values.documents import Document, Json, compact, quantities_shown
from ...model.values.messages import short_partition_name

__all__ = [
    "allocation_document",
    "application_document",
    "application_info",
    "foreign_document",
    "summary_document",
]

_NOT_STARTED_MS: Final = 0
_NEVER_MS: Final = -62_135_596_800_000
"""The start of the year 1, which stands for a time that has not come in the recorded REST interface."""
_ALLOCATION_KEEP: Final = frozenset({"allocationKey"})
_APPLICATION_KEEP: Final = frozenset(
    {"applicationID", "partition", "queueName", "resourceHistory", "usedResource"},
)


def application_document(shown: ShownApplication) -> Document:
    """Return the ApplicationInfo document."""
    summary = shown.summary
    started_ns = summary.started_at_ns
    document: Document = {
        "applicationID": summary.application_id,
        "usedResource": quantities_shown(shown.allocated),
        "maxUsedResource": quantities_shown(shown.most_used),
        "pendingResource": quantities_shown(shown.pending),
        "partition": short_partition_name(shown.partition),
        "queueName": summary.queue_path,
        "submissionTime": summary.submitted_at_ns,
        "finishedTime": summary.finished_at_ns,
        "applicationState": summary.state.value,
        "user": summary.user.name,
        "groups": list(summary.user.groups),
        "rejectedMessage": shown.rejection,
        "stateLog": [{"time": time, "applicationState": state.value} for time, state in shown.log],
        "placeholderData": [_task_group_document(group) for group in shown.task_groups],
        "hasReserved": bool(shown.reserved_keys),
        "reservations": list(shown.reserved_keys),
        "maxRequestPriority": shown.max_priority,
        "startTime": _NOT_STARTED_MS if started_ns is None else started_ns // 1_000_000,
        "resourceHistory": compact(
            {
                "resourceUsage": _tracked(summary.used),
                "preemptedResource": _tracked(summary.used_preempted),
                "placeholderResource": _tracked(summary.used_by_placeholders),
            },
        ),
        "backoffDeadline": shown.backoff_until_ns,
        "requests": [_ask_document(ask) for ask in shown.asks],
        "allocations": [
            allocation_document(allocation, preempted=preempted)
            for allocation, preempted in shown.allocations
        ],
    }
    return compact(document, keep=_APPLICATION_KEEP)


def application_info(shown: ShownApplication) -> Document:
    """Return the ApplicationInfo document of the REST interface.

    It differs from that of a snapshot in what is empty, and in `startTime`, which is always there.
    """
    document = application_document(shown)
    if not document["usedResource"]:
        del document["usedResource"]
    document.setdefault("startTime", _NEVER_MS)
    return document


def summary_document(summary: ApplicationSummary) -> Document:
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


def _tracked(resources: Mapping[str, Mapping[str, int]]) -> Json:
    return {instance: quantities_shown(quantities) for instance, quantities in resources.items()}


def _task_group_document(group: ShownTaskGroup) -> Json:
    return compact(
        {
            "taskGroupName": group.name,
            "count": group.placeholders,
            "minResource": dict(group.minimum.items()),
            "replaced": group.replaced,
            "timedout": group.timed_out,
        },
    )


def _ask_document(shown: ShownAsk) -> Json:
    """Return the document of an ask that waits."""
    ask = shown.ask
    log: list[Json] = [
        {"message": text, "count": count, "lastOccurrence": last_ns} for text, count, last_ns in shown.log
    ]
    return compact(
        {
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
        },
        keep=_ALLOCATION_KEEP,
    )


def allocation_document(allocation: Allocation, *, preempted: bool) -> Document:
    """Return the document of an allocation on its node."""
    ask = allocation.ask
    replaced = allocation.placeholder_created_at_ns
    requested = ask.created_at_ns if replaced is None else replaced
    return compact(
        {
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
        },
        keep=_ALLOCATION_KEEP,
    )


def foreign_document(allocation: Allocation) -> Document:
    """Return the document of a foreign allocation."""
    ask = allocation.ask
    return compact(
        {
            "allocationKey": ask.allocation_key,
            "allocationTags": dict(ask.tags),
            "allocationTime": ask.created_at_ns,
            "resource": dict(ask.resource.items()),
            "priority": str(ask.priority),
            "nodeId": allocation.node_id,
            "preemptable": ask.allow_preempt_self,
        },
        keep=_ALLOCATION_KEEP,
    )
