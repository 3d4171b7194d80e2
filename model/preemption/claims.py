"""Committed resources: what asks are going to use that have preempted and still wait.

While its victims end an ask uses nothing, and yet its queue is entitled to nothing more on its behalf. A
check of guarantees and maxima has to count it meanwhile: otherwise two asks of one queue would both preempt
for what the queue is entitled to once, and the second one would find the queue full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from ..queues.queue import Queue
from ..queues.quota import kept_beside
from ..resources.comparisons import component_wise_max
from ..resources.resource import EMPTY, Resource, add, subtract_only_existing
from ..state.partition_state import PartitionState


@final
class CommittedResources:
    """What asks that have preempted are going to use, by queue: a value."""

    __slots__ = ("_beside", "_by_path")

    def __init__(
        self, by_path: Mapping[str, Resource], beside: Mapping[Queue, Resource] | None = None
    ) -> None:
        self._by_path = by_path
        self._beside = beside or {}

    def use_of(self, queue: Queue) -> Resource:
        """Return what a queue will use once what is preempted has ended and those asks are placed."""
        used = subtract_only_existing(queue.allocated, queue.preempting)
        committed = self._by_path.get(queue.path)
        return used if committed is None else add(used, committed)

    def most_of(self, queue: Queue) -> Resource:
        """Return the larger of what a queue uses now and what it will use then, type by type.

        What is withheld from the ask that this is asked for counts as used (`licorne.model.queues.quota`).
        """
        most = queue.allocated
        if queue.path in self._by_path:
            most = component_wise_max(most, self.use_of(queue))
        beside = self._beside.get(queue)
        return most if beside is None else add(most, beside)

    def leaves_room(self, leaf: Queue, resource: Resource) -> bool:
        """Return whether a leaf and those above it have room for a resource beyond what is committed.

        The root is left out: its maximum is what the nodes have, and no quota.
        """
        for level in leaf.above[:-1]:
            most, maximum = self.most_of(level), level.maximum or EMPTY
            if any(
                maximum.has(name) and most.get(name) + more > maximum[name]
                for name, more in resource.items()
                if more > 0
            ):
                return False
        return True


NOTHING_COMMITTED: Final = CommittedResources({})


def committed_resources(state: PartitionState, leaf: Queue, allocation_key: str) -> CommittedResources:
    """Add up what is committed to all asks with a claim but one of a leaf, and what is withheld from it."""
    by_path: dict[str, Resource] = {}
    own = state.claims.find(allocation_key)
    for claim in state.claims:
        if claim is not own:
            for level in claim.entry.queue.above:
                by_path[level.path] = add(by_path.get(level.path, EMPTY), claim.size)
    beside = kept_beside(leaf)
    return CommittedResources(by_path, beside) if by_path or beside else NOTHING_COMMITTED
