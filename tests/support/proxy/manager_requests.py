"""What a resource manager sends, as `si.v1` messages with defaults, and the configurations it begins with."""

from __future__ import annotations

from typing import Final

from licorne.proxy.si import si_pb2 as si

ONE: Final = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", queues: [{name: leaf}]}
"""
TWO: Final = (
    ONE
    + """
  - name: second
    queues:
      - {name: root, submitacl: "*", queues: [{name: leaf}]}
"""
)
BROKEN: Final = ONE.replace("name: leaf", "name: 'no.dots'")


def node_request(*node_ids: str, rm_id: str = "rm", memory: int = 100, partition: str = "") -> si.NodeRequest:
    request = si.NodeRequest(rmID=rm_id)
    for node_id in node_ids:
        node = request.nodes.add(nodeID=node_id, action=si.NodeInfo.CREATE)
        node.attributes["si/node-partition"] = partition
        node.schedulableResource.resources["memory"].value = memory
    return request


def application_request(
    *names: str, rm_id: str = "rm", partition: str = "", queue: str = "root.leaf"
) -> si.ApplicationRequest:
    request = si.ApplicationRequest(rmID=rm_id)
    for name in names:
        new = request.new.add(applicationID=name, queueName=queue, partitionName=partition)
        new.ugi.user = "bob"
    return request


def ask_request(
    *keys: str,
    application: str = "app",
    rm_id: str = "rm",
    memory: int = 1,
    partition: str = "",
    node_id: str = "",
) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID=rm_id)
    for key in keys:
        ask = request.allocations.add(allocationKey=key, applicationID=application, partitionName=partition)
        ask.nodeID = node_id
        ask.resourcePerAlloc.resources["memory"].value = memory
    return request


def older_ask_request(key: str, timeout_ms: int) -> si.AllocationRequest:
    """Ask in the older generation, for what may run so long."""
    request = si.AllocationRequest(rmID="rm")
    ask = request.asks.add(allocationKey=key, applicationID="app", maxAllocations=1)
    ask.resourceAsk.resources["memory"].value = 1
    ask.executionTimeoutMilliSeconds = timeout_ms
    return request


def release_request(
    key: str,
    why: si.TerminationType = si.STOPPED_BY_RM,
    *,
    application: str = "app",
    rm_id: str = "rm",
    partition: str = "",
) -> si.AllocationRequest:
    """End what has the key; with an empty one all that the application has."""
    request = si.AllocationRequest(rmID=rm_id)
    request.releases.allocationsToRelease.add(
        applicationID=application, allocationKey=key, partitionName=partition, terminationType=why
    )
    return request


def configuration_request(text: str, rm_id: str = "rm") -> si.UpdateConfigurationRequest:
    return si.UpdateConfigurationRequest(rmID=rm_id, config=text)


def gang_request(total: int, timeout_ms: int) -> si.ApplicationRequest:
    request = application_request("app")
    request.new[0].placeholderAsk.resources["memory"].value = total
    request.new[0].executionTimeoutMilliSeconds = timeout_ms
    return request


def placeholder_request(key: str) -> si.AllocationRequest:
    request = ask_request(key)
    request.allocations[0].placeholder = True
    request.allocations[0].taskGroupName = "tasks"
    return request


def keys(count: int, start: str = "ask") -> list[str]:
    return [f"{start}-{number}" for number in range(count)]
