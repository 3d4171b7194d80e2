"""The paths for those who watch over a scheduler."""

from __future__ import annotations

import json

import httpx
import pytest
from support.proxy.metric_texts import kinds_of
from support.proxy.preempted_work import SECOND_NS, preempt, start_victim
from support.proxy.rest_clients import Reader, reader
from support.proxy.rest_scenario import RECORDED, rest_scenario

from licorne import ResourceManager, Scheduler
from licorne.proxy.core.metrics.families import single
from licorne.proxy.views.rest.running import RestServer


def test_a_program_adds_its_own_metrics() -> None:
    """Those of what is around the scheduler, in the same text."""
    more = [single("program_queue", "What waits", 7)]
    with Scheduler() as scheduler, RestServer(scheduler, more_metrics=lambda: more) as server:
        address = f"http://127.0.0.1:{server.port}/ws/v1/metrics"
        text = httpx.get(address).text

    assert "\nprogram_queue 7" in text


def test_metrics_are_a_text_for_prometheus() -> None:
    """With the families that were recorded, and more."""
    with rest_scenario() as scheduler:
        answer = Reader(scheduler).client.get("/ws/v1/metrics")

    recorded = (RECORDED / "metrics.txt").read_text(encoding="utf-8")
    assert kinds_of(recorded).items() <= kinds_of(answer.text).items()
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_health_is_the_document_of_the_last_check() -> None:
    """It is shown when it is bad, too: the status is that of the question, not of the scheduler."""
    with rest_scenario() as scheduler:
        scheduler.check_health()
        bad = Reader(scheduler).document("/ws/v1/scheduler/healthcheck")
        scheduler.check_health()
        good = Reader(scheduler).document("/ws/v1/scheduler/healthcheck")

    assert isinstance(bad, dict)
    assert not bad["Healthy"]
    assert json.loads((RECORDED / "healthcheck.json").read_text(encoding="utf-8")) == good


def test_the_resource_managers_are_listed_with_what_they_have() -> None:
    """One that is lost says why; the health check names it; one that has stopped is the last."""
    with rest_scenario() as scheduler:
        scheduler.register("another", ResourceManager())
        scheduler.stop_manager("another", "it has shut down")
        (rm_id, *_) = [each.rm_id for each in scheduler.resource_managers() if each.rm_id != "another"]
        scheduler.pause_manager(rm_id, "the stream broke")
        first, last = Reader(scheduler).client.get("/licorne/v1/managers").json()
        checks = [check for check in scheduler.check_health().checks if check.name == "Resource managers"]

    assert (rm_id, "Paused", "the stream broke", True) == tuple(
        first[key] for key in ("rmID", "state", "reason", "lost")
    )
    assert "in this process" == first["connection"]
    assert first["partitions"][0]["nodes"] > 0
    assert ("another", "Stopped", False) == (last["rmID"], last["state"], last["lost"])
    assert [f"Lost resource managers: [{rm_id}: the stream broke]"] == [each.diagnosis for each in checks]


def test_health_that_was_not_checked_yet_is_not_there() -> None:
    """A status that readers know."""
    with reader() as unchecked:
        answer = unchecked.client.get("/ws/v1/scheduler/healthcheck")

    assert answer.status_code == 404
    assert answer.json()["message"] == "Health check is not available"


@pytest.mark.parametrize(
    ("path", "name"),
    [("/ws/v1/history/apps", "history_apps.json"), ("/ws/v1/history/containers", "history_containers.json")],
)
def test_the_history_is_the_document_that_was_recorded(path: str, name: str) -> None:
    """It is empty at first, and never an error: the official page knows no other answer."""
    recorded = json.loads((RECORDED / name).read_text(encoding="utf-8"))
    with rest_scenario() as scheduler:
        client = Reader(scheduler)
        before = client.document(path)
        scheduler.record_history()
        documents = client.document(path)

    assert before == []
    assert [{**entry, "timestamp": scheduler.now_ns()} for entry in recorded] == documents
    assert Reader(scheduler).document(path) == documents


def test_what_was_preempted_is_listed_with_the_work_that_is_lost() -> None:
    """The partition by its short or full name; one that is unknown is refused."""
    with Scheduler(engine="direct") as scheduler:
        start_victim(scheduler)
        preempt(scheduler, after_seconds=100)
        client = Reader(scheduler).client
        path = "/licorne/v1/preemptions?rm=rm&partition="
        (found,) = client.get(f"{path}default").json()
        unknown = client.get(f"{path}other")
        full = client.get(f"{path}[rm]default")

    assert ("root.entitled", "urgent", "GUARANTEE") == (
        found["queueName"],
        found["applicationID"],
        found["cause"],
    )
    assert ("root.leaf", "bob", "app", "n1") == (
        *(found["victimQueueName"], found["victimUser"]),
        *(found["victimApplicationID"], found["nodeID"]),
    )
    assert 100 * SECOND_NS <= found["lostNs"] < 200 * SECOND_NS
    assert (404, [found]) == (unknown.status_code, full.json())
