"""Nodes that come, change and go, with what runs on them, also pods of other schedulers."""

from __future__ import annotations

from typing import Any, Final

import pytest
from support.kubernetes.stepped_cluster import NODES, PODS, SteppedCluster

from licorne.proxy.kubernetes.running.tasks import TaskState

HOST: Final = "kubernetes.io/hostname"


def apart(labels: dict[str, str]) -> dict[str, Any]:
    """Return an affinity that keeps pods with these labels away."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def used(cluster: SteppedCluster, resource: str = "vcore") -> int:
    """Return what the only node has used up, foreign pods included."""
    (node,) = cluster.snapshot("nodes")
    amount: int = node["capacity"].get(resource, 0) - node["available"].get(resource, 0)
    return amount


def test_a_cordoned_node_takes_nothing_and_keeps_what_runs(cluster: SteppedCluster) -> None:
    """Until it is free again."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.settle()
    cluster.stub.change(f"{NODES}/n1", {"spec": {"unschedulable": True}})
    cluster.advance(1)
    cluster.add_pod("b")
    cluster.advance(5)

    assert {"a": "n1"} == cluster.places

    cluster.stub.change(f"{NODES}/n1", {"spec": {"unschedulable": False}})
    cluster.advance(5)

    assert {"a": "n1", "b": "n1"} == cluster.places


def test_a_cordoned_node_is_shown_as_not_schedulable(cluster: SteppedCluster) -> None:
    """Also after a restart; pods that tolerate the cordon are placed there, and attributes do not show it."""
    cluster.add_node(unschedulable=True)
    cluster.add_pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    cluster.advance(5)
    shown = [shows_schedulable(cluster)]
    cluster.restart()
    shown.append(shows_schedulable(cluster))
    for is_cordoned in (False, True):
        cluster.stub.change(f"{NODES}/n1", {"spec": {"unschedulable": is_cordoned}})
        cluster.settle()
        shown.append(shows_schedulable(cluster))

    assert ([False, False, True, False], {"p": "n1"}) == (shown, cluster.places)
    assert "licorne/cordoned" not in cluster.snapshot("nodes")[0]["attributes"]


def shows_schedulable(cluster: SteppedCluster) -> bool:
    """Return what documents and metrics tell about the only node."""
    (node,) = cluster.snapshot("nodes")
    (row,) = (row for partition in cluster.scheduler.figures().current for row in partition.nodes)

    assert row.schedulable is node["schedulable"]

    return bool(node["schedulable"])


def test_a_cordon_applies_to_the_next_placement(cluster: SteppedCluster) -> None:
    """The earlier answers about the node end at once: no pod is placed there and put back."""
    cluster.add_node()
    cluster.add_pod("a")
    cluster.settle()
    cluster.stub.change(f"{NODES}/n1", {"spec": {"unschedulable": True}})
    cluster.settle()
    uid = cluster.add_pod("b")
    cluster.settle()

    assert 0 == cluster.task(uid).placement


