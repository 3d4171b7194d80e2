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
    from .applications.views import ShownApplication
    from .nodes.node import NodeFacts
    from .state.partition_state import PartitionState
    from .values.documents import Document, Json

__all__ = [
    "ShownNode",
    "ShownPartition",
    "node_view",
    "partition_view",
    "shown_applications",
    "shown_nodes",
    "shown_partition",
]

_PARTITION_KEEP: Final = frozenset(
    {
        "clusterId",
        "name",
        "capacity",
        "nodeSortingPolicy",
        "preemptionEnabled",
        "quotaPreemptionEnabled",
    },
)
_NODE_KEEP: Final = frozenset({"nodeID", "schedulable", "isReserved"})


def partition_view(state: PartitionState) -> Document:
    """Return the PartitionInfo document."""
    used = state.tree.root.allocated
    capacity: Document = {
        "capacity": quantities_shown(state.capacity),
        "usedCapacity": quantities_shown(used),
        "utilization": quantities_shown(absolute_used_capacity(state.capacity, used)),
    }
    policy: Document = {"type": state.nodes.policy.value, "resourceWeights": dict(state.nodes.weights)}
    document: Document = {
        "clusterId": state.rm_id,
        "name": short_partition_name(state.name),
        "capacity": compact(capacity),
        "nodeSortingPolicy": policy,
        "preemptionEnabled": state.preemption_enabled,
        "quotaPreemptionEnabled": state.quota_preemption_enabled,
        "totalNodes": len(state.nodes),
        "applications": _application_counts(state),
        "totalContainers": state.placed.allocations,
        "state": state.state.value,
        "lastStateTransitionTime": state.state_since_ns,
    }
    return compact(document, keep=_PARTITION_KEEP)


def _application_counts(state: PartitionState) -> Json:
    states = [entry.facts.state for entry in state.entries.values()]
    states += [application.state() for application in state.completed.values()]
    states += [kept.application.state() for kept in state.rejected.values()]
    counts: dict[str, Json] = dict(sorted(Counter(entry.value for entry in states).items()))
    if states:
        counts["total"] = len(states)
    return counts


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

    partition: Document
    """PartitionInfo."""
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
        partition=partition_view(state),
        queues=queue_view(state.tree.root, partition=short_partition_name(state.name)),
        nodes=shown_nodes(state),
        applications=shown_applications(state),
        users=state.limits.user_views(),
        groups=state.limits.group_views(),
    )
