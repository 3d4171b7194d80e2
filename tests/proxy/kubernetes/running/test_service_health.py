"""When a process has to be started anew, and when it could schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from support.kubernetes.stub_clients import PODS, a_pod, client_of
from support.kubernetes.stub_server import StubApiServer
from support.waiting import WAIT_SECONDS, wait_until

from licorne import Scheduler
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.running import service as module
from licorne.proxy.kubernetes.running.coordinator import Coordinator, PodSchedulerOptions
from licorne.proxy.kubernetes.running.service import LeaderElection, PodService

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with StubApiServer() as server:
        server.add(PODS, a_pod("own"))
        yield server


@pytest.fixture
def start(stub: StubApiServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PodService]]:
    """Return a function that starts a process in the pod `own`; it is stopped behind the test."""
    monkeypatch.setattr(module, "_ANSWER_SECONDS", WAIT_SECONDS)
    with ExitStack() as stack:

        def started(*, waits_for_lead: bool = False, scheduler_name: str = "licorne") -> PodService:
            scheduler = stack.enter_context(Scheduler())
            client = stack.enter_context(client_of(stub, patience_seconds=0))
            defaults = KubernetesSettings(scheduler_name=scheduler_name)
            options = PodSchedulerOptions(identity="one", waits_for_lead=waits_for_lead, defaults=defaults)
            service = PodService(scheduler, client, options, on_lost=lambda: None, pod_name="own")
            return stack.enter_context(service)

        yield started


def test_a_process_that_schedules_is_ready_and_works(start: Callable[..., PodService]) -> None:
    """Its label is written, and the scheduler has the cluster."""
    service = start()

    wait_until(lambda: service.why_not_ready() == "")
    assert (True, "") == (service.pods.is_ready, service.why_stuck())


def test_what_is_left_out_is_in_readyz_and_metrics(
    stub: StubApiServer, start: Callable[..., PodService]
) -> None:
    """With the reason in an event on the object."""
    stub.add(
        "/api/v1/nodes", {"metadata": {"name": "bad"}, "status": {"allocatable": {"cpu": "1", "vcore": "1"}}}
    )

    service = start()

    wait_until(lambda: service.why_not_ready() == "" and service.ready_note())
    assert service.ready_note().startswith("left out, since they cannot be read: 1 Node;")
    samples = {family.name: family.samples for family in service.metrics()}
    (counted,) = samples["licorne_kubernetes_objects_left_out"]
    assert ({"kind": "Node"}, 1.0) == (counted.labels, counted.value)
    wait_until(lambda: stub.objects("/apis/events.k8s.io/v1/events"))
    (event,) = stub.objects("/apis/events.k8s.io/v1/events")
    assert ("Node", "bad", "Unreadable") == (
        event["regarding"]["kind"],
        event["regarding"]["name"],
        event["reason"],
    )


def test_a_process_whose_start_fails_is_not_ready(
    stub: StubApiServer, start: Callable[..., PodService]
) -> None:
    """It says so, and the configuration has an event."""
    maps = "/api/v1/namespaces/default/configmaps"
    stub.add(maps, {"metadata": {"name": "yunikorn-configs"}, "data": {"queues.yaml": "partitions: 7"}})

    service = start()

    expected = "the start has failed, and is tried again: the log gives the reason"
    wait_until(lambda: service.why_not_ready() == expected)


def test_a_standby_is_ready_when_it_has_listed_all(
    stub: StubApiServer, start: Callable[..., PodService]
) -> None:
    """It does not schedule, since another one holds the lease."""
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 10}
    stub.add(LEASES, {"metadata": {"name": "licorne"}, "spec": spec})

    service = start(waits_for_lead=True)

    wait_until(lambda: service.why_not_ready() == "")
    assert (False, "") == (service.pods.is_ready, service.why_stuck())


def test_a_process_for_other_pods_leads_beside_another_one(
    stub: StubApiServer, start: Callable[..., PodService]
) -> None:
    """Its name of a scheduler is another one, and so is its lease."""
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 10}
    stub.add(LEASES, {"metadata": {"name": "licorne"}, "spec": spec})

    service = start(waits_for_lead=True, scheduler_name="other")

    wait_until(lambda: service.leads and service.pods.is_ready)


def test_a_process_without_a_list_is_not_ready(stub: StubApiServer, start: Callable[..., PodService]) -> None:
    """It says what it waits for."""
    stub.fail("GET", "/api/v1/nodes", status=403, times=None)

    service = start()

    expected = "the scheduler does not have the nodes and pods of the cluster yet"
    wait_until(lambda: service.why_not_ready() == expected)


def test_a_process_whose_label_is_refused_is_not_ready(
    stub: StubApiServer, start: Callable[..., PodService]
) -> None:
    """The service would not lead to it, or to one too many."""
    stub.fail("PATCH", f"{PODS}/own", status=403, times=None)

    service = start()

    wait_until(lambda: service.pods.is_ready)
    assert "the label of the pod is not written yet" == service.why_not_ready()


def test_a_process_that_hangs_is_stuck(
    start: Callable[..., PodService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its one thread carries nothing out."""
    goes_on = threading.Event()
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.1)
    monkeypatch.setattr(Coordinator, "flush", lambda _: goes_on.wait(WAIT_SECONDS))

    service = start()

    wait_until(lambda: service.why_stuck() == "the scheduler of pods has carried out nothing for 0.1 s")
    goes_on.set()
    wait_until(lambda: service.why_stuck() == "")


def test_a_process_that_takes_no_part_in_the_election_is_stuck(
    start: Callable[..., PodService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault has ended the thread of the lease, and nobody would notice."""
    monkeypatch.setattr(LeaderElection, "_run", lambda _: None)

    service = start(waits_for_lead=True)

    wait_until(lambda: service.why_stuck() == "the thread of the lease has ended")
