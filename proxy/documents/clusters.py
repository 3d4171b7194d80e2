"""The documents of the cluster, and of a partition as a whole: ClusterInfo and PartitionInfo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...model.resources.shares import absolute_used_capacity
from ...model.values.documents import Document, Json, compact, quantities_shown
from ...model.values.messages import short_partition_name
from ...model.views.shown import PartitionValues
from .times import whole

__all__ = ["cluster_document", "partition_document", "partition_info"]

_CLUSTER_KEEP: Final = frozenset({"partition", "clusterName"})
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


def cluster_document(
    partition: str, started_at_ns: int, builds: Sequence[tuple[str, Mapping[str, str]]]
) -> Document:
    """Return the ClusterInfo document of one partition.

    Args:
        partition: Its full name.
        started_at_ns: When the scheduler started.
        builds: The resource managers, with what each has said of its program.
    """
    return compact(
        {
            "startTime": started_at_ns,
            "rmBuildInformation": [{**build, "rmId": rm_id} for rm_id, build in builds],
            "partition": short_partition_name(partition),
            "clusterName": "kubernetes",
        },
        keep=_CLUSTER_KEEP,
    )


def partition_info(values: PartitionValues) -> Document:
    """Return the PartitionInfo document of the REST interface.

    It differs from that of a snapshot: whole weights have no fraction, and the total of applications is
    always there.
    """
    weights: Document = {name: whole(weight) for name, weight in values.node_sort_weights.items()}
    policy: Document = {"type": values.node_sort_policy, "resourceWeights": weights}
    document = partition_document(values)
    counts = document.get("applications") or {"total": 0}
    return document | {"nodeSortingPolicy": policy, "applications": counts}


def partition_document(values: PartitionValues) -> Document:
    """Return the PartitionInfo document of a snapshot."""
    capacity: Document = {
        "capacity": quantities_shown(values.capacity),
        "usedCapacity": quantities_shown(values.used),
        "utilization": quantities_shown(absolute_used_capacity(values.capacity, values.used)),
    }
    policy: Document = {"type": values.node_sort_policy, "resourceWeights": dict(values.node_sort_weights)}
    counts: dict[str, Json] = dict(sorted(values.applications.items()))
    if counts:
        counts["total"] = sum(values.applications.values())
    document: Document = {
        "clusterId": values.rm_id,
        "name": short_partition_name(values.name),
        "capacity": compact(capacity),
        "nodeSortingPolicy": policy,
        "preemptionEnabled": values.preemption_enabled,
        "quotaPreemptionEnabled": values.quota_preemption_enabled,
        "totalNodes": values.nodes,
        "applications": counts,
        "totalContainers": values.allocations,
        "state": values.state,
        "lastStateTransitionTime": values.state_since_ns,
    }
    return compact(document, keep=_PARTITION_KEEP)
