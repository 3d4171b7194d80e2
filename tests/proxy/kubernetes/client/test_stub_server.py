"""The stub of an API server answers as a real one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from support.kubernetes.stub_clients import PODS, a_pod
from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.stub_store import Document, merged

from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.errors import ApiError, ApiUnreachable

NODES: Final = "/api/v1/nodes"
ITEM: Final = f"{PODS}/p"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class Refused:
    """A request, and the refusal."""

    method: str
    path: str
    document: Document
    status: int
    reason: str
    content_type: str = "application/json"


BINDING: Final[Document] = {"target": {"kind": "Node", "name": "n2"}}
REFUSALS: Final = {
    "an object that is not there": Refused("GET", f"{PODS}/q", {}, 404, "NotFound"),
    "a path that is none": Refused("GET", "/metrics", {}, 404, "NotFound"),
    "a name that is there": Refused("POST", PODS, a_pod(), 409, "AlreadyExists"),
    "a pod without containers": Refused("POST", PODS, {"metadata": {"name": "q"}}, 422, "Invalid"),
    "an object without a name": Refused("POST", NODES, {}, 422, "Invalid"),
    "a replacement of another version": Refused("PUT", ITEM, a_pod(resourceVersion="1"), 409, "Conflict"),
    "a replacement of another uid": Refused("PUT", ITEM, a_pod(uid="other"), 409, "Conflict"),
    "a patch of another version": Refused(
        "PATCH", ITEM, {"metadata": {"resourceVersion": "1"}}, 409, "Conflict", MERGE
    ),
    "a patch of the uid": Refused("PATCH", ITEM, {"metadata": {"uid": "o"}}, 422, "Invalid", MERGE),
    "a patch of an unknown type": Refused("PATCH", ITEM, {}, 415, "UnsupportedMediaType"),
    "a deletion of another uid": Refused("DELETE", ITEM, {"preconditions": {"uid": "o"}}, 409, "Conflict"),
    "a bind of what is bound": Refused("POST", f"{ITEM}/binding", BINDING, 409, "Conflict"),
    "a bind of a pod that is not there": Refused("POST", f"{PODS}/q/binding", BINDING, 404, "NotFound"),
    "a part that there is not": Refused("POST", f"{ITEM}/exec", {}, 404, "NotFound"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS)
def test_it_refuses(stub: StubApiServer, client: ApiClient, case: Refused) -> None:
    """With the status and the reason of Kubernetes; nothing has changed."""
    stub.add(PODS, a_pod(node="n1"))
    version = stub.store.version

    with pytest.raises(ApiError) as caught:
        client.request(
            case.method, case.path, body=json.dumps(case.document).encode(), content_type=case.content_type
        )

    assert (case.status, case.reason) == (caught.value.status, caught.value.reason)
    assert version == stub.store.version


def test_a_bind_sets_node_and_condition(stub: StubApiServer, client: ApiClient) -> None:
    """Also to a node that there is not. The phase is set by a kubelet."""
    stub.add(PODS, a_pod())

    client.request("POST", f"{ITEM}/binding", body=json.dumps(BINDING).encode())

    pod = stub.get(ITEM)
    conditions = [(each["type"], each["status"]) for each in pod["status"]["conditions"]]
    found = pod["spec"]["nodeName"], pod["status"]["phase"], conditions
    assert found == ("n2", "Pending", [("PodScheduled", "True")])


def test_a_pod_that_is_being_deleted_is_not_bound(stub: StubApiServer, client: ApiClient) -> None:
    """The sentence says so."""
    stub.add(PODS, a_pod(deletionTimestamp="2026-01-01T00:00:00Z"))

    with pytest.raises(ApiError, match="is being deleted, cannot be assigned to a host"):
        client.request("POST", f"{ITEM}/binding", body=json.dumps(BINDING).encode())


def test_a_bound_pod_leaves_when_its_deletion_is_finished(stub: StubApiServer, client: ApiClient) -> None:
    """As a kubelet does; one that has ended leaves at once."""
    stub.add(PODS, a_pod(node="n1"))
    stub.add(PODS, a_pod("ended", node="n1", phase="Succeeded"))
    client.request("DELETE", ITEM)
    client.request("DELETE", f"{PODS}/ended")
    left = [pod["metadata"]["name"] for pod in stub.objects(PODS)]

    assert (["p"], 1, []) == (left, stub.finish_deletions(), stub.objects(PODS))


def test_a_budget_allows_a_number_of_evictions(stub: StubApiServer, client: ApiClient) -> None:
    """The next is refused."""
    stub.pods.evictions_allowed = 1
    for name in ("a", "b"):
        stub.add(PODS, a_pod(name))

    client.request("POST", f"{PODS}/a/eviction", body=b"{}")
    with pytest.raises(ApiError, match="429 TooManyRequests"):
        client.request("POST", f"{PODS}/b/eviction", body=b"{}", patience_seconds=0.0)

    assert ["b"] == [pod["metadata"]["name"] for pod in stub.objects(PODS)]


def test_the_status_is_written_by_its_own_path(stub: StubApiServer, client: ApiClient) -> None:
    """A patch of the object leaves the status, one of the status leaves the rest."""
    stub.add(NODES, {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": {"cpu": "1"}}})
    patch = {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": "2"}}}
    found = []
    for path in (f"{NODES}/n", f"{NODES}/n/status"):
        client.request("PATCH", path, body=json.dumps(patch).encode(), content_type=STRATEGIC)
        node = stub.get(f"{NODES}/n")
        found.append((node["spec"], node["status"]["allocatable"]["cpu"]))

    assert found == [({"unschedulable": True}, "1"), ({"unschedulable": True}, "2")]


def test_a_change_that_changes_nothing_makes_no_version(stub: StubApiServer, client: ApiClient) -> None:
    """And no event."""
    stub.add(PODS, a_pod())
    version = stub.store.version

    client.request("PATCH", ITEM, body=b'{"spec": {}}', content_type=MERGE)

    assert version == stub.store.version


def test_collections_of_namespaces_are_parts_of_the_whole(stub: StubApiServer, client: ApiClient) -> None:
    """And namespaces are objects themselves."""
    stub.add("/api/v1/namespaces", {"metadata": {"name": "a"}})
    for namespace in ("a", "b"):
        stub.add(f"/api/v1/namespaces/{namespace}/pods", a_pod())

    def names(path: str) -> list[str]:
        items = json.loads(client.request("GET", path))["items"]
        return [f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}" for each in items]

    paths = ("/api/v1/namespaces", "/api/v1/namespaces/a/pods", "/api/v1/pods")
    assert [["/a"], ["a/p"], ["a/p", "b/p"]] == [names(path) for path in paths]


SELECTORS: Final[dict[str, tuple[dict[str, str], list[str]]]] = {
    "a label that is equal": ({"labelSelector": "app=x"}, ["a"]),
    "a label that differs": ({"labelSelector": "app!=x"}, ["b"]),
    "a label that is there": ({"labelSelector": "app"}, ["a"]),
    "a label that is not there": ({"labelSelector": "!app"}, ["b"]),
    "a field that is empty": ({"fieldSelector": "spec.nodeName="}, ["b"]),
    "a field that differs": ({"fieldSelector": "status.phase!=Running,metadata.name==b"}, ["b"]),
    "both": ({"labelSelector": "app==x", "fieldSelector": "metadata.name=b"}, []),
}


@pytest.mark.parametrize("case", SELECTORS.values(), ids=SELECTORS)
def test_selectors_choose(
    stub: StubApiServer, client: ApiClient, case: tuple[dict[str, str], list[str]]
) -> None:
    """All conditions hold."""
    query, names = case
    stub.add(PODS, a_pod("a", node="n1", phase="Running", labels={"app": "x"}))
    stub.add(PODS, a_pod("b"))

    items = json.loads(client.request("GET", PODS, query=query))["items"]

    assert names == [each["metadata"]["name"] for each in items]


def test_a_page_after_the_history_is_forgotten_is_refused(stub: StubApiServer, client: ApiClient) -> None:
    """The list begins anew."""
    for name in ("a", "b"):
        stub.add(PODS, a_pod(name))
    first = json.loads(client.request("GET", PODS, query={"limit": "1"}))
    stub.forget_history()

    with pytest.raises(ApiError, match="410 Expired"):
        client.request("GET", PODS, query={"limit": "1", "continue": first["metadata"]["continue"]})


@pytest.mark.parametrize("loses", [StubApiServer.drop, StubApiServer.lose_answer])
def test_a_lost_connection_loses_the_request_or_the_answer(
    stub: StubApiServer, client: ApiClient, loses: Callable[..., None]
) -> None:
    """A second attempt shows which it was: the name is there already, or not."""
    loses(stub, "POST", PODS)
    outcomes = []
    for _ in range(2):
        try:
            client.request("POST", PODS, body=json.dumps(a_pod()).encode())
            outcomes.append("created")
        except ApiError as error:
            outcomes.append(error.reason)
        except ApiUnreachable:
            outcomes.append("unknown")

    second = "created" if loses is StubApiServer.drop else "AlreadyExists"
    assert outcomes == ["unknown", second]


MERGES: Final[dict[str, tuple[Document, Document, Document, Document]]] = {
    "values are replaced, and removed by null": (
        {"a": 1, "b": 2, "c": 3},
        {"a": 7, "b": None},
        {"a": 7, "c": 3},
        {"a": 7, "c": 3},
    ),
    "lists are replaced, those with a key are joined": (
        {"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "1"}], "args": [1, 2]},
        {"conditions": [{"type": "B", "status": "2"}], "args": [3]},
        {"conditions": [{"type": "B", "status": "2"}], "args": [3]},
        {"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "2"}], "args": [3]},
    ),
}


@pytest.mark.parametrize("case", MERGES.values(), ids=MERGES)
def test_a_patch_is_merged(case: tuple[Document, Document, Document, Document]) -> None:
    """As JSON merge patches say, or as Kubernetes does for lists with keys."""
    current, patch, plain, by_keys = case

    found = merged(current, patch, by_keys=False), merged(current, patch, by_keys=True)

    assert found == (plain, by_keys)
