"""The documents of the cluster, of a partition as a whole, and of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Required

from pydantic import Field
from typing_extensions import TypedDict

from ....model.nodes.node import HOSTNAME, RACKNAME
from ....model.resources.comparisons import absolute_used_capacity
from ....model.values.documents import quantities_shown
from ....model.values.messages import short_partition_name
from ....model.views.shown import PartitionValues, ShownNode
from .applications import AllocationDocument, ForeignAllocationDocument, allocation_document, foreign_document
from .declarations import Names, ObjectStateName, Percents, Quantities, Texts, TimeNs, whole, without_empty


class ClusterDocument(TypedDict):
    """A partition, with the resource manager it belongs to."""

    clusterName: str
    partition: str
    """Its short name."""
    startTime: int
    """When the scheduler started, nanoseconds since 1970."""
    rmBuildInformation: list[dict[str, str]]


class CapacityDocument(TypedDict, total=False):
    """The resources of a partition, and how much of them is used."""

    capacity: Quantities
    usedCapacity: Quantities
    utilization: Percents


class NodeSortingDocument(TypedDict):
    """The order in which nodes are tried."""

    type: str
    """`fair`, `binpacking`, or a policy as `policy/NAME`."""
    resourceWeights: dict[str, float]


class WorkerDocument(TypedDict):
    """Where a partition runs behind a door, and how it is."""

    rmID: str
    partition: str
    """Its short name."""
    state: Annotated[str, Field(json_schema_extra={"enum": ["Starting", "Recovering", "Running", "Closed"]})]
    """`Starting` while there is no worker, `Recovering` while one gets the state of the partition."""
    since: TimeNs
    """When it entered the state."""
    reason: str
    """Why the worker before was lost, or why one is missing; empty without a failure."""
    address: str
    """Where the worker serves resource managers; empty without one."""
    restAddress: str
    """The address of its REST interface; empty without one."""
    workerNumber: Annotated[int, Field(ge=0)]
    """Counts the workers of the partition, from 1; 0 without one."""
    requestsWaiting: Annotated[int, Field(ge=0)]
    """How many requests wait in the door."""


class PartitionDocument(TypedDict, total=False):
    """A partition as a whole."""

    applications: Required[dict[str, int]]
    """How many there are in each state."""
    capacity: Required[CapacityDocument]
    clusterId: Required[str]
    """The resource manager."""
    lastStateTransitionTime: TimeNs
    name: Required[str]
    """Its short name."""
    nodeSortingPolicy: Required[NodeSortingDocument]
    preemptionEnabled: Required[bool]
    quotaPreemptionEnabled: Required[bool]
    state: ObjectStateName
    totalContainers: int
    totalNodes: int
    worker: WorkerDocument
    """Only behind a door."""


@without_empty
def cluster_document(
    partition: str, started_at_ns: int, builds: Sequence[tuple[str, Mapping[str, str]]]
) -> ClusterDocument:
    """Return the ClusterInfo document of one partition.

    Args:
        partition: Its full name.
        started_at_ns: When the scheduler started.
        builds: The resource managers, with the description of the program of each.
    """
    return {
        "startTime": started_at_ns,
        "rmBuildInformation": [{**build, "rmId": rm_id} for rm_id, build in builds],
        "partition": short_partition_name(partition),
        "clusterName": "kubernetes",
    }


@without_empty
def partition_document(values: PartitionValues) -> PartitionDocument:
    """Return the PartitionInfo document of the REST interface."""
    weights = {name: whole(weight) for name, weight in values.node_sort_weights.items()}
    counts = dict(sorted(values.applications.items()))
    return {
        "clusterId": values.rm_id,
        "name": short_partition_name(values.name),
        "capacity": _capacity(values),
        "nodeSortingPolicy": {"type": values.node_sort_policy, "resourceWeights": weights},
        "preemptionEnabled": values.preemption_enabled,
        "quotaPreemptionEnabled": values.quota_preemption_enabled,
        "totalNodes": values.nodes,
        "applications": {**counts, "total": sum(counts.values())},
        "totalContainers": values.allocations,
        "state": values.state.value,
        "lastStateTransitionTime": values.state_since_ns,
    }


@without_empty
def _capacity(values: PartitionValues) -> CapacityDocument:
    return {
        "capacity": quantities_shown(values.capacity),
        "usedCapacity": quantities_shown(values.used),
        "utilization": quantities_shown(absolute_used_capacity(values.capacity, values.used)),
    }


def snapshot_partition(values: PartitionValues) -> PartitionDocument:
    """Return the document as a snapshot has it: weights are floats, and no applications are left out."""
    document = partition_document(values)
    document["nodeSortingPolicy"]["resourceWeights"] = dict(values.node_sort_weights)
    if not values.applications:
        document.pop("applications")  # type: ignore[misc] # required in the REST interface alone
    return document


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

    Shares over 100 % are in the last class, those below 0 % in the first.

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
