"""The `si.v1` messages that a simulated resource manager sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ....model.configuration.durations import duration_text
from ....model.values.allocation import WALLTIME_TAG
from ...si import si_pb2 as si
from ...si.constants import NODE_PARTITION
from .workloads.workload import SimulatedApplication, SimulatedNode

PARTITION: Final = "default"

_MS_NS: Final = 10**6


def resource_message(quantities_by_type: Mapping[str, int]) -> si.Resource:
    """Return a resource."""
    return si.Resource(
        resources={name: si.Quantity(value=quantity) for name, quantity in quantities_by_type.items()}
    )


def quantities(resource: si.Resource) -> dict[str, int]:
    """Return the quantities of a resource by type, sorted by name: a map of protobuf has no order."""
    return {name: resource.resources[name].value for name in sorted(resource.resources)}


def node_request(
    rm_id: str, nodes: Iterable[SimulatedNode], action: si.NodeInfo.ActionFromRM
) -> si.NodeRequest:
    """Return the request that creates nodes, or changes them."""
    messages = [
        si.NodeInfo(
            nodeID=node.node_id,
            action=action,
            attributes={NODE_PARTITION: PARTITION, **node.attributes},
            schedulableResource=resource_message(node.resources),
        )
        for node in nodes
    ]
    return si.NodeRequest(nodes=messages, rmID=rm_id)


def new_application_message(application: SimulatedApplication) -> si.AddApplicationRequest:
    """Return the submission of an application; that of a gang has the size of all its placeholders."""
    message = si.AddApplicationRequest(
        applicationID=application.application_id,
        queueName=application.queue,
        partitionName=PARTITION,
        ugi=si.UserGroupInformation(user=application.user, groups=application.groups),
        tags=application.tags,
    )
    if application.walltime_ns is not None:
        message.tags[WALLTIME_TAG] = duration_text(application.walltime_ns)
    if application.gang is not None:
        message.placeholderAsk.CopyFrom(resource_message(application.gang_resources()))
        message.gangSchedulingStyle = application.gang.value
    if application.placeholder_timeout_ns is not None:
        message.executionTimeoutMilliSeconds = application.placeholder_timeout_ns // _MS_NS
    return message


def ask_message(
    key: str,
    application_id: str,
    resource: si.Resource,
    *,
    priority: int,
    task_group: str,
    is_placeholder: bool,
) -> si.Allocation:
    """Return one ask; it may be preempted and may preempt others."""
    return si.Allocation(
        allocationKey=key,
        applicationID=application_id,
        partitionName=PARTITION,
        resourcePerAlloc=resource,
        priority=priority,
        taskGroupName=task_group,
        placeholder=is_placeholder,
        preemptionPolicy=si.PreemptionPolicy(allowPreemptSelf=True, allowPreemptOther=True),
    )


def release_message(key: str, application_id: str) -> si.AllocationRelease:
    """Return the end of an allocation whose work has completed."""
    return si.AllocationRelease(
        partitionName=PARTITION,
        applicationID=application_id,
        allocationKey=key,
        terminationType=si.STOPPED_BY_RM,
    )
