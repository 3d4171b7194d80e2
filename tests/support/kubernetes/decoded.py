"""Objects of Kubernetes as the client decodes them, from the parts of a document that a test is about."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from licorne.proxy.kubernetes.objects import ConfigMap, KubernetesNode, Namespace, Pod, PriorityClass

CREATED: Final = "2026-11-28T08:46:11Z"
CREATED_SECONDS: Final = "1795855571"


def pod_of(
    *, status: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **metadata: Any
) -> Pod:
    """Return a pod `pod-1` of the namespace `team`, with further metadata in Kubernetes' spelling."""
    own = {"name": "pod-1", "namespace": "team", "uid": "uid-1", "creationTimestamp": CREATED}
    document = {"metadata": {**own, **metadata}, "spec": {"schedulerName": "yunikorn", **(spec or {})}}
    return msgspec.json.decode(json.dumps({**document, "status": status or {}}), type=Pod)


def node_of(
    *, allocatable: dict[str, Any] | None = None, unschedulable: bool = False, **metadata: Any
) -> KubernetesNode:
    """Return a node `node-1` of four cores, with further metadata in Kubernetes' spelling."""
    document = {
        "metadata": {"name": "node-1", **metadata},
        "spec": {"unschedulable": unschedulable},
        "status": {"allocatable": allocatable or {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    return msgspec.json.decode(json.dumps(document), type=KubernetesNode)


def namespace_of(**annotations: str) -> Namespace:
    """Return the namespace `team`; the annotations are named without their domain, `_` for `.`."""
    texts = {f"yunikorn.apache.org/{key.replace('_', '.')}": text for key, text in annotations.items()}
    document = {"metadata": {"name": "team", "annotations": texts}}
    return msgspec.json.decode(json.dumps(document), type=Namespace)


def priority_class(name: str, **annotations: str) -> PriorityClass:
    """Return a priority class; the annotations are named without their domain, `_` for `-`."""
    texts = {f"yunikorn.apache.org/{key.replace('_', '-')}": text for key, text in annotations.items()}
    document = {"metadata": {"name": name, "annotations": texts}}
    return msgspec.json.decode(json.dumps(document), type=PriorityClass)


def config_map(data: dict[str, str] | None = None, binary: dict[str, str] | None = None) -> ConfigMap:
    """Return an object of configuration."""
    document = {"metadata": {"name": "any"}, "data": data or {}, "binaryData": binary or {}}
    return msgspec.json.decode(json.dumps(document), type=ConfigMap)
