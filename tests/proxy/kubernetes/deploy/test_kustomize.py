"""The manifests as kustomize renders them, and an overlay that a real API server takes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubernetes.api import Api
from support.kubernetes.installation import MANIFESTS, applied, documents_of, in_namespace, path_of

ROOT = MANIFESTS.parents[1]
PROGRAM = ROOT / ".cache" / "kustomize"
OVERLAY = ROOT / "examples" / "kubernetes" / "overlay"
MOVE = ROOT / "examples" / "kubernetes" / "yunikorn"
NAMESPACE = "batch-scheduler"

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.skipif(not PROGRAM.exists(), reason="kustomize is not built: make kustomize"),
]


def rendered(folder: Path) -> list[dict[str, Any]]:
    """Return what `kubectl apply -k` applies."""
    text = subprocess.run([PROGRAM, folder], check=True, capture_output=True, text=True).stdout  # noqa: S603
    return [each for each in yaml.safe_load_all(text) if each is not None]


def by_path(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {path_of(document): document for document in documents}


def test_kustomize_applies_the_files_as_they_are() -> None:
    """Nothing is added or changed."""
    assert by_path(documents_of(*sorted(MANIFESTS.glob("*.yaml")))) == by_path(rendered(MANIFESTS))


def test_an_overlay_changes_what_it_names() -> None:
    """The namespace everywhere, the image, the arguments, the queues and the webhook."""
    documents = rendered(OVERLAY)
    objects = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    (container,) = objects["Deployment", "licorne"]["spec"]["template"]["spec"]["containers"]
    own = objects["MutatingWebhookConfiguration", "licorne-admission"]["webhooks"][0]
    queues = objects["ValidatingWebhookConfiguration", "licorne-admission"]["webhooks"][0]

    assert "registry.example.com/licorne:0.1.0" == container["image"]
    assert {"--webhook", "--scheduler-name=yunikorn"} <= set(container["args"])
    assert "batch" not in objects["ConfigMap", "yunikorn-configs"]["data"]["queues.yaml"]
    assert [] == [path for path in map(path_of, documents) if "/namespaces/licorne" in path]
    assert {NAMESPACE} == {subject["namespace"] for each in documents for subject in each.get("subjects", ())}
    assert NAMESPACE == own["clientConfig"]["service"]["namespace"]
    assert ["kube-system", NAMESPACE] == own["namespaceSelector"]["matchExpressions"][0]["values"]
    assert {"kubernetes.io/metadata.name": NAMESPACE} == queues["namespaceSelector"]["matchLabels"]


def test_the_overlay_of_the_move_leaves_the_configuration_of_yunikorn_alone() -> None:
    """Nor does it install a namespace; YuniKorn's admission controller does not mark its pods."""
    documents = rendered(MOVE)
    access = [in_namespace(each, "yunikorn") for each in documents_of(MANIFESTS / "2-access.yaml")]
    (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
    template = deployment["spec"]["template"]

    assert {"Namespace", "ConfigMap"}.isdisjoint(each["kind"] for each in documents)
    assert by_path(access).items() <= by_path(documents).items()
    assert "--scheduler-name=yunikorn" == template["spec"]["containers"][0]["args"][-1]
    assert "yunikorn" == template["metadata"]["labels"]["app"]


def test_the_server_takes_an_overlay(api: Api) -> None:
    """All objects, with no field that it does not know; only the namespace is created."""
    documents = rendered(OVERLAY)
    (namespace,) = [each for each in documents if each["kind"] == "Namespace"]
    applied(api, namespace)
    query = "fieldManager=tests&fieldValidation=Strict&dryRun=All"

    answers = [
        api.request("PATCH", f"{path_of(each)}?{query}", each, "application/apply-patch+yaml")
        for each in documents
    ]

    api.ok("DELETE", path_of(namespace))
    assert [] == [answer for status, answer in answers if status not in {200, 201}]
