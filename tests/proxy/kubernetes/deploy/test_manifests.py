"""The API server takes the manifests, and the account in them may do what the scheduler does, and no more."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.kubernetes.api import Api
from support.kubernetes.installation import MANIFESTS, NAMESPACE, applied, documents_of, path_of

from licorne.model.configuration.reader import inspect

pytestmark = pytest.mark.kubernetes

DOCUMENTS = documents_of(*sorted(MANIFESTS.glob("*.yaml")))
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:licorne"


@dataclass(frozen=True, slots=True)
class Right:
    """What the account is asked about: a verb and a resource, in a namespace unless it is of the cluster."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


RIGHTS: dict[str, Right] = {
    "it lists nodes": Right("list", "", "nodes"),
    "it watches pods everywhere": Right("watch", "", "pods"),
    "it reads what has become of a bind": Right("get", "", "pods", "default"),
    "it says for which node a volume is": Right("patch", "", "persistentvolumeclaims", "default"),
    "it binds": Right("create", "", "pods/binding", "default"),
    "it creates placeholders": Right("create", "", "pods", "default"),
    "it ends victims": Right("delete", "", "pods", "default"),
    "it evicts victims": Right("create", "", "pods/eviction", "default"),
    "it writes conditions": Right("patch", "", "pods/status", "default"),
    "it writes events": Right("create", "events.k8s.io", "events", "default"),
    "it writes series of events": Right("patch", "events.k8s.io", "events", "default"),
    "it watches storage classes": Right("watch", "storage.k8s.io", "storageclasses"),
    "it watches drivers of storage": Right("watch", "storage.k8s.io", "csidrivers"),
    "it watches the room for volumes": Right("list", "storage.k8s.io", "csistoragecapacities"),
    "it lists groups of pods": Right("list", "scheduling.k8s.io", "podgroups"),
    "it watches groups of co-scheduling": Right("watch", "scheduling.x-k8s.io", "podgroups"),
    "it watches sets of jobs": Right("watch", "jobset.x-k8s.io", "jobsets"),
    "it watches Ray clusters": Right("watch", "ray.io", "rayclusters"),
    "it watches its configuration": Right("watch", "", "configmaps", NAMESPACE),
    "it creates its lease": Right("create", "coordination.k8s.io", "leases", NAMESPACE),
    "it renews its lease": Right("update", "coordination.k8s.io", "leases", NAMESPACE, "licorne"),
    "it renews that of the other name": Right(
        "update", "coordination.k8s.io", "leases", NAMESPACE, "licorne-yunikorn"
    ),
    "it labels its own pod": Right("patch", "", "pods", NAMESPACE),
}
NO_RIGHTS: dict[str, Right] = {
    "secrets": Right("get", "", "secrets", "default"),
    "its own secrets": Right("list", "", "secrets", NAMESPACE),
    "deployments": Right("create", "apps", "deployments", "default"),
    "configurations of others": Right("list", "", "configmaps", "default"),
    "to change its configuration": Right("update", "", "configmaps", NAMESPACE),
    "leases of others": Right("update", "coordination.k8s.io", "leases", NAMESPACE, "other"),
    "leases of nodes": Right("get", "coordination.k8s.io", "leases", "kube-node-lease", "licorne"),
    "to change pods of others": Right("patch", "", "pods", "default"),
    "to run commands in pods": Right("create", "", "pods/exec", "default"),
    "to read logs": Right("get", "", "pods/log", "default"),
    "to change nodes": Right("patch", "", "nodes"),
    "to delete nodes": Right("delete", "", "nodes"),
    "to delete many pods at once": Right("deletecollection", "", "pods", "default"),
    "roles": Right("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    "to delete claims": Right("delete", "", "persistentvolumeclaims", "default"),
    "to change groups of pods": Right("patch", "scheduling.k8s.io", "podgroups", "default"),
    "to change volumes": Right("patch", "", "persistentvolumes"),
}


def is_allowed(api: Api, right: Right) -> bool:
    """Ask the API server whether the account may do something."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": ACCOUNT, "groups": groups, "resourceAttributes": attributes},
    }
    answer = api.ok("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    allowed: bool = answer["status"]["allowed"]
    return allowed


@pytest.mark.parametrize("case", RIGHTS.values(), ids=RIGHTS)
@pytest.mark.usefixtures("pod_names")
def test_the_account_may_do_what_the_scheduler_does(api: Api, case: Right) -> None:
    """By the roles of the manifests."""
    assert is_allowed(api, case)


@pytest.mark.parametrize("case", NO_RIGHTS.values(), ids=NO_RIGHTS)
@pytest.mark.usefixtures("pod_names")
def test_the_account_may_do_nothing_else(api: Api, case: Right) -> None:
    """A scheduler that is taken over by somebody gives away no secrets, and runs nothing as somebody else."""
    assert not is_allowed(api, case)


@pytest.mark.usefixtures("pod_names")
def test_what_is_applied_again_stays_as_it_is(api: Api) -> None:
    """The server changes no field of the manifests, so an upgrade shows real differences alone."""
    before = [api.ok("GET", path_of(each))["metadata"].get("generation") for each in DOCUMENTS]

    after = [applied(api, each)["metadata"].get("generation") for each in DOCUMENTS]

    assert before == after


def test_the_deployment_runs_under_the_strictest_rules_for_pods(api: Api, pod_names: tuple[str, str]) -> None:
    """The namespace enforces them, and yet its pods run."""
    labels = api.ok("GET", f"/api/v1/namespaces/{NAMESPACE}")["metadata"]["labels"]

    assert ("restricted", 2) == (labels["pod-security.kubernetes.io/enforce"], len(pod_names))


def test_every_object_but_those_of_the_cluster_is_in_the_namespace() -> None:
    """To delete the namespace, the role and its binding deletes all."""
    outside = {each["kind"] for each in DOCUMENTS if "namespace" not in each["metadata"]}

    assert {"Namespace", "ClusterRole", "ClusterRoleBinding"} == outside
    assert {NAMESPACE} == {each["metadata"].get("namespace", NAMESPACE) for each in DOCUMENTS}


def test_the_queues_of_the_example_are_a_configuration_without_faults() -> None:
    """What is checked at home is what the cluster gets."""
    (example,) = [each for each in DOCUMENTS if each["kind"] == "ConfigMap"]

    report = inspect(example["data"]["queues.yaml"])

    assert [] == [str(each) for each in (*report.errors, *report.warnings)]
