"""The documents of queues, of placement rules, and of users and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Required

from typing_extensions import TypedDict

from ....model.configuration.durations import duration_text
from ....model.limits.usage_tree import UsageRow, UsageView
from ....model.placement.rules import Filter, PlacementRule, QueueRule
from ....model.queues.queue import QueueTemplate
from ....model.queues.tree import RECOVERY_QUEUE
from ....model.resources.comparisons import absolute_used_capacity
from ....model.resources.resource import (
    EMPTY,
    Resource,
    add,
    component_wise_min,
    subtract,
    subtract_only_existing,
)
from ....model.values.documents import quantities_shown
from ....model.views.shown import QueueView
from .declarations import Int32, Names, ObjectStateName, Percents, Quantities, Texts, without_empty


class TemplateDocument(TypedDict, total=False):
    """The settings of dynamic leaf queues."""

    maxApplications: int
    properties: Texts
    maxResource: Quantities
    guaranteedResource: Quantities
    lendResource: Quantities


class QueueDocument(TypedDict, total=False):
    """A queue, with those below it where they are shown."""

    queuename: Required[str]
    """The full path."""
    status: ObjectStateName
    partition: Required[str]
    """Only in the document of all queues."""
    pendingResource: Quantities
    maxResource: Quantities
    guaranteedResource: Quantities
    lendResource: Quantities
    """The part of the guarantee that others may use, for the types that are configured."""
    allocatedResource: Quantities
    preemptingResource: Quantities
    decayedMean: Quantities
    """Its counted use, on average with the half-life of its parent; only where that has one."""
    headroom: Quantities
    isLeaf: Required[bool]
    isManaged: Required[bool]
    """It is in the configuration."""
    properties: Texts
    parent: str
    template: TemplateDocument
    children: list[QueueDocument]
    childNames: Names
    absUsedCapacity: Percents
    maxRunningApps: int
    runningApps: int
    currentPriority: Required[Int32]
    allocatingAcceptedApps: Names
    sortingPolicy: str
    """`fifo`, `fair`, `users`, or a policy as `policy/NAME`."""
    prioritySorting: Required[bool]
    preemptionEnabled: Required[bool]
    isPreemptionFence: Required[bool]
    preemptionDelay: str
    """A duration, such as `1m30s`."""
    quotaPreemptionDelay: str
    """A duration, such as `1m30s`."""
    isPriorityFence: Required[bool]
    priorityOffset: int


@without_empty
def queue_document(
    path: Sequence[QueueView], *, partition: str = "", own_maximum: bool = False
) -> QueueDocument:
    """Return the QueueInfo document of a queue, with those below it that are shown.

    Args:
        path: The queue, then those above it up to the root.
        partition: Shown only for the queue that a client asked for.
        own_maximum: Whether `absUsedCapacity` is the share of the queue's own maximum, as the REST interface
            has it, and not of the smallest maximum on the path, as in snapshots.
    """
    queue, *above = path
    settings = queue.settings
    limit = queue.maximum if own_maximum else _maximum(path)
    return {
        "queuename": queue.path,
        "status": queue.state.value,
        "partition": partition,
        "pendingResource": quantities_shown(queue.pending),
        "maxResource": quantities_shown(queue.maximum),
        "guaranteedResource": quantities_shown(queue.guaranteed),
        "lendResource": quantities_shown(queue.lend),
        "allocatedResource": quantities_shown(queue.allocated),
        "preemptingResource": quantities_shown(queue.preempting),
        "decayedMean": quantities_shown(queue.decayed_mean),
        "headroom": quantities_shown(_headroom(path)),
        "isLeaf": queue.is_leaf,
        "isManaged": queue.managed,
        "properties": dict(queue.properties),
        "parent": above[0].path if above else "",
        "template": template_document(queue.template),
        "children": [queue_document((child, *path), own_maximum=own_maximum) for child in queue.children],
        "childNames": [f"{queue.path}.{name}" for name in queue.child_names],
        "absUsedCapacity": quantities_shown(absolute_used_capacity(limit, queue.allocated)),
        "maxRunningApps": queue.max_applications,
        "runningApps": queue.running,
        "currentPriority": queue.priority,
        "allocatingAcceptedApps": [*queue.accepted_allocating],
        "sortingPolicy": settings.application_sort_policy if queue.is_leaf else settings.queue_sort_policy,
        "prioritySorting": settings.priority_sorting,
        "preemptionEnabled": not settings.preemption_policy.is_disabled,
        "isPreemptionFence": settings.preemption_policy.is_fence,
        "preemptionDelay": duration_text(settings.preemption_delay_ns),
        "quotaPreemptionDelay": duration_text(settings.quota_preemption_delay_ns),
        "isPriorityFence": settings.priority_policy.is_fence,
        "priorityOffset": settings.priority_offset,
    }


@without_empty
def template_document(template: QueueTemplate | None) -> TemplateDocument:
    """Return the TemplateInfo document; without a template it is empty."""
    if template is None:
        return {}
    return {
        "maxApplications": template.max_applications,
        "properties": dict(template.properties),
        "maxResource": quantities_shown(template.maximum),
        "guaranteedResource": quantities_shown(template.guaranteed),
        "lendResource": quantities_shown(template.lend),
    }


def _headroom(path: Sequence[QueueView]) -> Resource | None:
    """Return how much more may be allocated in a queue, as `model.queues.quota.headroom` does."""
    room: Resource | None = None
    beside = EMPTY
    for below, level in zip((None, *path), path, strict=False):
        if below is not None:
            beside = add(beside, subtract(level.withheld_below, below.withheld))
        own = subtract_only_existing(level.maximum, add(level.allocated, beside))
        if own is not None:
            room = own if room is None else component_wise_min(own, room)
    return room


def _maximum(path: Sequence[QueueView]) -> Resource | None:
    """Return the smallest maximum per type on the path, the cluster's size included."""
    limit: Resource | None = None
    for level in path:
        if level.maximum is not None:
            limit = level.maximum if limit is None else component_wise_min(level.maximum, limit)
    return limit


