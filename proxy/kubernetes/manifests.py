"""Manifests in files: the pod of a manifest, or of a workload's template."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from ..base.files.input_files import InputError, read_located_yaml
from .objects import ObjectMeta, Pod

_TEMPLATES: Final = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"), ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""The path to the pod in each kind of workload."""


def read_pod(path: Path, scheduler_name: str) -> Pod:
    """Return the pod of a manifest; the pod of a workload gets the workload's namespace.

    Args:
        path: The manifest, as YAML or JSON.
        scheduler_name: The scheduler of a pod without one.

    Raises:
        InputError: It has no pod; the error names its kind.
        ConfigurationError: It is not YAML.
    """
    document: Any = read_located_yaml(path).value
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in {"Pod", *_TEMPLATES}:
        known = ", ".join(("Pod", *_TEMPLATES))
        raise InputError(path, f"kind: {kind!r} has no pod; those that have are {known}")
    found: Any = document
    for key in _TEMPLATES.get(kind, ()):
        found = found.get(key) if isinstance(found, dict) else None
    try:
        pod = msgspec.convert(found, Pod, strict=False)
        outer = msgspec.convert(document.get("metadata") or {}, ObjectMeta, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(path, str(error)) from error
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=pod.metadata.name or outer.name,
        namespace=pod.metadata.namespace or outer.namespace or "default",
    )
    scheduler = pod.spec.scheduler_name or scheduler_name
    spec = msgspec.structs.replace(pod.spec, scheduler_name=scheduler, node_name="")
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)
