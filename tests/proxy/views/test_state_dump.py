"""State dumps: what is in them, that there is one at a time, and that scheduling goes on meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.proxy.golden_bodies import differences
from support.proxy.listening import Listener
from support.proxy.manager_requests import ask_request
from support.proxy.rest_clients import Reader
from support.proxy.rest_scenario import RECORDED, rest_scenario
from support.proxy.running_scheduler import begin, running

from licorne import RequestError, ResourceManager, Scheduler
from licorne.proxy.core.documents.applications import application_document
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.views import dumps as dumping
from licorne.proxy.views.dumps import state_dump, state_dump_file

EMPTY = {"empty": "Resource Manager did not register callback"}


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_a_dump_is_the_document_that_was_recorded(engine: EngineName) -> None:
    """But for the notes of asks that were tried less often."""
    recorded = json.loads((RECORDED / "debug_fullstatedump.json").read_text(encoding="utf-8"))
    with rest_scenario(engine) as scheduler:
        scheduler.record_history()
        found = differences(recorded, state_dump(scheduler))

    assert [] == [text for text in found if ".allocationLog" not in text]


def test_a_dump_of_nothing_has_all_keys_but_the_configuration() -> None:
    """No resource manager has registered."""
    with Scheduler(engine="direct") as scheduler:
        dump = state_dump(scheduler)

    assert dump.pop("timestamp") == scheduler.now_ns()
    assert (dump.pop("rmDiagnostics"), dump.pop("logLevel")) == (EMPTY, "info")
    assert {
        *("partitions", "applications", "appHistory", "nodes", "clusterInfo"),
        *("containerHistory", "queues", "placementRules"),
    } == dump.keys()
    assert [[]] * len(dump) == list(dump.values())


def test_one_dump_is_made_at_a_time() -> None:
    """Another one is refused; a reader that has its own and is slow keeps no one waiting."""
    with rest_scenario() as scheduler:
        with scheduler.monitoring.dumping, pytest.raises(RequestError, match="is being made already"):
            state_dump(scheduler)
        with state_dump_file(scheduler):
            assert state_dump(scheduler)["partitions"]


def test_a_dump_that_fails_lets_the_next_one_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the caller's."""

    def fails(*_: object) -> Any:
        raise RuntimeError("no such document")

    with rest_scenario() as scheduler:
        with monkeypatch.context() as patch:
            patch.setattr(dumping, "application_document", fails)
            with pytest.raises(RuntimeError, match="no such document"):
                state_dump(scheduler)
        assert state_dump(scheduler)["applications"]


def test_scheduling_goes_on_while_a_dump_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ask is placed between two pieces of one dump."""
    with running() as scheduler:
        listener = Listener()
        begin(scheduler, listener)

        def between(shown: Any) -> Any:
            scheduler.update_allocation(ask_request("while"))
            listener.wait_for("placed while")
            return application_document(shown)

        monkeypatch.setattr(dumping, "application_document", between)
        dump: Any = state_dump(scheduler)

    assert ["app"] == [application["applicationID"] for application in dump["applications"]]
    assert ["while"] == [
        entry["allocationKey"] for node in dump["nodes"][0]["nodesInfo"] for entry in node["allocations"]
    ]


class Diagnosed(ResourceManager):
    """A resource manager that has a state to show."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_state_dump(self) -> str:
        if not self.text:
            raise RuntimeError("not now")
        return self.text


def test_what_the_manager_says_of_itself_is_shown() -> None:
    """As it is; of several by their ids. What cannot be read is an error that says why."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("one", ResourceManager())
        assert state_dump(scheduler)["rmDiagnostics"] == EMPTY
        scheduler.register("two", Diagnosed('{"cache": [1]}'))
        assert state_dump(scheduler)["rmDiagnostics"] == {"cache": [1]}
        scheduler.register("one", Diagnosed(""))
        assert state_dump(scheduler)["rmDiagnostics"] == {
            "one": {"Error": "RuntimeError: not now"},
            "two": {"cache": [1]},
        }
        scheduler.register("two", Diagnosed("{"))
        broken: Any = state_dump(scheduler)["rmDiagnostics"]
        assert broken["two"]["Error"].startswith("JSONDecodeError: ")


def test_the_path_gives_one_entry_a_line() -> None:
    """So that a person can search in it."""
    with rest_scenario() as scheduler:
        answer = Reader(scheduler).client.get("/debug/fullstatedump")

    assert answer.status_code == 200
    assert 8 == sum('"applicationID": "app' in line for line in answer.text.splitlines())


def test_a_second_request_meanwhile_is_answered_with_a_status() -> None:
    """It says what to do."""
    with rest_scenario() as scheduler, scheduler.monitoring.dumping:
        answer = Reader(scheduler).client.get("/debug/fullstatedump")

    assert answer.status_code == 503
    assert "is being made already" in answer.json()["message"]


def test_open_streams_of_events_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first, with where their readers are; the key is left out if there are none, as recorded."""
    times = iter((2_000_000_000, 1_000_000_000))
    with Scheduler(engine="direct") as scheduler:
        monkeypatch.setattr(scheduler.events, "_now_ns", lambda: next(times))
        streams = [scheduler.events.stream(host="10.0.0.1:9080"), scheduler.events.stream()]
        shown = state_dump(scheduler)["eventStreams"]
        for stream in streams:
            stream.close()

        assert shown == [
            {"Name": "this process", "CreatedAt": "1970-01-01T00:00:01Z"},
            {"Name": "10.0.0.1:9080", "CreatedAt": "1970-01-01T00:00:02Z"},
        ]
        assert "eventStreams" not in state_dump(scheduler)
