"""The client of the scheduler of pods against a real API server, which is stricter than the stub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from support.kubernetes.api import Api
from support.kubernetes.cluster import Cluster
from support.kubernetes.manifests import pod
from support.waiting import wait_until

from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.errors import ApiError, ApiUnreachable
from licorne.proxy.kubernetes.client.kubeconfig import kubeconfig_credentials
from licorne.proxy.kubernetes.client.list_watch import ListWatch, Read, WatchChange, WatchedResource
from licorne.proxy.kubernetes.objects import Lease, LeaseSpec, ObjectMeta, Pod

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def client(cluster: Cluster, tmp_path: Path) -> Iterator[ApiClient]:
    """A client with the administrator's file of kubectl."""
    credentials = kubeconfig_credentials([cluster.kubeconfig(tmp_path / "config")], None, {})
    with ApiClient(credentials, patience_seconds=0.0) as client:
        yield client


@pytest.fixture
def calls(client: ApiClient) -> ApiCalls:
    return ApiCalls(client)


def test_a_pod_is_created_bound_and_deleted(calls: ApiCalls, namespace: str) -> None:
    """A second bind is refused. The pod stays until a kubelet has ended it, here without grace."""
    document = {**pod(""), "metadata": {"generateName": "p-"}}
    created = calls.create_pod(namespace, document)
    name, uid = created.metadata.name, created.metadata.uid

    calls.bind(namespace, name, uid, "n1")
    with pytest.raises(ApiError, match=r'409 Conflict: .*already assigned to node "n1"'):
        calls.bind(namespace, name, uid, "n1")
    bound = calls.get_pod(namespace, name)
    deleted = [
        calls.delete_pod(namespace, name, uid),
        calls.delete_pod(namespace, name, uid, grace_period_seconds=0),
        calls.delete_pod(namespace, name, uid, grace_period_seconds=0),
    ]

    assert ("n1", [True, True, False]) == (bound.spec.node_name, deleted)


ABOUT_A_POD: Final[dict[str, Callable[[ApiCalls, str, str], object]]] = {
    "bind": lambda calls, namespace, uid: calls.bind(namespace, "p", uid, "n1"),
    "delete": lambda calls, namespace, uid: calls.delete_pod(namespace, "p", uid),
    "evict": lambda calls, namespace, uid: calls.evict_pod(namespace, "p", uid),
    "condition": lambda calls, namespace, uid: calls.patch_pod_condition(
        namespace, "p", uid, {"type": "PodScheduled", "status": "False"}
    ),
    "phase": lambda calls, namespace, uid: calls.patch_pod_phase(
        namespace, "p", uid, phase="Failed", reason="r", message="m"
    ),
}


@pytest.mark.parametrize("call", ABOUT_A_POD.values(), ids=ABOUT_A_POD)
def test_a_pod_with_another_uid_is_not_touched(
    calls: ApiCalls, namespace: str, call: Callable[[ApiCalls, str, str], object]
) -> None:
    """Each of the calls says which pod it means."""
    created = calls.create_pod(namespace, pod("p"))
    other = "00000000-0000-0000-0000-000000000000"

    with pytest.raises(ApiError, match=r"409 Conflict: .*(uid|UID)"):
        call(calls, namespace, other)

    assert created == calls.get_pod(namespace, "p")


def test_a_pod_gets_a_condition_then_a_phase(calls: ApiCalls, namespace: str) -> None:
    """Both are patches of its status."""
    uid = calls.create_pod(namespace, pod("p")).metadata.uid
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no node",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }

    waits = calls.patch_pod_condition(namespace, "p", uid, condition)
    failed = calls.patch_pod_phase(namespace, "p", uid, phase="Failed", reason="Timeout", message="late")

    conditions = [(each.type, each.status, each.reason, each.message) for each in failed.status.conditions]
    assert conditions == [("PodScheduled", "False", "Unschedulable", "no node")]
    assert ("Pending", "Failed", "Timeout") == (waits.status.phase, failed.status.phase, failed.status.reason)


def test_a_disruption_budget_forbids_an_eviction(calls: ApiCalls, api: Api, namespace: str) -> None:
    """The error comes at once. A pod that no budget is about is evicted."""
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}}
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    api.ok("POST", path, {"metadata": {"name": "b"}, "spec": budget})
    document = pod("kept")
    document["metadata"]["labels"] = {"app": "kept"}
    kept = calls.create_pod(namespace, document)
    free = calls.create_pod(namespace, pod("free"))
    for each in (kept, free):
        calls.bind(namespace, each.metadata.name, each.metadata.uid, "n1")
        calls.patch_pod_phase(
            namespace, each.metadata.name, each.metadata.uid, phase="Running", reason="", message=""
        )

    with pytest.raises(ApiError, match="429 TooManyRequests"):
        calls.evict_pod(namespace, "kept", kept.metadata.uid)

    assert calls.evict_pod(namespace, "free", free.metadata.uid)


