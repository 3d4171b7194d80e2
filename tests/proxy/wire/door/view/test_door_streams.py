"""Streams of a door: events with ids of the door, and the live data of the page, also over a lost worker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from support.proxy.door_views import LiveWorkers, viewed
from support.proxy.manager_requests import node_request
from support.waiting import WAIT_SECONDS, wait_until

from licorne.proxy.wire.door.view.application import DoorRest
from licorne.proxy.wire.door.workers import LinkState


@pytest.fixture
def client(workers: LiveWorkers) -> Iterator[httpx.Client]:
    with viewed(workers.door) as client:
        yield client


@contextmanager
def reading(client: httpx.Client, path: str, **headers: str) -> Iterator[Iterator[tuple[str, str, Any]]]:
    """Give the kinds, ids and data of server-sent events, as they come."""
    with client.stream("GET", path, headers=headers, timeout=WAIT_SECONDS) as answer:
        assert 200 == answer.status_code

        def events() -> Iterator[tuple[str, str, Any]]:
            kind, number = "message", ""
            for line in answer.iter_lines():
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    number = value
                elif name == "data":
                    yield kind, number, json.loads(value)
                    kind, number = "message", ""

        yield events()


def _until(events: Iterator[tuple[str, str, Any]], text: str) -> list[tuple[str, str, Any]]:
    """Return the events up to the first one with a text."""
    found = []
    for each in events:
        found.append(each)
        if text in json.dumps(each[2]):
            return found
    raise AssertionError(f"the stream has ended without {text}")


def _of_second(found: list[tuple[str, str, Any]]) -> list[dict[str, Any]]:
    """Return what messages say of the partition `second`."""
    parts = [each["partitions"].get("[rm]second") for _, _, each in found]
    return [each for each in parts if each is not None]


def test_events_of_all_workers_come_with_ids_that_follow_each_other(
    workers: LiveWorkers, client: httpx.Client
) -> None:
    """First those that are kept, then new ones; who comes again misses nothing."""
    with reading(client, "/licorne/v1/events?count=1000") as events:
        kind, _, instance = next(events)
        workers.default.update_node(node_request("default-2"))
        found = _until(events, "default-2")
        workers.second.update_node(node_request("second-2", partition="second"))
        found += _until(events, "second-2")

    assert "instance" == kind
    numbers = [int(number) for _, number, _ in found]
    assert [*range(len(found))] == numbers
    texts = json.dumps(found)
    assert "default-1" in texts
    assert "second-1" in texts
    with reading(client, "/licorne/v1/events", **{"Last-Event-ID": "2"}) as events:
        assert instance == next(events)[2]
        assert [(each[1], each[2]) for each in found[3:5]] == [next(events)[1:] for _ in range(2)]


def test_events_go_on_with_the_next_worker(workers: LiveWorkers, client: httpx.Client) -> None:
    """Its events come behind those of the lost one, and nothing of the other worker twice."""
    with reading(client, "/licorne/v1/events?count=1000") as events:
        next(events)
        workers.replace_second()
        workers.second.update_node(node_request("second-3", partition="second"))
        found = _until(events, "second-3")

    assert [*range(len(found))] == [int(number) for _, number, _ in found]
    added = [each["objectID"] for _, _, each in found if each.get("message") == "Node added to the scheduler"]
    assert (1, 2) == (added.count("default-1"), added.count("second-1"))


def test_a_worker_that_comes_back_is_read_from_where_it_was(
    workers: LiveWorkers, client: httpx.Client
) -> None:
    """The door had lost it, and it had gone on."""
    before = client.get("/ws/v1/events/batch").json()
    workers.door.change("second", state=LinkState.RECOVERING)
    lost = client.get("/ws/v1/events/batch").json()
    workers.second.update_node(node_request("second-2", partition="second"))
    wait_until(lambda: "second-2" in str(workers.second.snapshot()), "the node is there")
    workers.door.change("second", state=LinkState.RUNNING)
    after = client.get("/ws/v1/events/batch").json()

    assert before == lost
    count = len(before["EventRecords"])
    assert before["EventRecords"] == after["EventRecords"][:count]
    new = after["EventRecords"][count:]
    assert "second-2" in {each["objectID"] for each in new}
    assert [] == [each for each in new if each in before["EventRecords"]]


def test_lines_of_events_begin_with_the_instance(client: httpx.Client) -> None:
    """As at a scheduler."""
    with client.stream("GET", "/ws/v1/events/stream?count=1") as answer:
        lines = answer.iter_lines()
        first, second = json.loads(next(lines)), json.loads(next(lines))

    assert ["InstanceUUID"] == [*first]
    assert "type" in second


def test_the_page_gets_all_partitions_then_changes(workers: LiveWorkers, client: httpx.Client) -> None:
    """One document of all workers; the numbers of changes follow each other."""
    with reading(client, "/licorne/v1/live") as events:
        kind, _, full = next(events)
        workers.second.update_node(node_request("second-2", partition="second"))
        found = _until(events, "second-2")

    assert ("full", 0) == (kind, full["number"])
    assert {"[rm]default", "[rm]second"} == full["partitions"].keys()
    assert ["second-1"] == [*full["partitions"]["[rm]second"]["nodes"]]
    assert ("actors", True) == (full["engine"], full["events"])
    assert [*range(1, len(found) + 1)] == [each["number"] for _, _, each in found]
    assert {"change"} == {kind for kind, _, _ in found}
    assert ["second-2"] == [*found[-1][2]["partitions"]["[rm]second"]["nodes"]]


def test_the_page_sees_a_worker_go_and_the_next_one_come(workers: LiveWorkers, client: httpx.Client) -> None:
    """What was there stands still, with the reason, until the whole of the next one comes."""
    with reading(client, "/licorne/v1/live") as events:
        next(events)
        workers.lose_second()
        lost = _until(events, "killed")
        workers.replace_second()
        workers.second.update_node(node_request("second-3", partition="second"))
        found = [*lost, *_until(events, "second-3")]

    assert {"[rm]second": {"halted": ["Starting", 5000, "killed"]}} == lost[-1][2]["partitions"]
    whole = [each for each in _of_second(found) if "rm" in each]
    assert [None] == [each["halted"] for each in whole]
    assert [*range(1, len(found) + 1)] == [each["number"] for _, _, each in found]


def test_a_page_that_opens_while_a_worker_is_away_gets_it_later(
    workers: LiveWorkers, client: httpx.Client
) -> None:
    """It never hears of a partition that it does not have."""
    workers.door.change("second", state=LinkState.RECOVERING)
    with reading(client, "/licorne/v1/live") as events:
        _, _, full = next(events)
        workers.door.change("second", state=LinkState.RUNNING)
        found = _until(events, "second-1")

    assert ["[rm]default"] == [*full["partitions"]]
    assert all("rm" in each for each in _of_second(found))


def test_streams_end_when_the_door_stops(workers: LiveWorkers) -> None:
    """Each gives what there is, then says that it ends."""
    with ExitStack() as stack:
        server = DoorRest(workers.door)
        stack.enter_context(server)
        client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{server.port}"))
        answer = stack.enter_context(client.stream("GET", "/ws/v1/events/stream?count=5"))
        lines = answer.iter_lines()
        next(lines)
        server.begin_stop()
        *_, last = lines

    assert "Event stream was closed by the producer" == json.loads(last)["message"]
