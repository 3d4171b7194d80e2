"""Pods get the nodes that they prefer, if the queues order nodes by the preferences of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.kubernetes.placing import HOST, ZONE, beside, term
from support.kubernetes.stepped_cluster import NODES, QUEUES, SteppedCluster

WEB: Final = {"matchLabels": {"app": "web"}}
SPREAD: Final[dict[str, Any]] = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": WEB}
    ]
}


def ordered_by(policy: str) -> SteppedCluster:
    """Return a cluster whose nodes are ordered by a policy."""
    named = QUEUES.replace("  preemption:", f"  nodesortpolicy: {{type: policy/{policy}}}\n  preemption:")
    found = SteppedCluster(queues=named)
    for number, zone in enumerate(["east", "east", "west"]):
        add_node(found, f"n{number}", zone)
    found.settle()
    return found


def add_node(cluster: SteppedCluster, name: str, zone: str) -> None:
    labels = {HOST: name, ZONE: zone}
    size = {"cpu": "20", "memory": "8Gi", "pods": "110"}
    cluster.stub.add(NODES, {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": size}})


@pytest.fixture
def cluster() -> Iterator[SteppedCluster]:
    """Return a cluster of two nodes in the east and one in the west."""
    found = ordered_by("pod-preferences")
    yield found
    found.stop()


def preferring(zone: str, weight: int = 1) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": term(ZONE, "In", zone)}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def away(selector: dict[str, Any], kind: str = "podAntiAffinity") -> dict[str, Any]:
    terms = [{"weight": 1, "podAffinityTerm": beside(selector, HOST)}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}


def zones(cluster: SteppedCluster) -> Counter[str]:
    return Counter("west" if node == "n2" else "east" for node in cluster.places.values())


def test_pods_prefer_nodes_by_their_labels(cluster: SteppedCluster) -> None:
    """Among equal nodes the emptiest is first, also for pods without a preference."""
    for number in range(3):
        cluster.add_pod(f"west{number}", **preferring("west"))
    for number in range(4):
        cluster.add_pod(f"east{number}", **preferring("east"))
    cluster.settle()
    cluster.add_pod("any", cpu="1")
    cluster.settle()

    found = Counter(cluster.places.values())
    assert ({"n0": 2, "n1": 2}, 3) == (
        {name: found[name] - (name == cluster.node_of("any")) for name in ("n0", "n1")},
        found["n2"],
    )
    assert cluster.node_of("any") in {"n0", "n1"}


def test_pods_that_are_placed_at_once_spread_over_zones(cluster: SteppedCluster) -> None:
    """Each counts for the next one before the API server knows of it."""
    for number in range(6):
        cluster.add_pod(f"w{number}", labels={"app": "web"}, **SPREAD)
    cluster.settle()

    assert {"east": 3, "west": 3} == zones(cluster)


def test_pods_avoid_and_seek_each_other(cluster: SteppedCluster) -> None:
    """Also a pod without a preference, as that of another pod is about it."""
    cluster.add_pod("web", labels={"app": "web"}, **preferring("west"))
    cluster.settle()
    cluster.add_pod("apart", **away(WEB), labels={"app": "db"})
    cluster.settle()
    cluster.add_pod("beside", **away(WEB, "podAffinity"))
    cluster.settle()
    cluster.add_pod("later", labels={"app": "web"})
    cluster.settle()

    apart = cluster.node_of("apart")
    assert (True, "n2", "n2") == (apart in {"n0", "n1"}, cluster.node_of("beside"), cluster.node_of("later"))


def test_a_placement_that_is_not_carried_out_does_not_count(cluster: SteppedCluster) -> None:
    """The pod ends before it is bound."""
    cluster.add_pod("gone", labels={"app": "web"}, **SPREAD, **preferring("west", 100))
    cluster.place()
    cluster.stub.remove("/api/v1/namespaces/blue/pods/gone")
    cluster.settle()
    for number in range(2):
        cluster.add_pod(f"w{number}", labels={"app": "web"}, **SPREAD)
    cluster.settle()

    assert {"east": 1, "west": 1} == zones(cluster)


def test_the_fullest_node_may_be_first() -> None:
    cluster = ordered_by("pod-preferences-binpacking")
    for number in range(3):
        cluster.add_pod(f"p{number}", **preferring("east"))
    cluster.settle()

    assert {"n0": 3} == Counter(cluster.places.values())
    cluster.stop()


def test_a_restarted_scheduler_counts_the_pods_on_nodes(cluster: SteppedCluster) -> None:
    cluster.add_pod("w0", labels={"app": "web"}, **SPREAD)
    cluster.settle()
    cluster.restart()
    cluster.add_pod("w1", labels={"app": "web"}, **SPREAD)
    cluster.settle()

    assert {"east": 1, "west": 1} == zones(cluster)


def test_pods_of_more_than_16_classes_are_placed_by_room(cluster: SteppedCluster) -> None:
    """They are counted."""
    for weight in range(1, 18):
        cluster.add_pod(f"p{weight}", **preferring("west", weight))
    cluster.settle()

    places = cluster.places
    assert ({"n2"}, 17) == ({places[f"p{weight}"] for weight in range(1, 17)}, len(places))
    assert places["p17"] != "n2"
    assert 1 == cluster.scheduler.figures().policies["pod-preferences"].without_class


def test_all_pods_of_a_template_are_of_one_class(cluster: SteppedCluster) -> None:
    """Also the first one, when no other pod has its terms yet."""
    for number in range(10):
        for name in "ab":
            labels = {"app": f"app{number}"}
            cluster.add_pod(f"{name}{number}", labels=labels, **away({"matchLabels": labels}))
            cluster.settle()

    places = cluster.places
    assert all(places[f"a{number}"] != places[f"b{number}"] for number in range(10))
    assert 0 == cluster.scheduler.figures().policies["pod-preferences"].without_class
