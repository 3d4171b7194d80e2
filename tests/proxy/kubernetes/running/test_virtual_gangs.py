"""Gangs whose room the scheduler keeps alone: the API server never hears of a placeholder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import NODES, PODS, SETTINGS, SteppedCluster, gang_annotations

HARD: Final = "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard"
SOFT: Final = "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Soft"


@pytest.fixture
def cluster() -> Iterator[SteppedCluster]:
    """Return a scheduler without placeholder pods; at the end nothing of them may be at the API server."""
    found = SteppedCluster(settings=replace(SETTINGS, placeholder_pods=False))
    found.settle()
    yield found
    writes = [
        request for request in found.stub.requests if b"tg-gang" in request.body or "tg-gang" in request.path
    ]

    assert [] == writes
    found.stop()


def add_member(cluster: SteppedCluster, name: str, count: int = 2, policy: str = "", **more: Any) -> str:
    """Add a member of a gang."""
    annotations = gang_annotations({"minMember": count}, policy=policy, member="workers")
    return cluster.add_pod(name, app="gang", annotations=annotations, **more)


def advance(cluster: SteppedCluster, seconds: int) -> None:
    """Let seconds pass one by one."""
    for _ in range(seconds):
        cluster.advance(1)


def real_places(cluster: SteppedCluster) -> dict[str, str]:
    """Return what the scheduler counts of pods that are at the API server."""
    return {key: node for key, node in cluster.core_places.items() if "-tg-" not in key}


def test_a_gang_comes_together(cluster: SteppedCluster) -> None:
    """All of it or nothing, without a pause image."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    add_member(cluster, "b")
    advance(cluster, 5)

    assert ({}, 1) == (cluster.places, len(cluster.core_places))
    assert ("False", "SchedulingSkipped") == cluster.condition("a")[:2]

    cluster.add_node("n2", cpu="1")
    advance(cluster, 5)

    assert {"a", "b"} == set(cluster.places)
    assert cluster.pod_places == cluster.core_places
    assert 2 == len(cluster.coordinator.tasks)


def test_a_large_gang_ends_with_its_last_member(cluster: SteppedCluster) -> None:
    """Hundreds of placeholders end in one step."""
    cluster.add_node(cpu="300")
    add_member(cluster, "a", count=301)
    advance(cluster, 3)

    assert 110 == len(cluster.core_places)

    cluster.stub.remove(f"{PODS}/a")
    advance(cluster, 3)

    assert ({}, {}, {}) == (cluster.coordinator.tasks, cluster.core_places, cluster.states)
    assert {} == dict(cluster.parts().events._cache.pods)


@pytest.mark.parametrize(
    ("policy", "phases"), [(SOFT, ["Pending"]), (HARD, ["Failed"])], ids=["soft", "hard"]
)
def test_a_gang_times_out(cluster: SteppedCluster, policy: str, phases: list[str]) -> None:
    """As with placeholder pods."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a", policy=policy)
    advance(cluster, 70)

    assert phases == [pod["status"]["phase"] for pod in cluster.stub.objects(PODS)]
    assert (phases == ["Pending"]) == ("a" in cluster.places)
    assert cluster.pod_places == cluster.core_places


def test_a_placeholder_on_a_node_that_goes_gets_another_one(cluster: SteppedCluster) -> None:
    """The gang goes on."""
    cluster.add_node("n1", cpu="1")
    add_member(cluster, "a")
    advance(cluster, 2)
    cluster.stub.remove(f"{NODES}/n1")
    advance(cluster, 2)
    cluster.add_node("n2", cpu="2")
    advance(cluster, 10)

    assert {"a": "n2"} == cluster.places
    assert 2 == len(cluster.core_places)


def test_a_placeholder_that_is_preempted_ends_at_once_and_is_replaced(cluster: SteppedCluster) -> None:
    """Its room is free without a kubelet."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a", labels={"queue": "root.low"})
    advance(cluster, 2)
    cluster.add_pod("urgent", app="other", labels={"queue": "root.high"})
    advance(cluster, 30)

    assert {"urgent": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places

    cluster.add_node("n2", cpu="2")
    advance(cluster, 10)

    assert {"urgent": "n1", "a": "n2"} == cluster.places


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("cpu", ["0", "1", "2"])
def test_a_gang_goes_on_after_a_restart(cluster: SteppedCluster, members: int, cpu: str) -> None:
    """The room that was kept is kept again, and pods that run stay."""
    cluster.add_node(cpu=cpu)
    for name in "ab"[:members]:
        add_member(cluster, name)
    advance(cluster, 2)
    cluster.restart()
    advance(cluster, 2)

    assert cluster.pod_places == real_places(cluster)

    cluster.add_node("n2", cpu="2")
    advance(cluster, 10)

    assert set("ab"[:members]) == set(cluster.places)
    assert cluster.pod_places == real_places(cluster)


def test_a_list_does_not_end_placeholders_that_it_cannot_have(cluster: SteppedCluster) -> None:
    """They are not at the API server."""
    cluster.add_node(cpu="1")
    add_member(cluster, "a")
    advance(cluster, 2)
    before = cluster.core_places
    cluster.relist()
    advance(cluster, 2)

    assert before == cluster.core_places


def test_a_rejected_placeholder_says_nothing(cluster: SteppedCluster) -> None:
    """There is no pod to say it."""
    annotations = gang_annotations({"minResource": {}}, member="workers")
    cluster.add_pod("a", app="gang", annotations=annotations)
    cluster.add_node()
    advance(cluster, 30)

    assert {"a": "n1"} == cluster.places
