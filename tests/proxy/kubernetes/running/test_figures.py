"""The metrics and the log of the scheduler of pods: what they count, and where they are described."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loguru import logger
from support.kubernetes.stepped_cluster import PODS, SETTINGS, SteppedCluster, gang_annotations
from support.kubernetes.stub_clients import a_pod, client_of
from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.webhooks import stub_with_registrations
from support.proxy.prometheus import needs_prometheus, scraping
from support.waiting import wait_until

from licorne import Scheduler
from licorne.proxy.kubernetes.admission.server import AdmissionServer, AdmissionServerOptions
from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.running.coordinator import PodSchedulerOptions
from licorne.proxy.kubernetes.running.figures import PodFigures
from licorne.proxy.kubernetes.running.service import PodService
from licorne.proxy.kubernetes.running.tasks import PhaseEvent, TaskEvent, TaskState
from licorne.proxy.shell.commands.options import write_record
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.rest.running import RestServer

PAGE = Path(__file__).parents[4] / "docs" / "monitoring.md"
OPTIONS = PodSchedulerOptions(defaults=SETTINGS)
BINDING = f"{PODS}/p/binding"


@pytest.fixture
def cluster() -> SteppedCluster:
    return SteppedCluster()


def figures_of(cluster: SteppedCluster) -> PodFigures:
    return cluster.coordinator.figures


def test_a_bind_and_its_failures_are_counted(cluster: SteppedCluster) -> None:
    """Each with the time that the pod has spent in the states before."""
    cluster.add_pod()
    cluster.settle()
    cluster.advance(20)
    cluster.stub.fail("POST", BINDING, status=400)
    for name in ("n1", "n2"):
        cluster.add_node(name)
    cluster.settle()
    figures = figures_of(cluster)
    counts = [figures.task_events[event] for event in (TaskEvent.BIND_FAILED, TaskEvent.BOUND, TaskEvent.END)]
    durations = {state.value: times.figures().durations for state, times in figures.state_times.items()}

    assert ([1, 1, 0], {"New": 1, "Asked": 2, "Binding": 2}) == (counts, durations)
    assert 20 <= figures.state_times[TaskState.ASKED].total_ns / 1e9 < 25


def test_victims_are_counted_once(cluster: SteppedCluster) -> None:
    """However often the scheduler requests the end."""
    cluster.add_node()
    uid = cluster.add_pod()
    cluster.settle()
    ended = si.AllocationRelease(allocationKey=uid, terminationType=si.PREEMPTED_BY_SCHEDULER)
    cluster.coordinator._said("allocations", si.AllocationResponse(released=[ended, ended]))

    assert {"PREEMPTED_BY_SCHEDULER": 1} == {key: n for key, n in figures_of(cluster).endings.items() if n}


def test_gangs_are_counted(cluster: SteppedCluster) -> None:
    """One that is complete."""
    cluster.add_node()
    cluster.add_pod(annotations=gang_annotations({}, member="workers"))
    cluster.advance(1)

    assert 1 == figures_of(cluster).application_events[PhaseEvent.COMPLETE]


@pytest.fixture
def written(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[dict[str, str]]]]:
    """Return a function that returns the log of Licorne as JSON lines write it."""
    handler = logger.add(write_record, level="INFO", format="{message}")
    logger.enable("licorne")
    yield lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    logger.disable("licorne")
    logger.remove(handler)


def test_binds_and_failures_are_logged_with_their_pod(
    cluster: SteppedCluster, written: Callable[[], list[dict[str, str]]]
) -> None:
    """A query of the log finds all lines of a pod, a namespace or a queue."""
    cluster.add_node("n1")
    cluster.add_node("n2")
    cluster.add_pod(labels={"queue": "root.low"})
    cluster.stub.fail("POST", BINDING, status=400)
    cluster.settle()
    lines = [line for line in written() if "pod" in line]

    assert [("warning", "PodBindFailure"), ("info", "Scheduled")] == [
        (line["level"], line["reason"]) for line in lines
    ]
    assert {("blue", "p", "root.low")} == {(line["namespace"], line["pod"], line["queue"]) for line in lines}
    assert (
        lines[1]["message"] == "Scheduled blue/p: Successfully assigned blue/p to node " + cluster.node_of()
    )


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with stub_with_registrations() as server:
        yield server


@pytest.fixture
def client(stub: StubApiServer) -> Iterator[ApiClient]:
    with client_of(stub) as opened:
        yield opened


def test_each_family_has_a_row_on_the_page_and_no_row_is_left(client: ApiClient) -> None:
    """Of the scheduler of pods and of the webhook."""
    options = AdmissionServerOptions(
        registration="hook", extra_names=("127.0.0.1",), host="127.0.0.1", port=0
    )
    with Scheduler() as scheduler, AdmissionServer(client, options) as webhook:
        service = PodService(scheduler, client, OPTIONS, on_lost=lambda: None)
        names = {family.name for part in (service, webhook) for family in part.metrics()}
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `licorne_kubernetes_")]

    assert names == {row.split("`")[1] for row in rows}


@needs_prometheus
def test_prometheus_scrapes_them(stub: StubApiServer, client: ApiClient, tmp_path: Path) -> None:
    """A pod that is bound, and the requests to the API server."""
    stub.add("/api/v1/namespaces", {"metadata": {"name": "blue"}})
    with Scheduler() as scheduler:
        service = PodService(scheduler, client, OPTIONS, on_lost=lambda: None)
        with (
            service,
            RestServer(scheduler, more_metrics=service.metrics) as server,
            scraping(tmp_path, f"127.0.0.1:{server.port}", "/ws/v1/metrics") as prometheus,
        ):
            wait_until(lambda: service.pods.is_ready)
            prometheus.wait_for("licorne_kubernetes_leader", lambda values: list(values.values()) == [1])
            size = {"cpu": "4", "pods": "110"}
            stub.add("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": {"allocatable": size}})
            document = a_pod("bound")
            document["spec"]["schedulerName"] = "licorne"
            stub.add(PODS, document)
            bound = 'licorne_kubernetes_pod_events_total{event="bound"}'
            prometheus.wait_for(bound, lambda values: list(values.values()) == [1])
            requests = 'licorne_kubernetes_api_requests_total{method="POST",code="201"}'
            prometheus.wait_for(requests, lambda values: sum(values.values()) >= 1)
