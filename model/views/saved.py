"""What a partition has, copied in one turn of it: what a saved moment is made of."""

from __future__ import annotations

from typing import NamedTuple

from ..applications.views import ShownApplication
from ..nodes.node import NodeFacts
from ..state.partition_state import PartitionState
from ..values.messages import ApplicationSubmission

__all__ = ["SavedApplication", "SavedPartition", "saved_partition"]


class SavedApplication(NamedTuple):
    """An active application: what its RM sent, and what it is now."""

    submission: ApplicationSubmission
    shown: ShownApplication


class SavedPartition(NamedTuple):
    """All that a partition has at one moment."""

    rm_id: str
    name: str
    """The full name, `[rm]default`."""
    time_ns: int
    nodes: tuple[NodeFacts, ...]
    """By node id."""
    applications: tuple[SavedApplication, ...]
    """In the order in which they came."""


def saved_partition(state: PartitionState) -> SavedPartition:
    """Return what the partition has."""
    return SavedPartition(
        state.rm_id,
        state.name,
        state.now_ns(),
        tuple(entry.node.facts() for entry in state.nodes.by_name()),
        tuple(
            SavedApplication(entry.submission, entry.application.shown())
            for entry in state.entries.values()
            if entry.submission is not None
        ),
    )