def test_an_event_that_happens_again_becomes_a_series(calls: ApiCalls, namespace: str) -> None:
    """Of `events.k8s.io/v1`, which is strict about what an event has."""
    document = {
        "metadata": {"name": "p.1"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "licorne",
        "reportingInstance": "licorne-0",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "type": "Warning",
        "note": "no node",
        "regarding": {"kind": "Pod", "namespace": namespace, "name": "p", "apiVersion": "v1"},
    }
    created = calls.create_event(namespace, document)

    patched = calls.patch_event_series(
        namespace, created.metadata.name, count=2, last_observed_time="2026-01-01T00:00:01.000000Z"
    )

    assert (None, 2) == (created.series, patched.series and patched.series.count)


def test_a_lease_is_held_by_who_writes_its_last_version(calls: ApiCalls, namespace: str) -> None:
    """Of two that have read the same version, the second to write is refused."""
    spec = LeaseSpec(
        holder_identity="a",
        lease_duration_seconds=15,
        acquire_time="2026-01-01T00:00:00.000000Z",
        renew_time="2026-01-01T00:00:00.000000Z",
    )
    calls.create_lease(Lease(metadata=ObjectMeta(name="licorne", namespace=namespace), spec=spec))
    read = calls.get_lease(namespace, "licorne")
    taken = Lease(metadata=read.metadata, spec=LeaseSpec(holder_identity="b", lease_duration_seconds=15))

    updated = calls.update_lease(taken)
    with pytest.raises(ApiError, match="409 Conflict"):
        calls.update_lease(taken)

    assert (spec, taken.spec) == (read.spec, updated.spec)


@contextmanager
def followed(
    client: ApiClient, namespace: str, changes: list[str], lists: list[int]
) -> Iterator[ListWatch[Pod]]:
    """Follow the pods of a namespace, two a page; note changes, and the size of each list."""

    def note(batch: Sequence[tuple[WatchChange, Read[Pod]]]) -> None:
        changes.extend(f"{change} {found.metadata.name}" for change, found in batch)

    watch = ListWatch(
        client,
        WatchedResource(f"/api/v1/namespaces/{namespace}/pods", Pod, field_selector="spec.nodeName="),
        on_list=lambda pods, _: lists.append(len(pods)),
        on_events=note,
        page_size=2,
        backoff_limits_seconds=(0.1, 1.0),
    )
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def test_pods_are_listed_and_followed(client: ApiClient, calls: ApiCalls, namespace: str) -> None:
    """A pod that is bound leaves those that have no node."""
    for name in ("a", "b", "c"):
        calls.create_pod(namespace, pod(name))
    changes: list[str] = []
    lists: list[int] = []

    with followed(client, namespace, changes, lists):
        wait_until(lambda: lists)
        uid = calls.create_pod(namespace, pod("d")).metadata.uid
        calls.bind(namespace, "d", uid, "n1")
        wait_until(lambda: len(changes) == 2)

    assert ([3], ["ADDED d", "DELETED d"]) == (lists, changes)


def test_pods_are_followed_across_a_crash_of_the_server(
    client: ApiClient, calls: ApiCalls, cluster: Cluster, namespace: str
) -> None:
    """While it is away that is noted; then a watch goes on, or the pods are listed anew."""
    changes: list[str] = []
    lists: list[int] = []
    with followed(client, namespace, changes, lists) as watch:
        wait_until(lambda: lists)
        cluster.kill_api_server()
        wait_until(lambda: watch.failure)
        failure = type(watch.failure)
        cluster.start_api_server()
        calls.create_pod(namespace, pod("late"))
        wait_until(lambda: "ADDED late" in changes or 1 in lists)

        assert (ApiUnreachable, None) == (failure, watch.failure)


def test_a_watch_from_a_version_that_is_too_old_says_410(client: ApiClient, namespace: str) -> None:
    """As the first line, or as the status."""
    query = {"watch": "true", "resourceVersion": "1"}
    try:
        stream = client.open_lines(f"/api/v1/namespaces/{namespace}/pods", query, 10.0)
    except ApiError as error:
        found = error.status
    else:
        [line] = stream.read()
        stream.close()
        found = 410 if b'"code":410' in line else 0

    assert found == 410
