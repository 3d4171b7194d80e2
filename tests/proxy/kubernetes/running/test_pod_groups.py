"""Pods of a `PodGroup`, a JobSet or a Ray cluster start together, without annotations."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import PODS, SteppedCluster

COSCHEDULING: Final = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/blue/podgroups"
GROUPS: Final = "/apis/scheduling.k8s.io/v1beta1/namespaces/blue/podgroups"
JOBSETS: Final = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/blue/jobsets"
RAY: Final = "/apis/ray.io/v1/namespaces/blue/rayclusters"


def job(replicas: int, parallelism: int, **more: Any) -> dict[str, Any]:
    spec = {"parallelism": parallelism, "completions": parallelism}
    return {"name": f"j{replicas}", "replicas": replicas, "template": {"spec": spec}, **more}


OF_THREE: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "PodGroup": (
        GROUPS,
        {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}},
        {"schedulingGroup": {"podGroupName": "g"}},
    ),
    "PodGroup of co-scheduling": (
        COSCHEDULING,
        {"spec": {"minMember": 3}},
        {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    ),
    "JobSet": (
        JOBSETS,
        {"spec": {"replicatedJobs": [job(1, 1), job(2, 1), job(5, 1, dependsOn=[{"name": "j1"}])]}},
        {"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}},
    ),
    "JobSet in order": (
        JOBSETS,
        {
            "spec": {
                "replicatedJobs": [job(1, 3), job(2, 1)],
                "startupPolicy": {"startupPolicyOrder": "InOrder"},
            }
        },
        {"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}},
    ),
    "RayCluster": (
        RAY,
        {
            "metadata": {"labels": {"ray.io/gang-scheduling-enabled": "true"}},
            "spec": {
                "workerGroupSpecs": [
                    {"replicas": 0, "minReplicas": 1, "maxReplicas": 5},
                    {"replicas": 9, "minReplicas": 0, "maxReplicas": 1},
                    {"replicas": 7, "suspend": True},
                ]
            },
        },
        {"labels": {"ray.io/cluster": "g"}},
    ),
}
ALONE: Final[dict[str, tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "a basic policy": (GROUPS, {"spec": {"schedulingPolicy": {"basic": {}}}}, OF_THREE["PodGroup"][2]),
    "a minimum of one": (COSCHEDULING, {"spec": {"minMember": 1}}, OF_THREE["PodGroup of co-scheduling"][2]),
    "a Ray cluster without the label": (
        RAY,
        {"spec": {"workerGroupSpecs": [{"replicas": 2}]}},
        OF_THREE["RayCluster"][2],
    ),
}


def add_group(cluster: SteppedCluster, path: str, document: dict[str, Any]) -> None:
    """Add the object `g`."""
    metadata = {"name": "g", **document.get("metadata", {})}
    cluster.stub.add(path, {**document, "metadata": metadata})


def add_members(cluster: SteppedCluster, names: str, member: dict[str, Any]) -> None:
    """Add pods without the name of an application."""
    labels = {"applicationId": "", **member.get("labels", {})}
    for name in names:
        cluster.add_pod(name, **{**member, "labels": labels})
    cluster.settle()


@pytest.mark.parametrize("case", OF_THREE.values(), ids=OF_THREE)
def test_the_first_three_pods_start_together(
    cluster: SteppedCluster, case: tuple[str, dict[str, Any], dict[str, Any]]
) -> None:
    """They wait for each other, and for room for all of them; a fourth one starts alone."""
    path, document, member = case
    add_group(cluster, path, document)
    cluster.add_node(cpu="2")
    add_members(cluster, "ab", member)
    incomplete = dict(cluster.places)
    add_members(cluster, "c", member)
    without_room = dict(cluster.places)
    cluster.add_node("n2", cpu="2")
    cluster.advance(3)
    together = set(cluster.places)
    add_members(cluster, "d", member)

    assert ({}, {}, {"a", "b", "c"}) == (incomplete, without_room, together)
    assert 4 == len(cluster.places)


@pytest.mark.parametrize("case", ALONE.values(), ids=ALONE)
def test_pods_start_alone_by(
    cluster: SteppedCluster, case: tuple[str, dict[str, Any], dict[str, Any]]
) -> None:
    path, document, member = case
    add_group(cluster, path, document)
    cluster.add_node()
    add_members(cluster, "a", member)

    assert {"a": "n1"} == cluster.places


def test_pods_wait_for_an_object_that_does_not_exist_yet(cluster: SteppedCluster) -> None:
    """The condition of each names it."""
    path, document, member = OF_THREE["PodGroup of co-scheduling"]
    cluster.add_node()
    add_members(cluster, "abc", member)
    waiting = cluster.places
    expected = "the pod waits for the PodGroup blue/g, which does not exist"
    conditions = {cluster.condition(name)[1:] for name in "abc"}
    add_group(cluster, path, document)
    cluster.settle()

    assert ({}, {("SchedulingSkipped", expected)}) == (waiting, conditions)
    assert {"a", "b", "c"} == set(cluster.places)


def test_pods_start_alone_where_the_cluster_does_not_have_the_kind(cluster: SteppedCluster) -> None:
    """The label has no meaning then, also for pods that wait already."""
    _, _, member = OF_THREE["PodGroup of co-scheduling"]
    cluster.add_node()
    add_members(cluster, "a", member)
    for kind in list(cluster.parts().shared.cache.groups):
        cluster.coordinator.listed(kind, None)
    cluster.settle()
    add_members(cluster, "b", member)

    assert {"a": "n1", "b": "n1"} == cluster.places


def test_pods_of_another_application_start_alone(cluster: SteppedCluster) -> None:
    path, document, member = OF_THREE["JobSet"]
    add_group(cluster, path, document)
    cluster.add_node()
    cluster.add_pod("a", app="mine", **member)
    cluster.settle()

    assert {"a": "n1"} == cluster.places


def test_a_gang_that_has_begun_goes_on_after_a_restart(cluster: SteppedCluster) -> None:
    """A pod that replaces one of its pods does not wait for others."""
    path, document, member = OF_THREE["PodGroup"]
    add_group(cluster, path, document)
    cluster.add_node()
    add_members(cluster, "abc", member)
    cluster.run_pods()
    cluster.restart()
    cluster.stub.remove(f"{PODS}/c")
    add_members(cluster, "d", member)

    assert {"a", "b", "d"} == set(cluster.places)


def test_a_gang_starts_again_as_a_whole(cluster: SteppedCluster) -> None:
    """All of its pods have ended, as at a restart of a JobSet."""
    path, document, member = OF_THREE["JobSet"]
    add_group(cluster, path, document)
    cluster.add_node()
    add_members(cluster, "abc", member)
    for name in "abc":
        cluster.stub.remove(f"{PODS}/{name}")
    cluster.settle()
    add_members(cluster, "de", member)
    incomplete = dict(cluster.places)
    add_members(cluster, "f", member)

    assert ({}, {"d", "e", "f"}) == (incomplete, set(cluster.places))
