"""The document of a queue: what the REST interface and snapshots show of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..configuration.durations import duration_text
from ..configuration.queue_properties import PreemptionPolicy, PriorityPolicy, SortPolicy
from ..resources.shares import absolute_used_capacity
from ..values.documents import compact, quantities_shown
from .quota import headroom, maximum_of_path

if TYPE_CHECKING:
    from ..values.documents import Document
    from .queue import Queue

__all__ = ["queue_view"]

_KEEP = frozenset(
    {
        "queuename",
        "partition",
        "isLeaf",
        "isManaged",
        "currentPriority",
        "prioritySorting",
        "preemptionEnabled",
        "isPreemptionFence",
        "isPriorityFence",
    },
)


def queue_view(queue: Queue, *, partition: str = "", subtree: bool = True) -> Document:
    """Return the QueueInfo document; `partition` is shown only for the queue that a client asked for."""
    settings = queue.settings
    children = [queue.children[name] for name in sorted(queue.children)]
    limit = maximum_of_path(queue)
    document: Document = {
        "queuename": queue.path,
        "status": queue.state.value,
        "partition": partition,
        "pendingResource": quantities_shown(queue.pending),
        "maxResource": quantities_shown(queue.maximum),
        "guaranteedResource": quantities_shown(queue.guaranteed),
        "allocatedResource": quantities_shown(queue.allocated),
        "preemptingResource": quantities_shown(queue.preempting),
        "headroom": quantities_shown(headroom(queue)),
        "isLeaf": queue.is_leaf,
        "isManaged": queue.managed,
        "properties": dict(queue.properties),
        "parent": queue.parent.path if queue.parent is not None else "",
        "template": queue.template.view() if queue.template is not None else None,
        "children": [queue_view(child) for child in children] if subtree else [],
        "childNames": [child.path for child in children],
        "absUsedCapacity": quantities_shown(absolute_used_capacity(limit, queue.allocated)),
        "maxRunningApps": queue.max_applications,
        "runningApps": queue.running,
        "currentPriority": queue.exposed_priority,
        "allocatingAcceptedApps": [*sorted(queue.accepted_allocating)],
        "sortingPolicy": _sorting(queue),
        "prioritySorting": settings.priority_sorting,
        "preemptionEnabled": settings.preemption_policy is not PreemptionPolicy.DISABLED,
        "isPreemptionFence": settings.preemption_policy is PreemptionPolicy.FENCE,
        "preemptionDelay": duration_text(settings.preemption_delay_ns),
        "quotaPreemptionDelay": duration_text(settings.quota_preemption_delay_ns),
        "isPriorityFence": settings.priority_policy is PriorityPolicy.FENCE,
        "priorityOffset": settings.priority_offset,
    }
    return compact(document, keep=_KEEP)


def _sorting(queue: Queue) -> str:
    fair = not queue.is_leaf or queue.settings.application_sort_policy is SortPolicy.FAIR
    return "fair" if fair else "fifo"
