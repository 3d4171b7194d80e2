"""Controllers, Kubernetes' own scheduler and the kubelet of tests together: workloads run to their end."""

from __future__ import annotations

from typing import Any

import pytest
from support.kubernetes.api import Api
from support.kubernetes.kubelet import Kubelet
from support.kubernetes.manifests import RUNS_FOR, deployment, job, node, pod

pytestmark = pytest.mark.kubernetes

PLAIN = pod("template", scheduler="default-scheduler")
SHORT = pod("template", scheduler="default-scheduler", annotations={RUNS_FOR: "0.2"})


@pytest.fixture
def deployments(kubelet: Kubelet, namespace: str) -> str:
    """Return the path of the deployments of the test, in a cluster with two nodes."""
    for name in ("n1", "n2"):
        kubelet.add_node(node(name))
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


def pods_of(api: Api, namespace: str) -> list[dict[str, Any]]:
    """Return all pods of a namespace."""
    pods: list[dict[str, Any]] = api.ok("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return pods


def test_the_pods_of_a_deployment_run(api: Api, namespace: str, kubelet: Kubelet, deployments: str) -> None:
    """Each of them on one node."""
    api.ok("POST", deployments, deployment("web", PLAIN, replicas=3))

    api.until(f"{deployments}/web", lambda document: document["status"].get("readyReplicas") == 3)

    pods = pods_of(api, namespace)
    assert ["Running"] * 3 == [each["status"]["phase"] for each in pods]
    assert [1, 1, 1] == [len(kubelet.places(each["metadata"]["uid"])) for each in pods]


def test_a_pod_of_a_deployment_that_is_deleted_is_replaced(
    api: Api, namespace: str, deployments: str
) -> None:
    """The kubelet lets the old one go."""
    api.ok("POST", deployments, deployment("web", PLAIN, replicas=1))
    api.until(f"{deployments}/web", lambda document: document["status"].get("readyReplicas") == 1)
    (old,) = pods_of(api, namespace)
    pods = f"/api/v1/namespaces/{namespace}/pods"

    api.ok("DELETE", f"{pods}/{old['metadata']['name']}")

    api.until(f"{pods}/{old['metadata']['name']}", lambda document: document.get("code") == 404)
    (new,) = api.until(pods, lambda document: len(document["items"]) == 1)["items"]
    assert old["metadata"]["uid"] != new["metadata"]["uid"]


def test_the_pods_of_a_deployment_are_collected_after_it(api: Api, namespace: str, deployments: str) -> None:
    """Owner references work, as they must for what a scheduler creates."""
    api.ok("POST", deployments, deployment("web", PLAIN, replicas=2))
    api.until(f"{deployments}/web", lambda document: document["status"].get("readyReplicas") == 2)

    api.ok("DELETE", f"{deployments}/web")

    api.until(f"/api/v1/namespaces/{namespace}/pods", lambda document: document["items"] == [])


def test_a_job_completes_when_the_kubelet_has_ended_its_pods(
    api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """Its pods say by an annotation how long they run."""
    kubelet.add_node(node("n1"))
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    api.ok("POST", jobs, job("sums", SHORT, completions=3, parallelism=2))

    ended = api.until(f"{jobs}/sums", lambda document: "completionTime" in document.get("status", {}))
    assert "Complete" in {each["type"] for each in ended["status"]["conditions"]}
    assert ["Succeeded"] * 3 == [each["status"]["phase"] for each in pods_of(api, namespace)]
