"""What the scheduler of pods adds to a state dump: the cluster as it knows it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from ..objects import KubernetesNode, ObjectMeta, Pod, PriorityClass
from .cache import ClusterCache

__all__ = ["state_dump"]


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
