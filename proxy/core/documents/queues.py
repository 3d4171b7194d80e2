"""The documents of queues: QueueInfo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Required

from typing_extensions import TypedDict

from ....model.configuration.durations import duration_text
from ....model.queues.queue import QueueTemplate
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
from .fields import Int32, Names, ObjectStateName, Percents, Quantities, Texts, without_empty


class TemplateDocument(TypedDict, total=False):
    """What dynamic leaf queues get."""

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
    """What others may use of the guarantee, for the types that are configured."""
    allocatedResource: Quantities
    preemptingResource: Quantities
    decayedMean: Quantities
    """What counts of its use, on average with the half-life of its parent; only where that has one."""
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
        "sortingPolicy": settings.application_sort_policy if queue.is_leaf else "fair",
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
