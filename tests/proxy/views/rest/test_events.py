"""The routes of events: the recorded bodies, errors, and streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.event_rows import replayed, row_of_document
from support.proxy.manager_requests import ONE, node_request
from support.proxy.rest_clients import Reader, scope_of

from licorne import ResourceManager, Scheduler
from licorne.proxy.views.rest.handlers import events as event_streams

DATA: Final = Path(__file__).parents[3] / "conformance" / "rest"


@pytest.fixture(scope="module")
def recorded() -> Iterator[Reader]:
    """Give the recorded scenario behind the REST interface."""
    with replayed((DATA / "scenario.jsonl").read_text(encoding="utf-8")) as scheduler:
        yield Reader(scheduler)


def golden(name: str) -> Any:
    """Return a recorded body."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("events_batch", ""),
        ("events_batch_count", "?count=3"),
        ("events_batch_count_start", "?count=3&start=5"),
        ("events_batch_start_high", "?start=100000"),
    ],
)
def test_a_batch_has_the_recorded_form(recorded: Reader, name: str, query: str) -> None:
    """The same keys, ids and numbers of events; which events there are is compared elsewhere."""
    theirs = golden(f"{name}.json")
    ours: Any = recorded.document(f"/ws/v1/events/batch{query}")
    events, recorded_events = ours.pop("EventRecords"), theirs.pop("EventRecords")

    assert {**theirs, "InstanceUUID": ours["InstanceUUID"]} == ours
    assert (events is None) is (recorded_events is None)
    if events is not None:
        assert len(recorded_events) == len(events)
        of_theirs = {name: type(value) for event in recorded_events for name, value in event.items()}
        of_ours = {name: type(value) for event in events for name, value in event.items()}
        assert {**of_theirs, "timestampNano": int}.items() >= of_ours.items()


def test_an_event_has_the_recorded_document(recorded: Reader) -> None:
    """Key by key, but for its time."""
    theirs = {row_of_document(each): each for each in golden("events_batch.json")["EventRecords"]}
    ours: Any = recorded.document("/ws/v1/events/batch")

    for event in ours["EventRecords"]:
        same = theirs.get(row_of_document(event))
        assert same is None or {**same, "timestampNano": event["timestampNano"]} == event
        assert same is not None or event["objectID"] == "root"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("err_events_count0", "batch?count=0"),
        ("err_events_count_text", "batch?count=x"),
        ("err_events_start_text", "batch?start=x"),
        ("err_events_negative", "batch?count=-1"),
        ("err_stream_count", "stream?count=x"),
    ],
)
def test_a_query_that_is_no_number_is_refused_as_recorded(recorded: Reader, name: str, path: str) -> None:
    """The negative one was recorded with the text of another request: it names its own."""
    answer = recorded.client.get(f"/ws/v1/events/{path}")

    assert 400 == answer.status_code
    assert golden(f"{name}.json") == answer.json()


def test_a_number_beyond_all_ids_is_refused(served: Reader) -> None:
    """However long it is."""
    answer = served.client.get(f"/ws/v1/events/batch?start={2**64}")

    assert 400 == answer.status_code
    assert f'strconv.ParseUint: parsing "{2**64}": value out of range' == answer.json()["message"]
    assert 400 == served.status(f"/ws/v1/events/batch?start={'9' * 5000}")


def test_a_batch_is_no_larger_than_configured() -> None:
    """Whatever the client asks for."""
    with Scheduler(engine="direct") as scheduler:
        extra = {"event.RESTResponseSize": "2"}
        scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)
        scheduler.update_node(node_request("n1"))
        document: Any = Reader(scheduler).document("/ws/v1/events/batch?count=100")

    assert 2 == len(document["EventRecords"])
    assert document["HighestID"] > 2


@pytest.mark.parametrize("path", ["/ws/v1/events/batch", "/ws/v1/events/stream", "/licorne/v1/events"])
def test_no_events_are_shown_where_they_are_switched_off(path: str) -> None:
    """As recorded: an error."""
    with Scheduler(engine="direct") as scheduler:
        extra = {"event.trackingEnabled": "false"}
        scheduler.register("rm", ResourceManager(), configuration=ONE, extra_configuration=extra)
        answer = Reader(scheduler).client.get(path)

    assert (500, "Event tracking is disabled") == (answer.status_code, answer.json()["message"])