class FilterDocument(TypedDict, total=False):
    """To whom a rule applies."""

    type: Required[Literal["allow", "deny"]]
    userList: Names
    userExp: str
    groupList: Names
    groupExp: str


class RuleDocument(TypedDict, total=False):
    """A placement rule."""

    name: Required[str]
    parameters: Required[Texts]
    parentRule: RuleDocument
    filter: FilterDocument


def rule_document(rule: PlacementRule) -> RuleDocument:
    """Return the RuleDAO document of a rule, with those of its parent rules."""
    if not isinstance(rule, QueueRule):
        return {"name": rule.name, "parameters": {"queue": RECOVERY_QUEUE}}
    parameters = {"create": str(rule.create).lower(), **rule.parameters}
    document: RuleDocument = {"name": rule.name, "parameters": parameters}
    if not rule.filter.is_empty:
        document["filter"] = filter_document(rule.filter)
    if rule.parent is not None:
        document["parentRule"] = rule_document(rule.parent)
    return document


@without_empty
def filter_document(shown: Filter) -> FilterDocument:
    """Return the FilterDAO document."""
    users, groups = shown.users, shown.groups
    return {
        "type": "allow" if shown.allow else "deny",
        "userList": sorted(users.names),
        "userExp": "" if users.expression is None else users.expression.text,
        "groupList": sorted(groups.names),
        "groupExp": "" if groups.expression is None else groups.expression.text,
    }


class UserUsageDocument(TypedDict, total=False):
    """The usage and the limits of a user."""

    userName: Required[str]
    groups: dict[str, str]
    """The group that counts for each application."""
    queues: Required[UsageDocument]


class GroupUsageDocument(TypedDict, total=False):
    """The usage and the limits of a group."""

    groupName: Required[str]
    applications: Names
    queues: Required[UsageDocument]


class UsageDocument(TypedDict, total=False):
    """The usage in a queue and below it, and the limits there."""

    queuePath: Required[str]
    resourceUsage: Quantities
    decayedMean: Quantities
    """The average use of a user, in a leaf with a half-life that orders its users."""
    runningApplications: Names
    maxResources: Quantities
    maxApplications: int
    children: list[UsageDocument]


@without_empty
def user_document(user: UsageView) -> UserUsageDocument:
    """Return the UserUsage document."""
    return {"userName": user.name, "groups": dict(user.groups), "queues": _queue_documents(user.queues)}


@without_empty
def group_document(group: UsageView) -> GroupUsageDocument:
    """Return the GroupUsage document."""
    return {
        "groupName": group.name,
        "applications": sorted(group.queues[0].applications),
        "queues": _queue_documents(group.queues),
    }


def _queue_documents(rows: Sequence[UsageRow]) -> UsageDocument:
    """Return the document of the root, with those of all queues below it."""
    documents = {row.queue_path: _queue_document(row) for row in rows}
    for path, document in documents.items():
        above = documents.get(path.rpartition(".")[0])
        if above is not None:
            above.setdefault("children", []).append(document)
    return documents[rows[0].queue_path]


@without_empty
def _queue_document(row: UsageRow) -> UsageDocument:
    limit = row.limit
    return {
        "queuePath": row.queue_path,
        "resourceUsage": quantities_shown(dict(sorted(row.usage))),
        "decayedMean": quantities_shown(row.decayed_mean),
        "runningApplications": sorted(row.applications),
        "maxResources": quantities_shown(
            limit.max_resources.as_dict() if limit and limit.max_resources else None
        ),
        "maxApplications": limit.max_applications if limit else 0,
    }
