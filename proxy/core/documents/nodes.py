"""The documents of nodes: NodeInfo, and how many of them are how full."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Final, Required

from pydantic import Field
from typing_extensions import TypedDict

from ....model.nodes.node import HOSTNAME, RACKNAME
from ....model.resources.comparisons import absolute_used_capacity
from ....model.values.documents import quantities_shown
from ....model.views.shown import ShownNode
from .applications import AllocationDocument, ForeignAllocationDocument, allocation_document, foreign_document
from .fields import Names, Percents, Quantities, Texts, without_empty


class BucketDocument(TypedDict, total=False):
    """How many nodes use a tenth of what they have, such as 10-20%."""

    bucketName: Required[str]
    numOfNodes: int
    nodeNames: Names


class TypeUtilizationDocument(TypedDict):
    """The nodes by their use of one type of resource."""

    type: str
    """The type of resource."""
    utilization: Annotated[list[BucketDocument], Field(min_length=10, max_length=10)]


class UtilizationsDocument(TypedDict):
    """The nodes of a partition, by how full they are."""

    clusterId: str
    partition: str
    utilizations: list[TypeUtilizationDocument]


class NodeDocument(TypedDict, total=False):
    """A node, with what is placed on it."""

    nodeID: Required[str]
    hostName: str
    rackName: str
    attributes: Texts
    capacity: Quantities
    allocated: Quantities
    occupied: Quantities
    available: Quantities
    utilized: Percents
    allocations: list[AllocationDocument]
    foreignAllocations: list[ForeignAllocationDocument]
    schedulable: Required[bool]
    isReserved: Required[bool]
    reservations: Names


_BUCKETS: Final = 10


@without_empty
def node_document(node: ShownNode) -> NodeDocument:
    """Return the NodeInfo document."""
    facts = node.facts
    attributes = dict(facts.attributes)
    keys = ((allocation, allocation.ask) for allocation in facts.allocations)
    allocations = [
        allocation_document(allocation, preempted=(ask.application_id, ask.allocation_key) in node.preempted)
        for allocation, ask in keys
    ]
    return {
        "nodeID": facts.node_id,
        "hostName": attributes.get(HOSTNAME, ""),
        "rackName": attributes.get(RACKNAME, ""),
        "attributes": dict(attributes.items()),
        "capacity": quantities_shown(facts.capacity),
        "allocated": quantities_shown(facts.allocated),
        "occupied": quantities_shown(facts.occupied),
        "available": quantities_shown(facts.available),
        "utilized": quantities_shown(absolute_used_capacity(facts.capacity, facts.allocated)),
        "allocations": allocations,
        "foreignAllocations": [foreign_document(allocation) for allocation in facts.foreign],
        "schedulable": facts.schedulable,
        "isReserved": bool(facts.reservations),
        "reservations": list(facts.reservations),
    }


def utilizations_document(
    cluster_id: str, partition: str, nodes: Iterable[ShownNode]
) -> UtilizationsDocument:
    """Return the NodesUtil document: per type, the nodes in ten classes by how much of it is allocated.

    What is over 100 % is in the last class, what is below 0 % in the first.

    Args:
        cluster_id: The resource manager.
        partition: The short name of the partition.
        nodes: All nodes.
    """
    buckets: dict[str, list[list[str]]] = {}
    for shown in nodes:
        facts = shown.facts
        used = absolute_used_capacity(facts.capacity, facts.allocated)
        for name, _ in facts.capacity.items():  # noqa: PERF102 - a resource has no `keys`
            classes = buckets.setdefault(name, [[] for _ in range(_BUCKETS)])
            classes[_bucket(used.get(name))].append(facts.node_id)
    utilizations: list[TypeUtilizationDocument] = [
        {"type": name, "utilization": [_bucket_document(*entry) for entry in enumerate(classes)]}
        for name, classes in sorted(buckets.items())
    ]
    return {"clusterId": cluster_id, "partition": partition, "utilizations": utilizations}


def _bucket(percent: int) -> int:
    return min(max(math.ceil(percent / _BUCKETS) - 1, 0), _BUCKETS - 1)


@without_empty
def _bucket_document(number: int, names: list[str]) -> BucketDocument:
    name = f"{number * 10}-{number * 10 + 10}%"
    return {"bucketName": name, "numOfNodes": len(names), "nodeNames": [*names]}
