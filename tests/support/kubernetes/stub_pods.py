"""Selectors of labels and fields, as requests to an API server have them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from support.kubernetes.stub_store import Document, ObjectPath, ObjectStore, StatusError, merged


def matching(labels: str, fields: str) -> Callable[[Document], bool]:
    """Return whether an object matches: `a=b`, `a!=b`, `a`, `!a` of labels, the first two of fields."""
    conditions = [_label_condition(text) for text in labels.split(",") if text]
    conditions += [_comparison(text, _field) for text in fields.split(",") if text]
    return lambda document: all(holds(document) for holds in conditions)


def _label_condition(text: str) -> Callable[[Document], bool]:
    if "=" in text:
        return _comparison(text, _label)
    name, is_there = text.removeprefix("!"), not text.startswith("!")
    return lambda document: (_label(document, name) is not None) is is_there


def _comparison(text: str, value: Callable[[Document, str], str | None]) -> Callable[[Document], bool]:
    """Return whether a value is equal, or is not."""
    name, _, wanted = text.replace("==", "=").partition("=")
    if name.endswith("!"):
        return lambda document: value(document, name[:-1]) != wanted
    return lambda document: value(document, name) == wanted


def _label(document: Document, name: str) -> str | None:
    found: str | None = document["metadata"].get("labels", {}).get(name)
    return found


def _field(document: Document, way: str) -> str:
    """Return a field, an empty text if it is missing."""
    value = document
    for step in way.split("."):
        value = value.get(step, {})
    return value if isinstance(value, str) else ""


_TERMINAL = {"Succeeded", "Failed"}


def success(code: int = 200) -> bytes:
    """Return the document of a success."""
    document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
    return msgspec.json.encode(document)


class PodRules:
    """The rules of pods.

    Args:
        store: The objects.

    Attributes:
        evictions_allowed: How many evictions the disruption budget still allows; `None` for any number.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.evictions_allowed: int | None = None

    def prepare(self, path: ObjectPath, document: Document) -> None:
        """Check and complete a new pod.

        Raises:
            StatusError: 422 without containers.
        """
        if not document.get("spec", {}).get("containers"):
            raise StatusError(
                422, "Invalid", f'Pod "{path.name}" is invalid: spec.containers: Required value'
            )
        document["status"] = {"phase": "Pending"}

    def bind(self, path: ObjectPath, binding: Document) -> bytes:
        """Assign a pod to a node, which need not exist.

        Raises:
            StatusError: 404; 409 if it is assigned already, is being deleted, or has another uid.
        """
        pod = self._store.get(path)
        self._store.check_uid(path, binding.get("metadata", {}).get("uid"))
        node = pod["spec"].get("nodeName")
        text = f'Operation cannot be fulfilled on pods/binding "{path.name}": pod {path.name} is'
        if "deletionTimestamp" in pod["metadata"]:
            raise StatusError(409, "Conflict", f"{text} being deleted, cannot be assigned to a host")
        if node:
            raise StatusError(409, "Conflict", f'{text} already assigned to node "{node}"')
        pod["spec"]["nodeName"] = binding["target"]["name"]
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        pod["status"] = merged(pod.get("status"), {"conditions": [scheduled]}, by_keys=True)
        self._store.replace(path, pod)
        return success(201)

    def delete(self, path: ObjectPath, options: Document) -> bytes:
        """Delete a pod. One that is bound and runs stays, with a deletion timestamp, unless it has no grace.

        Raises:
            StatusError: 404; 409 if it has another uid.
        """
        self._store.check_uid(path, options.get("preconditions", {}).get("uid"))
        pod = self._store.get(path)
        grace = options.get("gracePeriodSeconds", pod["spec"].get("terminationGracePeriodSeconds", 30))
        is_over = not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in _TERMINAL
        if is_over or grace == 0:
            return self._store.remove(path)
        pod["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:30Z")
        pod["metadata"]["deletionGracePeriodSeconds"] = grace
        return self._store.replace(path, pod)

    def evict(self, path: ObjectPath, eviction: Document) -> bytes:
        """Delete a pod if the disruption budget allows it.

        Raises:
            StatusError: 404; 409 if it has another uid; 429 if the budget forbids it.
        """
        options = eviction.get("deleteOptions") or {}
        self._store.check_uid(path, options.get("preconditions", {}).get("uid"))
        if self.evictions_allowed == 0:
            text = "Cannot evict pod as it would violate the pod's disruption budget."
            raise StatusError(429, "TooManyRequests", text, causes=[{"reason": "DisruptionBudget"}])
        self.delete(path, options)
        if self.evictions_allowed is not None:
            self.evictions_allowed -= 1
        return success(201)

    def finish_deletions(self) -> int:
        """Remove the pods that are being deleted, as the kubelets of their nodes do; return how many."""
        with self._store.changed:
            pods = self._store.objects("/api/v1", "pods")
            ending = [pod["metadata"] for pod in pods if "deletionTimestamp" in pod["metadata"]]
            for metadata in ending:
                self._store.remove(ObjectPath("/api/v1", "pods", metadata["namespace"], metadata["name"], ""))
        return len(ending)
