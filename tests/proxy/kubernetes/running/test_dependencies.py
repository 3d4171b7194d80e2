"""Pods whose application waits for others, or for its turn in an array."""

from __future__ import annotations

from typing import Any

from support.kubernetes.stepped_cluster import SteppedCluster


def _pod(cluster: SteppedCluster, name: str, app: str = "", **annotations: str) -> None:
    """Add a pod of its own application; `after_ok="a"` is the annotation `licorne.io/after-ok`."""
    found = {f"licorne.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    cluster.add_pod(name, app=app or name, annotations=found)
    cluster.settle()


def _end(cluster: SteppedCluster, name: str, phase: str = "Succeeded", seconds: float = 0) -> None:
    cluster.end_pod(name, phase)
    cluster.settle()
    cluster.advance(seconds)
    cluster.settle()


def _on_nodes(cluster: SteppedCluster) -> str:
    return " ".join(sorted(cluster.places))


def test_pods_wait_for_the_end_of_another_application(cluster: SteppedCluster) -> None:
    """It has ended when the scheduler has completed it; a pod that waits says for what."""
    cluster.add_node(cpu="8")
    _pod(cluster, "b", after="a")
    _pod(cluster, "a")
    assert _on_nodes(cluster) == "a"
    cluster.advance(5)
    assert "it waits for the end of others" in cluster.condition("b")[2]

    _end(cluster, "a")
    assert _on_nodes(cluster) == "a"
    _end(cluster, "a", seconds=31)
    assert _on_nodes(cluster) == "a b"


def test_an_application_fails_whose_last_pod_has_failed(cluster: SteppedCluster) -> None:
    """Those that wait for its failure start; a pod that comes later learns it too."""
    cluster.add_node(cpu="8")
    for name in ("a1", "a2"):
        _pod(cluster, name, app="a")
    _pod(cluster, "ok", after_ok="a")
    _pod(cluster, "failed", after_failed="a")
    _end(cluster, "a1")
    _end(cluster, "a2", "Failed")
    _pod(cluster, "late", after_ok="a")
    _pod(cluster, "later", after_failed="a")
    assert _on_nodes(cluster) == "a1 a2 failed later"


def test_a_failed_application_that_nobody_waits_for_completes_as_before(cluster: SteppedCluster) -> None:
    """One that comes later and waits for how it ended is told."""
    cluster.add_node(cpu="8")
    _pod(cluster, "a")
    _end(cluster, "a", "Failed")
    assert cluster.states == {"a": "Completing"}
    cluster.advance(31)
    cluster.settle()
    _pod(cluster, "ok", after_ok="a")
    _pod(cluster, "failed", after_failed="a")
    assert _on_nodes(cluster) == "a failed"


def test_an_array_of_applications(cluster: SteppedCluster) -> None:
    cluster.add_node(cpu="8")
    array: dict[str, Any] = {"array": "x", "array_limit": "1"}
    for name in "abc":
        _pod(cluster, name, **array)
    assert _on_nodes(cluster) == "a"
    _end(cluster, "a", seconds=31)
    assert _on_nodes(cluster) == "a b"
