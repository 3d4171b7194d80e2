"""Whatever one object of the cluster looks like, it is left out alone, and the others are scheduled."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from support.kubernetes.absurd import EXAMPLES, absurd_objects
from support.kubernetes.stepped_cluster import NODES, PODS, SteppedCluster
from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.stub_store import Document, ObjectPath

from licorne.proxy.kubernetes.objects import KubernetesNode, Pod
from licorne.proxy.kubernetes.running.left_out import left_out_line

CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
BOTH_NAMES: Final = {"cpu": "4", "vcore": "4", "memory": "8Gi", "pods": "110"}
"""The size of a node that an older agent has written, too."""
BATCHES: Final = 3


def stub_with(*objects: tuple[str, Document]) -> StubApiServer:
    """Return an API server with the namespace `blue` and some objects."""
    stub = StubApiServer()
    stub.add("/api/v1/namespaces", {"metadata": {"name": "blue"}})
    for path, document in objects:
        stub.add(path, document)
    return stub


def bad_node() -> Document:
    return {"metadata": {"name": "bad", "labels": {}}, "status": {"allocatable": BOTH_NAMES}}


def test_a_node_that_cannot_be_read_does_not_stop_a_start() -> None:
    """Pods run on the others; the event is on the node, and not on the configuration."""
    cluster = SteppedCluster(stub=stub_with((NODES, bad_node())))
    cluster.add_node("n1")
    cluster.add_pod()
    cluster.advance(1)

    assert {"p": "n1"} == cluster.places
    assert ["Unreadable"] == cluster.events("bad")
    assert {"Node": 1} == cluster.coordinator.left_out
    assert "" == cluster.coordinator.start_failure


def test_null_is_as_nothing(cluster: SteppedCluster) -> None:
    """A server that writes null for empty fields is understood."""
    spec = {"taints": None, "unschedulable": None}
    size = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    metadata: dict[str, Any] = {"name": "n1", "annotations": None, "ownerReferences": None, "labels": {}}
    cluster.stub.add(NODES, {"metadata": metadata, "spec": spec, "status": {"allocatable": size}})
    cluster.add_pod(tolerations=None, affinity=None, volumes=None)
    cluster.advance(1)

    assert ({"p": "n1"}, {}) == (cluster.places, cluster.coordinator.left_out)


def test_a_node_is_used_when_it_can_be_read() -> None:
    """It counts from then on."""
    cluster = SteppedCluster(stub=stub_with((NODES, bad_node())))
    cluster.add_pod()
    cluster.advance(1)
    cluster.stub.change(f"{NODES}/bad", {"status": {"allocatable": {"vcore": None}}})
    cluster.advance(1)

    assert ({"p": "bad"}, {}) == (cluster.places, cluster.coordinator.left_out)


def test_a_node_that_cannot_be_read_any_more_gets_no_pods(cluster: SteppedCluster) -> None:
    """What runs there goes on, and is counted again with the node."""
    cluster.add_node("n1")
    cluster.add_pod("a")
    cluster.settle()
    cluster.stub.change(f"{NODES}/n1", {"status": {"allocatable": {"vcore": "4"}}})
    cluster.add_pod("b")
    cluster.advance(40)

    assert ({"a": "n1"}, {}) == (cluster.places, cluster.core_places)

    cluster.stub.change(f"{NODES}/n1", {"status": {"allocatable": {"vcore": None}}})
    cluster.advance(40)

    assert {"a": "n1", "b": "n1"} == cluster.places
    assert cluster.pod_places == cluster.core_places


@pytest.mark.parametrize("relists", [False, True])
def test_what_is_gone_is_not_left_out(cluster: SteppedCluster, *, relists: bool) -> None:
    """A deleted object is forgotten, although it cannot be decoded; also if a list alone shows it."""
    cluster.stub.add(NODES, {"metadata": {"name": "bad"}, "status": {"allocatable": 7}})
    cluster.settle()

    assert {"Node": 1} == cluster.coordinator.left_out

    cluster.watches = not relists
    cluster.stub.remove(f"{NODES}/bad")
    cluster.settle()
    if relists:
        cluster.relist()

    assert {} == cluster.coordinator.left_out


def test_a_known_object_that_cannot_be_decoded_counts_as_gone(cluster: SteppedCluster) -> None:
    """Its deletion follows later, and nothing of it stays."""
    cluster.add_node()
    cluster.add_pod("a", scheduler="other", nodeName="n1")
    cluster.settle()
    cluster.stub.change(f"{PODS}/a", {"spec": {"containers": 7}})
    cluster.settle()

    assert ({}, {"Pod": 1}) == (cluster.core_places, cluster.coordinator.left_out)

    cluster.stub.remove(f"{PODS}/a")
    cluster.settle()

    assert {} == cluster.coordinator.left_out


def test_a_start_that_is_tried_again_reads_what_has_changed() -> None:
    """Objects that came, changed or went while it could not begin are as they are at the API server."""
    bad = {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": "partitions: 7"}}
    cluster = SteppedCluster(stub=stub_with((CONFIG_MAPS, bad)))
    cluster.add_node("gone")
    cluster.add_pod("gone")
    cluster.add_node("n1", cpu="1")
    cluster.settle()

    assert "" != cluster.coordinator.start_failure

    cluster.stub.remove(f"{NODES}/gone")
    cluster.stub.remove(f"{PODS}/gone")
    cluster.stub.change(f"{NODES}/n1", {"status": {"allocatable": {"cpu": "2"}}})
    cluster.add_pod("p", cpu="2")
    cluster.settle()
    cluster.stub.change(f"{CONFIG_MAPS}/yunikorn-configs", {"data": {"queues.yaml": ""}})
    cluster.advance(11)

    assert ({"p": "n1"}, "") == (cluster.places, cluster.coordinator.start_failure)
    assert ["n1"] == [node["nodeID"] for node in cluster.snapshot("nodes")]


def test_a_configuration_that_cannot_be_decoded_changes_nothing() -> None:
    """The queues stay as they are, and the start of the next process waits until it can be read."""
    queues = {"metadata": {"name": "yunikorn-configs"}, "data": {}}
    cluster = SteppedCluster(stub=stub_with((CONFIG_MAPS, queues)))
    cluster.add_node()
    cluster.settle()
    cluster.stub.change(f"{CONFIG_MAPS}/yunikorn-configs", {"data": {"queues.yaml": 7}})
    cluster.add_pod("a", labels={"queue": "root.low"})
    cluster.settle()

    assert ({"a": "n1"}, ["ConfigurationRejected"]) == (cluster.places, cluster.events("yunikorn-configs"))

    cluster.restart()

    assert "ConfigMap yunikorn-configs cannot be read" in cluster.coordinator.start_failure

    cluster.stub.change(f"{CONFIG_MAPS}/yunikorn-configs", {"data": {"queues.yaml": None}})
    cluster.add_pod("b")
    cluster.advance(11)

    assert {"a": "n1", "b": "n1"} == cluster.places


def test_the_line_of_what_is_left_out_names_no_object() -> None:
    """It is read without a token."""
    expected = "left out, since they cannot be read: 1 Node, 2 Pod; their events and the log give the reasons"
    assert ("", expected) == (left_out_line({}), left_out_line({"Pod": 2, "Node": 1}))


def add_good(cluster: SteppedCluster) -> None:
    """Add a node for the good pods, and one that absurd pods are on."""
    size = {"cpu": "1000", "memory": "8Ti", "pods": "10000"}
    for name in ("big", "host"):
        spec = {"taints": [{"key": name, "effect": "NoSchedule"}]}
        cluster.stub.add(NODES, {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": size}})


def add_good_pod(cluster: SteppedCluster, name: str) -> None:
    tolerations: Any = [{"key": "big", "operator": "Exists"}]
    """Add a pod that nothing may keep back."""
    cluster.add_pod(name, app=name, tolerations=tolerations, labels={"queue": "root.high"})


@pytest.mark.parametrize("seed", range(BATCHES))
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_absurd_objects_keep_nothing_else_back(kind: type, seed: int) -> None:
    """Those that are there at the start, those that come later, and those that change into such ones."""
    path, examples = EXAMPLES[kind]
    random = Random(f"{kind.__name__} {seed}")  # noqa: S311 - no secret
    found = [document for _, document in absurd_objects(kind, random, 240 if kind is Pod else 60)]
    third = len(found) // 3
    stub = stub_with()
    for number, document in enumerate(found[:third]):
        add(stub, path, f"early-{number}", document)
    cluster = SteppedCluster(stub=stub)
    add_good(cluster)
    add_good_pod(cluster, "first")
    cluster.advance(2)

    assert "big" == cluster.node_of("first"), cluster.condition("first")

    for number, document in enumerate(found[third : 2 * third]):
        add(stub, path, f"late-{number}", document)
    for number, document in enumerate(found[2 * third :]):
        add(stub, path, f"turned-{number}", random.choice(examples))
        cluster.settle()
        replace(stub, f"{path}/turned-{number}", document)
    add_good_pod(cluster, "second")
    cluster.advance(2)

    assert "big" == cluster.node_of("second"), cluster.condition("second")

    for document in stub.objects(path):
        name = document["metadata"]["name"]
        if name.startswith(("early-", "late-", "turned-")):
            stub.remove(f"{path}/{name}")
    cluster.advance(2)

    assert {} == cluster.coordinator.left_out
    if kind in {Pod, KubernetesNode}:
        assert cluster.pod_places == cluster.core_places


def add(stub: StubApiServer, path: str, name: str, document: Document) -> None:
    """Add an object under a name."""
    metadata = document.get("metadata")
    own = {**metadata, "name": name} if isinstance(metadata, dict) else {"name": name}
    stub.add(path, {**document, "metadata": own})


def replace(stub: StubApiServer, path: str, document: Document) -> None:
    """Change an object into another one of its name."""
    metadata = document.get("metadata")
    there = stub.get(path)["metadata"]
    own = {key: there[key] for key in ("name", "namespace", "uid") if key in there}
    whole = {**document, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **own}}
    with stub.store.changed:
        stub.store.replace(ObjectPath.of(path), whole)
