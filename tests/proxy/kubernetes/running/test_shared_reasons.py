"""Pods of one shape share the answers of the nodes until something changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import NODES, QUEUES, SteppedCluster

from licorne.model.explanation.blockers import summarise

CONFIGS: Final = "/api/v1/namespaces/default/configmaps"
SPREAD: Final = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "even"}},
}
SHAPES: Final[tuple[dict[str, Any], ...]] = (
    {"cpu": "5"},
    {"cpu": "5", "nodeSelector": {"disk": "ssd"}},
    {"cpu": "5", "labels": {"app": "even"}, "topologySpreadConstraints": [SPREAD]},
)


def memory(amount: str, cpu: str = "100m") -> dict[str, Any]:
    """Return the fields of a pod with some memory."""
    requests = {"cpu": cpu, "memory": amount}
    return {"containers": [{"name": "main", "resources": {"requests": requests}}]}


def test_pods_of_one_shape_share_the_answers_of_nodes(
    cluster: SteppedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of other applications, and again later, while nothing changes."""
    for name in ("n1", "n2"):
        cluster.add_node(name)
    asked: list[object] = []

    def noting(*args: Any, **kwargs: Any) -> object:
        asked.append(args)
        return summarise(*args, **kwargs)

    monkeypatch.setattr("licorne.model.explanation.shared_summaries.summarise", noting)
    for number in range(30):
        cluster.add_pod(f"p{number}", app=f"app-{number % 7}", **SHAPES[number % 3])
    cluster.advance(120)

    assert {
        "0/2 nodes are available: 2 Insufficient cpu",
        "0/2 nodes are available: 2 node affinity",
    } == {cluster.condition(f"p{number}")[2] for number in range(30)}
    assert 2 == len(asked)


def change_queues(cluster: SteppedCluster) -> None:
    """Lower the quota of a queue."""
    data = {"queues.yaml": QUEUES.replace('max: {vcore: "2"}', 'max: {vcore: "1"}')}
    cluster.stub.add(CONFIGS, {"metadata": {"name": "yunikorn-configs"}, "data": data})


CHANGES: Final[dict[str, tuple[Callable[[SteppedCluster], object], str]]] = {
    "a node is added": (
        lambda c: c.add_node("n3", cpu="1"),
        "0/3 nodes are available: 2 Insufficient memory, 1 Insufficient cpu",
    ),
    "a node is removed": (
        lambda c: c.stub.remove(f"{NODES}/n2"),
        "0/1 nodes are available: 1 Insufficient memory",
    ),
    "a node is cordoned": (
        lambda c: c.stub.change(f"{NODES}/n2", {"spec": {"unschedulable": True}}),
        "0/2 nodes are available: 1 Insufficient memory, 1 cordoned",
    ),
    "a node gets a taint": (
        lambda c: c.stub.change(f"{NODES}/n2", {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}}),
        "0/2 nodes are available: 1 Insufficient memory, 1 untolerated taint t:NoSchedule",
    ),
    "a node grows": (
        lambda c: c.stub.change(f"{NODES}/n2", {"status": {"allocatable": {"memory": "64Gi"}}}),
        "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient cpu",
    ),
    "a pod ends": (
        lambda c: c.end_pod("n2-b"),
        "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient cpu",
    ),
    "a pod of another scheduler ends": (
        lambda c: c.end_pod("n1-other"),
        "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient cpu",
    ),
    "a quota is changed": (
        change_queues,
        "0/2 nodes are available: 2 Insufficient memory; queue root.small: 1 of 1 cpu left",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_ends_what_pods_share(cluster: SteppedCluster, what: str) -> None:
    """Each waiting pod has the new reason within half a minute, and only one reason is there."""
    change, expected = CHANGES[what]
    for name in ("n1", "n2"):
        cluster.add_node(name)
        cluster.add_pod(f"{name}-a", cpu="3", app="a", nodeSelector={"kubernetes.io/hostname": name})
    cluster.add_pod("n1-other", scheduler="other", nodeName="n1", **memory("6Gi"))
    cluster.add_pod("n2-b", app="b", nodeSelector={"kubernetes.io/hostname": "n2"}, **memory("6Gi"))
    cluster.settle()
    for number in range(4):
        cluster.add_pod(
            f"p{number}", app=f"waits-{number}", labels={"queue": "root.small"}, **memory("4Gi", "1500m")
        )
    cluster.advance(10)
    names = [f"p{number}" for number in range(4)]

    assert {"0/2 nodes are available: 2 Insufficient memory"} == {cluster.condition(p)[2] for p in names}

    change(cluster)
    cluster.advance(45)

    assert {expected} == {cluster.condition(name)[2] for name in names}
    assert not set(names) & set(cluster.places)
