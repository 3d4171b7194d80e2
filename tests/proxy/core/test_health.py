"""The nine checks of health, their history, and when they are made."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from support.proxy.rest_scenario import RECORDED, rest_scenario
from support.waiting import WAIT_SECONDS

from licorne import RequestError, ResourceManager, Scheduler
from licorne.actors.services.log import Log
from licorne.model.applications.application import Application
from licorne.model.nodes.node import Node
from licorne.model.partition import Partition
from licorne.model.resources.resource import Resource
from licorne.model.state.partition_state import BrokenKind, PartitionState
from licorne.model.views.shown import PlacedOn, listed_applications, unknown_to_applications, unknown_to_nodes
from licorne.proxy.core import health
from licorne.proxy.core.health import HISTORY_MAX, HealthReport, HealthWatch, History, health_document
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """Give the recorded state, which has been checked once."""
    with rest_scenario() as scheduler:
        scheduler.check_health()
        yield scheduler


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_the_report_is_the_one_that_was_recorded(engine: EngineName) -> None:
    """But for the request that was refused: it was recorded before that."""
    with rest_scenario(engine) as scheduler:
        scheduler.check_health()
        report = scheduler.check_health()

    recorded = json.loads((RECORDED / "healthcheck.json").read_text(encoding="utf-8"))
    assert recorded == health_document(report)


def test_a_refused_request_is_an_error_once() -> None:
    """The next report is healthy again, unlike that of the recorded core."""
    with rest_scenario() as scheduler:
        first, second = scheduler.check_health(), scheduler.check_health()

    assert failed(first) == {"There were 1 scheduling errors logged in the metrics"}
    assert failed(second) == set()


def test_a_node_for_a_partition_that_is_not_there_has_failed(scheduler: Scheduler) -> None:
    """Also once."""
    node = {"nodeID": "lost", "action": "CREATE", "attributes": {"si/node-partition": "no"}}
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
    first, second = scheduler.check_health(), scheduler.check_health()

    assert failed(first) == {"There were 1 failed nodes logged in the metrics"}
    assert failed(second) == set()


def test_what_is_quarantined_is_an_error_as_long_as_it_is_there(scheduler: Scheduler) -> None:
    """It broke by a bug of ours."""
    partition_of(scheduler).quarantine(BrokenKind.APPLICATION, "app-new", "a sum is wrong")
    reports = scheduler.check_health(), scheduler.check_health()

    for report in reports:
        assert "There were 1 scheduling errors logged in the metrics" in failed(report)


def test_negative_resources_of_a_node_are_found(scheduler: Scheduler) -> None:
    """It has more allocations than capacity."""
    small = {"resources": {"memory": {"value": 1}}}
    node = {"nodeID": "node-1", "action": "UPDATE", "schedulableResource": small}
    scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
    report = scheduler.check_health()

    assert failed(report) == {"Nodes with negative resources: [node-1]"}


def test_a_node_whose_sums_do_not_agree_is_found(scheduler: Scheduler) -> None:
    """And a partition that has another capacity than its nodes, or a negative one."""
    node_of(scheduler, "node-3")._occupied = Resource({"memory": 7})
    partition_of(scheduler)._state.capacity = Resource({"memory": -7})
    report = scheduler.check_health()

    assert failed(report) == {
        "Nodes with inconsistent data: [node-3]",
        "Partitions with inconsistent data: [[rm]default]",
        "Partitions with negative resources: [[rm]default]",
    }


def test_an_allocation_that_only_its_node_has_is_found(scheduler: Scheduler) -> None:
    """The application does not have it, and no swap is under way."""
    application = application_of(scheduler, "app-3")
    del application._core.holdings.placed["a3-1"]
    report = scheduler.check_health()

    assert failed(report) == {"Orphan allocations: [a3-1]"}


def test_an_allocation_that_only_its_application_has_is_found(scheduler: Scheduler) -> None:
    """The node does not have it, or is not there."""
    del node_of(scheduler, "node-1")._allocations["a3-1"]
    report = scheduler.check_health()

    assert failed(report) == {"OrphanAllocations: [a3-1]"}


def test_what_moves_while_it_is_looked_at_is_no_orphan(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application ends between the look at the nodes and the look at the applications."""

    def removes_one(state: PartitionState) -> object:
        gone = {"applicationID": "app-3", "partitionName": "default"}
        scheduler.update_application(si.ApplicationRequest(rmID="rm", remove=[gone]))
        return listed_applications(state)

    monkeypatch.setattr(health, "listed_applications", removes_one)
    report = scheduler.check_health()

    assert failed(report) == set()


def test_the_member_of_a_swap_is_no_orphan() -> None:
    """It is on its node before it counts for its application."""
    with rest_scenario() as scheduler:
        partition = partition_of(scheduler)
        member = PlacedOn("app-gang", "gm-1", "node-1")
        holdings = application_of(scheduler, "app-gang")._core.holdings
        swapping, placed = holdings.swapping, holdings.placed

        assert partition.read(unknown_to_applications, [member]) == ()
        assert partition.read(unknown_to_nodes, [member]) == ()
        allocation = placed.pop("gm-1")
        assert partition.read(unknown_to_applications, [member]) == (member,)
        swapping["gm-1"] = "ph-2"
        assert partition.read(unknown_to_applications, [member]) == ()
        del swapping["gm-1"]
        placed["gm-1"] = allocation