@pytest.mark.parametrize("is_daemon", [False, True])
def test_a_cordon_that_a_pod_tolerates_is_no_hindrance(cluster: SteppedCluster, *, is_daemon: bool) -> None:
    """As for the pods of a DaemonSet, which need that node."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    owner = {"kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    more: dict[str, Any] = {
        "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    }
    if is_daemon:
        more |= {"affinity": {"nodeAffinity": required}, "metadata": {"ownerReferences": [owner]}}
    cluster.add_node(unschedulable=True)
    cluster.add_pod("tolerates", **more)
    cluster.add_pod("other")
    cluster.advance(40)

    assert {"tolerates": "n1"} == cluster.places
    assert "0/1 nodes are available: 1 cordoned" == cluster.condition("other")[2]


def test_a_node_that_learns_a_feature_takes_pods(cluster: SteppedCluster) -> None:
    """Its kubelet declares it when it is started anew."""
    cluster.add_node()
    cluster.add_pod(hostNetwork=True, hostUsers=False)
    cluster.advance(5)

    expected = "0/1 nodes are available: 1 missing feature UserNamespacesHostNetworkSupport"
    assert expected == cluster.condition()[2]

    features = {"declaredFeatures": ["UserNamespacesHostNetworkSupport"]}
    cluster.stub.change(f"{NODES}/n1", {"status": features})
    cluster.advance(5)

    assert {"p": "n1"} == cluster.places


def test_a_taint_that_goes_lets_pods_in(cluster: SteppedCluster) -> None:
    """The scheduler is asked to ask again."""
    cluster.add_node(taints=[{"key": "k", "effect": "NoSchedule"}])
    cluster.add_pod()
    cluster.advance(5)

    assert {} == cluster.places

    cluster.stub.change(f"{NODES}/n1", {"spec": {"taints": []}})
    cluster.advance(1)

    assert {"p": "n1"} == cluster.places


def test_a_node_that_grows_takes_more(cluster: SteppedCluster) -> None:
    """Its size is that which it allows pods to use."""
    cluster.add_node(cpu="1")
    cluster.add_pod(cpu="2")
    cluster.settle()
    cluster.stub.change(f"{NODES}/n1", {"status": {"allocatable": {"cpu": "2"}}})
    cluster.settle()

    assert {"p": "n1"} == cluster.places


def test_pods_on_a_node_that_goes_are_orphans_until_it_comes_back(cluster: SteppedCluster) -> None:
    """They may run still: the API server has them on it."""
    cluster.add_node()
    uid = cluster.add_pod()
    foreign = cluster.add_pod("other", scheduler="other", nodeName="n1")
    cluster.settle()
    cluster.stub.remove(f"{NODES}/n1")
    cluster.settle()

    assert TaskState.ORPHAN is cluster.task(uid).state
    assert {} == cluster.core_places

    cluster.add_node()
    cluster.settle()

    assert {uid: "n1", foreign: "n1"} == cluster.core_places


def test_a_node_that_is_replaced_at_once_keeps_its_pods(cluster: SteppedCluster) -> None:
    """The scheduler has dropped them with the old one, and its message comes when the new one is there."""
    cluster.add_node()
    uid = cluster.add_pod()
    foreign = cluster.add_pod("other", scheduler="other", nodeName="n1")
    cluster.settle()
    cluster.stub.remove(f"{NODES}/n1")
    cluster.add_node()
    cluster.settle()

    assert {uid: "n1", foreign: "n1"} == cluster.core_places
    assert TaskState.BOUND is cluster.task(uid).state


def test_a_list_may_have_another_node_of_the_name(cluster: SteppedCluster) -> None:
    """What happened in between was not watched."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.settle()
    cluster.stub.remove(f"{NODES}/n1")
    cluster.add_node(cpu="8")
    cluster.relist()
    cluster.settle()

    assert {uid: "n1"} == cluster.core_places
    assert 8000 == cluster.snapshot("nodes")[0]["capacity"]["vcore"]


@pytest.mark.parametrize("comes_back", [True, False])
def test_a_node_that_goes_while_a_pod_is_placed_there(cluster: SteppedCluster, comes_back: bool) -> None:  # noqa: FBT001 - of the table
    """The pod waits again: it is not an orphan of a node that it was never on."""
    uid = cluster.add_pod()
    cluster.settle()
    cluster.add_node()
    cluster.place()

    assert {uid: "n1"} == cluster.core_places

    cluster.stub.remove(f"{NODES}/n1")
    cluster.add_node("n1" if comes_back else "n2")
    cluster._feed()
    cluster.coordinator.flush()
    cluster.advance(5)

    assert ["n1" if comes_back else "n2"] == list(cluster.places.values())
    assert cluster.pod_places == cluster.core_places


def test_a_node_that_goes_while_a_pod_is_bound_there(cluster: SteppedCluster) -> None:
    """What the API server says in the end counts."""
    cluster.add_node()
    cluster.add_pod()
    cluster.loop.holds_work = True
    cluster.settle()
    cluster.stub.remove(f"{NODES}/n1")
    cluster.settle()
    cluster.loop.holds_work = False
    cluster.add_node("n2")
    cluster.advance(60)

    assert ["n1"] == list(
        cluster.places.values()
    )  # the bind was under way, and the API server takes any name
    assert {} == cluster.core_places


