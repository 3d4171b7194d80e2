"""The resource manager that the scheduler sees: it judges nodes itself, and hands everything else over.

To a state dump it adds the cluster as it knows it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import msgspec

from ....model.errors import LicorneError
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ..objects import KubernetesNode, ObjectMeta, Pod, PriorityClass
from ..predicates.verdicts import PodFilters
from .cache import ClusterCache
from .event_loop import EventLoop
from .tasks import PodTask

_GONE: Final = Pod(metadata=ObjectMeta())
"""Stands for a victim that is gone: its end changes nothing."""
_PAUSE_SECONDS: Final = 0.2
"""What changes within this time is one reason to ask again, not many."""


class NodeRefusedError(LicorneError):
    """A filter refuses a node for a pod; the text says which, and why."""


@final
class PodManager(ResourceManager):
    """The callback; the scheduler calls it on threads of its own.

    Args:
        cache: What the filters read.
        hand_over: Is called with the name of what has been said, and the message.
    """

    def __init__(self, cache: ClusterCache, hand_over: Callable[[str, object], None]) -> None:
        self._cache = cache
        self._filters = PodFilters(cache)
        self._lock = threading.Lock()
        """One thread at a time asks the filters; the engine `threads` calls from several."""
        self._hand_over = hand_over

    def update_node(self, response: si.NodeResponse) -> None:
        """Hand over which nodes were rejected."""
        if response.rejected:
            self._hand_over("nodes", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Hand over what has become of applications."""
        self._hand_over("applications", response)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Hand over what was placed, what is to end and what was rejected."""
        self._hand_over("allocations", response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Hand over why an ask is not placed."""
        self._hand_over("scheduling state", request)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Hand over what has happened."""
        self._hand_over("events", events)

    def get_state_dump(self) -> str:
        """Return the cluster as it is known here, as a JSON document."""
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

    def preemption_predicates(self, args: si.PreemptionPredicatesArgs) -> si.PreemptionPredicatesResponse:
        """Return how many victims have to end before a pod may run on a node."""
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
    """Return the cluster as a document; an object has the fields alone that are read of it.

    Args:
        cache: What is known; another thread may change it meanwhile.
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
    """Collects what has changed; used by one thread.

    Args:
        loop: The thread.
        reconsider: Has the scheduler ask again about nodes, and asks; about everything if both are empty.
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
        """The tasks that are asked for and whose answers depend on other pods, by key."""

    def node_changed(self, name: str) -> None:
        """Take that labels, taints or the cordon of a node have changed."""
        self._nodes.add(name)
        self._plan()

    def neighbours_changed(self) -> None:
        """Take that pods came, went or have other labels."""
        if self.waiting and not self._neighbours:
            self._neighbours = True
            self._plan()

    def everything_changed(self) -> None:
        """Take that claims or volumes have changed."""
        self._everything = True
        self._plan()

    def kept_away(self, judge: Callable[[], None]) -> None:
        """Take that a pod keeps others away: `judge` is called, once for many such pods."""
        self._judge = judge
        self._plan()

    def _plan(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.later(_PAUSE_SECONDS, self._ask_again)

    def _ask_again(self) -> None:
        nodes = sorted(self._nodes)
        if self._judge is not None:
            judge, self._judge = self._judge, None
            judge()
            self._everything = True  # others of their class share the refusals that were for them
        keys = list(self.waiting) if self._neighbours else []
        everything = self._everything
        self._nodes, self._neighbours, self._everything, self._is_due = set(), False, False, False
        if everything:
            self._reconsider([], [])
        elif nodes or keys:
            self._reconsider(nodes, keys)
