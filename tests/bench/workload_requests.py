"""The `si.v1` messages of a workload.

They are built before any clock starts: the time that a resource manager needs to fill its messages is not the
scheduler's. Nodes come in one request, applications in one, placements that exist already in one; each
application then sends one request with its asks in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import yaml
from workloads import PARTITION, BenchApplication, BenchQueue, BenchWorkload, Course, Placement, Size

from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.constants import ALLOC_TYPE_DEFAULT, CPU, FOREIGN, MEMORY, NODE_PARTITION

RM_ID: Final = "bench"
_TASK_GROUP: Final = "members"

# More than all applications of a user ask for.
_USER_MAXIMUM: Final = Size(1_000_000, 1_000_000)

# Events stay on (it is the default, written out because the figures depend on it); logging is quiet.
_EXTRA_CONFIGURATION: Final = {"event.trackingEnabled": "true", "log.level": "warn"}


def configuration_text(workload: BenchWorkload) -> str:
    """Return the queue configuration as YAML."""
    partitions = [_partition_entry(workload, name) for name in workload.partitions()]
    return yaml.safe_dump({"partitions": partitions}, sort_keys=False)


def _partition_entry(workload: BenchWorkload, name: str) -> dict[str, object]:
    partition: dict[str, object] = {"name": name}
    if workload.node_sort_policy is not None:
        partition["nodesortpolicy"] = {"type": workload.node_sort_policy}
    root: dict[str, object] = {"name": "root", "submitacl": "*"}
    root["queues"] = [_queue_entry(queue) for queue in workload.queues]
    if workload.limited_users:
        root["limits"] = [
            {"limit": "", "users": [user], "maxresources": _quantities(_USER_MAXIMUM)}
            for user in workload.users()
        ]
    partition["queues"] = [root]
    return partition


def _queue_entry(queue: BenchQueue) -> dict[str, object]:
    entry: dict[str, object] = {"name": queue.name}
    resources = {
        name: _quantities(size)
        for name, size in (("guaranteed", queue.guaranteed), ("max", queue.maximum))
        if size is not None
    }
    if resources:
        entry["resources"] = resources
    properties = {
        "application.sort.policy": queue.application_sort_policy,
        "preemption.delay": queue.preemption_delay,
    }
    if any(properties.values()):
        entry["properties"] = {name: value for name, value in properties.items() if value is not None}
    if queue.children:
        entry["queues"] = [_queue_entry(child) for child in queue.children]
    return entry


def _quantities(size: Size) -> Mapping[str, str]:
    # A bare number would mean whole cores.
    return {MEMORY: str(size.memory), CPU: f"{size.vcore_milli}m"}


def registration_request(workload: BenchWorkload) -> si.RegisterResourceManagerRequest:
    """Return the registration of the resource manager with the workload's queues."""
    return si.RegisterResourceManagerRequest(
        rmID=RM_ID,
        version="bench",
        policyGroup="queues",
        config=configuration_text(workload),
        extraConfig=_EXTRA_CONFIGURATION,
    )


def node_id(number: int) -> str:
    """Return the id of the node with that number, counted from 0."""
    return f"node-{number:05d}"


def node_request(workload: BenchWorkload) -> si.NodeRequest:
    """Return the creation of all nodes."""
    request = si.NodeRequest(rmID=RM_ID)
    partitions = workload.partitions()
    for number in range(workload.node_count):
        node = request.nodes.add(nodeID=node_id(number), action=si.NodeInfo.CREATE)
        if len(partitions) > 1:
            node.attributes[NODE_PARTITION] = partitions[number % len(partitions)]
        _write_size(node.schedulableResource, workload.node_size)
        _write_further(node.schedulableResource, workload.further_types, workload.ask_count)
    return request


def application_request(workload: BenchWorkload) -> si.ApplicationRequest:
    """Return the submission of all applications."""
    return _submission(workload.applications())


def mark_request(workload: BenchWorkload) -> si.ApplicationRequest:
    """Return the submission of one more application, which never asks for anything.

    A scheduler takes requests in order, so its acceptance says that all that was sent before is in.
    """
    mark = BenchApplication("mark", workload.leaf_paths()[0], workload.partitions()[0], workload.users()[0])
    return _submission([mark])


def waiting_application_request(workload: BenchWorkload) -> si.ApplicationRequest:
    """Return the submission of the applications that wait."""
    return _submission(workload.waiting_applications())


