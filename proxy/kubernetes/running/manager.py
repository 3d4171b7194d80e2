"""The resource manager that the scheduler sees: it answers predicates itself, and hands over everything else.

It adds its view of the cluster to a state dump.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

import msgspec

from ....model.errors import LicorneError
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ..objects import KubernetesNode, ObjectMeta, Pod, PriorityClass
from ..predicates.verdicts import NodeReasons, PodFilters
from .cache import ClusterCache
from .event_loop import EventLoop
from .tasks import PodTask

_GONE: Final = Pod(metadata=ObjectMeta())
"""Stands for a victim that is gone: its end has no effect."""
_PAUSE_SECONDS: Final = 0.2
"""Changes within this time are one reason to ask again."""


class NodeRefusedError(LicorneError):
    """A filter refuses a node for a pod; the message names the filter and the reason."""


@final
class PodManager(ResourceManager):
    """The callback; the scheduler calls it on its own threads.

    Args:
        cache: The cluster for the filters.
        hand_over: Is called with the kind of the message, and the message.
    """

    def __init__(self, cache: ClusterCache, hand_over: Callable[[str, object], None]) -> None:
        self._cache = cache
        self._filters = PodFilters(cache)
        self._lock = threading.Lock()
        """One thread at a time uses the filters; the engine `threads` calls from several."""
        self._reasons = NodeReasons(cache)
        self._explaining = threading.Lock()
        """One thread at a time uses the reasons; placing does not wait for it."""
        self._hand_over = hand_over

    def update_node(self, response: si.NodeResponse) -> None:
        """Hand over the rejected nodes."""
        if response.rejected:
            self._hand_over("nodes", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Hand over the answers about applications and their states."""
        self._hand_over("applications", response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Hand over placements, requested ends and rejections."""
        self._hand_over("allocations", response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Hand over why an ask is not placed."""
        self._hand_over("scheduling state", request)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Hand over events."""
        self._hand_over("events", events)

    def get_state_dump(self) -> str:
        """Return the known cluster as a JSON document."""
        return msgspec.json.encode(state_dump(self._cache)).decode()

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse a node for a pod if a filter does.

        Raises:
            NodeRefusedError: A filter refuses it, or the pod or the node is gone.
        """
        pod = self._cache.pods.get(args.allocationKey)
        if pod is None:
            raise NodeRefusedError(f"pod {args.allocationKey} is gone")
        if args.nodeID not in self._cache.nodes:
            raise NodeRefusedError(f"node {args.nodeID} is gone")
        with self._lock:
            reason = self._filters.why_refused(pod, args.nodeID, allocate=args.allocate)
        if reason is not None:
            raise NodeRefusedError(reason)

    def refused_nodes(self, allocation_key: str) -> Mapping[str, str]:
        """Return the nodes that the filters refuse to a pod, each with its first reason in a few words."""
        pod = self._cache.pods.get(allocation_key)
        if pod is None:
            return {}
        with self._explaining:
            return self._reasons.refused(pod)

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> si.PreemptionPredicatesResponse:
        """Return the number of victims that have to end before a pod may run on a node."""
        pod = self._cache.pods.get(args.allocationKey)
        victims = [self._cache.pods.get(key, _GONE) for key in args.preemptAllocationKeys]
        if pod is None or args.nodeID not in self._cache.nodes:
            return si.PreemptionPredicatesResponse(success=False, index=-1)
        with self._lock:
            index = self._filters.first_index_that_fits(pod, args.nodeID, victims, args.startIndex)
        return si.PreemptionPredicatesResponse(
            success=index is not None, index=-1 if index is None else index
        )


def state_dump(cache: ClusterCache) -> dict[str, Any]:
    """Return the cluster as a document; objects have only the fields that are read.

    Args:
        cache: The known cluster; another thread may change it meanwhile.
    """
    pods = {pod.full_name: pod for pod in list(cache.pods.values())}
    nodes = {name: state.node for name, state in list(cache.nodes.items())}
    classes = dict(cache.priority_classes)
    places = {name: (cache.node_of(pod.metadata.uid), pod) for name, pod in pods.items()}
    assumed = {name: node for name, (node, pod) in places.items() if node and not pod.spec.node_name}
    return {
        "cache": {
            "statistics": {
                "nodes": len(nodes),
                "pods": len(pods),
                "priorityClasses": len(classes),
                "assumed": len(assumed),
                "podsAssigned": sum(1 for node, _ in places.values() if node),
                "phases": dict(Counter(pod.status.phase for pod in pods.values())),
            },
            "nodes": {name: _node(node) for name, node in nodes.items()},
            "pods": {name: _pod(pod) for name, pod in pods.items()},
            "priorityClasses": {name: _priority_class(item) for name, item in classes.items()},
            "schedulingState": {
                name: {"uid": pod.metadata.uid, "assignedNode": node, "assumed": name in assumed}
                for name, (node, pod) in places.items()
            },
        }
    }


def _node(node: KubernetesNode) -> dict[str, Any]:
    return {
        **_metadata(node.metadata),
        "taints": msgspec.to_builtins(node.spec.taints),
        "unschedulable": node.spec.unschedulable,
        "allocatable": node.status.allocatable,
        "conditions": msgspec.to_builtins(node.status.conditions),
    }


def _pod(pod: Pod) -> dict[str, Any]:
    spec = msgspec.to_builtins(pod.spec)
    return {
        "namespace": pod.metadata.namespace,
        **_metadata(pod.metadata),
        **spec,
        "status": msgspec.to_builtins(pod.status),
    }


def _priority_class(item: PriorityClass) -> dict[str, Any]:
    return {**_metadata(item.metadata), "value": item.value}


def _metadata(metadata: ObjectMeta) -> dict[str, Any]:
    return {
        "name": metadata.name,
        "uid": metadata.uid,
        "creationTimestamp": metadata.creation_timestamp,
        "annotations": metadata.annotations,
        "labels": metadata.labels,
    }


@final
class Reconsidering:
    """Collects changes; used by one thread.

    Args:
        loop: The thread.
        reconsider: Makes the scheduler ask again about nodes and asks; about everything if both are empty.
    """

    def __init__(self, loop: EventLoop, reconsider: Callable[[list[str], list[str]], None]) -> None:
        self._loop = loop
        self._reconsider = reconsider
        self._nodes: set[str] = set()
        self._everything = False
        self._neighbours = False
        self._judge: Callable[[], None] | None = None
        self._is_due = False
        self.waiting: dict[str, PodTask] = {}
        """The requested tasks whose answers depend on other pods, by key."""

    def node_changed(self, name: str) -> None:
        """Record a change of the labels, taints or cordon of a node: the answers about it end at once."""
        if not self._nodes:
            self._loop.post(self._ask_about_nodes)
        self._nodes.add(name)

    def neighbours_changed(self) -> None:
        """Record pods that arrived, left or have other labels."""
        if self.waiting and not self._neighbours:
            self._neighbours = True
            self._plan()

    def everything_changed(self) -> None:
        """Record a change of claims or volumes."""
        self._everything = True
        self._plan()

    def kept_away(self, judge: Callable[[], None]) -> None:
        """Record a pod with anti-affinity: `judge` is called, once for many such pods."""
        self._judge = judge
        self._plan()

    def _plan(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.later(_PAUSE_SECONDS, self._ask_again)

    def _ask_about_nodes(self) -> None:
        nodes, self._nodes = sorted(self._nodes), set()
        self._reconsider(nodes, [])

    def _ask_again(self) -> None:
        if self._judge is not None:
            judge, self._judge = self._judge, None
            judge()
            self._everything = True  # others of their class share their refusals
        keys = list(self.waiting) if self._neighbours else []
        everything = self._everything
        self._neighbours, self._everything, self._is_due = False, False, False
        if everything:
            self._reconsider([], [])
        elif keys:
            self._reconsider([], keys)
