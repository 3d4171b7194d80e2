"""What a state dump says of the cluster."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from support.kubernetes.manifests import node, pod

from licorne.proxy.kubernetes.objects import KubernetesNode, Pod, PriorityClass
from licorne.proxy.kubernetes.running.cache import ClusterCache
from licorne.proxy.kubernetes.running.manager import PodManager


def with_identity(document: dict[str, Any], uid: str) -> dict[str, Any]:
    """Return a manifest as the API server has it."""
    document["metadata"] |= {"uid": uid, "namespace": "shop"}
    return document


def test_a_state_dump_tells_nodes_pods_and_which_of_them_are_assumed() -> None:
    """The manager of the pods is asked for it, as any resource manager."""
    cache = ClusterCache()
    cache.put_node(msgspec.convert(node("n1", labels={"zone": "a"}), KubernetesNode))
    bound = with_identity(pod("bound", nodeName="n1"), "u1")
    for document in (bound, with_identity(pod("assumed"), "u2"), with_identity(pod("waits"), "u3")):
        cache.put_pod(msgspec.convert(document, Pod))
    cache.assume("u2", "n1")
    high = {"metadata": {"name": "high"}, "value": 1000}
    cache.priority_classes["high"] = msgspec.convert(high, PriorityClass)

    dump = json.loads(PodManager(cache, lambda *_: None).get_state_dump())["cache"]

    assert {
        "nodes": 1,
        "pods": 3,
        "priorityClasses": 1,
        "assumed": 1,
        "podsAssigned": 2,
        "phases": {"": 3},
    } == dump["statistics"]
    assert {
        "shop/bound": {"uid": "u1", "assignedNode": "n1", "assumed": False},
        "shop/assumed": {"uid": "u2", "assignedNode": "n1", "assumed": True},
        "shop/waits": {"uid": "u3", "assignedNode": "", "assumed": False},
    } == dump["schedulingState"]
    assert {"kubernetes.io/hostname": "n1", "zone": "a"} == dump["nodes"]["n1"]["labels"]
    assert "licorne" == dump["pods"]["shop/waits"]["schedulerName"]
    assert 1000 == dump["priorityClasses"]["high"]["value"]
