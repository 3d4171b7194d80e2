"""The documents of a partition, its nodes and its applications."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from .applications.views import foreign_view, placed_view
from .nodes.node import HOSTNAME, RACKNAME
from .queues.views import queue_view
from .resources.shares import absolute_used_capacity
from .values.documents import compact, quantities_shown
from .values.messages import short_partition_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .applications.views import ShownApplication
    from .nodes.node import NodeFacts
    from .resources.resource import Resource
    from .state.partition_state import PartitionState
    from .values.documents import Document, Json

__all__ = [
    "PartitionValues",
    "ShownNode",
    "ShownPartition",
    "node_view",
    "partition_values",
    "shown_applications",
    "shown_nodes",
    "shown_partition",
]

_NODE_KEEP: Final = frozenset({"nodeID", "schedulable", "isReserved"})


class PartitionValues(NamedTuple):
    """What a partition as a whole shows, as of one moment."""

    rm_id: str
    name: str
    """The full name, `[rm]default`."""
    capacity: Resource
    used: Resource
    node_sort_policy: str
    node_sort_weights: Mapping[str, float]
    preemption_enabled: bool
    quota_preemption_enabled: bool
    nodes: int
    """How many nodes there are."""
    applications: Mapping[str, int]
    """How many applications are in each state: active, completed and rejected ones."""
    allocations: int
    """How many allocations there are."""
    state: str
    state_since_ns: int


def partition_values(state: PartitionState) -> PartitionValues:
    """Return what the partition as a whole shows."""
    return PartitionValues(
        rm_id=state.rm_id,
        name=state.name,
        capacity=state.capacity,
        used=state.tree.root.allocated,
        node_sort_policy=state.nodes.policy.value,
        node_sort_weights=dict(state.nodes.weights),
        preemption_enabled=state.preemption_enabled,
        quota_preemption_enabled=state.quota_preemption_enabled,
        nodes=len(state.nodes),
        applications=_application_counts(state),
        allocations=state.placed.allocations,
        state=state.state.value,
        state_since_ns=state.state_since_ns,
    )


def _application_counts(state: PartitionState) -> Mapping[str, int]:
    states = [entry.facts.state for entry in state.entries.values()]
    states += [application.state() for application in state.completed.values()]
    states += [kept.application.state() for kept in state.rejected.values()]
    return Counter(entry.value for entry in states)


class ShownNode(NamedTuple):
    """All that the document of a node is made of, as it was at one moment."""

    facts: NodeFacts
    preempted: frozenset[tuple[str, str]]
    """Which allocations have been chosen as victims: their applications and keys."""


def shown_nodes(state: PartitionState) -> tuple[ShownNode, ...]:
    """Copy what the documents of the nodes are made of, by node id.

    To make the documents takes ten times as long. That is left to the caller, so that the partition can work
    meanwhile.
    """
    rows = [entry.node.facts() for entry in state.nodes.by_name()]
    names = {allocation.ask.application_id for facts in rows for allocation in facts.allocations}
    preempted = frozenset(
        (name, key)
        for name, entry in state.entries.items()
        if name in names
        for key in entry.application.allocations.preempted_keys()
    )
    return tuple(ShownNode(facts, preempted) for facts in rows)


def node_view(node: ShownNode) -> Document:
    """Return the NodeInfo document."""
    facts = node.facts
    attributes = dict(facts.attributes)
    keys = ((allocation, allocation.ask) for allocation in facts.allocations)
    allocations: list[Json] = [
        placed_view(allocation, preempted=(ask.application_id, ask.allocation_key) in node.preempted)
        for allocation, ask in keys
    ]
    document: Document = {
        "nodeID": facts.node_id,
        "hostName": attributes.get(HOSTNAME),
        "rackName": attributes.get(RACKNAME),
        "attributes": dict(attributes.items()),
        "capacity": quantities_shown(facts.capacity),
        "allocated": quantities_shown(facts.allocated),
        "occupied": quantities_shown(facts.occupied),
        "available": quantities_shown(facts.available),
        "utilized": quantities_shown(absolute_used_capacity(facts.capacity, facts.allocated)),
        "allocations": allocations,
        "foreignAllocations": [foreign_view(allocation) for allocation in facts.foreign],
        "schedulable": facts.schedulable,
        "isReserved": bool(facts.reservations),
        "reservations": list(facts.reservations),
    }
    return compact(document, keep=_NODE_KEEP)


def shown_applications(state: PartitionState) -> tuple[ShownApplication, ...]:
    """Copy what the ApplicationInfo documents are made of: of active, completed and rejected ones."""
    applications = [state.entries[name].application for name in sorted(state.entries)]
    applications += [state.completed[serial] for serial in sorted(state.completed)]
    applications += [state.rejected[name].application for name in sorted(state.rejected)]
    return tuple(application.shown() for application in applications)


class ShownPartition(NamedTuple):
    """All that the documents of a partition show, as of one moment."""

    partition: PartitionValues
    queues: Document
    """QueueInfo of the root with all queues."""
    nodes: tuple[ShownNode, ...]
    """What the NodeInfo documents are made of, by node id."""
    applications: tuple[ShownApplication, ...]
    """What the ApplicationInfo documents are made of: active, completed and rejected."""
    users: list[Document]
    """UserUsage, by user."""
    groups: list[Document]
    """GroupUsage, by group."""


def shown_partition(state: PartitionState) -> ShownPartition:
    """Return what all documents of a partition are made of."""
    return ShownPartition(
        partition=partition_values(state),
        queues=queue_view(state.tree.root, partition=short_partition_name(state.name)),
        nodes=shown_nodes(state),
        applications=shown_applications(state),
        users=state.limits.user_views(),
        groups=state.limits.group_views(),
    )
