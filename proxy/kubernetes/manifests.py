"""Manifests in files: the pods in them, and one pod for each workload."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..base.files.input_files import InputError, read_located_yaml, read_text

_TEMPLATES: Final = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"), ("spec", "template")),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""The path to the pod in each kind of workload."""
_BETWEEN: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_OWN: Final = ("labels", "annotations", "finalizers", "ownerReferences")
"""The metadata that a new pod keeps."""


class PodManifest(NamedTuple):
    """A pod that a manifest would create."""

    name: str
    """The name of the pod, or of its workload."""
    namespace: str
    document: dict[str, Any]
    """The pod for the API server, which chooses its name."""


def read_pods(path: Path, scheduler_name: str, namespace: str) -> list[PodManifest]:
    """Return the pods of a manifest, and one pod of each workload; other objects are ignored.

    Args:
        path: The manifest, as YAML or JSON: one or several documents, also lists of objects.
        scheduler_name: The scheduler of pods without one.
        namespace: The namespace of objects without one.

    Raises:
        InputError: There is no pod; the error names the kinds.
        ConfigurationError: It is not YAML.
    """
    objects = [item for document in _documents(path) for item in _items(document)]
    pods = [
        _pod(path, item, scheduler_name, namespace)
        for item in objects
        if isinstance(item, dict) and item.get("kind") in {"Pod", *_TEMPLATES}
    ]
    if not pods:
        kinds = [item.get("kind") if isinstance(item, dict) else None for item in objects]
        known = ", ".join(("Pod", *_TEMPLATES))
        found = ", ".join(map(repr, kinds))
        raise InputError(path, f"kind: {found} has no pod; those that have are {known}")
    return pods


def _documents(path: Path) -> Iterator[Any]:
    text = read_text(path)
    begin = 0
    for end in [*(match.start() for match in _BETWEEN.finditer(text)), len(text)]:
        part = text[begin:end].removeprefix("---")
        if part.strip():
            # The lines before it keep the positions in errors.
            yield read_located_yaml(path, "\n" * text.count("\n", 0, begin) + part).value
        begin = end


def _items(document: Any) -> list[Any]:
    """Return the objects of a document: itself, or those of a list."""
    if isinstance(document, dict) and str(document.get("kind")).endswith("List"):
        items = document.get("items")
        return items if isinstance(items, list) else []
    return [document]


def _pod(path: Path, item: dict[str, Any], scheduler_name: str, namespace: str) -> PodManifest:
    found: Any = item
    for key in _TEMPLATES.get(item["kind"], ()):
        found = found.get(key) if isinstance(found, dict) else None
    outer = item.get("metadata") or {}
    metadata = (found.get("metadata") or {}) if isinstance(found, dict) else {}
    spec = found.get("spec") if isinstance(found, dict) else None
    if not (isinstance(outer, dict) and isinstance(metadata, dict) and isinstance(spec, dict)):
        raise InputError(path, f"the {item['kind']} has no pod with metadata and a specification")
    name = metadata.get("name") or outer.get("name") or "dry-run"
    kept = {key: metadata[key] for key in _OWN if metadata.get(key)}
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        # The pod may exist already: the API server chooses another name.
        "metadata": {**kept, "generateName": f"{name}-"},
        "spec": {
            **{key: value for key, value in spec.items() if key != "nodeName"},
            "schedulerName": spec.get("schedulerName") or scheduler_name,
        },
    }
    return PodManifest(name, outer.get("namespace") or metadata.get("namespace") or namespace, document)
