"""The webhook of the manifests on a real API server, which asks it about pods, workloads and ConfigMaps."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.kubernetes.api import JSON_PATCH, MERGE_PATCH, Api
from support.kubernetes.cluster import Cluster
from support.kubernetes.installation import (
    MANIFESTS,
    NAMESPACE,
    Replica,
    applied,
    documents_of,
    is_leading,
    path_of,
)
from support.kubernetes.manifests import deployment, pod
from support.kubernetes.stepped_cluster import gang_annotations
from support.waiting import happens

pytestmark = pytest.mark.kubernetes

DOCUMENTS = documents_of(MANIFESTS / "webhook" / "webhook.yaml")
CONFIGURATION = f"/api/v1/namespaces/{NAMESPACE}/configmaps/yunikorn-configs"
USER_INFO = "yunikorn.apache.org/user.info"
ADA = "ada"

Start = Callable[..., Replica]


@pytest.fixture
def webhook(api: Api, start: Start, pod_names: tuple[str, str]) -> Iterator[Replica]:
    """Apply the manifests, start a process that serves the webhook, and have the server ask it.

    The service is replaced by the address of the process: there is no network of pods.
    """
    for document in DOCUMENTS:
        applied(api, document)
    # The controllers of the test cluster are not service accounts of `kube-system`, as they are elsewhere.
    settings = {
        "admissionController.accessControl.externalUsers": "^administrator$",
        "admissionController.accessControl.separateUsers": "true",
    }
    api.ok("PATCH", CONFIGURATION, {"data": settings}, MERGE_PATCH)
    replica = start(pod_names[0], "--webhook", "--webhook-address=127.0.0.1:0", "--webhook-name=127.0.0.1")
    for document in DOCUMENTS:
        for hook in document.get("webhooks", ()):
            url = f"https://{replica.webhook}{hook['clientConfig']['service']['path']}"
            config = "/webhooks/0/clientConfig"
            changes = [{"op": "remove", "path": f"{config}/service"}]
            changes.append({"op": "add", "path": f"{config}/url", "value": url})
            api.ok("PATCH", path_of(document), changes, JSON_PATCH)
    assert happens(lambda: is_leading(api, replica)), replica.log.read_text()
    yield replica
    for document in DOCUMENTS:
        api.ok("DELETE", path_of(document))


@pytest.fixture
def ada(cluster: Cluster, api: Api, namespace: str) -> Iterator[Api]:
    """Return the client of a user who may do everything with pods and workloads of the namespace."""
    token = cluster.service_account_token(namespace, ADA)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    subject = {"kind": "ServiceAccount", "name": ADA, "namespace": namespace}
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    api.ok("POST", bindings, {"metadata": {"name": ADA}, "roleRef": role, "subjects": [subject]})
    with closing(cluster.api(token)) as client:
        yield client


def user_of(document: dict[str, Any]) -> str:
    """Return whom the annotation of an object names, empty if there is none."""
    text = document["metadata"].get("annotations", {}).get(USER_INFO, "{}")
    user: str = json.loads(text).get("user", "")
    return user


def is_asked(api: Api, namespace: str) -> bool:
    """Return whether the server asks the webhook: it learns of registrations a moment later."""
    query = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    return user_of(api.ok("POST", query, pod("probe", scheduler="default-scheduler"))) != ""


def test_a_pod_gets_its_user_and_its_scheduler(api: Api, ada: Api, webhook: Replica, namespace: str) -> None:
    """Nothing of Licorne is in its manifest, and it is placed by it."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    plain = pod("plain")
    del plain["spec"]["schedulerName"]
    path = f"/api/v1/namespaces/{namespace}/pods"

    created = ada.ok("POST", path, plain)

    assert f"system:serviceaccount:{namespace}:{ADA}" == user_of(created)
    assert "licorne" == created["spec"]["schedulerName"]
    assert happens(lambda: "nodeName" in api.ok("GET", f"{path}/plain")["spec"])


