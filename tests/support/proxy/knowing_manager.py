"""A resource manager that knows what it has: enough to recover with another scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from licorne import Recovery, ResourceManager, Scheduler, SchedulerAPI
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery import OnRejection

CONFIGURATION: Final = """
partitions:
  - name: default
    placementrules:
      - {name: tag, value: namespace, create: true, parent: {name: fixed, value: spaces}}
      - {name: provided}
    queues:
      - name: root
        submitacl: "*"
        limits:
          - {users: ["*"], maxresources: {memory: 60}}
          - {groups: [staff], maxresources: {memory: 90}}
        queues:
          - {name: leaf, resources: {max: {memory: 50}}}
          - {name: gangs}
          - {name: spaces, parent: true, childtemplate: {resources: {max: {memory: 30}}}}
  - name: second
    queues:
      - {name: root, submitacl: "*", queues: [{name: leaf}]}
"""
_UNTIMED: Final = ("requestTime", "allocationTime", "allocationDelay", "lastStateTransitionTime")
"""What the documents of nodes say of times: a recovery is later."""


def _memory(quantity: int) -> si.Resource:
    return si.Resource(resources={"memory": si.Quantity(value=quantity)})


def a_node(node_id: str, memory: int = 100, *, partition: str = "", drained: bool = False) -> si.NodeInfo:
    action = si.NodeInfo.CREATE_DRAIN if drained else si.NodeInfo.CREATE
    node = si.NodeInfo(nodeID=node_id, action=action, schedulableResource=_memory(memory))
    if partition:
        node.attributes["si/node-partition"] = partition
    return node


def an_application(
    name: str,
    queue: str = "root.leaf",
    *,
    user: str = "ada",
    partition: str = "",
    namespace: str = "",
    placeholders: int = 0,
) -> si.AddApplicationRequest:
    application = si.AddApplicationRequest(applicationID=name, queueName=queue, partitionName=partition)
    application.ugi.user = user
    application.ugi.groups.append("staff" if user in ("ada", "bob") else "others")
    if namespace:
        application.tags["namespace"] = namespace
    if placeholders:
        application.placeholderAsk.CopyFrom(_memory(placeholders))
    return application


def an_allocation(
    key: str,
    application: str = "app",
    memory: int = 10,
    *,
    node_id: str = "",
    partition: str = "",
    foreign: bool = False,
    placeholder: bool = False,
    task_group: str = "",
) -> si.Allocation:
    allocation = si.Allocation(
        allocationKey=key,
        applicationID="" if foreign else application,
        partitionName=partition,
        nodeID=node_id,
        resourcePerAlloc=_memory(memory),
        placeholder=placeholder,
        taskGroupName=task_group,
    )
    if foreign:
        allocation.allocationTags["foreign"] = "default"
    return allocation


class KnowingManager(ResourceManager):
    """A resource manager that notes what it sends, and what it hears of it.

    Attributes:
        nodes: what it has, by id.
        applications: what it has submitted and what has not ended, by id.
        asks: what waits, by key.
        placed: what runs, by key, each with its node; also foreign ones.
        heard: the callbacks, as short texts.
    """

    def __init__(self, rm_id: str = "rm") -> None:
        self.rm_id = rm_id
        self.nodes: dict[str, si.NodeInfo] = {}
        self.applications: dict[str, si.AddApplicationRequest] = {}
        self.asks: dict[str, si.Allocation] = {}
        self.placed: dict[str, si.Allocation] = {}
        self.heard: list[str] = []
        self.react: Callable[[str], object] = lambda _: None

    # ----------------------------------------------------------------------------------- callbacks

    def update_allocation(self, response: si.AllocationResponse) -> None:
        for placed in response.new:
            allocation = self.asks.pop(placed.allocationKey, None)
            if allocation is not None:
                allocation.nodeID = placed.nodeID
                self.placed[placed.allocationKey] = allocation
            self._hear(f"placed {placed.allocationKey}")
        for released in response.released:
            if released.terminationType == si.STOPPED_BY_RM:
                self.placed.pop(released.allocationKey, None)
            self._hear(f"released {released.allocationKey}")
        for rejected in response.rejectedAllocations:
            self._hear(f"rejected {rejected.allocationKey}")

    def update_application(self, response: si.ApplicationResponse) -> None:
        for accepted in response.accepted:
            self._hear(f"accepted {accepted.applicationID}")
        for rejected in response.rejected:
            self._hear(f"rejected {rejected.applicationID}")
        for updated in response.updated:
            if updated.state == "Completed":
                self.applications.pop(updated.applicationID, None)
            self._hear(f"{updated.applicationID} is {updated.state}")

    def update_node(self, response: si.NodeResponse) -> None:
        for accepted in response.accepted:
            self._hear(f"accepted {accepted.nodeID}")
        for rejected in response.rejected:
            self._hear(f"rejected {rejected.nodeID}")

    def _hear(self, text: str) -> None:
        self.heard.append(text)
        self.react(text)

    # ------------------------------------------------------------------------------------ requests

    def send(
        self,
        scheduler: Scheduler,
        *,
        nodes: Sequence[si.NodeInfo] = (),
        applications: Sequence[si.AddApplicationRequest] = (),
        allocations: Sequence[si.Allocation] = (),
    ) -> None:
        """Send what is new, and know it."""
        self.know(nodes=nodes, applications=applications, allocations=allocations)
        if nodes:
            scheduler.update_node(si.NodeRequest(rmID=self.rm_id, nodes=nodes))
        if applications:
            scheduler.update_application(si.ApplicationRequest(rmID=self.rm_id, new=applications))
        if allocations:
            scheduler.update_allocation(si.AllocationRequest(rmID=self.rm_id, allocations=allocations))

    def know(
        self,
        *,
        nodes: Sequence[si.NodeInfo] = (),
        applications: Sequence[si.AddApplicationRequest] = (),
        allocations: Sequence[si.Allocation] = (),
    ) -> None:
        """Know what is there, without sending it."""
        self.nodes |= {node.nodeID: node for node in nodes}
        self.applications |= {entry.applicationID: entry for entry in applications}
        for allocation in allocations:
            (self.placed if allocation.nodeID else self.asks)[allocation.allocationKey] = allocation

    def end(self, scheduler: Scheduler, key: str) -> None:
        """End what runs, and know it."""
        allocation = self.placed.pop(key)
        request = si.AllocationRequest(rmID=self.rm_id)
        request.releases.allocationsToRelease.add(
            applicationID=allocation.applicationID,
            allocationKey=key,
            partitionName=allocation.partitionName,
            terminationType=si.STOPPED_BY_RM,
        )
        scheduler.update_allocation(request)

    def relist(self, recovery: Recovery) -> None:
        """Give a recovery all that it knows anew."""
        recovery.relist(
            nodes=self.nodes.values(),
            applications=self.applications.values(),
            allocations=self.placed.values(),
            asks=self.asks.values(),
        )

    def recovery(
        self,
        scheduler: SchedulerAPI,
        *,
        on_rejection: OnRejection = OnRejection.LEAVE_OUT,
        batch_max: int = 1_000,
        replaces: Recovery | None = None,
        order: Callable[[list[Any]], list[Any]] = lambda entries: entries,
        forces_applications: bool = True,
    ) -> Recovery:
        """Make a recovery of all that it knows, which it is given in some order."""
        registration = si.RegisterResourceManagerRequest(rmID=self.rm_id, config=CONFIGURATION)
        return Recovery(
            scheduler,
            registration,
            self,
            nodes=order([*self.nodes.values()]),
            applications=order([*self.applications.values()]),
            allocations=order([*self.placed.values()]),
            asks=order([*self.asks.values()]),
            batch_max=batch_max,
            on_rejection=on_rejection,
            replaces=replaces,
            forces_applications=forces_applications,
        )


def accounts(scheduler: Scheduler) -> dict[str, Any]:
    """Return what queues, users, groups and nodes use and have, as far as it depends on no time and order."""
    snapshot: Any = scheduler.snapshot()
    return {
        "queues": snapshot["queues"],
        "users": {name: _usages(users) for name, users in snapshot["users"].items()},
        "groups": {name: _usages(groups) for name, groups in snapshot["groups"].items()},
        "nodes": {name: [_node(node) for node in nodes] for name, nodes in snapshot["nodes"].items()},
        "applications": {
            name: {entry["applicationID"]: _application(entry) for entry in entries}
            for name, entries in snapshot["applications"].items()
        },
    }


def _usages(owners: list[Any]) -> list[Any]:
    """Return the documents of users or groups that use something, as far as they are about what runs.

    A group is also chosen for an application that waits, when a cycle first looks at it.
    """
    return [
        owner
        | {"groups": {name: group for name, group in owner.get("groups", {}).items() if name in running}}
        | {"queues": _usage(owner["queues"])}
        for owner in owners
        if (running := owner["queues"].get("runningApplications"))
    ]


def _usage(level: dict[str, Any]) -> dict[str, Any]:
    """Return the usage of a queue and of those below it that use something."""
    used = [_usage(child) for child in level.get("children", []) if child.get("runningApplications")]
    return level | {"children": used}


def _node(node: dict[str, Any]) -> dict[str, Any]:
    kept = dict(node)
    for kind in ("allocations", "foreignAllocations"):
        kept[kind] = sorted(entry["allocationKey"] for entry in node.get(kind, []))
    return kept


def _application(application: dict[str, Any]) -> dict[str, Any]:
    keys = ("queueName", "usedResource", "pendingResource", "placeholderResource", "user", "groups")
    kept = {key: application.get(key) for key in keys}
    for kind in ("allocations", "requests"):
        kept[kind] = sorted(entry["allocationKey"] for entry in application.get(kind, []))
    return kept
