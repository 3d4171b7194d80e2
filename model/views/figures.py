"""The figures of a partition: what metrics are made of, copied as values in one short turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ..applications.state import ApplicationState
from ..queues.queue import Queue
from ..resources.resource import Resource
from ..state.cycle_times import TimedPart
from ..state.histograms import HistogramFigures
from ..state.partition_state import PartitionState

__all__ = ["NodeGauges", "PartitionFigures", "QueueGauges", "partition_figures"]


class QueueGauges(NamedTuple):
    """The quotas and the use of one queue."""

    path: str
    is_leaf: bool
    guaranteed: Resource | None
    maximum: Resource | None
    allocated: Resource
    pending: Resource
    preempting: Resource
    max_applications: int
    """0: no maximum."""
    placed: int
    """How many allocations have come to this leaf since it was made."""
    ended: int
    """How many have ended here."""


class NodeGauges(NamedTuple):
    """What one node has, and what of it is free."""

    capacity: Resource
    available: Resource
    schedulable: bool


class PartitionFigures(NamedTuple):
    """All that the metrics of a partition are made of, as of one moment."""

    name: str
    rm_id: str
    capacity: Resource
    queues: tuple[QueueGauges, ...]
    """Parents before their children."""
    active: Mapping[tuple[str, ApplicationState], int]
    """How many applications are active, by the path of their leaf and their state."""
    ended: Mapping[tuple[str, ApplicationState], int]
    """How many have ended since the partition was made: completed, failed or rejected."""
    nodes: tuple[NodeGauges, ...]
    nodes_removed: int
    allocations: int
    reservations: int
    quarantined: int
    """How many applications and nodes broke and are excluded."""
    times: Mapping[TimedPart, HistogramFigures]
    waits: HistogramFigures
    """From the creation of an ask to its placement."""


def partition_figures(state: PartitionState) -> PartitionFigures:
    """Return the figures of a partition; the time it takes grows with its nodes, queues and applications."""
    return PartitionFigures(
        name=state.name,
        rm_id=state.rm_id,
        capacity=state.capacity,
        queues=tuple(_queue_figures(state, queue) for queue in state.tree),
        active=Counter((entry.queue.path, entry.facts.state) for entry in state.entries.values()),
        ended=dict(state.ended),
        nodes=tuple(NodeGauges(node.capacity, node.available, node.schedulable) for node in state.nodes),
        nodes_removed=state.nodes_removed,
        allocations=state.placed.allocations,
        reservations=state.reservations,
        quarantined=len(state.quarantine.entries),
        times=state.times.figures(),
        waits=state.placed.waits.figures(),
    )


def _queue_figures(state: PartitionState, queue: Queue) -> QueueGauges:
    return QueueGauges(
        path=queue.path,
        is_leaf=queue.is_leaf,
        guaranteed=queue.guaranteed,
        maximum=queue.maximum,
        allocated=queue.allocated,
        pending=queue.pending,
        preempting=queue.preempting,
        max_applications=queue.max_applications,
        placed=state.placed.placed_in.get(queue.path, 0),
        ended=state.placed.ended_in.get(queue.path, 0),
    )