def waiting_ask_request(workload: BenchWorkload) -> si.AllocationRequest:
    """Return the asks that wait, one of each application, in one request."""
    request = si.AllocationRequest(rmID=RM_ID)
    for number, application in enumerate(workload.waiting_applications()):
        allocation = request.allocations.add(
            allocationKey=f"{application.application_id}-0",
            applicationID=application.application_id,
            partitionName=PARTITION,
        )
        allocation.preemptionPolicy.allowPreemptOther = workload.waiting_preempt
        _write_size(allocation.resourcePerAlloc, workload.waiting_sizes[number % len(workload.waiting_sizes)])
    return request


def _submission(applications: Iterable[BenchApplication]) -> si.ApplicationRequest:
    request = si.ApplicationRequest(rmID=RM_ID)
    for application in applications:
        request.new.add(
            applicationID=application.application_id,
            queueName=application.queue_path,
            partitionName=application.partition,
            ugi=si.UserGroupInformation(user=application.user, groups=[application.user]),
        )
    return request


def placement_request(workload: BenchWorkload) -> si.AllocationRequest:
    """Return what the nodes hold before the first ask: foreign allocations first, then the others.

    Foreign allocations are not answered. Because they go first, the answer to the last of the others says
    that they are in, too.
    """
    request = si.AllocationRequest(rmID=RM_ID)
    for placement in sorted(
        workload.placements(), key=lambda placement: placement.application_id is not None
    ):
        _add_placement(request, placement)
    return request


def _add_placement(request: si.AllocationRequest, placement: Placement) -> None:
    allocation = request.allocations.add(
        allocationKey=placement.allocation_key,
        nodeID=node_id(placement.node_number),
        partitionName=PARTITION,
    )
    _write_size(allocation.resourcePerAlloc, placement.size)
    if placement.application_id is None:
        allocation.allocationTags[FOREIGN] = ALLOC_TYPE_DEFAULT
    else:
        allocation.applicationID = placement.application_id


def ask_requests(workload: BenchWorkload, wave: int) -> list[si.AllocationRequest]:
    """Return the asks of one wave, counted from 0: one request an application."""
    return [_ask_request(workload, application, wave) for application in workload.applications()]


def _ask_request(workload: BenchWorkload, application: BenchApplication, wave: int) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=RM_ID)
    sizes = workload.ask_sizes
    for number in range(workload.asks_per_wave):
        allocation = request.allocations.add(
            allocationKey=f"{application.application_id}-{wave}-{number:05d}",
            applicationID=application.application_id,
            partitionName=application.partition,
        )
        _write_size(allocation.resourcePerAlloc, sizes[number % len(sizes)])
        _write_further(allocation.resourcePerAlloc, workload.further_types, 1)
        if workload.course is Course.GANGS:
            allocation.taskGroupName = _TASK_GROUP
            allocation.placeholder = wave == 0
        if workload.course is Course.PREEMPT:
            allocation.preemptionPolicy.allowPreemptSelf = True
            allocation.preemptionPolicy.allowPreemptOther = True
    return request


def single_ask_requests(requests: Iterable[si.AllocationRequest]) -> list[si.AllocationRequest]:
    """Return a request for each ask: for the first ask of every request, then the second, and so on."""
    return [
        si.AllocationRequest(rmID=RM_ID, allocations=[ask])
        for turn in zip(*(request.allocations for request in requests), strict=True)
        for ask in turn
    ]


def release_request(application_id: str, allocation_key: str) -> si.AllocationRequest:
    """Return the end of one allocation, as its resource manager sends it."""
    request = si.AllocationRequest(rmID=RM_ID)
    _add_release(request, application_id, allocation_key)
    return request


def end_request(asks: Iterable[si.Allocation]) -> si.AllocationRequest:
    """Return the end of the allocations of all these asks, in their order."""
    request = si.AllocationRequest(rmID=RM_ID)
    for ask in asks:
        _add_release(request, ask.applicationID, ask.allocationKey)
    return request


def _add_release(request: si.AllocationRequest, application_id: str, allocation_key: str) -> None:
    request.releases.allocationsToRelease.add(
        partitionName=PARTITION,
        applicationID=application_id,
        allocationKey=allocation_key,
        terminationType=si.STOPPED_BY_RM,
    )


def removal_request(workload: BenchWorkload) -> si.ApplicationRequest:
    """Return the removal of all applications."""
    request = si.ApplicationRequest(rmID=RM_ID)
    for application in workload.applications():
        request.remove.add(applicationID=application.application_id, partitionName=application.partition)
    return request


def _write_size(resource: si.Resource, size: Size) -> None:
    resource.resources[MEMORY].value = size.memory
    resource.resources[CPU].value = size.vcore_milli


def _write_further(resource: si.Resource, types: int, quantity: int) -> None:
    for number in range(types):
        resource.resources[f"type-{number:02d}"].value = quantity
