"""Workloads whose pods real controllers make, scheduled by a process under the account of the manifests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.kubernetes.api import Api
from support.kubernetes.installation import Replica
from support.kubernetes.manifests import RUNS_FOR, deployment, job, pod
from support.waiting import happens

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("leader")]

PLAIN = pod("template")
SHORT = pod("template", annotations={RUNS_FOR: "0.2"})


def controlled(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """Return an object of `apps/v1` for pods such as those of a deployment."""
    document = deployment(name, PLAIN, replicas=2)
    document["kind"] = kind
    document["spec"] |= spec
    return document


def pods_of(api: Api, namespace: str) -> list[dict[str, Any]]:
    """Return all pods of a namespace."""
    pods: list[dict[str, Any]] = api.ok("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    return pods


def test_a_job_completes(api: Api, namespace: str) -> None:
    """Each of its pods is placed and ends."""
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"

    api.ok("POST", jobs, job("sums", SHORT, completions=4, parallelism=2))

    ended = api.until(f"{jobs}/sums", lambda document: "completionTime" in document.get("status", {}))
    assert "Complete" in {each["type"] for each in ended["status"]["conditions"]}


def test_the_pods_of_a_deployment_run(api: Api, namespace: str) -> None:
    """And those that replace them when it is changed."""
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    api.ok("POST", deployments, deployment("web", PLAIN, replicas=3))
    api.until(f"{deployments}/web", lambda document: document["status"].get("readyReplicas") == 3)
    before = {each["metadata"]["uid"] for each in pods_of(api, namespace)}

    changed = api.ok("GET", f"{deployments}/web")
    changed["spec"]["template"]["metadata"]["labels"]["version"] = "2"
    api.ok("PUT", f"{deployments}/web", changed)

    def is_replaced(document: dict[str, Any]) -> bool:
        status = document["status"]
        return {3} == {status.get(key) for key in ("updatedReplicas", "readyReplicas", "replicas")}

    api.until(f"{deployments}/web", is_replaced)
    assert happens(lambda: not before & {each["metadata"]["uid"] for each in pods_of(api, namespace)})


def test_each_node_gets_its_pod_of_a_daemon_set(api: Api, namespace: str) -> None:
    """The controller says by an affinity which pod is for which node."""
    sets = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    document = controlled("DaemonSet", "agent")
    del document["spec"]["replicas"]

    api.ok("POST", sets, document)

    api.until(f"{sets}/agent", lambda document: document["status"].get("numberReady") == 2)
    assert ["n1", "n2"] == sorted(each["spec"]["nodeName"] for each in pods_of(api, namespace))


def test_the_pods_of_a_stateful_set_run_one_after_the_other(api: Api, namespace: str) -> None:
    """The controller creates the next one when the one before is ready."""
    sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"

    api.ok("POST", sets, controlled("StatefulSet", "store", serviceName="store"))

    api.until(f"{sets}/store", lambda document: document["status"].get("readyReplicas") == 2)
    assert ["store-0", "store-1"] == sorted(each["metadata"]["name"] for each in pods_of(api, namespace))


def test_a_spark_application_gets_room_for_all_before_it_runs(
    api: Api, namespace: str, leader: Replica
) -> None:
    """The driver brings the gang; executors come later, and replace the placeholders that keep their room."""
    application_id = f"spark-{namespace}"
    size = {"cpu": "500m", "memory": "128Mi"}
    groups = [
        {"name": "driver", "minMember": 1, "minResource": size},
        {"name": "executor", "minMember": 3, "minResource": size},
    ]
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def member(name: str, role: str) -> dict[str, Any]:
        return pod(
            name,
            cpu="500m",
            memory="128Mi",
            labels={"spark-app-selector": application_id, "spark-role": role},
            annotations={
                "yunikorn.apache.org/task-groups": json.dumps(groups),
                "yunikorn.apache.org/task-group-name": role,
                RUNS_FOR: "3" if role == "driver" else "1",
            },
            restartPolicy="Never",
        )

    def names_in(phase: str) -> set[str]:
        return {
            each["metadata"]["name"] for each in pods_of(api, namespace) if each["status"]["phase"] == phase
        }

    api.ok("POST", pods, member("driver", "driver"))
    assert happens(lambda: "driver" in names_in("Running")), leader.log.read_text()
    assert 3 == len([name for name in names_in("Running") if "-executor-" in name])
    for number in range(3):
        api.ok("POST", pods, member(f"executor-{number}", "executor"))

    everyone = {"driver", "executor-0", "executor-1", "executor-2"}
    assert happens(lambda: everyone <= names_in("Succeeded")), leader.log.read_text()
    assert happens(lambda: {each["metadata"]["name"] for each in pods_of(api, namespace)} == everyone)
