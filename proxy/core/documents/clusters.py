"""The documents of the cluster, and of a partition as a whole: ClusterInfo and PartitionInfo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Required

from pydantic import Field
from typing_extensions import TypedDict

from ....model.resources.comparisons import absolute_used_capacity
from ....model.values.documents import quantities_shown
from ....model.values.messages import short_partition_name
from ....model.views.shown import PartitionValues
from .fields import ObjectStateName, Percents, Quantities, TimeNs, without_empty
from .times import whole


class ClusterDocument(TypedDict):
    """A partition, with the resource manager it belongs to."""

    clusterName: str
    partition: str
    """Its short name."""
    startTime: int
    """When the scheduler started, nanoseconds since 1970."""
    rmBuildInformation: list[dict[str, str]]


class CapacityDocument(TypedDict, total=False):
    """What a partition has, and how much of it is used."""

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
    """`Starting` while there is no worker, `Recovering` while one gets what the partition holds."""
    since: TimeNs
    """When it entered the state."""
    reason: str
    """Why the worker before was lost, or why there is none; empty if nothing went wrong."""
    address: str
    """Where the worker serves resource managers; empty while there is none."""
    restAddress: str
    """Where its REST interface listens; empty if it has none."""
    workerNumber: Annotated[int, Field(ge=0)]
    """Counts the workers of the partition, from 1; 0 while there is none."""
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
        builds: The resource managers, with what each has said of its program.
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
