"""Claims that wait for their first consumer: their volumes are made before the pod is bound."""

from __future__ import annotations

from typing import Final

import pytest
from support.kubernetes.stepped_cluster import PODS, SteppedCluster

CLAIMS: Final = "/api/v1/namespaces/blue/persistentvolumeclaims"
CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
SELECTED: Final = "volume.kubernetes.io/selected-node"
MOUNTED: Final = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
LATE: Final = {
    "metadata": {"name": "late"},
    "provisioner": "disk.example",
    "volumeBindingMode": "WaitForFirstConsumer",
}


@pytest.fixture
def cluster(cluster: SteppedCluster) -> SteppedCluster:
    """A node, and a pod with a claim whose volume is made when the pod has a node."""
    cluster.add_node()
    cluster.stub.add(CLASSES, LATE)
    cluster.stub.add(CLAIMS, {"metadata": {"name": "data"}, "spec": {"storageClassName": "late"}})
    cluster.add_pod(volumes=MOUNTED)
    cluster.settle()
    return cluster


def selected(cluster: SteppedCluster) -> str:
    """Return the node for which a volume is to be made."""
    annotations = cluster.stub.get(f"{CLAIMS}/data")["metadata"].get("annotations", {})
    return str(annotations.get(SELECTED, ""))


def provide(cluster: SteppedCluster) -> None:
    """Make the volume, as a provisioner does."""
    cluster.stub.add("/api/v1/persistentvolumes", {"metadata": {"name": "v"}})
    change = {"spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    cluster.stub.change(f"{CLAIMS}/data", change)
    cluster.settle()


def test_the_pod_is_bound_when_its_claim_is(cluster: SteppedCluster) -> None:
    """Not before; its room on the node is kept meanwhile."""
    assert ("n1", {}) == (selected(cluster), cluster.places)

    cluster.add_pod("large", cpu="4")
    cluster.settle()
    assert {} == cluster.places

    provide(cluster)
    assert {"p": "n1"} == cluster.places


def test_the_pod_waits_again_when_the_provisioner_takes_the_node_away(cluster: SteppedCluster) -> None:
    """It cannot make a volume there; another node is tried."""
    cluster.add_node("n2")
    cluster.settle()
    cluster.stub.change(f"{CLAIMS}/data", {"metadata": {"annotations": {SELECTED: None}}})
    cluster.advance(1)

    assert "PodVolumesBindFailure" in cluster.events("p")
    assert "n2" == selected(cluster)
    provide(cluster)
    assert {"p": "n2"} == cluster.places


def test_the_pod_waits_again_when_no_volume_comes_in_time(cluster: SteppedCluster) -> None:
    """Ten minutes, unless the configuration says otherwise."""
    cluster.advance(590)
    assert "PodVolumesBindFailure" not in cluster.events("p")

    cluster.advance(20)
    assert "PodVolumesBindFailure" in cluster.events("p")

    cluster.advance(60)
    provide(cluster)
    assert {"p": "n1"} == cluster.places


def test_pods_do_not_reserve_the_nodes_of_each_others_volumes(cluster: SteppedCluster) -> None:
    """The volumes are late: each pod waits for the node of its own one, and all are bound."""
    cluster.add_node("n2")
    cluster.stub.add(CLAIMS, {"metadata": {"name": "other"}, "spec": {"storageClassName": "late"}})
    other = {"name": "data", "persistentVolumeClaim": {"claimName": "other"}}
    cluster.add_pod("q", volumes=[other])
    cluster.settle()
    cluster.advance(601)
    for claim in ("data", "other"):
        node_name = cluster.stub.get(f"{CLAIMS}/{claim}")["metadata"]["annotations"][SELECTED]
        volume = {"metadata": {"name": claim}, "spec": on_node("kubernetes.io/hostname", node_name)}
        cluster.stub.add("/api/v1/persistentvolumes", volume)
        change = {"spec": {"volumeName": claim}, "status": {"phase": "Bound"}}
        cluster.stub.change(f"{CLAIMS}/{claim}", change)

    cluster.advance(60)

    assert {"p", "q"} == set(cluster.places)


def on_node(label: str, value: str) -> dict[str, object]:
    """Return the specification of a volume that is reached from the nodes with a label."""
    expression = {"key": label, "operator": "In", "values": [value]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}


@pytest.mark.parametrize(
    ("label", "reason"),
    [("kubernetes.io/hostname", "SchedulingSkipped"), ("topology.kubernetes.io/zone", "Unschedulable")],
)
def test_a_pod_whose_volume_is_on_one_node_is_not_unschedulable(
    cluster: SteppedCluster, label: str, reason: str
) -> None:
    """An autoscaler would add nodes in vain; in the zone of the volume a new node would help."""
    provide(cluster)
    cluster.stub.add(
        "/api/v1/persistentvolumes", {"metadata": {"name": "full"}, "spec": on_node(label, "n1")}
    )
    claim = {"metadata": {"name": "other"}, "spec": {"volumeName": "full"}, "status": {"phase": "Bound"}}
    cluster.stub.add(CLAIMS, claim)
    cluster.stub.change("/api/v1/nodes/n1", {"metadata": {"labels": {label: "n1"}}})
    cluster.add_node("n2", cpu="8")
    cluster.add_pod("q", cpu="4", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "other"}}])
    cluster.advance(10)

    assert ("False", reason) == cluster.condition("q")[:2]


def test_a_pod_whose_volume_is_being_made_for_a_node_is_not_unschedulable(cluster: SteppedCluster) -> None:
    """It waits for this node after a restart, which is full meanwhile."""
    cluster.stub.add(
        CLAIMS,
        {
            "metadata": {"name": "other", "annotations": {SELECTED: "n1"}},
            "spec": {"storageClassName": "late"},
        },
    )
    cluster.add_pod("q", cpu="4", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "other"}}])
    cluster.add_node("n2", cpu="8")
    cluster.advance(10)

    assert ("False", "SchedulingSkipped") == cluster.condition("q")[:2]


def test_a_restart_goes_on_with_the_volume_that_is_being_made(cluster: SteppedCluster) -> None:
    """The claim says for which node."""
    cluster.add_node("n2")
    cluster.restart()

    assert ("n1", {}) == (selected(cluster), cluster.places)
    provide(cluster)
    assert {"p": "n1"} == cluster.places


def test_a_pod_that_is_deleted_meanwhile_is_not_bound(cluster: SteppedCluster) -> None:
    """The scheduler has its room back."""
    cluster.stub.remove(f"{PODS}/p")
    cluster.settle()
    provide(cluster)
    cluster.advance(700)

    assert ({}, {}) == (cluster.places, cluster.core_places)


def test_a_claim_that_cannot_be_changed_fails_the_bind(cluster: SteppedCluster) -> None:
    """The pod waits again, and tries later."""
    cluster.stub.fail("PATCH", f"{CLAIMS}/other", status=403)
    cluster.stub.add(CLAIMS, {"metadata": {"name": "other"}, "spec": {"storageClassName": "late"}})
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "other"}}
    cluster.add_pod("q", volumes=[claim])
    cluster.settle()

    assert "PodVolumesBindFailure" in cluster.events("q")

    cluster.advance(60)
    assert SELECTED in cluster.stub.get(f"{CLAIMS}/other")["metadata"]["annotations"]
