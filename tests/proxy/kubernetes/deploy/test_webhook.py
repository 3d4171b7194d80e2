"""The admission webhook under the account of the manifests: its certificate, and what it may read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from support.kubernetes.api import JSON_PATCH, Api
from support.kubernetes.installation import (
    MANIFESTS,
    NAMESPACE,
    Replica,
    applied,
    documents_of,
    path_of,
    within,
)

pytestmark = pytest.mark.kubernetes

FOLDER: Final = MANIFESTS / "webhook"
SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"


@pytest.fixture
def registered(api: Api, pod_names: tuple[str, str]) -> Iterator[None]:
    """Apply the manifests of the webhook; they are gone afterwards, so that nobody else is asked about."""
    assert pod_names
    documents = documents_of(FOLDER / "webhook.yaml")
    for document in documents:
        applied(api, document)
    yield
    for document in documents:
        api.ok("DELETE", path_of(document))


def authority(api: Api, kind: str) -> str:
    """Return who vouches for the webhook, as a registration says."""
    path = f"/apis/admissionregistration.k8s.io/v1/{kind}/licorne-admission"
    return str(api.ok("GET", path)["webhooks"][0]["clientConfig"].get("caBundle", ""))


@pytest.mark.usefixtures("registered")
def test_a_process_makes_its_certificate_and_publishes_its_authority(
    start: Callable[..., Replica], api: Api, pod_names: tuple[str, str]
) -> None:
    """Two replicas share it."""
    arguments = ("--webhook", "--webhook-address=127.0.0.1:0", "--webhook-name=127.0.0.1")
    for pod_name in pod_names:
        start(pod_name, *arguments)

    secret = api.ok("GET", f"{SECRETS}/licorne-admission")
    assert secret["data"]
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    assert within(10, lambda: all(authority(api, kind) for kind in kinds))
    assert authority(api, kinds[0]) == authority(api, kinds[1])


@pytest.mark.usefixtures("registered")
def test_the_account_reads_no_other_secret(cluster: Any, token: str, api: Api) -> None:
    """Nor the list of them."""
    api.ok("POST", SECRETS, {"metadata": {"name": "other"}})
    scheduler = cluster.api(token)

    found = [
        scheduler.request("GET", path)[0]
        for path in (f"{SECRETS}/licorne-admission", f"{SECRETS}/other", SECRETS)
    ]

    scheduler.close()
    api.ok("DELETE", f"{SECRETS}/other")
    assert [200, 403, 403] == found


def test_the_deployment_can_be_patched_as_the_page_says(api: Api, pod_names: tuple[str, str]) -> None:
    """The server accepts the result; it is not stored here."""
    assert pod_names
    patch = json.loads((FOLDER / "deployment-patch.json").read_text())
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/licorne?dryRun=All"

    container = api.ok("PATCH", path, patch, JSON_PATCH)["spec"]["template"]["spec"]["containers"][0]

    assert "--webhook" in container["args"]
    assert [{"name": "tmp", "mountPath": "/tmp"}] == container["volumeMounts"]  # noqa: S108 - in the container
