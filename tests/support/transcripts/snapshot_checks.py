"""What the documents of a snapshot must say of each other, from any scheduler.

The same sums as `validate()` knows, but from what a client sees alone: a document that forgets or counts
twice what the model has right is found here. A sum is computed of the parts that are no sums themselves, and
one that 64 bits cannot hold has to be shown as their border.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

_Quantities: TypeAlias = dict[str, int]

_MOST: Final = 2**63 - 1
_LEAST: Final = -(2**63)


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
    within = {kind: max(_LEAST, min(_MOST, quantity)) for kind, quantity in expected.items() if quantity}
    if _sum([shown]) != within:
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
        taken = {kind: -quantity for kind, quantity in _sum([*own, *foreign]).items()}
        _same(f"{name}: available", node.get("available", {}), _sum([node.get("capacity", {}), taken]))
        listed |= {
            (node["nodeID"], entry["applicationId"], entry["allocationKey"])
            for entry in node.get("allocations", [])
        }
        if bool(node.get("reservations")) != node["isReserved"]:
            raise DocumentError(f"{name}: isReserved is {node['isReserved']}")
    if placed - listed:
        raise DocumentError(f"applications list {sorted(placed - listed)}, their nodes do not")


def _check_queues(root: Any, applications: list[Any]) -> None:
    for application in applications:
        name = application["applicationID"]
        used, waits = _used_by([application]), _waits_of([application])
        holds = [entry["resource"] for entry in application.get("allocations", []) if "placeholder" in entry]
        real = _sum([used, {kind: -quantity for kind, quantity in _sum(holds).items()}])
        _same(f"application {name}: used", application["usedResource"], real)
        _same(f"application {name}: pending", application.get("pendingResource", {}), waits)
    shown = {queue["queuename"] for queue in tree(root)}
    for queue in tree(root):
        name = queue["queuename"]
        # A reload makes a leaf of a queue whose children drain, and a parent of one that holds applications.
        # What has ended is in a queue that may be gone, or another one by now.
        below = {each["queuename"] for each in tree(queue)}
        here = [entry for entry in applications if entry["queueName"] in below]
        _same(f"{name}: allocated", queue.get("allocatedResource", {}), _used_by(here))
        _same(f"{name}: pending", queue.get("pendingResource", {}), _waits_of(here))
        running = sum(entry["applicationState"] == "Running" for entry in here)
        if queue.get("runningApps", 0) != running:
            raise DocumentError(f"{name}: {queue.get('runningApps', 0)} applications run, not {running}")
    lost = [entry for entry in applications if entry["queueName"] not in shown and entry.get("allocations")]
    if lost:
        raise DocumentError(f"{[entry['applicationID'] for entry in lost]} are in queues that are not shown")


def _used_by(applications: list[Any]) -> _Quantities:
    return _sum(part["resource"] for entry in applications for part in entry.get("allocations", []))


def _waits_of(applications: list[Any]) -> _Quantities:
    return _sum(part["resource"] for entry in applications for part in entry.get("requests", []))


def _check_users(users: list[Any], applications: list[Any]) -> None:
    expected: dict[tuple[str, str], list[_Quantities]] = {}
    for application in applications:
        for allocation in application.get("allocations", []):
            owner = (application["user"], application["queueName"])
            expected.setdefault(owner, []).append(allocation["resource"])
    for user in users:
        name = user["userName"]
        for queue in tree(user["queues"]):
            paths = [each["queuePath"] for each in tree(queue)]
            used = _sum(part for path in paths for part in expected.get((name, path), []))
            _same(f"user {name} in {queue['queuePath']}", queue.get("resourceUsage", {}), used)
    shown = {(user["userName"], queue["queuePath"]) for user in users for queue in tree(user["queues"])}
    if expected.keys() - shown:
        raise DocumentError(f"{sorted(expected.keys() - shown)} use something and are not shown")


def _check_partition(partition: Any, nodes: list[Any], applications: list[Any]) -> None:
    capacity = _sum(node.get("capacity", {}) for node in nodes)
    _same("the partition's capacity", partition["capacity"].get("capacity", {}), capacity)
    if partition.get("totalNodes", 0) != len(nodes):
        raise DocumentError(f"{partition.get('totalNodes', 0)} nodes are counted, not {len(nodes)}")
    placed = sum(len(application.get("allocations", [])) for application in applications)
    if partition.get("totalContainers", 0) != placed:
        raise DocumentError(f"{partition.get('totalContainers', 0)} containers are counted, not {placed}")
