"""Single paths of the REST interface: parameters, lists of several pages, and traps of the web UI."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.rest_clients import Reader, reader
from support.waiting import WAIT_SECONDS

from licorne import ResourceManager, Scheduler
from licorne.model.configuration.reader import CONFIGURATION_BYTES_MAX, DEFAULT_CONFIGURATION
from licorne.model.limits.limits import HolderKind
from licorne.model.nodes.node import NodeFacts
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.state.partition_state import PartitionState
from licorne.model.views.shown import ShownNode, holders
from licorne.proxy.core.documents.clusters import utilizations_document
from licorne.proxy.core.documents.declarations import ROWS_MAX, time_text
from licorne.proxy.core.scheduler.answering import views
from licorne.proxy.views.rest.handlers import queues as configurations

BELOW = "/ws/v1/partition/default"
MANY = 4 * ROWS_MAX + 1


def message(served: Reader, path: str) -> tuple[int, str]:
    answer = served.client.get(path)
    return answer.status_code, answer.json()["message"]


def test_escapes_of_a_name_count_twice(served: Reader) -> None:
    """A bad one is named; a plus is a blank, which no queue has."""
    assert (400, 'invalid URL escape "%zz"') == message(served, f"{BELOW}/queue/root%25zz")
    assert (400, 'invalid URL escape "%"') == message(served, f"{BELOW}/usage/user/a%25")
    assert 400 == served.status(f"{BELOW}/queue/root+leaf")
    assert served.document(f"{BELOW}/queue/root.leaf") == served.document(f"{BELOW}/queue/root%252ELEAF")


def test_a_partition_is_found_by_its_short_and_by_its_full_name() -> None:
    """The short one is that of the first resource manager that registered, unless it has stopped."""
    with reader(TWO) as served:
        served.scheduler.register("a-second", ResourceManager(), configuration=TWO)
        served.scheduler.update_node(node_request("node", rm_id="rm"))

        (node,) = list(served.document("/ws/v1/partition/default/nodes"))  # type: ignore[call-overload]
        assert "node" == node["nodeID"]
        assert [] == served.document("/ws/v1/partition/[a-second]default/nodes")
        served.scheduler.stop_manager("rm", "gone")
        assert [] == served.document("/ws/v1/partition/default/nodes")
        (node,) = list(served.document("/ws/v1/partition/[rm]default/nodes"))  # type: ignore[call-overload]
        assert "node" == node["nodeID"]


def test_a_list_of_several_pages_has_everything_once(served: Reader) -> None:
    """It is one document, and compressed for those that take that."""
    names = [f"app-{number:05d}" for number in range(MANY)]
    served.scheduler.update_application(application_request(*names))
    served.scheduler.update_node(node_request(*(f"node-{name}" for name in names)))
    applications: Any = served.document(f"{BELOW}/applications/active")
    answer = served.client.get(f"{BELOW}/nodes", headers={"accept-encoding": "gzip"})

    assert names == [entry["applicationID"] for entry in applications]
    assert [f"node-{name}" for name in names] == [entry["nodeID"] for entry in answer.json()]
    assert "gzip" == answer.headers["content-encoding"]
    assert names == [entry["applicationID"] for entry in self_of(served, "queue/root.leaf/applications")]


def self_of(served: Reader, path: str) -> Any:
    return served.document(f"{BELOW}/{path}")


def test_what_ends_between_two_pages_is_left_out(served: Reader) -> None:
    """The list is complete otherwise."""
    names = [f"app-{number:05d}" for number in range(MANY)]
    served.scheduler.update_application(application_request(*names))
    views = served.scheduler.views
    partition = views.find("default")
    pages = views.active(partition, [*names, "unknown"])
    first = next(pages)
    served.scheduler.update_application(application_request("late"))

    assert MANY == len(first) + sum(len(page) for page in pages)


def test_a_page_is_never_longer_than_250(served: Reader) -> None:
    """Between two of them the partition does other work."""
    served.scheduler.update_node(node_request(*map(str, range(MANY))))
    views = served.scheduler.views

    assert [16, 64, 250, 250, 250, 171] == [len(page) for page in views.nodes(views.find("default"))]


def a_node(name: str, capacity: int, allocated: int) -> ShownNode:
    facts = NodeFacts(
        node_id=name,
        attributes={},
        schedulable=True,
        capacity=Resource({"memory": capacity}),
        allocated=Resource({"memory": allocated}),
        occupied=EMPTY,
        available=EMPTY,
        allocations=(),
        foreign=(),
        reservations=(),
    )
    return ShownNode(facts, frozenset())


def test_there_are_ten_classes_whatever_is_allocated() -> None:
    """Borders belong to the class below; what is above 100 % or below nothing is in the last or the first."""
    used = {"zero": 0, "ten": 10, "eleven": 11, "full": 100, "over": 250, "below": -20}
    document: Any = utilizations_document(
        "rm", "default", [a_node(*row, used[row[0]]) for row in [(n, 100) for n in used]]
    )

    (entry,) = document["utilizations"]
    classes = {each["bucketName"]: each.get("nodeNames") for each in entry["utilization"]}
    assert 10 == len(classes)
    assert ["zero", "ten", "below"] == classes["0-10%"]
    assert ["eleven"] == classes["10-20%"]
    assert ["full", "over"] == classes["90-100%"]


def test_the_number_of_all_applications_is_always_there(served: Reader) -> None:
    """The web UI shows it."""
    partitions: Any = served.document("/ws/v1/partitions")
    assert {"total": 0} == partitions[0]["applications"]
    served.scheduler.update_application(application_request("app"))
    partitions = served.document("/ws/v1/partitions")

    assert {"New": 1, "total": 1} == partitions[0]["applications"]


def test_an_application_that_has_not_started_has_the_recorded_time(served: Reader) -> None:
    """It is the start of the year 1, in milliseconds."""
    served.scheduler.update_application(application_request("app"))
    application: Any = served.document(f"{BELOW}/application/app")

    assert -62_135_596_800_000 == application["startTime"]
    assert 1 == application["submissionTime"] // 946_684_800_000_000_000
    assert {} == application["resourceHistory"]


def test_what_runs_in_an_application_is_shown(served: Reader) -> None:
    """With its node."""
    served.scheduler.update_node(node_request("node"))
    served.scheduler.update_application(application_request("app"))
    served.scheduler.update_allocation(ask_request("ask"))
    served.scheduler.run_until_idle()
    application: Any = served.document(f"{BELOW}/queue/root.leaf/application/app")

    assert ["node"] == [entry["nodeId"] for entry in application["allocations"]]
    assert (404, "Application not found") == message(served, f"{BELOW}/queue/root/application/app")


def test_a_time_is_a_text_with_all_its_digits() -> None:
    """In UTC, without zeros at its end."""
    assert "2000-01-01T00:00:00Z" == time_text(946_684_800_000_000_000)
    assert "2000-01-01T00:00:00.01Z" == time_text(946_684_800_010_000_000)


def test_there_is_a_configuration_without_a_resource_manager() -> None:
    """It has no partitions."""
    with Scheduler(engine="direct") as scheduler:
        answer = Reader(scheduler).client.get("/ws/v1/config")

        assert "application/x-yaml; charset=UTF-8" == answer.headers["content-type"]
        assert "partitions" not in yaml.safe_load(answer.text)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff\xfe", "no text in UTF-8"),
        (b"partitions: [", "not YAML"),
        (b"what: ever", "configuration:1:1"),
        (b"\x00", "configuration"),
    ],
)
def test_what_is_no_configuration_is_not_allowed(served: Reader, body: bytes, said: str) -> None:
    """With a reason, and status 200."""
    answer = served.client.post("/ws/v1/validate-conf", content=body)

    assert (200, False) == (answer.status_code, answer.json()["allowed"])
    assert said in answer.json()["reason"]
    assert "OPTIONS, POST" == answer.headers["access-control-allow-methods"]


def test_the_extra_configuration_is_shown_as_it_came(served: Reader) -> None:
    """With the keys of other programs, in both forms; it is left out if it is empty, as recorded."""
    assert "extra" not in yaml.safe_load(served.client.get("/ws/v1/config").text)
    extra = {"service.policyGroup": "queues", "log.level": "WARN"}
    request = configuration_request(ONE)
    request.extraConfig.update(extra)
    served.scheduler.update_configuration(request)

    shown = yaml.safe_load(served.client.get("/ws/v1/config").text)
    assert ["partitions", "checksum", "extra"] == list(shown)[:3]
    assert list(extra.items())[::-1] == list(shown["extra"].items())
    headers = {"accept": "application/json"}
    assert extra == served.client.get("/ws/v1/config", headers=headers).json()["Extra"]
    assert extra == served.document("/debug/fullstatedump")["config"]["Extra"]  # type: ignore[index]


def test_a_check_of_a_configuration_changes_nothing(served: Reader) -> None:
    """The one in effect stays."""
    before = served.client.get("/ws/v1/config").text
    served.client.post("/ws/v1/validate-conf", content=TWO)

    assert before == served.client.get("/ws/v1/config").text


def test_the_stacks_of_all_threads_are_shown(served: Reader) -> None:
    """With the names of the threads."""
    answer = served.client.get("/debug/stack")

    assert answer.headers["content-type"].startswith("text/plain")
    assert "[MainThread]" in answer.text
    assert "monitoring.py" in answer.text


@pytest.mark.parametrize("path", ["/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile"])
def test_profiles_of_go_are_not_implemented(served: Reader, path: str) -> None:
    """The error names what there is instead."""
    status, text = message(served, path)

    assert (501, True) == (status, "/debug/stack" in text)


def test_documents_of_paths_are_those_of_a_snapshot() -> None:
    """Of nodes and users; queues and applications differ in what is empty."""
    with reader() as served:
        served.scheduler.update_node(node_request("node"))
        served.scheduler.update_application(application_request("app"))
        served.scheduler.update_allocation(ask_request("ask"))
        served.scheduler.run_until_idle()
        snapshot: Any = json.loads(json.dumps(served.scheduler.snapshot()))

        assert snapshot["nodes"]["default"] == served.document(f"{BELOW}/nodes")
        assert snapshot["users"]["default"] == served.document(f"{BELOW}/usage/users")
        assert snapshot["groups"]["default"] == served.document(f"{BELOW}/usage/groups")


def test_a_configuration_that_is_too_large_to_be_used_is_not_checked_over_rest(served: Reader) -> None:
    """The limit of a body is that of a configuration; `licorne validate` has none."""
    text = DEFAULT_CONFIGURATION + "#" * CONFIGURATION_BYTES_MAX
    refused = served.client.post("/ws/v1/validate-conf", content=text)
    taken = served.client.post("/ws/v1/validate-conf", content=text[:CONFIGURATION_BYTES_MAX])

    assert (413, {"allowed": True}) == (refused.status_code, taken.json())


def test_configurations_are_checked_one_at_a_time(served: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait; nothing else does."""
    began, may_end = threading.Semaphore(0), threading.Event()
    at_once: list[int] = []
    checking: list[None] = []

    def check(text: str, *, source: str) -> None:
        assert (text, "configuration") == ("#", source)
        checking.append(None)
        at_once.append(len(checking))
        began.release()
        assert may_end.wait(WAIT_SECONDS)
        checking.pop()

    monkeypatch.setattr(configurations, "load", check)
    with served.client as client, ThreadPoolExecutor(3) as pool:
        posts = [pool.submit(client.post, "/ws/v1/validate-conf", content="#") for _ in range(3)]
        assert began.acquire(timeout=WAIT_SECONDS)
        assert 200 == client.get("/ws/v1/clusters").status_code
        may_end.set()
        assert [{"allowed": True}] * 3 == [post.result().json() for post in posts]

    assert [1, 1, 1] == at_once


def test_users_are_copied_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn of a partition is long, however many users there are; the list has each once, by name."""
    turns: list[int] = []

    def counted(state: PartitionState, kind: HolderKind, names: Sequence[str]) -> object:
        turns.append(len(names))
        return holders(state, kind, names)

    monkeypatch.setattr(views, "holders", counted)
    names = [f"u{number:04d}" for number in range(1_000)]
    limits = f"limits: [{{limit: all, maxapplications: 5, users: [{', '.join(names)}]}}]"
    queues = f"{{name: root, submitacl: '*', {limits}, queues: [{{name: leaf}}]}}"
    with reader(f"partitions: [{{name: default, queues: [{queues}]}}]") as served:
        for name in names:
            request = application_request(f"app-{name}")
            request.new[0].ugi.user = name
            served.scheduler.update_application(request)
        served.scheduler.run_until_idle()
        shown = served.document(f"{BELOW}/usage/users")
        assert [served.document(f"{BELOW}/usage/user/u0007")] == [shown[7]]  # type: ignore[index]

    assert names == [row["userName"] for row in shown]  # type: ignore[attr-defined]
    assert len(turns) > 4
    assert max(turns) <= ROWS_MAX
