"""The light: what this machine allows, so that figures of different machines can be compared.

For each allocation it does only what no scheduler can avoid: read one `si.v1` ask into a dictionary, check
and charge three queue levels with two resource types, give one of 5,000 nodes its new place in a sorted list,
charge application and node, and build one `AllocationResponse`. There is no decision in it: the first node
of the list is taken, and it always has room.

The ask is read with the library's own reader, `MessageToDict`. With it the loop takes about 20 us here, where
the workloads' page gives 25 us for its machine; with hand-written attribute reads it takes 13 us, which is no
longer the unit that the page's targets are written in.

This loop is the unit of every ratio that was ever noted down. Do not make it faster or slower: a change here
makes all older figures worthless.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from figures import BenchError
from google.protobuf.json_format import MessageToDict
from sortedcontainers import SortedList

from licorne.proxy.si import si_pb2 as si

LIGHT_ALLOCATIONS: Final = 10_000
LIGHT_NODES: Final = 5_000
_NODE_CAPACITY: Final = {"memory": 1_000, "vcore": 100}
_QUEUE_MAXIMUM: Final = {"memory": 10_000_000, "vcore": 1_000_000}
_QUEUE_LEVELS: Final = 3


@dataclass(slots=True)
class _Queue:
    maximum: dict[str, int]
    allocated: dict[str, int]


@dataclass(slots=True)
class _LightNode:
    node_id: str
    capacity: dict[str, int]
    allocated: dict[str, int]
    allocations: dict[str, dict[str, int]]
    share: float


@dataclass(slots=True)
class _Application:
    allocated: dict[str, int]
    allocations: dict[str, str]


class Light:
    """A cluster of plain objects, and the loop over it.

    The asks are made once. The cluster is made anew for each run, outside the time that is taken, so that all
    runs do the same. It stays until the next run: what the light needs of the process's memory is the same
    before and after a workload.
    """

    def __init__(self, *, allocations: int = LIGHT_ALLOCATIONS, nodes: int = LIGHT_NODES) -> None:
        self._requests = [_ask_message(number) for number in range(allocations)]
        self._node_count = nodes
        self._build_cluster()

    def run_seconds(self, clock: Callable[[], float]) -> float:
        """Place all asks once, and return how long that took by the clock."""
        self._build_cluster()
        place = self.place
        start = clock()
        for message in self._requests:
            place(message)
        return clock() - start

    def allocations_per_second(self, clock: Callable[[], float], *, runs: int) -> float:
        """Place all asks so often, and return the pace of the run in the middle."""
        return len(self._requests) / median(self.run_seconds(clock) for _ in range(runs))

    def place(self, message: si.Allocation) -> si.AllocationResponse:
        """Do for one ask all that a scheduler has to do."""
        ask = _read(message)
        resource = ask["resource"]
        self._charge_queues(resource)
        node = self._take_node(resource)
        node.allocations[ask["allocationKey"]] = resource
        application = self._applications[ask["applicationID"]]
        _charge(application.allocated, resource)
        application.allocations[ask["allocationKey"]] = node.node_id
        return _answer(ask, node.node_id)

    @property
    def requests(self) -> tuple[si.Allocation, ...]:
        """The asks of one run."""
        return tuple(self._requests)

    def queue_usage(self) -> tuple[dict[str, int], ...]:
        """Return what each queue level is charged with, the root first."""
        return tuple(dict(queue.allocated) for queue in self._queues)

    def node_usage(self) -> dict[str, dict[str, int]]:
        """Return what each node is charged with, in the order of the sorted list."""
        return {node_id: dict(self._nodes[node_id].allocated) for _, node_id in self._node_order}

    def application_usage(self) -> dict[str, dict[str, int]]:
        """Return what each application is charged with."""
        return {name: dict(application.allocated) for name, application in self._applications.items()}

    def _build_cluster(self) -> None:
        self._queues = [_Queue(dict(_QUEUE_MAXIMUM), {"memory": 0, "vcore": 0}) for _ in range(_QUEUE_LEVELS)]
        self._applications = {name: _Application({"memory": 0, "vcore": 0}, {}) for name in ("a", "b")}
        self._nodes = {
            name: _LightNode(name, dict(_NODE_CAPACITY), {"memory": 0, "vcore": 0}, {}, 0.0)
            for name in (f"node-{number:05d}" for number in range(self._node_count))
        }
        self._node_order = SortedList((node.share, node.node_id) for node in self._nodes.values())

    def _charge_queues(self, resource: dict[str, int]) -> None:
        # No assert: the check is a part of the light, and must not vanish under `python -O`.
        for queue in self._queues:
            for name, quantity in resource.items():
                if queue.allocated[name] + quantity > queue.maximum[name]:
                    raise BenchError(f"the light has no room for {quantity} {name} in its queues")
        for queue in self._queues:
            _charge(queue.allocated, resource)

    def _take_node(self, resource: dict[str, int]) -> _LightNode:
        """Charge the node that is used least, and give it its new place in the order."""
        order = self._node_order
        entry = order[0]
        node = self._nodes[entry[1]]
        for name, quantity in resource.items():
            if node.allocated[name] + quantity > node.capacity[name]:
                raise BenchError(f"the light has no room for {quantity} {name} on {node.node_id}")
        _charge(node.allocated, resource)
        order.remove(entry)
        shares = [node.allocated[name] / total for name, total in node.capacity.items()]
        node.share = sum(shares) / len(shares)
        order.add((node.share, node.node_id))
        return node


def _ask_message(number: int) -> si.Allocation:
    message = si.Allocation(
        allocationKey=f"ask-{number:05d}", applicationID="ab"[number % 2], partitionName="default"
    )
    message.resourcePerAlloc.resources["memory"].value = 10
    message.resourcePerAlloc.resources["vcore"].value = 1
    return message


def _read(message: si.Allocation) -> dict[str, Any]:
    """Read an ask with the library's own reader, as who has no reader of their own would."""
    ask: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    amounts = ask["resourcePerAlloc"]["resources"]
    ask["resource"] = {name: int(amount["value"]) for name, amount in amounts.items()}
    return ask


def _charge(usage: dict[str, int], resource: dict[str, int]) -> None:
    for name, quantity in resource.items():
        usage[name] += quantity


def _answer(ask: dict[str, Any], node_id: str) -> si.AllocationResponse:
    response = si.AllocationResponse()
    placed = response.new.add(
        allocationKey=ask["allocationKey"],
        applicationID=ask["applicationID"],
        nodeID=node_id,
        taskGroupName=ask.get("taskGroupName", ""),
        placeholder=ask.get("placeholder", False),
        originator=ask.get("originator", False),
    )
    policy = ask.get("preemptionPolicy", {})
    placed.preemptionPolicy.allowPreemptSelf = policy.get("allowPreemptSelf", False)
    placed.preemptionPolicy.allowPreemptOther = policy.get("allowPreemptOther", False)
    for name, quantity in ask["resource"].items():
        placed.resourcePerAlloc.resources[name].value = quantity
    return response
