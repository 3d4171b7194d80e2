"""What the official web UI reads: each view's document is there and has the shape that the UI walks over.

The UI shows its error page for any status but 2xx, and calls methods of lists and texts without looking.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from support.proxy.golden_bodies import recorded_scheduler
from support.proxy.manager_requests import application_request
from support.proxy.rest_clients import Reader, reader

from licorne import Scheduler

ALWAYS = ["/ws/v1/clusters", "/ws/v1/partitions", "/ws/v1/scheduler/node-utilizations"]
BELOW = "/ws/v1/partition/default"
YEAR_2000_SECONDS = 946_684_800
YEAR_2100_SECONDS = 4_102_444_800


@pytest.fixture(scope="module")
def recorded() -> Iterator[Reader]:
    """Give the recorded state behind the REST interface."""
    with recorded_scheduler() as scheduler:
        yield Reader(scheduler)


def queues(tree: Any) -> Iterator[Any]:
    """Yield all queues of a tree."""
    yield tree
    for child in tree.get("children", ()):
        yield from queues(child)


@pytest.mark.parametrize("path", ALWAYS)
def test_its_first_views_are_lists_before_any_resource_manager_registers(path: str) -> None:
    """A list without entries is `[]`, never null."""
    with Scheduler(engine="direct") as scheduler:
        assert [] == Reader(scheduler).document(path)


@pytest.mark.parametrize("path", [*ALWAYS, f"{BELOW}/nodes", f"{BELOW}/queue/root.leaf/applications"])
def test_its_views_are_lists_in_a_partition_without_nodes(path: str) -> None:
    with reader() as served:
        assert isinstance(served.document(path), list)


def test_each_queue_of_the_tree_can_be_chosen(recorded: Reader) -> None:
    """It asks for the applications of any of them, with the name as a component of an address."""
    tree = recorded.document(f"{BELOW}/queues")

    counts = {
        queue["queuename"]: len(
            recorded.client.get(f"{BELOW}/queue/{quote(queue['queuename'], safe='')}/applications").json()
        )
        for queue in queues(tree)
    }
    assert {"root": 0, "root.a": 1, "root.b": 0, "root.b.static": 3, "root.b.team-x": 1} == counts


def test_each_type_of_resource_has_ten_classes_of_nodes(recorded: Reader) -> None:
    """It draws one bar for each, and all nodes are in one of them."""
    document: Any = recorded.document("/ws/v1/scheduler/node-utilizations")

    (entry,) = document
    assert ["ephemeral-storage", "memory", "pods", "vcore"] == sorted(
        kind["type"] for kind in entry["utilizations"]
    )
    for kind in entry["utilizations"]:
        assert [f"{tens}-{tens + 10}%" for tens in range(0, 100, 10)] == [
            each["bucketName"] for each in kind["utilization"]
        ]
        assert 3 == sum(each.get("numOfNodes", 0) for each in kind["utilization"])


def test_the_number_of_applications_is_their_sum(recorded: Reader) -> None:
    partitions: Any = recorded.document("/ws/v1/partitions")
    counts = dict(partitions[0]["applications"])

    assert counts.pop("total") == sum(counts.values())


def test_times_are_nanoseconds_but_a_start_is_milliseconds() -> None:
    """It divides the one by a million, and hands the other to the calendar as it is."""
    with reader() as served:
        served.scheduler.update_application(application_request("app"))
        application: Any = served.document(f"{BELOW}/application/app")

    assert YEAR_2000_SECONDS <= application["submissionTime"] // 10**9 < YEAR_2100_SECONDS
    assert -62_135_596_800_000 == application["startTime"]


def test_what_has_started_says_when(recorded: Reader) -> None:
    """In milliseconds, not before it was submitted and not before it was accepted."""
    application: Any = recorded.document(f"{BELOW}/application/app-1")
    states = [entry["time"] // 10**6 for entry in application["stateLog"]]

    assert application["submissionTime"] // 10**6 <= application["startTime"]
    assert states[0] <= application["startTime"] <= states[-1]
