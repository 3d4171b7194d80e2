"""What a scheduler asks of an API server: the documents that are sent, and what becomes of the objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from support.kubernetes.stub_clients import PODS, a_pod
from support.kubernetes.stub_server import StubApiServer

from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.client.errors import ApiError, ApiUnreachable
from licorne.proxy.kubernetes.objects import Lease, LeaseSpec, ObjectMeta

EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def test_a_pod_is_bound(stub: StubApiServer, calls: ApiCalls) -> None:
    """The request names pod, uid and node."""
    uid = stub.add(PODS, a_pod())["metadata"]["uid"]

    calls.bind("default", "p", uid, "n1")

    [request] = stub.asked("POST", f"{PODS}/p/binding")
    sent = {
        "metadata": {"name": "p", "namespace": "default", "uid": uid},
        "target": {"name": "n1"},
        "apiVersion": "v1",
        "kind": "Binding",
    }
    assert (sent, "n1") == (json.loads(request.body), calls.get_pod("default", "p").spec.node_name)


def bind(calls: ApiCalls) -> None:
    calls.bind("default", "p", "another", "n1")


def delete(calls: ApiCalls) -> object:
    return calls.delete_pod("default", "p", "another")


def evict(calls: ApiCalls) -> object:
    return calls.evict_pod("default", "p", "another")


def set_condition(calls: ApiCalls) -> object:
    return calls.patch_pod_condition("default", "p", "another", {"type": "PodScheduled", "status": "False"})


def set_phase(calls: ApiCalls) -> object:
    return calls.patch_pod_phase("default", "p", "another", phase="Failed", reason="r", message="m")


ABOUT_A_POD: Final[list[Callable[[ApiCalls], object]]] = [bind, delete, evict, set_condition, set_phase]


@pytest.mark.parametrize("call", ABOUT_A_POD)
def test_a_pod_with_another_uid_is_not_touched(
    stub: StubApiServer, calls: ApiCalls, call: Callable[[ApiCalls], object]
) -> None:
    """It was created again under the name of the one that is meant."""
    pod = stub.add(PODS, a_pod())

    with pytest.raises(ApiError, match=r"409 Conflict: .*(UID|uid)"):
        call(calls)

    assert pod == stub.get(f"{PODS}/p")


def test_a_second_bind_is_refused(stub: StubApiServer, calls: ApiCalls) -> None:
    """Also to the same node: the sentence says which it is."""
    uid = stub.add(PODS, a_pod(node="n1"))["metadata"]["uid"]

    with pytest.raises(ApiError, match=r'409 Conflict: .* pod p is already assigned to node "n1"'):
        calls.bind("default", "p", uid, "n1")


def test_a_bind_whose_answer_is_lost_is_not_repeated(stub: StubApiServer, calls: ApiCalls) -> None:
    """To read the pod tells that it was carried out."""
    uid = stub.add(PODS, a_pod())["metadata"]["uid"]
    stub.lose_answer("POST", f"{PODS}/p/binding")

    with pytest.raises(ApiUnreachable):
        calls.bind("default", "p", uid, "n1")

    assert "n1" == calls.get_pod("default", "p").spec.node_name


@dataclass(frozen=True)
class Ending:
    """How a pod is ended, and what is left of it."""

    node: str
    grace_period_seconds: int | None
    left: list[int]
    """The grace of the pods that are still there."""


ENDINGS: Final = {
    "a pod that is not bound is gone at once": Ending("", None, []),
    "a bound pod stays until its node has ended it": Ending("n1", None, [30]),
    "a bound pod gets the time that is given": Ending("n1", 5, [5]),
    "a bound pod without time is gone at once": Ending("n1", 0, []),
}


@pytest.mark.parametrize("end", [ApiCalls.delete_pod, ApiCalls.evict_pod])
@pytest.mark.parametrize("case", ENDINGS.values(), ids=ENDINGS)
def test_a_pod_is_ended(stub: StubApiServer, calls: ApiCalls, case: Ending, end: Callable[..., bool]) -> None:
    """By a deletion, or by an eviction that a budget allows."""
    uid = stub.add(PODS, a_pod(node=case.node))["metadata"]["uid"]

    was_there = end(calls, "default", "p", uid, grace_period_seconds=case.grace_period_seconds)

    left = [pod["metadata"]["deletionGracePeriodSeconds"] for pod in stub.objects(PODS)]
    assert (True, case.left) == (was_there, left)


def test_a_pod_that_is_gone_needs_no_end(calls: ApiCalls) -> None:
    """Neither call fails."""
    found = calls.delete_pod("default", "p", "uid"), calls.evict_pod("default", "p", "uid")

    assert found == (False, False)


def test_a_budget_that_forbids_an_eviction_is_no_reason_to_wait(stub: StubApiServer, calls: ApiCalls) -> None:
    """The caller chooses another pod, or waits."""
    uid = stub.add(PODS, a_pod())["metadata"]["uid"]
    stub.pods.evictions_allowed = 0
    stub.fail("POST", f"{PODS}/p/eviction", status=429, message="not yet", headers={"Retry-After": "0"})

    sentences = []
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            calls.evict_pod("default", "p", uid)
        sentences.append(caught.value.message)

    forbidden = "Cannot evict pod as it would violate the pod's disruption budget."
    assert (["not yet", forbidden], 2) == (sentences, len(stub.requests))


def test_a_condition_is_set_beside_the_others(stub: StubApiServer, calls: ApiCalls) -> None:
    """The one of its type is replaced."""
    pod = a_pod()
    pod["status"]["conditions"] = [
        {"type": "Ready", "status": "False"},
        {"type": "PodScheduled", "status": "False", "reason": "Old"},
    ]
    uid = stub.add(PODS, pod)["metadata"]["uid"]

    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}
    answered = calls.patch_pod_condition("default", "p", uid, condition)

    conditions = [(each.type, each.status, each.reason) for each in answered.status.conditions]
    assert conditions == [("Ready", "False", ""), ("PodScheduled", "False", "Unschedulable")]


def test_a_name_is_one_step_of_a_path(calls: ApiCalls) -> None:
    """Whatever is in it, it is no other path."""
    with pytest.raises(ApiError, match=r'404 NotFound: pods "a/\.\./b" not found'):
        calls.get_pod("default", "a/../b")


def test_a_pod_is_failed_with_a_reason(stub: StubApiServer, calls: ApiCalls) -> None:
    """Its conditions stay."""
    pod = a_pod()
    pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    uid = stub.add(PODS, pod)["metadata"]["uid"]

    failed = calls.patch_pod_phase("default", "p", uid, phase="Failed", reason="Timeout", message="too late")

    status = {
        "phase": "Failed",
        "reason": "Timeout",
        "message": "too late",
        "conditions": pod["status"]["conditions"],
    }
    assert (status, True) == (stub.get(f"{PODS}/p")["status"], failed.is_terminal)


def test_a_pod_is_created_with_a_name_of_the_server(calls: ApiCalls) -> None:
    """It is Pending, whatever the document says of its status."""
    document = a_pod(phase="Running")
    document["metadata"] = {"generateName": "tg-", "labels": {"a": "b"}}

    created = calls.create_pod("default", document)

    found = created.metadata.name[:3], created.metadata.labels, created.status.phase
    assert found == ("tg-", {"a": "b"}, "Pending")
    assert created == calls.get_pod("default", created.metadata.name)


def test_a_pod_that_is_no_pod_is_refused(calls: ApiCalls) -> None:
    """The sentence names the field."""
    with pytest.raises(ApiError, match=r"422 Invalid: .*spec\.containers: Required value"):
        calls.create_pod("default", {"metadata": {"name": "p"}, "spec": {}})


def test_an_event_that_happens_again_becomes_a_series(stub: StubApiServer, calls: ApiCalls) -> None:
    """The rest of it stays."""
    document = {"metadata": {"name": "p.1"}, "reason": "FailedScheduling", "note": "no node"}
    created = calls.create_event("default", document)

    patched = calls.patch_event_series(
        "default", created.metadata.name, count=2, last_observed_time="2026-01-01T00:00:00.000000Z"
    )

    kept = stub.get(f"{EVENTS}/p.1")
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    assert (series, "no node") == (kept["series"], kept["note"])
    assert (None, 2) == (created.series, patched.series and patched.series.count)


def test_a_lease_is_held_by_who_writes_its_last_version(stub: StubApiServer, calls: ApiCalls) -> None:
    """Of two that have read the same version, the second to write is refused."""
    metadata = ObjectMeta(name="licorne", namespace="default")
    created = calls.create_lease(
        Lease(metadata=metadata, spec=LeaseSpec(holder_identity="a", lease_duration_seconds=15))
    )
    read = calls.get_lease("default", "licorne")
    held = Lease(metadata=read.metadata, spec=LeaseSpec(holder_identity="b", lease_duration_seconds=15))

    updated = calls.update_lease(held)
    with pytest.raises(ApiError, match=r"409 Conflict: .* the object has been modified"):
        calls.update_lease(held)

    spec = {"holderIdentity": "b", "leaseDurationSeconds": 15}
    assert (created, updated.spec, spec) == (read, held.spec, stub.get(f"{LEASES}/licorne")["spec"])


def test_an_answer_that_is_no_object_leaves_the_outcome_unknown(calls: ApiCalls) -> None:
    """A proxy may have written it; the caller reads again."""
    with pytest.raises(ApiUnreachable, match="the answer cannot be read as Pod: "):
        calls.create_pod("default", {"metadata": {"name": "p"}, "spec": {"containers": [7]}})
