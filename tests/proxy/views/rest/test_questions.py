"""Questions over REST: why something waits, and where something would go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.proxy.rest_clients import Reader

from licorne import ResourceManager, Scheduler

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: leaf
            resources:
              max: {memory: 40}
"""
NEW_ASK = {
    "allocationKey": "new",
    "applicationID": "app",
    "resourcePerAlloc": {"resources": {"memory": {"value": 5}}},
}


@pytest.fixture
def served() -> Iterator[Reader]:
    """One ask is placed, one is too large for its queue and for the node."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        scheduler.update_node(node_request("n1", memory=100))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("placed", memory=30))
        scheduler.update_allocation(ask_request("large", memory=900))
        scheduler.run_until_idle()
        yield Reader(scheduler)


def asked(served: Reader, body: object) -> Any:
    """Return the status and the document of a dry run."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = served.client.post("/licorne/v1/dry-run", content=content)
    return answer.status_code, answer.json()


def test_an_explanation_is_the_document_of_the_command(served: Reader) -> None:
    """All reasons, each with the line of the configuration behind it, and what would be preempted."""
    found: Any = served.document("/licorne/v1/explain?application=app")

    large, placed = found["asks"]
    assert ("large", "WAITING", "placed", "PLACED") == (
        *(large["allocationKey"], large["status"]),
        *(placed["allocationKey"], placed["status"]),
    )
    assert ["QUEUE_QUOTA", "QUEUE_QUOTA", "NO_NODE_FITS"] == [each["reason"] for each in large["blockers"]]
    assert "configuration:9:29" == large["blockers"][0]["lacks"][0]["position"]
    assert [
        {
            "allocationKey": "large",
            "whyNot": "no queue of its path has a guarantee",
            "due": None,
            "preemption": None,
        }
    ] == found["wouldPreempt"]


def test_one_ask_is_explained_alone(served: Reader) -> None:
    """By its key; the partition may be given in full."""
    found: Any = served.document("/licorne/v1/explain?application=app&ask=placed&partition=[rm]default")

    assert (["placed"], []) == ([ask["allocationKey"] for ask in found["asks"]], found["wouldPreempt"])


def test_where_an_ask_would_go_is_said_and_nothing_changes(served: Reader) -> None:
    """The node is the one that a cycle would choose."""
    before = served.document("/ws/v1/partition/default/applications/active")
    status, found = asked(served, {"ask": NEW_ASK})

    assert (200, "n1", "root.leaf", False) == (
        status,
        found["nodeID"],
        found["queueName"],
        found["isNew"],
    )
    assert before == served.document("/ws/v1/partition/default/applications/active")


def test_why_an_ask_would_wait_is_said(served: Reader) -> None:
    """In the queue of a new application, with the line of the configuration."""
    application = {"applicationID": "next", "queueName": "root.leaf", "ugi": {"user": "eve"}}
    large = {
        **NEW_ASK,
        "applicationID": "next",
        "resourcePerAlloc": {"resources": {"memory": {"value": "90"}}},
    }
    status, found = asked(served, {"rm": "rm", "application": application, "ask": large})

    assert (200, True, None) == (status, found["isNew"], found["nodeID"])
    assert "configuration:9:29" == found["ask"]["blockers"][0]["lacks"][0]["position"]
    lost = {**application, "queueName": "root.nowhere"}
    assert "no placement rule matched" in asked(served, {"application": lost})[1]["rejection"]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("explain", 400, "the parameter application is missing"),
        ("explain?application=", 400, "the parameter application is missing"),
        ("explain?application=app&aks=1", 400, "the parameter 'aks' is unknown; did you mean 'ask'?"),
        ("explain?application=app&application=b", 400, "the parameter application is given twice"),
        ("explain?application=ap", 404, "application 'ap' is not known"),
        ("explain?application=app&ask=none", 404, "has no ask or allocation 'none'"),
        ("explain?application=app&rm=other", 404, "there is no partition [other]any"),
        ("explain/sentences?application=app&partition=x", 404, "there is no partition [any]x"),
        ("locks", 404, "The engine direct has no locks"),
    ],
)
def test_a_question_that_cannot_be_answered_is_an_error(
    served: Reader, path: str, status: int, said: str
) -> None:
    """In the form of all errors, with the offending value."""
    answer = served.client.get(f"/licorne/v1/{path}")

    assert (status, status) == (answer.status_code, answer.json()["status_code"])
    assert said in answer.json()["message"]
    assert answer.json()["message"] == answer.json()["description"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body of the request: expecting value"),
        (b"\xff", "the body of the request: no text in UTF-8"),
        ([], "expected an object, not []"),
        ({"asks": {}}, "asks: unknown key; those known are rm, application, ask"),
        ({"rm": 1}, "rm: expected a text, not 1"),
        ({"ask": {"priority": "high"}}, "ask: priority: expected a whole number, not 'high'"),
        ({"ask": {"nodeId": "n1"}}, "ask: nodeId: unknown field; did you mean 'nodeID'?"),
        ({}, "a dry run needs an application, an ask, or both"),
        ({"ask": {**NEW_ASK, "applicationID": "none"}}, "application 'none' is not active"),
        ({"ask": {**NEW_ASK, "nodeID": "n1"}}, "'new' is on a node already"),
        ({"rm": "other", "ask": NEW_ASK}, 'RmID="other" not registered'),
    ],
)
def test_a_body_that_is_no_ask_is_refused(served: Reader, body: object, said: str) -> None:
    """The text names the place in it."""
    status, found = asked(served, body)

    assert (400, True) == (status, said in found["message"]), found


