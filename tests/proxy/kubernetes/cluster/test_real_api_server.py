"""What a real API server answers where one would expect something else; a scheduler of pods must know it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
from support.kubernetes.api import STRATEGIC_MERGE_PATCH, Api
from support.kubernetes.cluster import Cluster
from support.kubernetes.kubelet import Kubelet
from support.kubernetes.manifests import binding, node, pod

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def pods(namespace: str) -> str:
    """Return the path of the pods of the test."""
    return f"/api/v1/namespaces/{namespace}/pods"


def conditions(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the status of each condition of a pod, by its type."""
    return {each["type"]: each["status"] for each in document["status"].get("conditions", [])}


def test_a_pod_can_be_bound_to_a_node_that_does_not_exist(api: Api, pods: str) -> None:
    """The server says 201, and the pod waits for ever for a kubelet of that name."""
    created = api.ok("POST", pods, pod("a"))

    status, _ = api.request("POST", f"{pods}/a/binding", binding(created, "no-such-node"))

    bound = api.ok("GET", f"{pods}/a")
    assert (201, "no-such-node", "Pending") == (status, bound["spec"]["nodeName"], bound["status"]["phase"])


def test_the_server_itself_writes_that_a_bound_pod_is_scheduled(api: Api, pods: str) -> None:
    """A scheduler writes this condition only while it is false."""
    created = api.ok("POST", pods, pod("a"))
    before = conditions(created)

    api.ok("POST", f"{pods}/a/binding", binding(created, "n"))

    assert ({}, {"PodScheduled": "True"}) == (before, conditions(api.ok("GET", f"{pods}/a")))


def test_409_means_that_a_pod_is_bound_or_that_it_is_another_pod(api: Api, pods: str) -> None:
    """The two can be told apart only by reading the pod: in one case it has a node."""
    bound = api.ok("POST", pods, pod("bound"))
    api.ok("POST", f"{pods}/bound/binding", binding(bound, "n"))
    other = api.ok("POST", pods, pod("other"))
    other["metadata"]["uid"] = bound["metadata"]["uid"]

    answers = [
        api.request("POST", f"{pods}/{each['metadata']['name']}/binding", binding(each, "n"))
        for each in (bound, other)
    ]

    assert [(409, "Conflict")] * 2 == [(status, answer["reason"]) for status, answer in answers]
    assert ["n", None] == [
        api.ok("GET", f"{pods}/{name}")["spec"].get("nodeName") for name in ("bound", "other")
    ]


def test_a_pod_with_another_uid_is_not_deleted(api: Api, pods: str) -> None:
    """The precondition protects the next pod of the same name."""
    api.ok("POST", pods, pod("a"))

    status, _ = api.request("DELETE", f"{pods}/a", {"preconditions": {"uid": "an-old-one"}})

    assert (409, 200) == (status, api.request("GET", f"{pods}/a")[0])


def test_an_unbound_pod_is_gone_as_soon_as_it_is_deleted(api: Api, pods: str) -> None:
    """No kubelet has anything to stop."""
    api.ok("POST", pods, pod("a"))

    api.ok("DELETE", f"{pods}/a")

    assert 404 == api.request("GET", f"{pods}/a")[0]


def test_a_bound_pod_stays_until_its_kubelet_deletes_it(api: Api, pods: str) -> None:
    """Until then it uses its node, and says since when it is to end."""
    created = api.ok("POST", pods, pod("a"))
    api.ok("POST", f"{pods}/a/binding", binding(created, "n"))

    api.ok("DELETE", f"{pods}/a")
    ending = api.ok("GET", f"{pods}/a")
    api.ok("DELETE", f"{pods}/a", {"gracePeriodSeconds": 0})

    assert "deletionTimestamp" in ending["metadata"]
    assert 404 == api.request("GET", f"{pods}/a")[0]


def test_a_patch_of_one_condition_keeps_the_others(api: Api, pods: str) -> None:
    """A strategic merge knows conditions by their type; kubelets and schedulers write beside each other."""
    api.ok("POST", pods, pod("a"))
    for name, value in (("PodScheduled", "False"), ("Ready", "False"), ("PodScheduled", "True")):
        patch = {"status": {"conditions": [{"type": name, "status": value}]}}
        api.ok("PATCH", f"{pods}/a/status", patch, STRATEGIC_MERGE_PATCH)

    assert {"PodScheduled": "True", "Ready": "False"} == conditions(api.ok("GET", f"{pods}/a"))


def test_a_service_account_may_do_nothing_that_no_role_allows(cluster: Cluster, namespace: str) -> None:
    """Roles are on, so a missing rule of ours shows in a test."""
    with closing(cluster.api(cluster.service_account_token(namespace, "stranger"))) as stranger:
        status, answer = stranger.request("GET", "/api/v1/nodes")

    assert (403, "Forbidden") == (status, answer["reason"])


def test_what_was_answered_outlives_the_api_server(
    cluster: Cluster, api: Api, pods: str, kubelet: Kubelet
) -> None:
    """And the kubelet goes on when the server is back: kills of the server can be tested."""
    kubelet.add_node(node("n"))
    created = api.ok("POST", pods, pod("a"))

    cluster.kill_api_server()
    cluster.start_api_server()

    api.ok("POST", f"{pods}/a/binding", binding(created, "n"))
    api.until(f"{pods}/a", lambda document: document["status"]["phase"] == "Running")
    assert ("n",) == kubelet.places(created["metadata"]["uid"])
