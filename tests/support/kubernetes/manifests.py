"""Builders of the documents that tests send to an API server, as plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

RUNS_FOR: Final = "licorne.test/runs-for"
"""The annotation that has the fake kubelet end a pod successfully so many seconds after its start."""


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """Return a node that is ready, all of whose capacity pods may use."""
    size = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    scheduler: str = "licorne",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod of one container.

    Args:
        name: Of the pod.
        cpu: What its container requests.
        memory: Likewise.
        scheduler: Who is to place it; `default-scheduler` is Kubernetes' own.
        labels: Such as `applicationId`.
        annotations: Such as `RUNS_FOR`.
        spec: Further fields of its spec, in Kubernetes' spelling: `nodeSelector={"disk": "ssd"}`.
    """
    container = {
        "name": "main",
        "image": "test/none",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {"schedulerName": scheduler, "containers": [container], **spec},
    }


def deployment(name: str, template: Mapping[str, Any], *, replicas: int) -> dict[str, Any]:
    """Return a deployment of pods such as the given one, whose label `app` it sets."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(template, {"app": name}),
        },
    }


def job(name: str, template: Mapping[str, Any], *, completions: int, parallelism: int) -> dict[str, Any]:
    """Return a job of pods such as the given one, which are not started again."""
    body = _template(template, {})
    body["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"completions": completions, "parallelism": parallelism, "template": body},
    }


def binding(document: Mapping[str, Any], node_name: str) -> dict[str, Any]:
    """Return what is posted to the subresource `binding` of a pod that the API server has answered with."""
    metadata = {key: document["metadata"][key] for key in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
    }


def _template(document: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    metadata = document["metadata"]
    return {
        "metadata": {"labels": {**metadata["labels"], **labels}, "annotations": metadata["annotations"]},
        "spec": dict(document["spec"]),
    }
