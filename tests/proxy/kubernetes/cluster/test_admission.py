"""A real API server asks the webhook: what it stores for whom, and what it does without the webhook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from support.kubernetes.api import MERGE_PATCH, Api
from support.kubernetes.cluster import Cluster
from support.kubernetes.manifests import deployment, job, pod
from support.kubernetes.webhooks import MUTATING, VALIDATING, registration, webhook_roles

from licorne.proxy.kubernetes.admission.server import AdmissionServer, AdmissionServerOptions
from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.credentials import Credentials, FixedIdentity, Secret

pytestmark = pytest.mark.kubernetes

DOMAIN: Final = "yunikorn.apache.org/"
USER: Final = f"{DOMAIN}user.info"
ANN: Final = {"user": "ann", "groups": ["dev", "system:authenticated"]}
CREATED: Final = {
    "admissionController.accessControl.systemUsers": "^administrator$",  # the controllers of this cluster
    "admissionController.accessControl.externalUsers": "^gateway$",
}
WRITES: Final = ["CREATE", "UPDATE"]
WORKLOADS: Final = ["deployments", "daemonsets", "statefulsets", "replicasets", "jobs", "cronjobs"]


@dataclass(slots=True)
class Now:
    """The real time, and what a test adds to it."""

    added: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.added


@pytest.fixture
def clock() -> Now:
    return Now()


@pytest.fixture
def ann(api: Api, namespace: str) -> Iterator[Api]:
    """Return a client of a user of the group `dev`, who may do everything."""
    document = {
        "metadata": {"name": f"dev-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}],
    }
    api.ok("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", document)
    with closing(api.impersonating("ann", "dev")) as ann:
        ann.until("/api/v1/nodes", lambda document: document["kind"] == "NodeList")
        yield ann


@pytest.fixture
def webhook(cluster: Cluster, api: Api, namespace: str, clock: Now) -> Iterator[AdmissionServer]:
    """Return a webhook that runs with its own roles, and is asked about one namespace."""
    name = f"hook-{namespace}"
    token = cluster.service_account_token(namespace, "webhook")
    for path, document in webhook_roles(namespace, "webhook", name):
        api.ok("POST", path, document)
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    api.ok("POST", maps, {"metadata": {"name": "yunikorn-configs"}, "data": CREATED})
    options = AdmissionServerOptions(
        namespace=namespace, registration=name, extra_names=("127.0.0.1",), host="127.0.0.1", port=0
    )
    identity = FixedIdentity(Secret(token))
    credentials = Credentials(cluster.url, identity, authorities=cluster.ca_file.read_text())
    with ApiClient(credentials) as client, AdmissionServer(client, options, now=clock) as server:
        register(api, name, namespace, server.port)
        server.check_certificate()
        probed(api, namespace)
        yield server
    for collection in (MUTATING, VALIDATING):
        api.ok("DELETE", f"{collection}/{name}")


def register(api: Api, name: str, namespace: str, port: int) -> None:
    """Register the webhook for a namespace, as the manifests of a deployment do."""
    address = f"https://127.0.0.1:{port}"
    scope: dict[str, Any] = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    marked = [
        {"apiGroups": ["", "apps", "batch"], "apiVersions": ["v1"], "operations": WRITES,
         "resources": ["pods", *WORKLOADS]}
    ]  # fmt: skip
    configured = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": WRITES, "resources": ["configmaps"]}
    ]
    api.ok("POST", MUTATING, registration(name, address, rules=marked, **scope))
    validating = registration(name, address, path="/validate-conf", rules=configured, **scope)
    api.ok("POST", VALIDATING, validating)


def probed(api: Api, namespace: str) -> None:
    """Wait until the API server asks both webhooks: it learns of registrations a moment later."""
    pods, maps = (f"/api/v1/namespaces/{namespace}/{kind}" for kind in ("pods", "configmaps"))
    api.until(f"{pods}/probe", lambda _: scheduler_of_a_new(api, pods) == "yunikorn")
    bad = {"metadata": {"name": "yunikorn-defaults"}, "data": {"queues.yaml": "bad"}}
    api.until(maps, lambda _: api.request("POST", f"{maps}?dryRun=All", bad)[0] == 403)


def scheduler_of_a_new(api: Api, pods: str) -> str:
    """Return the scheduler of a pod that is created for a look alone."""
    document = api.ok("POST", f"{pods}?dryRun=All", pod("probe", scheduler="default-scheduler"))
    return str(document["spec"]["schedulerName"])


def user_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """Return whom a pod, or a template of pods, runs for."""
    text = document["metadata"].get("annotations", {}).get(USER)
    return None if text is None else dict(json.loads(text))


LASTING: Final = pod("p", scheduler="default-scheduler")
PLAIN: Final = pod("p", scheduler="default-scheduler", restartPolicy="Never")


@pytest.mark.usefixtures("webhook")
def test_a_pod_of_a_user_is_stored_with_all_marks(ann: Api, namespace: str) -> None:
    """The class that is resolved is that of the API server's own plugin, which comes first."""
    key = f"{DOMAIN}allow-preemption"
    name = f"low-{namespace}"
    ann.ok(
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": name, "annotations": {key: "false"}}, "value": 1},
    )
    document = pod("p", scheduler="default-scheduler", priorityClassName=name)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    # The API server refuses pods of a class for a moment after it has stored the class.
    ann.until(pods, lambda _: ann.request("POST", f"{pods}?dryRun=All", document)[0] == 201)

    stored = ann.ok("POST", pods, document)

    metadata = stored["metadata"]
    application = f"yunikorn-{namespace}-autogen"
    assert stored["spec"]["schedulerName"] == "yunikorn"
    assert {f"{DOMAIN}app-id": application, "applicationId": application} == metadata["labels"]
    assert (ANN, "false") == (user_of(stored), metadata["annotations"][key])