class Streamed:
    """A client of a stream, which runs a step after each part that it gets, and goes after the last one."""

    def __init__(self, *steps: Callable[[], object], stalls: bool = False) -> None:
        self.parts: list[bytes] = []
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._steps = list(steps)
        self._stalls = stalls
        self._leaves = asyncio.Event()

    async def receive(self) -> dict[str, object]:
        """Say nothing until the last step, then go."""
        await self._leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Take a part."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        elif message["body"]:
            self.parts.append(message["body"])
            if self._stalls:
                await asyncio.Event().wait()
            if self._steps:
                self._steps.pop(0)()
            else:
                self._leaves.set()

    def read(self, served: Reader, path: str, **headers: str) -> list[str]:
        """Return the lines that came."""
        path, _, query = path.partition("?")
        asyncio.run(served.application(scope_of(path, query=query, **headers), self.receive, self.send))
        return b"".join(self.parts).decode().splitlines()


def test_a_stream_begins_with_the_instance_and_then_the_history(recorded: Reader) -> None:
    """As recorded: lines of JSON."""
    theirs = (DATA / "events_stream.txt").read_text(encoding="utf-8").splitlines()
    client = Streamed(lambda: None)
    lines = client.read(recorded, "/ws/v1/events/stream?count=10")
    rows = [row_of_document(json.loads(line)) for line in lines[1:]]

    assert (200, b"application/json; charset=UTF-8") == (client.status, client.headers[b"content-type"])
    assert {"InstanceUUID": recorded.scheduler.events.instance_uuid} == json.loads(lines[0])
    assert len(theirs) == len(lines)
    assert {row_of_document(json.loads(line)) for line in theirs[-3:]} == set(rows[-3:])


def test_a_stream_goes_on_with_what_happens(served: Reader) -> None:
    """Without history at first."""
    add = [lambda: served.scheduler.update_node(node_request("n1"))]
    lines = Streamed(*add).read(served, "/ws/v1/events/stream")

    assert {"n1", "root"} == {json.loads(line)["objectID"] for line in lines[1:]}
    assert 0 == served.scheduler.events.counters().streams


def test_a_stream_says_that_it_ends(served: Reader) -> None:
    """When the scheduler stops, after the last event."""
    text = "Event stream was closed by the producer"
    lines = Streamed(served.scheduler.events.close, lambda: None).read(served, "/ws/v1/events/stream")

    assert {"status_code": 200, "message": text, "description": text} == json.loads(lines[-1])


def test_a_client_that_takes_nothing_loses_its_stream(
    served: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time that it has for each part."""
    monkeypatch.setattr(event_streams, "WRITE_SECONDS", 0.01)

    Streamed(stalls=True).read(served, "/ws/v1/events/stream")

    assert 0 == served.scheduler.events.counters().streams


def test_streams_of_one_host_are_bounded(served: Reader) -> None:
    """As recorded: 503."""
    streams = [served.scheduler.events.stream(host="testclient") for _ in range(15)]
    answer = served.client.get("/ws/v1/events/stream")

    assert 15 == len(streams)
    assert (503, "Too many streaming connections") == (answer.status_code, answer.json()["message"])


def test_server_sent_events_have_their_ids(served: Reader) -> None:
    """A client that comes again goes on after the last one that it had."""
    served.scheduler.update_node(node_request("n1"))
    client = Streamed(lambda: None)
    lines = client.read(served, "/licorne/v1/events?count=100")
    numbers = [int(line.removeprefix("id: ")) for line in lines if line.startswith("id: ")]
    later = Streamed(lambda: None).read(served, "/licorne/v1/events", last_event_id=str(numbers[2]))
    last = served.scheduler.events.batch().highest_id

    assert b"text/event-stream" == client.headers[b"content-type"]
    assert "event: instance" == lines[0]
    assert list(range(last + 1)) == numbers
    assert [f"id: {number}" for number in numbers[3:]] == [line for line in later if line.startswith("id: ")]


def test_a_quiet_stream_of_server_sent_events_shows_that_it_goes_on(
    served: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a comment, which clients ignore."""
    monkeypatch.setattr(event_streams, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(event_streams, "LOOK_INTERVAL_SECONDS", 0.01)

    lines = Streamed(lambda: None).read(served, "/licorne/v1/events")

    assert ["", ":", ""] == lines[2:]
