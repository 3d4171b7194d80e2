"""The label of the pod that a process runs in follows what the process does, also where writing it fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.kubernetes.stub_clients import PODS, a_pod, client_of
from support.kubernetes.stub_server import StubApiServer
from support.waiting import wait_until

from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.running import service as module
from licorne.proxy.kubernetes.running.service import ROLE_LABEL, OwnPod, PodRole


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubApiServer]:
    """Return a server with the pod `p`, which was the leader before its container was started anew."""
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0.05)
    with StubApiServer() as server:
        server.add(PODS, a_pod("p", labels={ROLE_LABEL: "leader", "app": "licorne"}))
        yield server


@pytest.fixture
def own_pod(stub: StubApiServer) -> Iterator[OwnPod]:
    """Return what keeps the label; it is stopped behind the test."""
    with client_of(stub, patience_seconds=0) as client:
        pod = OwnPod(ApiCalls(client), "default", "p", PodRole.STANDBY)
        pod.start()
        yield pod
        pod.stop()


def labels_of(stub: StubApiServer) -> object:
    """Return the labels of the pod."""
    return stub.get(f"{PODS}/p")["metadata"]["labels"]


def test_a_process_begins_by_taking_the_label_of_an_earlier_one_back(
    stub: StubApiServer, own_pod: OwnPod
) -> None:
    """Other labels stay."""
    wait_until(lambda: own_pod.is_marked)
    assert {ROLE_LABEL: "standby", "app": "licorne"} == labels_of(stub)


def test_a_process_that_leads_says_so(stub: StubApiServer, own_pod: OwnPod) -> None:
    """It is not marked until that is written."""
    wait_until(lambda: own_pod.is_marked)

    own_pod.become(PodRole.LEADER)

    wait_until(lambda: own_pod.is_marked)
    assert {ROLE_LABEL: "leader", "app": "licorne"} == labels_of(stub)


def test_a_label_that_is_refused_is_written_later(stub: StubApiServer, own_pod: OwnPod) -> None:
    """Whatever the API server says."""
    wait_until(lambda: own_pod.is_marked)
    stub.fail("PATCH", f"{PODS}/p", status=403, times=3)

    own_pod.become(PodRole.LEADER)

    wait_until(lambda: own_pod.is_marked)
    assert {ROLE_LABEL: "leader", "app": "licorne"} == labels_of(stub)
    assert 5 == len(stub.asked("PATCH", f"{PODS}/p"))