@pytest.mark.usefixtures("webhook")
def test_pods_of_a_deployment_run_for_who_created_it(ann: Api, namespace: str) -> None:
    """The controllers create replica sets and pods, and change neither."""
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    stored = ann.ok("POST", deployments, deployment("web", LASTING, replicas=2))

    assert user_of(stored["spec"]["template"]) == ANN
    pods = ann.until(f"/api/v1/namespaces/{namespace}/pods", lambda found: len(found["items"]) == 2)
    sets = ann.ok("GET", f"/apis/apps/v1/namespaces/{namespace}/replicasets")
    assert [ANN, ANN] == [user_of(each) for each in pods["items"]]
    assert ["yunikorn"] * 2 == [each["spec"]["schedulerName"] for each in pods["items"]]
    assert [ANN] == [user_of(each["spec"]["template"]) for each in sets["items"]]


@pytest.mark.usefixtures("webhook")
def test_pods_of_a_cron_job_would_run_for_who_created_it(ann: Api, namespace: str) -> None:
    """The annotation is in the template within the template."""
    template = job("sums", PLAIN, completions=1, parallelism=1)
    spec = {"schedule": "@yearly", "jobTemplate": {"spec": template["spec"]}}

    stored = ann.ok(
        "POST",
        f"/apis/batch/v1/namespaces/{namespace}/cronjobs",
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "sums"}, "spec": spec},
    )

    assert user_of(stored["spec"]["jobTemplate"]["spec"]["template"]) == ANN


@pytest.mark.usefixtures("webhook")
def test_a_user_is_named_by_those_who_may_alone(api: Api, ann: Api, namespace: str) -> None:
    """And cannot be changed afterwards, also not by them."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    named = {USER: '{"user":"bob"}'}
    document = pod("p", annotations=named)

    status, refusal = ann.request("POST", pods, document)
    with closing(api.impersonating("gateway", "dev")) as gateway:
        stored = gateway.ok("POST", pods, document)
        change = {"metadata": {"annotations": {USER: '{"user":"root"}'}}}
        changed, reason = gateway.request("PATCH", f"{pods}/p", change, MERGE_PATCH)

    assert (403, 403) == (status, changed)
    assert "user ann with groups [dev,system:authenticated] may not set the annotation" in refusal["message"]
    assert {"user": "bob"} == user_of(stored)
    assert "cannot be changed" in reason["message"]
    ann.ok("PATCH", f"{pods}/p", {"metadata": {"annotations": {"note": "x"}}}, MERGE_PATCH)


@pytest.mark.usefixtures("webhook")
def test_a_bad_configuration_is_not_stored(ann: Api, namespace: str) -> None:
    """A good one is, and one of another object with any content."""
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    good = "partitions:\n  - name: default\n    queues:\n      - name: root\n"

    status, refusal = ann.request(
        "PATCH", f"{maps}/yunikorn-configs", queues(f"{good}        x: 1\n"), MERGE_PATCH
    )

    assert status == 403
    assert "ConfigMap yunikorn-configs: queues.yaml:5" in refusal["message"]
    ann.ok("PATCH", f"{maps}/yunikorn-configs", queues(good), MERGE_PATCH)
    ann.ok("POST", maps, {"metadata": {"name": "other"}, **queues("bad")})


def queues(text: str) -> dict[str, Any]:
    return {"data": {"queues.yaml": text}}


def test_a_changed_setting_takes_effect(webhook: AdmissionServer, ann: Api, namespace: str) -> None:
    """And the annotation of a namespace counts more."""
    assert webhook.port
    space = f"/api/v1/namespaces/{namespace}"
    data = {"admissionController.filtering.bypassNamespaces": f"^{namespace}$"}
    ann.ok("PATCH", f"{space}/configmaps/yunikorn-configs", {"data": data}, MERGE_PATCH)
    ann.until(space, lambda _: scheduler_of_a_new(ann, f"{space}/pods") == "default-scheduler")

    annotations = {f"{DOMAIN}namespace.enableYuniKorn": "true"}
    ann.ok("PATCH", space, {"metadata": {"annotations": annotations}}, MERGE_PATCH)

    ann.until(space, lambda _: scheduler_of_a_new(ann, f"{space}/pods") == "yunikorn")


def test_without_the_webhook_pods_pass_unmarked(webhook: AdmissionServer, ann: Api, namespace: str) -> None:
    """That is the failure policy of the registration."""
    webhook.stop()

    stored = ann.ok("POST", f"/api/v1/namespaces/{namespace}/pods", PLAIN)

    assert ("default-scheduler", None) == (stored["spec"]["schedulerName"], user_of(stored))


def test_no_pod_passes_unmarked_while_the_certificate_is_renewed(
    webhook: AdmissionServer, ann: Api, namespace: str, clock: Now
) -> None:
    """The API server learns of the new authority before the certificate is presented.

    The secret is emptied: a certificate of a later time would not be valid today.
    """
    pods = f"/api/v1/namespaces/{namespace}/pods"
    secret = f"/api/v1/namespaces/{namespace}/secrets/licorne-admission"
    seen = []
    for _ in range(3):
        ann.ok("PATCH", secret, {"data": {"tls.crt": "", "tls.key": ""}}, MERGE_PATCH)  # asks for a new one
        webhook.check_certificate()
        seen += [scheduler_of_a_new(ann, pods) for _ in range(20)]
        clock.added += timedelta(minutes=1)
        webhook.check_certificate()
        seen += [scheduler_of_a_new(ann, pods) for _ in range(20)]

    assert {"yunikorn"} == set(seen)
