"""A door over two workers answers what one scheduler with all partitions answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.proxy.door_views import Both, half_each

EQUAL: Final = [
    "/ws/v1/clusters",
    "/ws/v1/config",
    "/ws/v1/history/apps",
    "/ws/v1/history/containers",
    "/ws/v1/scheduler/node-utilizations",
    "/ws/v1/partition/default/queues",
    "/ws/v1/partition/second/queues",
    "/ws/v1/partition/%5Brm%5Dsecond/queues",
    "/ws/v1/partition/second/queue/root.leaf?subtree",
    "/ws/v1/partition/second/queue/root%25zz",
    "/ws/v1/partition/second/nodes",
    "/ws/v1/partition/second/node/rm-second-n1",
    "/ws/v1/partition/second/node/absent",
    "/ws/v1/partition/second/applications/active",
    "/ws/v1/partition/second/applications/other",
    "/ws/v1/partition/default/application/rm-default-app",
    "/ws/v1/partition/second/usage/users",
    "/ws/v1/partition/absent/usage/users",
    "/ws/v1/partition/absent/usage/user/bob",
    "/ws/v1/partition/absent/usage/user/nobody",
    "/ws/v1/partition/absent/queues",
    "/ws/v1/partition/default/Queues",
    "/licorne/v1/managers",
    "/licorne/v1/next-asks",
    "/licorne/v1/next-asks?partition=second",
    "/licorne/v1/next-asks?partition=absent",
    "/licorne/v1/next-asks?count=0",
    "/licorne/v1/explain?application=rm-second-app",
    "/licorne/v1/explain?application=rm-second-app&ask=rm-second-4",
    "/licorne/v1/explain?application=rm-second-app&partition=second",
    "/licorne/v1/explain?application=rm-second-apq",
    "/licorne/v1/explain?application=rm-second-app&partition=absent",
    "/licorne/v1/explain?application=rm-second-app&other=1",
    "/licorne/v1/explain",
    "/licorne/v1/explain/sentences?application=rm-second-app",
    "/licorne/v1/page/node?rm=rm&partition=second&node=rm-second-n1",
    "/licorne/v1/page/node?node=n",
    "/licorne/v1/page/reasons?rm=rm&partition=second&application=rm-second-app",
    "/licorne/v1/page/waiting?rm=rm&partition=second",
    "/ws/v1/policies",
    "/licorne/v1/locks",
    "/licorne/v1/absent",
    "/debug/pprof/heap",
]


@pytest.fixture(scope="module")
def both_of_two() -> Iterator[Both]:
    """Give the same with two RMs, each with both partitions: one worker has those of one name."""
    with half_each(("b", "a")) as both:
        yield both


@pytest.mark.parametrize("path", EQUAL)
def test_a_document_is_the_same(both: Both, path: str) -> None:
    """Byte for byte, with its status and its type."""
    one, door = both.one.get(path), both.door.get(path)

    assert one.text == door.text
    assert one.status_code == door.status_code
    assert one.headers.get("content-type") == door.headers.get("content-type")


OF_TWO: Final = [
    "/ws/v1/clusters",
    "/ws/v1/config",
    "/ws/v1/scheduler/node-utilizations",
    "/ws/v1/history/containers",
    "/ws/v1/partition/second/nodes",
    "/ws/v1/partition/%5Ba%5Dsecond/nodes",
    "/licorne/v1/managers",
    "/licorne/v1/next-asks",
    "/licorne/v1/next-asks?rm=a",
    "/licorne/v1/explain?application=a-second-app",
    "/licorne/v1/explain?application=a-second-app&rm=b",
]


@pytest.mark.parametrize("path", OF_TWO)
def test_a_document_with_two_managers_is_the_same(both_of_two: Both, path: str) -> None:
    """A short name is that of the manager that registered first, as in one scheduler."""
    assert both_of_two.one.get(path).text == both_of_two.door.get(path).text


def _without(document: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [{name: value for name, value in each.items() if name != key} for each in document]


@pytest.mark.parametrize("fixture", ["both", "both_of_two"])
def test_partitions_are_the_same_but_for_where_they_run(fixture: str, request: pytest.FixtureRequest) -> None:
    """Each has a worker, and nothing else is added."""
    both: Both = request.getfixturevalue(fixture)
    one, door = (each.get("/ws/v1/partitions").json() for each in (both.one, both.door))

    assert one == _without(door, "worker")
    assert [(each["clusterId"], each["name"], "Running") for each in one] == [
        (each["worker"]["rmID"], each["worker"]["partition"], each["worker"]["state"]) for each in door
    ]


def test_the_health_is_the_same_but_for_the_check_of_workers(both: Both) -> None:
    """What a check says differs where it lists partitions."""
    one, door = (each.get("/ws/v1/scheduler/healthcheck").json() for each in (both.one, both.door))

    def kinds(report: dict[str, Any]) -> list[tuple[str, bool, str]]:
        return [(each["Name"], each["Succeeded"], each["Description"]) for each in report["HealthChecks"]]

    assert one["Healthy"] == door["Healthy"]
    assert kinds(one) == kinds(door)[:-1]
    assert "Partitions without a worker" == door["HealthChecks"][-1]["Name"]


def test_a_state_dump_is_the_same(both: Both) -> None:
    """But for its time, and the streams of events."""
    one, door = (each.get("/debug/fullstatedump").json() for each in (both.one, both.door))

    one.pop("timestamp")
    assert isinstance(door.pop("timestamp"), int)
    assert one == door
    assert [*one] == [*door]


def test_events_are_the_same_in_the_order_of_each_partition(both: Both) -> None:
    """Ids follow each other, and a part of a batch is a part of the whole."""
    one, door = (each.get("/ws/v1/events/batch").json() for each in (both.one, both.door))

    def of_partition(batch: dict[str, Any], name: str) -> list[str]:
        return [
            json.dumps(each)
            for each in batch["EventRecords"]
            if name in each.get("objectID", "") + each.get("referenceID", "")
        ]

    for name in ("rm-default", "rm-second"):
        assert of_partition(one, name) == of_partition(door, name)
        assert of_partition(one, name)
    assert (one["LowestID"], one["HighestID"]) == (door["LowestID"], door["HighestID"])
    assert len(door["EventRecords"]) == door["HighestID"] + 1
    part = both.door.get("/ws/v1/events/batch?start=3&count=2").json()
    assert door["EventRecords"][3:5] == part["EventRecords"]
    assert door["InstanceUUID"] == part["InstanceUUID"] != one["InstanceUUID"]


@pytest.mark.parametrize("query", ["count=0", "count=x", "start=-1"])
def test_a_bad_range_of_events_is_refused_alike(both: Both, query: str) -> None:
    """With the same text."""
    path = f"/ws/v1/events/batch?{query}"

    assert both.one.get(path).text == both.door.get(path).text


BODIES: Final = {
    "a new application in a partition": {
        "application": {"applicationID": "x", "queueName": "root.leaf", "partitionName": "second"}
    },
    "an ask of an application": {
        "ask": {
            "allocationKey": "k",
            "applicationID": "rm-second-app",
            "partitionName": "[rm]second",
            "resourcePerAlloc": {"resources": {"memory": {"value": 5}}},
        }
    },
    "an unknown partition": {
        "application": {"applicationID": "x", "queueName": "root.leaf", "partitionName": "absent"}
    },
    "nothing": {},
    "no object": [],
    "an unknown key": {"asks": {}},
    "an unknown manager": {"rm": "other", "ask": {"allocationKey": "k", "applicationID": "app"}},
}


@pytest.mark.parametrize("case", BODIES.values(), ids=BODIES)
def test_a_dry_run_is_the_same(both: Both, case: object) -> None:
    """It is put to the worker of the partition; a bad body is refused with the same text."""
    one, door = (each.post("/licorne/v1/dry-run", json=case) for each in (both.one, both.door))

    assert (one.status_code, one.text) == (door.status_code, door.text)


@pytest.mark.parametrize("text", ["partitions: []", "{", "partitions:\n  - name: default\n    queues: []\n"])
def test_a_configuration_is_checked_alike(both: Both, text: str) -> None:
    """By the door itself."""
    one, door = (each.post("/ws/v1/validate-conf", content=text) for each in (both.one, both.door))

    assert one.text == door.text


def test_the_configuration_is_json_for_those_that_want_it(both: Both) -> None:
    """As at a scheduler, with the extra configuration and the checksum."""
    headers = {"Accept": "application/json"}
    one, door = (each.get("/ws/v1/config", headers=headers) for each in (both.one, both.door))

    assert one.text == door.text
    assert {"event.trackingEnabled": "true"} == door.json()["Extra"]
