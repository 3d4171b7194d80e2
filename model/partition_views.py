"""The documents of a partition, its nodes and its applications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .application_views import foreign_view, placed_view
from .messages import short_partition_name
from .node import HOSTNAME, RACKNAME
from .shares import absolute_used_capacity
from .views import compact

if TYPE_CHECKING:
    from .node import NodeFacts
    from .partition_state import PartitionState
    from .views import Document, Json

__all__ = ["application_views", "node_view", "node_views", "partition_view"]

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
        "capacity": dict(state.capacity.items()),
        "usedCapacity": dict(used.items()),
        "utilization": dict(absolute_used_capacity(state.capacity, used).items()),
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
        "totalContainers": state.allocations,
        "state": state.state.value,
        "lastStateTransitionTime": state.state_since_ns,
    }
    return compact(document, keep=_PARTITION_KEEP)


def _application_counts(state: PartitionState) -> Json:
    counts: dict[str, Json] = {}
    total = 0
    states = [seat.facts.state for seat in state.seats.values()]
    states += [application.state() for application in state.completed.values()]
    states += [kept.application.state() for kept in state.rejected.values()]
    for name in sorted(entry.value for entry in states):
        counts[name] = sum(entry.value == name for entry in states)
        total += 1
    if total:
        counts["total"] = total
    return counts


def node_views(state: PartitionState) -> list[Document]:
    """Return the NodeInfo documents, by node id."""
    return [node_view(state, seat.node.facts()) for seat in state.nodes.by_name()]


def node_view(state: PartitionState, facts: NodeFacts) -> Document:
    """Return the NodeInfo document."""
    attributes = dict(facts.attributes)
    allocations: list[Json] = []
    for allocation in facts.allocations:
        seat = state.seats.get(allocation.ask.application_id)
        preempted = seat is not None and seat.application.is_preempted(allocation.ask.allocation_key)
        allocations.append(placed_view(allocation, preempted=preempted))
    document: Document = {
        "nodeID": facts.node_id,
        "hostName": attributes.get(HOSTNAME),
        "rackName": attributes.get(RACKNAME),
        "attributes": dict(attributes.items()),
        "capacity": dict(facts.capacity.items()),
        "allocated": dict(facts.allocated.items()),
        "occupied": dict(facts.occupied.items()),
        "available": dict(facts.available.items()),
        "utilized": dict(absolute_used_capacity(facts.capacity, facts.allocated).items()),
        "allocations": allocations,
        "foreignAllocations": [foreign_view(allocation) for allocation in facts.foreign],
        "schedulable": facts.schedulable,
        "isReserved": bool(facts.reservations),
        "reservations": list(facts.reservations),
    }
    return compact(document, keep=_NODE_KEEP)


def application_views(state: PartitionState) -> list[Document]:
    """Return the ApplicationInfo documents: active, completed and rejected ones."""
    documents = [state.seats[name].application.view() for name in sorted(state.seats)]
    documents += [state.completed[serial].view() for serial in sorted(state.completed)]
    documents += [state.rejected[name].application.view() for name in sorted(state.rejected)]
    return documents