def test_another_user_cannot_be_named(api: Api, ada: Api, webhook: Replica, namespace: str) -> None:
    """Whoever may create pods would have the limits of any user otherwise."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    other = pod("other", annotations={USER_INFO: '{"user": "root"}'})

    status, answer = ada.request("POST", f"/api/v1/namespaces/{namespace}/pods", other)

    assert (403, True) == (status, "denied the request" in answer["message"]), answer


def test_the_pods_of_a_workload_run_for_its_user(
    api: Api, ada: Api, webhook: Replica, namespace: str
) -> None:
    """And not for the controller that creates them."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"

    ada.ok("POST", path, deployment("web", pod("template"), replicas=2))

    api.until(f"{path}/web", lambda document: document["status"].get("readyReplicas") == 2)
    pods = api.ok("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert [f"system:serviceaccount:{namespace}:{ADA}"] * 2 == [user_of(each) for each in pods]


def test_a_gang_of_a_user_gets_its_placeholders(api: Api, ada: Api, webhook: Replica, namespace: str) -> None:
    """The scheduler creates them, and knows them by its account although users are separate."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    path = f"/api/v1/namespaces/{namespace}/pods"
    size = {"cpu": "100m", "memory": "64Mi"}
    annotations = gang_annotations({"minMember": 2, "minResource": size}, member="workers")
    for name in ("a", "b"):
        ada.ok("POST", path, pod(name, labels={"applicationId": "gang"}, annotations=annotations))

    def places() -> list[str]:
        return [each["spec"].get("nodeName", "") for each in api.ok("GET", path)["items"]]

    assert happens(lambda: len(places()) == 2 and all(places())), webhook.log.read_text()


def test_the_template_of_a_job_set_names_its_user(api: Api, webhook: Replica, namespace: str) -> None:
    """As those of the workloads that Kubernetes itself has."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "JobSet", "plural": "jobsets"}
    spec = {"group": "jobset.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.ok("POST", definitions, {"metadata": {"name": "jobsets.jobset.x-k8s.io"}, "spec": spec})
    job_template: dict[str, Any] = {"spec": {"template": {"spec": {"containers": []}}}}
    jobs = {"metadata": {"name": "w"}, "spec": {"replicatedJobs": [{"name": "w", "template": job_template}]}}
    jobs |= {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets?dryRun=All"
    assert happens(lambda: api.request("GET", path)[0] == 200)

    created = api.ok("POST", path, jobs)

    (found,) = created["spec"]["replicatedJobs"]
    assert "administrator" == user_of(found["template"]["spec"]["template"])
    api.ok("DELETE", f"{definitions}/jobsets.jobset.x-k8s.io")


def test_the_scheduler_believes_what_is_signed_alone(
    api: Api, ada: Api, webhook: Replica, namespace: str
) -> None:
    """What was created while no replica answered runs for nobody; who sees that are the limits of users."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    path = f"/api/v1/namespaces/{namespace}/pods"
    ada.ok("POST", path, pod("mine"))
    others = f"/api/v1/namespaces/{namespace}/replicationcontrollers"
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {USER_INFO: '{"user": "root"}'}}}
    template["spec"] = pod("x")["spec"]
    controller = {"metadata": {"name": "rc"}, "spec": {"selector": {"a": "b"}, "template": template}}

    status, answer = ada.request("POST", others, controller)

    assert (403, True) == (status, "denied the request" in answer["message"]), answer
    assert happens(lambda: "nodeName" in api.ok("GET", f"{path}/mine")["spec"])
    signature = api.ok("GET", f"{path}/mine")["metadata"]["annotations"]["licorne.io/user-signature"]
    taken = {"metadata": {"annotations": {USER_INFO: None, "licorne.io/user-signature": None}}}
    after = api.ok("PATCH", f"{path}/mine", taken, MERGE_PATCH)
    assert signature == after["metadata"]["annotations"]["licorne.io/user-signature"]


def test_queues_that_cannot_be_used_are_denied(api: Api, webhook: Replica, namespace: str) -> None:
    """With the reason, before anything is stored."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    bad = {"data": {"queues.yaml": "partitions: 5"}}

    status, answer = api.request("PATCH", CONFIGURATION, bad, MERGE_PATCH)

    assert status >= 400
    assert "queues.yaml" in answer["message"]
    good = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
    api.ok("PATCH", CONFIGURATION, {"data": {"queues.yaml": good}}, MERGE_PATCH)


def test_the_pods_of_the_scheduler_itself_are_left_alone(api: Api, webhook: Replica, namespace: str) -> None:
    """It could not place them when it does not run."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    made = api.ok("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"][0]
    spec = {key: made["spec"][key] for key in ("containers", "securityContext", "volumes")}

    created = api.ok(
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All",
        {"metadata": {"name": "again"}, "spec": spec},
    )

    assert ("default-scheduler", "") == (created["spec"]["schedulerName"], user_of(created))


READ_ONLY = """
mount --make-rprivate / && mount --bind / / && mount -o remount,ro,bind / || exit 77
mount -t tmpfs tmpfs "$0" || exit 77
if touch "$0/../probe" 2>/dev/null; then exit 77; fi
TMPDIR="$0" exec "$@"
"""
"""A script that gives a command a root that it cannot write to, and one folder for temporary files."""


@pytest.mark.usefixtures("namespace")
def test_a_process_runs_on_a_file_system_that_is_read_only(
    api: Api, start: Start, pod_names: tuple[str, str], tmp_path: Path
) -> None:
    """But for the folder of temporary files, as the manifests have it."""
    (tmp_path / "temporary").mkdir()
    command = ["unshare", "--mount", "sh", "-c", READ_ONLY, str(tmp_path / "temporary")]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode != 0:  # noqa: S603
        pytest.skip("file systems cannot be mounted here")
    for document in DOCUMENTS:
        applied(api, document)

    replica = start(pod_names[0], "--webhook", "--webhook-address=127.0.0.1:0", within_command=tuple(command))

    assert happens(lambda: is_leading(api, replica)), replica.log.read_text()
    for document in DOCUMENTS:
        api.ok("DELETE", path_of(document))


def test_two_replicas_share_a_certificate(
    api: Api, webhook: Replica, start: Start, pod_names: tuple[str, str]
) -> None:
    """The second one takes that of the first, and both registrations have its authority."""
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/licorne-admission"
    before = api.ok("GET", path)["data"]

    start(pod_names[1], "--webhook", "--webhook-address=127.0.0.1:0", "--webhook-name=127.0.0.1")

    after = api.ok("GET", path)["data"]
    registrations = [api.ok("GET", path_of(each)) for each in DOCUMENTS if "webhooks" in each]
    authorities = {hook["clientConfig"]["caBundle"] for each in registrations for hook in each["webhooks"]}
    assert before == after, webhook.log.read_text()
    assert {after["ca.crt"]} == authorities


def test_the_user_of_a_workload_is_not_changed_by_another_one(
    api: Api, ada: Api, webhook: Replica, namespace: str
) -> None:
    """Its pods would run for anybody otherwise, since controllers are trusted."""
    assert happens(lambda: is_asked(api, namespace)), webhook.log.read_text()
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    ada.ok("POST", path, deployment("web", pod("template"), replicas=0))
    template = {"metadata": {"annotations": {USER_INFO: '{"user": "root"}'}}}

    status, answer = ada.request("PATCH", f"{path}/web", {"spec": {"template": template}}, MERGE_PATCH)

    assert (403, True) == (status, "denied the request" in answer["message"]), answer


def test_the_right_to_secrets_is_for_the_certificate_alone(
    api: Api, cluster: Cluster, webhook: Replica, token: str
) -> None:
    """Other secrets of its namespace cannot be read."""
    secrets = f"/api/v1/namespaces/{NAMESPACE}/secrets"
    api.ok("POST", secrets, {"metadata": {"name": "other"}, "stringData": {"a": "b"}})

    with closing(cluster.api(token)) as client:
        found = [client.request("GET", f"{secrets}/{name}")[0] for name in ("licorne-admission", "other")]

    api.ok("DELETE", f"{secrets}/other")
    assert [200, 403] == found
    assert "forbidden" not in webhook.log.read_text().lower()
