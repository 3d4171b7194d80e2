"""What readers get while a partition has no worker, or one that does not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from support.proxy.door_views import Both, StandingDoor, place_at, viewed
from support.waiting import WAIT_SECONDS

from licorne import Scheduler
from licorne.proxy.views.rest.limits import LimitsSettings
from licorne.proxy.views.rest.running import RestSettings
from licorne.proxy.wire.door.workers import LinkState

SECOND: Final = "/ws/v1/partition/second/queues"
LISTS: Final = [
    "/ws/v1/clusters",
    "/ws/v1/partitions",
    "/ws/v1/scheduler/node-utilizations",
    "/ws/v1/history/apps",
    "/ws/v1/metrics",
    "/licorne/v1/next-asks",
    "/debug/fullstatedump",
]

OF_THE_DOOR: Final = ["/licorne/v1/workers", "/licorne/v1/managers", "/ws/v1/scheduler/healthcheck", "/"]
EMPTY: Final = ["/debug/fullstatedump", "/ws/v1/config", "/ws/v1/events/batch"]
UNKNOWN: Final = [
    "/licorne/v1/explain?application=a",
    "/licorne/v1/page/node?rm=r&partition=p&node=n",
    SECOND,
]


@pytest.fixture
def both(both: Both) -> Iterator[Both]:
    """Give a door whose partitions all run; what a test changes is undone."""
    places = both.standing.places()
    yield both
    both.standing.standing = places


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """Give the address of a worker that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


STATES: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "no worker yet": (
        {"state": LinkState.STARTING, "rest_address": ""},
        "partition [rm]second has no worker since 2023-11-14T22:13:20Z",
    ),
    "a lost worker": (
        {"state": LinkState.STARTING, "rest_address": "", "reason": "the process has ended"},
        "partition [rm]second has no worker since 2023-11-14T22:13:20Z: the process has ended",
    ),
    "a recovery": (
        {"state": LinkState.RECOVERING, "reason": "the process has ended"},
        "partition [rm]second is being recovered since 2023-11-14T22:13:20Z: the process has ended",
    ),
    "a worker without REST": (
        {"rest_address": ""},
        "partition [rm]second: its worker at 127.0.0.1:3333 has no REST interface",
    ),
    "an end": (
        {"state": LinkState.CLOSED, "rest_address": ""},
        "partition [rm]second has ended since 2023-11-14T22:13:20Z",
    ),
}


@pytest.mark.parametrize("case", STATES.values(), ids=STATES)
def test_a_partition_without_a_worker_is_503_and_why(both: Both, case: tuple[dict[str, Any], str]) -> None:
    """The other one answers; a name that is unknown stays 404."""
    changes, text = case
    both.standing.change("second", **changes)
    refused = both.door.get(SECOND)

    assert (503, text) == (refused.status_code, refused.json()["message"])
    assert 200 == both.door.get(SECOND.replace("second", "default")).status_code
    assert 404 == both.door.get(SECOND.replace("second", "third")).status_code
    asked = both.door.get("/licorne/v1/explain?application=rm-second-app")
    assert (503, text) == (asked.status_code, asked.json()["message"])
    assert 200 == both.door.get("/licorne/v1/explain?application=rm-default-app").status_code


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_the_others_and_names_what_is_missing(both: Both, path: str) -> None:
    """By a header: the document keeps its shape."""
    assert "Licorne-Missing" not in both.door.get(path).headers
    both.standing.change("second", state=LinkState.RECOVERING)
    found = both.door.get(path)

    assert (200, "[rm]second") == (found.status_code, found.headers["Licorne-Missing"])
    assert "second-n1" not in found.text


def test_workers_and_health_say_how_a_partition_is(both: Both) -> None:
    """Also which worker it is, and how much waits."""
    both.standing.change("second", state=LinkState.RECOVERING, worker_number=2, waiting=7, reason="killed")
    found = {each["partition"]: each for each in both.door.get("/licorne/v1/workers").json()}
    health = both.door.get("/ws/v1/scheduler/healthcheck").json()

    second = found["second"]
    assert ("Running", "Recovering") == (found["default"]["state"], second["state"])
    assert (2, 7, "killed") == (second["workerNumber"], second["requestsWaiting"], second["reason"])
    assert not health["Healthy"]
    assert {
        "Name": "Partitions without a worker",
        "Succeeded": False,
        "Description": "Check that each partition has a worker that answers",
        "DiagnosisMessage": "partition [rm]second is being recovered since 2023-11-14T22:13:20Z: killed",
    } == health["HealthChecks"][-1]


def test_a_scheduler_has_no_workers(both: Both) -> None:
    """The same path is there, and empty."""
    assert [] == both.one.get("/licorne/v1/workers").json()


