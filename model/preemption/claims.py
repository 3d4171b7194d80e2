"""Committed resources: what asks are going to use that have preempted and still wait.

While its victims end an ask uses nothing, and yet its queue is entitled to nothing more on its behalf. A
check of guarantees and maxima has to count it meanwhile: otherwise two asks of one queue would both preempt
for what the queue is entitled to once, and the second one would find the queue full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from ..resources.combinations import component_wise_max
from ..resources.resource import EMPTY, add, subtract_only_existing
from .acts import is_still_ending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..queues.queue import Queue
    from ..resources.resource import Resource
    from ..state.partition_state import PartitionState

__all__ = ["NOTHING_COMMITTED", "CommittedResources", "committed_resources"]


@final
class CommittedResources:
    """What asks that have preempted are going to use, by queue: a value."""

    __slots__ = ("_by_path",)

    def __init__(self, by_path: Mapping[str, Resource]) -> None:
        self._by_path = by_path

    def use_of(self, queue: Queue) -> Resource:
        """Return what a queue will use once what is preempted has ended and those asks are placed."""
        used = subtract_only_existing(queue.allocated, queue.preempting)
        committed = self._by_path.get(queue.path)
        return used if committed is None else add(used, committed)

    def most_of(self, queue: Queue) -> Resource:
        """Return the larger of what a queue uses now and what it will use then, type by type."""
        if queue.path not in self._by_path:
            return queue.allocated
        return component_wise_max(queue.allocated, self.use_of(queue))

    def leaves_room(self, leaf: Queue, resource: Resource) -> bool:
        """Return whether a leaf and those above it have room for a resource beyond what is committed."""
        for level in leaf.above:
            most, maximum = self.most_of(level), level.maximum or EMPTY
            if any(
                maximum.has(name) and most.get(name) + more > maximum[name] for name, more in resource.items()
            ):
                return False
        return True


NOTHING_COMMITTED: Final = CommittedResources({})


def committed_resources(state: PartitionState, allocation_key: str) -> CommittedResources:
    """Add up what is committed to all asks but one.

    An ask is forgotten when its victims have ended: it goes before all others then, and is placed at once; or
    something else stands in its way, and its queue is entitled to as much as before.
    """
    by_path: dict[str, Resource] = {}
    for key, application_id in list(state.preemption_claims.items()):
        entry = state.entries.get(application_id)
        record = None if entry is None else entry.application.asks.record(key)
        if (
            entry is None
            or record is None
            or record.placed
            or not _waits_for_victims(state, key, application_id)
        ):
            del state.preemption_claims[key]
        elif key != allocation_key:
            for level in entry.queue.above:
                by_path[level.path] = add(by_path.get(level.path, EMPTY), record.ask.resource)
    return CommittedResources(by_path) if by_path else NOTHING_COMMITTED


def _waits_for_victims(state: PartitionState, allocation_key: str, application_id: str) -> bool:
    record = state.preemptions.last_for(allocation_key, application_id)
    return record is not None and is_still_ending(state, record)