def test_questions_to_a_scheduler_that_was_stopped_are_not_available(served: Reader) -> None:
    """Nothing is unknown to it: it has no answers any more."""
    served.scheduler.stop()

    assert 503 == served.status("/licorne/v1/explain?application=app")
    assert 503 == asked(served, {"ask": NEW_ASK})[0]


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_the_lock_graph_is_that_of_the_engine_with_locks(engine: EngineName) -> None:
    """Other engines have none."""
    with Scheduler(engine=engine, stepped=True) as scheduler:
        answer = Reader(scheduler).client.get("/licorne/v1/locks")

    assert (200 if engine == "threads" else 404) == answer.status_code
    assert engine != "threads" or ["partition", "queue"] in answer.json()["declared"]


def next_asks(served: Reader, query: str = "") -> Any:
    return served.document(f"/licorne/v1/next-asks{query}")


def test_the_asks_that_are_tried_next_are_listed_for_each_partition(served: Reader) -> None:
    """In their order, as many as are wanted."""
    served.scheduler.update_allocation(ask_request("small", memory=5))
    (found,) = next_asks(served)

    assert ("[rm]default", []) == (found["partition"], found["blockers"])
    assert [
        ("large", "app", "root.leaf", {"memory": 900}, "REGULAR"),
        ("small", "app", "root.leaf", {"memory": 5}, "REGULAR"),
    ] == [
        (each["allocationKey"], each["applicationID"], each["queueName"], each["resource"], each["pass"])
        for each in found["asks"]
    ]
    (first,) = next_asks(served, "?count=1&partition=default&rm=rm")
    assert found["asks"][:1] == first["asks"]


def test_why_no_ask_is_tried_is_in_the_list(served: Reader) -> None:
    """With a partition that has no nodes, and without any partition."""
    served.scheduler.register("other", ResourceManager(), configuration=QUEUES)
    (found,) = next_asks(served, "?rm=other")

    assert ["NO_CAPACITY"] == [blocker["reason"] for blocker in found["blockers"]]
    with Scheduler(engine="direct") as empty:
        assert [] == Reader(empty).document("/licorne/v1/next-asks")


@pytest.mark.parametrize("count", ["0", "251", "-1", "many", "1.0", "\u0661", "9" * 5_000])
def test_a_count_that_is_out_of_range_is_refused(served: Reader, count: str) -> None:
    """With the value."""
    answer = served.client.get("/licorne/v1/next-asks", params={"count": count})

    assert 400 == answer.status_code
    assert f"count={count!r}"[:100] in answer.json()["message"]
    assert "is not a whole number from 1 to 250" in answer.json()["message"]
