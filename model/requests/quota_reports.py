"""The events of queues whose quota or kind has changed."""

from __future__ import annotations

from typing import NamedTuple

from ..queues.queue import Queue
from ..resources.resource import Resource
from ..state.partition_state import PartitionState
from ..values.events import ChangeDetail, ChangeType


class QueueQuota(NamedTuple):
    """What is reported of a queue when it changes."""

    maximum: Resource | None
    guaranteed: Resource | None
    is_leaf: bool


def quota_of(queue: Queue) -> QueueQuota:
    """Return the quota and the kind of a queue as they are now."""
    return QueueQuota(queue.maximum, queue.guaranteed, queue.is_leaf)


def report_quota(state: PartitionState, queue: Queue, before: QueueQuota) -> None:
    """Report what differs from before."""
    note = state.events.note
    if queue.is_leaf != before.is_leaf:
        text = f"leaf queue: {str(queue.is_leaf).lower()}"
        note(ChangeType.SET, ChangeDetail.QUEUE_TYPE, queue.path, message=text)
    if queue.maximum != before.maximum:
        note(ChangeType.SET, ChangeDetail.QUEUE_MAX, queue.path, resource=queue.maximum)
    if queue.guaranteed != before.guaranteed:
        note(ChangeType.SET, ChangeDetail.QUEUE_GUARANTEED, queue.path, resource=queue.guaranteed)


def report_quotas(state: PartitionState, before: dict[str, QueueQuota]) -> None:
    """Report what differs from before in all queues that were there."""
    for queue in state.tree:
        earlier = before.get(queue.path)
        if earlier is not None:
            report_quota(state, queue, earlier)
