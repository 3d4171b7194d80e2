"""What a partition has, and what was used in it, copied in one turn: a saved moment and a usage file."""

from __future__ import annotations

from typing import NamedTuple

from ..applications.report import ShownApplication
from ..nodes.node import NodeFacts
from ..queues.use_order import KeptUse
from ..queues.users import path_of_user
from ..state.partition_state import PartitionState
from ..values.messages import ApplicationSubmission


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


def use_to_keep(state: PartitionState) -> KeptUse:
    """Return the decayed use of all queues and users, also of those that are gone."""
    uses = dict(state.tree.root.departed.items())
    for queue in state.tree:
        if queue.decayed is not None:
            uses[queue.path] = queue.decayed
        users = queue.entries.users
        for name, place in () if users is None else users.places.items():
            if place.decayed is not None:
                uses[path_of_user(queue, name)] = place.decayed
    return KeptUse(state.now_ns(), {path: use for path, use in sorted(uses.items()) if use.types})
