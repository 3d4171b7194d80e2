"""Whatever happens to a cluster: in the end each pod runs once, is counted once, and none is forgotten."""

from __future__ import annotations

import pytest
from support.kubernetes.random_cluster import RandomCluster
from support.kubernetes.stepped_cluster import PODS

SEEDS = 8


@pytest.mark.parametrize("has_placeholder_pods", [True, False], ids=["placeholder pods", "virtual"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_run(seed: int, has_placeholder_pods: bool) -> None:  # noqa: FBT001 - of the table
    """With room for all of them at the end."""
    run = RandomCluster(seed, has_placeholder_pods=has_placeholder_pods)
    cluster = run.cluster
    run.run(80)
    run.end()
    live = [
        pod
        for pod in cluster.stub.objects(PODS)
        if pod["status"]["phase"] not in {"Succeeded", "Failed"} and pod["spec"]["schedulerName"] == "licorne"
    ]

    assert {} == {pod["metadata"]["name"]: pod for pod in live if not pod["spec"].get("nodeName")}
    assert {pod["metadata"]["uid"] for pod in live} == {
        key for key, task in cluster.coordinator.tasks.items() if not task.is_virtual
    }
    assert cluster.pod_places == {key: node for key, node in cluster.core_places.items() if "-tg-" not in key}

    run.clear()
    parts = cluster.parts()
    left = (parts.tasks.tasks, parts.tasks.applications.by_id, cluster.states, cluster.core_places)

    assert ({}, {}, {}, {}) == left
    assert 0 == parts.waiting.count
    cluster.stop()


def test_the_same_seed_gives_the_same_run() -> None:
    """So that what a run has found can be found again."""
    runs = [RandomCluster(7, has_placeholder_pods=False) for _ in range(2)]
    for run in runs:
        run.run(40)
    first, second = ((run.steps, run.cluster.places, run.cluster.core_places) for run in runs)

    assert first[:2] == second[:2]
