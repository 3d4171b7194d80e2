"""Questions of an API server to a webhook, and what the answers do to an object."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any


def a_review(
    kind: str,
    document: Mapping[str, Any],
    *,
    namespace: str = "team",
    user: str = "ann",
    groups: Sequence[str] = ("dev",),
    old: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the question about a creation, or about an update if there is an old object."""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "question-1",
            "kind": {"group": "", "version": "v1", "kind": kind},
            "resource": {"group": "", "version": "v1", "resource": f"{kind.lower()}s"},
            "namespace": namespace,
            "operation": "CREATE" if old is None else "UPDATE",
            "userInfo": {"username": user, "groups": list(groups)},
            "object": document,
            "oldObject": old,
        },
    }


def patch_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the operations in an answer."""
    response = answer["response"]
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    operations: list[dict[str, Any]] = json.loads(base64.b64decode(response["patch"]))
    return operations


def patched(document: Mapping[str, Any], operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an object with operations that add; like an API server it needs the parents to be there."""
    result = copy.deepcopy(dict(document))
    for operation in operations:
        assert operation["op"] == "add"
        *parents, last = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]
        ]
        at: Any = result
        for step in parents:
            at = at[int(step) if isinstance(at, list) else step]
        at[last] = operation["value"]
    return result