def test_an_assigned_pod_waits_for_its_node(cluster: SteppedCluster) -> None:
    """Whose pod it is does not matter."""
    uids = [cluster.add_pod("a", nodeName="n1"), cluster.add_pod("b", scheduler="other", nodeName="n1")]
    cluster.settle()

    assert {} == cluster.core_places

    cluster.add_node()
    cluster.settle()

    assert dict.fromkeys(uids, "n1") == cluster.core_places


def test_foreign_pods_use_room_as_long_as_they_run(cluster: SteppedCluster) -> None:
    """Also when their size changes."""
    cluster.add_node()
    cluster.add_pod("other", cpu="2", scheduler="other")
    cluster.settle()

    assert 0 == used(cluster)

    cluster.stub.change(f"{PODS}/other", {"spec": {"nodeName": "n1"}})
    cluster.settle()

    assert 2000 == used(cluster)

    resized = [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]
    cluster.stub.change(f"{PODS}/other", {"spec": {"containers": resized}})
    cluster.settle()

    assert 3000 == used(cluster)

    cluster.end_pod("other")
    cluster.settle()

    assert 0 == used(cluster)


def test_a_mirror_of_a_static_pod_is_no_victim(cluster: SteppedCluster) -> None:
    """It uses room on its node although it names the scheduler; its kubelet would make it again."""
    cluster.add_node(cpu="2")
    uid = cluster.add_pod(
        "static",
        cpu="2",
        labels={"queue": "root.low"},
        annotations={"kubernetes.io/config.mirror": "hash"},
        metadata={"ownerReferences": [{"kind": "Node", "name": "n1", "uid": "u", "controller": True}]},
        nodeName="n1",
    )
    cluster.add_pod("p", app="high", labels={"queue": "root.high"})
    cluster.advance(60)

    assert ({"static": "n1"}, {uid: "n1"}, {}) == (cluster.places, cluster.core_places, own_places(cluster))


def own_places(cluster: SteppedCluster) -> dict[str, str]:
    """Return the nodes of the allocations that are not foreign."""
    foreign = {
        each["allocationKey"]
        for node in cluster.snapshot("nodes")
        for each in node.get("foreignAllocations") or []
    }
    return {key: node for key, node in cluster.core_places.items() if key not in foreign}


def test_a_pod_that_keeps_others_away_lets_them_in_when_it_goes(cluster: SteppedCluster) -> None:
    """Those that share answers are asked about again, too."""
    cluster.add_node()
    cluster.add_pod("lonely", labels={"app": "lonely"}, affinity=apart({"app": "shy"}))
    cluster.settle()
    cluster.add_pod("shy", app="b", labels={"app": "shy"})
    cluster.add_pod("other", app="b", labels={"app": "other"})
    cluster.advance(2)

    assert {"lonely", "other"} == set(cluster.places)

    cluster.end_pod("lonely")
    cluster.advance(2)

    assert "n1" == cluster.node_of("shy")


def test_a_pod_that_keeps_some_away_does_not_keep_those_that_share_their_answers(
    cluster: SteppedCluster,
) -> None:
    """They were asked for before it came, as pods that are alike."""
    cluster.add_node(cpu="1")
    cluster.add_pod("full", cpu="1", app="a")
    cluster.settle()
    cluster.add_pod("shy", app="b", labels={"app": "shy"})
    cluster.add_pod("other", app="b", labels={"app": "other"})
    cluster.settle()
    cluster.add_node("n2", cpu="500m")
    cluster.add_pod("lonely", cpu="100m", app="c", nodeName="n2", affinity=apart({"app": "shy"}))
    cluster.advance(2)
    cluster.stub.change(f"{NODES}/n2", {"status": {"allocatable": {"cpu": "1100m"}}})
    cluster.advance(2)

    assert "n2" == cluster.node_of("other")
    assert "" == cluster.node_of("shy")


def test_a_pod_on_a_port_lets_the_next_one_in(cluster: SteppedCluster) -> None:
    """Whose answer depends on its neighbours is asked about again when one goes."""
    cluster.add_node()
    ports = [{"name": "main", "ports": [{"hostPort": 80, "containerPort": 80}]}]
    cluster.add_pod("a", containers=ports)
    cluster.settle()
    cluster.add_pod("b", containers=ports)
    cluster.advance(2)

    assert {"a": "n1"} == cluster.places

    cluster.end_pod("a")
    cluster.advance(1)

    assert "n1" == cluster.node_of("b")
