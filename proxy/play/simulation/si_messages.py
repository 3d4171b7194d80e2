"""The `si.v1` messages that a simulated resource manager sends, and those that wait to be sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

from ....model.configuration.durations import duration_text
from ....model.values.allocation import WALLTIME_TAG
from ...si import si_pb2 as si
from ...si.api import SchedulerAPI
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


@final
class PendingRequests:
    """The messages of one resource manager on their way to the scheduler, in order within each kind.

    A callback only adds: the scheduler is never called from inside its own callback.
    """

    def __init__(self, api: SchedulerAPI, rm_id: str) -> None:
        self._api = api
        self._rm_id = rm_id
        self._releases = si.AllocationRequest(rmID=rm_id)
        self._applications = si.ApplicationRequest(rmID=rm_id)
        self._asks = si.AllocationRequest(rmID=rm_id)
        self._count = 0

    def add_application(self, application: si.AddApplicationRequest) -> None:
        """Keep the submission of an application."""
        self._applications.new.append(application)
        self._count += 1

    def add_ask(self, ask: si.Allocation) -> None:
        """Keep an ask."""
        self._asks.allocations.append(ask)
        self._count += 1

    def add_release(self, release: si.AllocationRelease) -> None:
        """Keep a release; it is copied, so that it may be part of a callback's message."""
        self._releases.releases.allocationsToRelease.append(release)
        self._count += 1

    def is_empty(self) -> bool:
        """Return whether there is nothing to send."""
        return not self._count

    def send(self) -> None:
        """Send releases, then applications, then asks: at most one request for each kind.

        Additions by callbacks in the meantime are sent with a later kind in this order, or the next time.
        """
        if not self._count:
            return
        if self._releases.HasField("releases"):
            releases, self._releases = self._releases, si.AllocationRequest(rmID=self._rm_id)
            self._count -= len(releases.releases.allocationsToRelease)
            self._api.update_allocation(releases)
        if self._applications.new:
            applications, self._applications = self._applications, si.ApplicationRequest(rmID=self._rm_id)
            self._count -= len(applications.new)
            self._api.update_application(applications)
        if self._asks.allocations:
            asks, self._asks = self._asks, si.AllocationRequest(rmID=self._rm_id)
            self._count -= len(asks.allocations)
            self._api.update_allocation(asks)
