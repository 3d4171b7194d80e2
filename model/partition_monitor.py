"""What a partition answers to those who watch over it; nothing of it is a document for users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from .explanation.next_asks import NextAsks, next_asks
from .explanation.victims import Prospect, prospects
from .live_rows import (
    LiveApplication,
    LiveEnded,
    LiveNames,
    LiveNode,
    LiveQueue,
    LiveUsage,
    live_applications,
    live_ended,
    live_names,
    live_node_facts,
    live_nodes,
    live_queues,
    live_reasons,
    live_usages,
)
from .marks import Marks
from .nodes.node import NodeFacts
from .orphans import PlacedOn, unknown_to_applications, unknown_to_nodes
from .partition_figures import PartitionFigures, partition_figures
from .state.partition_state import PartitionState

__all__ = ["PartitionMonitor"]


@final
class PartitionMonitor:
    """The part of a partition that metrics, health checks and watchers ask; nothing here changes anything."""

    MARKS: Final = Marks(
        reads=(
            "figures",
            "unknown_to_applications",
            "unknown_to_nodes",
            "live_names",
            "live_nodes",
            "live_node_facts",
            "live_applications",
            "live_reasons",
            "live_ended",
            "live_queues",
            "live_usages",
            "prospects",
            "next_asks",
        )
    )

    def __init__(self, state: PartitionState) -> None:
        self._state = state

    def figures(self) -> PartitionFigures:
        """Return what the metrics of the partition are made of, as of one moment."""
        return partition_figures(self._state)

    def unknown_to_applications(self, suspects: Sequence[PlacedOn]) -> tuple[PlacedOn, ...]:
        """Return those allocations that are on their node now, and that their application does not have."""
        return unknown_to_applications(self._state, suspects)

    def unknown_to_nodes(self, suspects: Sequence[PlacedOn]) -> tuple[PlacedOn, ...]:
        """Return those allocations that their application has now, and that their node does not have."""
        return unknown_to_nodes(self._state, suspects)

    def live_names(self) -> LiveNames:
        """Return the names of everything for a watcher, who asks for the rows of some hundred at a time."""
        return live_names(self._state)

    def live_nodes(self, node_ids: Sequence[str], known: Mapping[str, LiveNode]) -> tuple[LiveNode, ...]:
        """Return the rows of nodes that a watcher does not know as they are."""
        return live_nodes(self._state, node_ids, known)

    def live_node_facts(self, node_id: str) -> NodeFacts | None:
        """Return all that a node knows of itself, `None` if it is unknown."""
        return live_node_facts(self._state, node_id)

    def live_applications(
        self, application_ids: Sequence[str], known: Mapping[str, LiveApplication]
    ) -> tuple[LiveApplication, ...]:
        """Return the rows of active applications that a watcher does not know as they are."""
        return live_applications(self._state, application_ids, known)

    def live_reasons(self, application_ids: Sequence[str]) -> tuple[tuple[str, str], ...]:
        """Return what was noted most often on the first waiting ask of applications, for a watcher."""
        return live_reasons(self._state, application_ids)

    def live_ended(self, serials: Sequence[int]) -> tuple[LiveEnded, ...]:
        """Return the rows of applications that have ended for a watcher."""
        return live_ended(self._state, serials)

    def live_queues(self, paths: Sequence[str]) -> tuple[LiveQueue, ...]:
        """Return the rows of queues for a watcher."""
        return live_queues(self._state, paths)

    def live_usages(
        self, users: Sequence[str], groups: Sequence[str]
    ) -> tuple[tuple[LiveUsage, ...], tuple[LiveUsage, ...]]:
        """Return what users and groups use, for a watcher."""
        return live_usages(self._state, users, groups)

    def prospects(self, application_id: str) -> tuple[Prospect, ...]:
        """Return what would be preempted for the asks of an application that wait; changes nothing."""
        return prospects(self._state, application_id)

    def next_asks(self, count: int) -> NextAsks:
        """Return the asks that the next cycles would try, in order; changes nothing."""
        return next_asks(self._state, count)