def test_what_the_door_knows_itself_is_there_without_workers() -> None:
    """What only workers know is 503, with the first reason."""
    with Scheduler(engine="direct") as scheduler:
        place = place_at("")
        door = StandingDoor(scheduler, [place])
        door.change("default", state=LinkState.STARTING)
        with viewed(door) as client:
            statuses = {path: client.get(path).status_code for path in LISTS}
            own = [client.get(path).status_code for path in OF_THE_DOOR]

    assert {**dict.fromkeys(LISTS, 503), "/ws/v1/metrics": 200} == statuses
    assert [200] * len(OF_THE_DOOR) == own


def test_a_door_without_managers_is_an_empty_scheduler() -> None:
    """Lists are empty, and one application is unknown."""
    with Scheduler(engine="direct") as scheduler, viewed(StandingDoor(scheduler, [])) as client:
        lists = [client.get(path).json() for path in LISTS if path not in ("/ws/v1/metrics", LISTS[-1])]
        statuses = {path: client.get(path).status_code for path in (*EMPTY, *UNKNOWN)}

    assert [[]] * 5 == lists
    assert dict.fromkeys(EMPTY, 200) | dict.fromkeys(UNKNOWN, 404) == statuses


def test_a_worker_that_cannot_be_reached_is_503(both: Both) -> None:
    """With its address and why."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        free = f"127.0.0.1:{unused.getsockname()[1]}"
    both.standing.change("second", rest_address=free)
    refused = both.door.get(SECOND)

    assert 503 == refused.status_code
    assert refused.json()["message"].startswith(
        f"partition [rm]second: the worker at {free} cannot be reached: "
    )
    assert "[rm]second" == both.door.get("/ws/v1/clusters").headers["Licorne-Missing"]


def test_a_silent_worker_keeps_nobody_else_waiting(
    both: Both, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while its partition counts as missing."""
    monkeypatch.setattr("licorne.proxy.wire.door.view.reading._MERGE_SECONDS", 0.2)
    both.standing.change("second", rest_address=silent)

    assert 200 == both.door.get(SECOND.replace("second", "default")).status_code
    found = both.door.get("/ws/v1/partitions")
    assert ["default"] == [each["name"] for each in found.json()]
    assert "[rm]second" == found.headers["Licorne-Missing"]


def test_a_worker_that_listens_everywhere_is_reached_at_its_host(both: Both) -> None:
    """Its REST interface says 0.0.0.0, which is no host to connect to."""
    port = both.standing.places()[1].rest_address.rpartition(":")[2]
    both.standing.change("second", rest_address=f"0.0.0.0:{port}")

    assert 200 == both.door.get(SECOND).status_code


def test_the_door_lets_in_whom_a_server_lets_in() -> None:
    """Tokens hold for data; the page is for all, and limits are those of a server."""
    settings = RestSettings(tokens=("a-token-of-the-door",), limits=LimitsSettings(body_bytes_max=10))
    with Scheduler(engine="direct") as scheduler, viewed(StandingDoor(scheduler, []), settings) as client:
        headers = {"Authorization": "Bearer a-token-of-the-door"}
        statuses = [
            client.get("/ws/v1/clusters").status_code,
            client.get("/ws/v1/clusters", headers=headers).status_code,
            client.get("/").status_code,
            client.post("/ws/v1/validate-conf", content="x" * 11, headers=headers).status_code,
            client.post("/ws/v1/clusters", headers=headers).status_code,
        ]

    assert [401, 200, 200, 413, 405] == statuses


def test_an_answer_may_come_compressed(both: Both) -> None:
    """By the worker, for a reader that takes that."""
    path = "/ws/v1/partition/default/applications/active"
    plain = both.door.get(path, headers={"Accept-Encoding": "identity"})
    packed = both.door.get(path, headers={"Accept-Encoding": "gzip"})

    assert ("gzip", plain.text) == (packed.headers["content-encoding"], packed.text)


def test_one_state_dump_is_made_at_a_time(both: Both) -> None:
    """A second reader is told so; the first one gets the dump of the workers that have given theirs."""
    path = "/debug/fullstatedump"
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        both.standing.change("second", rest_address=f"127.0.0.1:{listening.getsockname()[1]}")
        first = pool.submit(both.door.get, path)
        connection, _ = listening.accept()
        with connection:
            second = both.door.get(path)
        found = first.result(WAIT_SECONDS)

    text = "a state dump is being made already; ask again when it is done"
    assert (503, text) == (second.status_code, second.json()["message"])
    assert (200, "[rm]second") == (found.status_code, found.headers["Licorne-Missing"])
    assert 200 == both.door.get("/licorne/v1/workers").status_code
