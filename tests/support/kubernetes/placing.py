"""Pods and nodes for tests of where a pod may run, with the parts of a document that a test is about."""

from __future__ import annotations

from typing import Any

import msgspec

from licorne.proxy.kubernetes.objects import KubernetesNode, Namespace, Pod

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def a_pod(
    name: str = "asked",
    *,
    namespace: str = "blue",
    labels: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """Return a pod, whose uid is its name; the parts of its specification are spelt as in Kubernetes."""
    own = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}, **(metadata or {})}
    return msgspec.json.decode(msgspec.json.encode({"metadata": own, "spec": spec}), type=Pod)


def a_node(
    name: str = "n1",
    *,
    labels: dict[str, str] | None = None,
    taints: list[dict[str, str]] | None = None,
    unschedulable: bool = False,
) -> KubernetesNode:
    """Return a node whose label of the host is its name."""
    own = {"name": name, "labels": {HOST: name, **(labels or {})}}
    spec = {"taints": taints or [], "unschedulable": unschedulable}
    return msgspec.convert({"metadata": own, "spec": spec}, KubernetesNode)


def a_namespace(name: str, **labels: str) -> Namespace:
    """Return a namespace."""
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


def beside(selector: dict[str, Any] | None, key: str = ZONE, **more: Any) -> dict[str, Any]:
    """Return a required term of pod affinity or anti-affinity."""
    return {"topologyKey": key, "labelSelector": selector, **more}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return an affinity to pods."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def anti_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return an anti-affinity to pods."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def node_affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Return an affinity to nodes."""
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    }


def spread(selector: dict[str, Any] | None, key: str = ZONE, **more: Any) -> dict[str, Any]:
    """Return a constraint that refuses a skew of more than one."""
    common = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**common, "labelSelector": selector, **more}


def term(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a term of a node selector with one requirement on a label."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
