"""The documents of nodes: NodeInfo, and how many of them are how full."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from ...model.nodes.node import HOSTNAME, RACKNAME
from ...model.resources.shares import absolute_used_capacity
from ...model.values.documents import Document, Json, compact, quantities_shown
from ...model.views.shown import ShownNode
from .applications import allocation_document, foreign_document

__all__ = ["node_document", "utilizations_document"]

_KEEP: Final = frozenset({"nodeID", "schedulable", "isReserved"})
_BUCKETS: Final = 10


def node_document(node: ShownNode) -> Document:
    """Return the NodeInfo document."""
    facts = node.facts
    attributes = dict(facts.attributes)
    keys = ((allocation, allocation.ask) for allocation in facts.allocations)
    allocations: list[Json] = [
        allocation_document(allocation, preempted=(ask.application_id, ask.allocation_key) in node.preempted)
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
        "foreignAllocations": [foreign_document(allocation) for allocation in facts.foreign],
        "schedulable": facts.schedulable,
        "isReserved": bool(facts.reservations),
        "reservations": list(facts.reservations),
    }
    return compact(document, keep=_KEEP)


def utilizations_document(cluster_id: str, partition: str, nodes: Iterable[ShownNode]) -> Document:
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
    utilizations: list[Json] = [
        {"type": name, "utilization": [_bucket_document(*entry) for entry in enumerate(classes)]}
        for name, classes in sorted(buckets.items())
    ]
    return {"clusterId": cluster_id, "partition": partition, "utilizations": utilizations}


def _bucket(percent: int) -> int:
    return min(max(math.ceil(percent / _BUCKETS) - 1, 0), _BUCKETS - 1)


def _bucket_document(number: int, names: list[str]) -> Json:
    name = f"{number * 10}-{number * 10 + 10}%"
    return compact({"bucketName": name, "numOfNodes": len(names), "nodeNames": [*names]})
