"""The figures of a partition: what metrics are made of, copied as values in one short turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from ..applications.state import ApplicationState
from ..resources.resource import Resource
from ..state.counters import HistogramFigures, TimedPart
from ..state.partition_state import PartitionState
from .queues import QueueView, queue_view
from .rows import NodeView


class PartitionFigures(NamedTuple):
    """All that the metrics of a partition are made of, as of one moment."""

    name: str
    rm_id: str
    capacity: Resource
    queues: tuple[QueueView, ...]
    """Parents before their children."""
    placed_in: Mapping[str, int]
    """How many allocations have come to each leaf since it was made, by its path."""
    ended_in: Mapping[str, int]
    """How many have ended there."""
    active: Mapping[tuple[str, ApplicationState], int]
    """How many applications are active, by the path of their leaf and their state."""
    ended: Mapping[tuple[str, ApplicationState], int]
    """How many have ended since the partition was made: completed, failed or rejected."""
    nodes: tuple[NodeView, ...]
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
        queues=tuple(map(queue_view, state.tree)),
        placed_in=dict(state.placed.placed_in),
        ended_in=dict(state.placed.ended_in),
        active=Counter((entry.queue.path, entry.facts.state) for entry in state.entries.values()),
        ended=dict(state.ended),
        nodes=tuple(map(NodeView.of, state.nodes)),
        nodes_removed=state.nodes_removed,
        allocations=state.placed.allocations,
        reservations=state.reservations,
        quarantined=len(state.quarantine.entries),
        times=state.times.figures(),
        waits=state.placed.waits.figures(),
    )
