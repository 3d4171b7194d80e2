"""The two config maps: read at the start, taken anew when they change, and reported when they are bad."""

from __future__ import annotations

from typing import Any, Final

from support.kubernetes.stepped_cluster import SteppedCluster

MAPS: Final = "/api/v1/namespaces/default/configmaps"
QUEUES: Final = """
partitions:
- name: default
  placementrules: [{name: provided, create: false}]
  queues: [{name: root, submitacl: "*", queues: [{name: %s}]}]
"""


def queues(cluster: SteppedCluster) -> list[str]:
    """Return the names of the queues below the root."""
    root: Any = cluster.snapshot("queues")
    return sorted(root.get("childNames") or [])


def add_map(cluster: SteppedCluster, text: str, name: str = "yunikorn-configs", **data: str) -> None:
    """Add a config map with queues."""
    cluster.stub.add(MAPS, {"metadata": {"name": name}, "data": {"queues.yaml": text, **data}})


def test_a_change_of_the_queues_takes_effect(cluster: SteppedCluster) -> None:
    """While pods run; without a config map the queues are those of the command."""
    assert ["root.high", "root.low", "root.small"] == queues(cluster)

    add_map(cluster, QUEUES % "new")
    cluster.settle()

    assert "root.new" in queues(cluster)


def test_bad_queues_are_reported_and_change_nothing(cluster: SteppedCluster) -> None:
    """On the config map, where whoever has changed it looks."""
    add_map(cluster, "partitions: [{name: [")
    cluster.settle()

    assert ["root.high", "root.low", "root.small"] == queues(cluster)
    assert ["ConfigurationRejected"] == cluster.events("yunikorn-configs")

    cluster.stub.change(f"{MAPS}/yunikorn-configs", {"data": {"queues.yaml": QUEUES % "new"}})
    cluster.settle()

    assert "root.new" in queues(cluster)


def test_a_bad_value_is_reported_and_changes_nothing(cluster: SteppedCluster) -> None:
    """Not even the queues beside it."""
    add_map(cluster, QUEUES % "new", **{"kubernetes.qps": "many"})
    cluster.settle()

    assert "root.new" not in queues(cluster)
    assert ["ConfigurationRejected"] == cluster.events("yunikorn-configs")


def test_a_start_with_a_bad_configuration_waits_until_it_is_good(cluster: SteppedCluster) -> None:
    """Nothing is scheduled by rules that nobody has written."""
    add_map(cluster, "partitions: [{name: [")
    cluster.add_node()
    cluster.add_pod(labels={"queue": "root.new"})
    cluster.restart()
    cluster.advance(60)

    assert not cluster.coordinator.is_ready
    assert {} == cluster.places

    cluster.stub.change(f"{MAPS}/yunikorn-configs", {"data": {"queues.yaml": QUEUES % "new"}})
    cluster.advance(15)

    assert {"p": "n1"} == cluster.places


def test_nothing_is_taken_anew_where_that_is_not_wanted(cluster: SteppedCluster) -> None:
    """Until the next start."""
    add_map(cluster, QUEUES % "first", **{"service.enableConfigHotRefresh": "false"})
    cluster.restart()
    cluster.stub.change(f"{MAPS}/yunikorn-configs", {"data": {"queues.yaml": QUEUES % "second"}})
    cluster.settle()

    assert ["root.first"] == queues(cluster)

    cluster.restart()

    assert ["root.second"] == queues(cluster)