def test_a_scheduler_that_runs_by_itself_checks_when_a_manager_registers() -> None:
    """The report is kept."""
    with Scheduler() as scheduler:
        assert scheduler.health() is None
        scheduler.monitoring._watch._check = (checked := Checked(scheduler))
        scheduler.register("rm", ResourceManager())

        checked.wait()

    report = scheduler.health()
    assert report is not None
    assert report.healthy


def test_a_scheduler_that_has_stopped_is_not_checked() -> None:
    """It says so, and the last report stays."""
    with rest_scenario() as scheduler:
        report = scheduler.check_health()

    with pytest.raises(RequestError, match="has been stopped"):
        scheduler.check_health()
    assert scheduler.health() is report


class Checked:
    """The check of a scheduler, which a test can wait for."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._done = threading.Event()

    def __call__(self) -> object:
        report = self._scheduler.check_health()
        self._done.set()
        return report

    def wait(self) -> None:
        assert self._done.wait(WAIT_SECONDS)


def failed(report: HealthReport) -> set[str]:
    """Return the diagnoses of the checks that have failed."""
    return {check.diagnosis for check in report.checks if not check.succeeded}


def partition_of(scheduler: Scheduler) -> Partition:
    (partition,) = scheduler._cluster.partitions()
    return partition


def node_of(scheduler: Scheduler, node_id: str) -> Node:
    entry = partition_of(scheduler)._state.nodes.get(node_id)
    assert entry is not None
    assert isinstance(entry.node, Node)
    return entry.node


def application_of(scheduler: Scheduler, application_id: str) -> Application:
    application = partition_of(scheduler)._state.entries[application_id].application
    assert isinstance(application, Application)
    return application


# ---------------------------------------------------------------------------------------------- history


def test_the_history_is_the_one_that_was_recorded() -> None:
    """Totals are texts; only the times are others."""
    with rest_scenario() as scheduler:
        scheduler.record_history()
        now_ns = scheduler.now_ns()

    for name, documents in (
        ("history_apps.json", scheduler.monitoring.history.applications()),
        ("history_containers.json", scheduler.monitoring.history.containers()),
    ):
        recorded = json.loads((RECORDED / name).read_text(encoding="utf-8"))
        assert [{**entry, "timestamp": now_ns} for entry in recorded] == documents


def test_a_day_is_kept_the_oldest_first() -> None:
    """What is older is dropped."""
    history = History()
    for minute in range(HISTORY_MAX + 2):
        history.add(minute, applications=minute, containers=0)

    documents = history.applications()
    assert HISTORY_MAX == len(documents) == len(history.containers())
    assert (2, str(HISTORY_MAX + 1)) == (documents[0]["timestamp"], documents[-1]["totalApplications"])


# ----------------------------------------------------------------------------------- when they are made


class Watched:
    """A watch that notes what it does."""

    def __init__(self, interval_seconds: float = 30) -> None:
        self.done: list[str] = []
        self.interval_seconds = interval_seconds
        self.watch = HealthWatch(
            lambda: self.done.append("check"),
            lambda: self.done.append("record"),
            lambda: self.interval_seconds,
            Log(),
        )

    def at(self, now: float) -> tuple[list[str], float]:
        """Return what is done then, and in how many seconds something is due again."""
        self.done.clear()
        seconds = self.watch.step(now)
        return list(self.done), seconds


def test_the_first_check_is_at_the_start_and_others_follow() -> None:
    """The history begins a minute later."""
    watched = Watched()

    assert (["check"], 30) == watched.at(1000)
    assert ([], 10) == watched.at(1020)
    assert (["check"], 30) == watched.at(1030)
    assert (["check", "record"], 30) == watched.at(1060)


def test_an_interval_of_zero_ends_the_checks() -> None:
    """The first one is made all the same, and the history goes on."""
    watched = Watched(interval_seconds=0)

    assert (["check"], 60) == watched.at(0)
    assert (["record"], 60) == watched.at(60)


def test_another_interval_counts_from_the_last_check() -> None:
    """Also where it is due already."""
    watched = Watched()
    watched.at(0)
    watched.interval_seconds = 5

    assert (["check"], 5) == watched.at(10)


def test_what_fails_does_not_end_the_watch() -> None:
    """A scheduler that is being stopped, or a bug of ours."""
    for error in (RequestError("it has been stopped"), RuntimeError("a bug")):
        watched = Watched()

        def fails(error: Exception = error) -> None:
            raise error

        watched.watch._check = fails

        assert ([], 30) == watched.at(0)
        assert (["record"], 30) == watched.at(60)


def test_the_thread_ends_with_the_watch() -> None:
    """It begins with the first call of `wake`, and not before."""
    ran = threading.Event()
    watch = HealthWatch(ran.set, lambda: None, lambda: 30, Log())
    assert watch._thread is None

    watch.wake()
    assert ran.wait(WAIT_SECONDS)
    watch.close()

    assert watch._thread is not None
    assert not watch._thread.is_alive()
