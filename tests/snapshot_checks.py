"""What the documents of a snapshot must say of each other, whoever wrote them.

The same sums as `validate()` knows, but from what a client sees alone: a document that forgets or counts
twice what the model has right is found here.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DocumentError", "check_snapshot", "tree"]

_Quantities: TypeAlias = dict[str, int]


class DocumentError(AssertionError):
    """Two documents of one snapshot contradict each other."""


def tree(document: Any) -> Iterator[Any]:
    """Walk a queue and all below it, parents first."""
    yield document
    for child in document.get("children", []):
        yield from tree(child)


def check_snapshot(snapshot: Any) -> None:
    """Check all documents of a snapshot against each other.

    Raises:
        DocumentError: some disagree; the text says which.
    """
    for partition in snapshot["partitions"]:
        name = partition["name"]
        applications = [
            application
            for application in snapshot["applications"][name]
            if application["applicationState"] != "Rejected"
        ]
        _check_nodes(snapshot["nodes"][name], applications)
        _check_queues(snapshot["queues"][name], applications)
        _check_users(snapshot["users"][name], applications)
        _check_partition(partition, snapshot["nodes"][name], applications)


def _sum(parts: Iterable[_Quantities]) -> _Quantities:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return {kind: quantity for kind, quantity in total.items() if quantity}


def _same(where: str, shown: _Quantities, expected: _Quantities) -> None:
    if _sum([shown]) != _sum([expected]):
        raise DocumentError(f"{where} is {_sum([shown])}, and the sum is {_sum([expected])}")


def _check_nodes(nodes: list[Any], applications: list[Any]) -> None:
    placed = {
        (entry["nodeId"], entry["applicationId"], entry["allocationKey"])
        for application in applications
        for entry in application.get("allocations", [])
    }
    listed: set[tuple[str, str, str]] = set()
    for node in nodes:
        name = f"node {node['nodeID']}"
        own = [entry["resource"] for entry in node.get("allocations", [])]
        foreign = [entry.get("resource", {}) for entry in node.get("foreignAllocations", [])]
        _same(f"{name}: allocated", node.get("allocated", {}), _sum(own))
        _same(f"{name}: occupied", node.get("occupied", {}), _sum(foreign))
        parts = ("allocated", "occupied", "available")
        _same(f"{name}: capacity", node.get("capacity", {}), _sum(node.get(part, {}) for part in parts))
        listed |= {
            (node["nodeID"], entry["applicationId"], entry["allocationKey"])
            for entry in node.get("allocations", [])
        }
        if bool(node.get("reservations")) != node["isReserved"]:
            raise DocumentError(f"{name}: isReserved is {node['isReserved']}")
    if placed - listed:
        raise DocumentError(f"applications list {sorted(placed - listed)}, their nodes do not")


def _check_queues(root: Any, applications: list[Any]) -> None:
    by_queue: dict[str, list[Any]] = {}
    for application in applications:
        by_queue.setdefault(application["queueName"], []).append(application)
    for queue in tree(root):
        name = queue["queuename"]
        # A reload makes a leaf of a queue whose children drain, and a parent of one that holds applications.
        children = queue.get("children", [])
        here = by_queue.pop(name, [])
        used = [allocation["resource"] for entry in here for allocation in entry.get("allocations", [])]
        waits = [request["resource"] for entry in here for request in entry.get("requests", [])]
        below = _sum(child.get("allocatedResource", {}) for child in children)
        waits_below = _sum(child.get("pendingResource", {}) for child in children)
        _same(f"{name}: allocated", queue.get("allocatedResource", {}), _sum([below, *used]))
        _same(f"{name}: pending", queue.get("pendingResource", {}), _sum([waits_below, *waits]))
        running = sum(entry["applicationState"] == "Running" for entry in here)
        running += sum(child.get("runningApps", 0) for child in children)
        if queue.get("runningApps", 0) != running:
            raise DocumentError(f"{name}: {queue.get('runningApps', 0)} applications run, not {running}")
    used_elsewhere = [
        entry["applicationID"] for left in by_queue.values() for entry in left if entry.get("allocations")
    ]
    if used_elsewhere:
        raise DocumentError(f"{used_elsewhere} are in queues that are not shown")


def _check_users(users: list[Any], applications: list[Any]) -> None:
    expected: dict[tuple[str, str], list[_Quantities]] = {}
    for application in applications:
        for allocation in application.get("allocations", []):
            owner = (application["user"], application["queueName"])
            expected.setdefault(owner, []).append(allocation["resource"])
    for user in users:
        name = user["userName"]
        for queue in tree(user["queues"]):
            own = expected.pop((name, queue["queuePath"]), [])
            below = [child.get("resourceUsage", {}) for child in queue.get("children", [])]
            _same(
                f"user {name} in {queue['queuePath']}", queue.get("resourceUsage", {}), _sum([*own, *below])
            )
    if expected:
        raise DocumentError(f"{sorted(expected)} use something and are not shown")


def _check_partition(partition: Any, nodes: list[Any], applications: list[Any]) -> None:
    capacity = _sum(node.get("capacity", {}) for node in nodes)
    _same("the partition's capacity", partition["capacity"].get("capacity", {}), capacity)
    if partition.get("totalNodes", 0) != len(nodes):
        raise DocumentError(f"{partition.get('totalNodes', 0)} nodes are counted, not {len(nodes)}")
    placed = sum(len(application.get("allocations", [])) for application in applications)
    if partition.get("totalContainers", 0) != placed:
        raise DocumentError(f"{partition.get('totalContainers', 0)} containers are counted, not {placed}")
