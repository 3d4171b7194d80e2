"""Why an application waits, what runs on a node, the last hour, and the locks: as the page asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.page_cluster import fetch

from licorne import Scheduler
from licorne.lockcheck import session
from licorne.lockcheck.checking.watch import current
from licorne.proxy.views.history.recorder import HistoryWriter
from licorne.proxy.views.history.store import HOUR_NS
from licorne.proxy.views.page.answers import locks_document
from licorne.proxy.views.page.application import POINTS_MAX, Timeline

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: leaf
            resources:
              max: {memory: 40}
          - {name: parent, parent: true, queues: [{name: deep}]}
"""


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """One ask is placed, one is too large for its queue and for every node."""
    with Scheduler(engine="direct") as made:
        made.register("rm", Listener(), configuration=QUEUES)
        made.update_node(node_request("n1", memory=100))
        made.update_application(application_request("app"))
        made.update_application(application_request("lost", queue="root.nowhere"))
        made.update_allocation(ask_request("t1", memory=30))
        made.update_allocation(ask_request("t2", memory=900))
        made.run_until_idle()
        yield made


def answer(page: str, path: str) -> Any:
    response = fetch(page, f"/licorne/v1/{path}")
    assert 200 == response.status, response.text
    return response.document


def test_all_reasons_come_at_once_with_the_lines_of_the_configuration(page: str) -> None:
    """The queue first, whose maximum stands in line 10 of the text."""
    found = answer(page, "explain/sentences?application=app")

    (group,) = found["waiting"]
    first, *others = group["blockers"]
    assert "queue root.leaf has no room" == first["text"]
    assert ["memory: asked 900, left 10 of 40"] == [lack["text"] for lack in first["lacks"]]
    setting = first["lacks"][0]["setting"]
    assert (10, "max: {memory: 40}") == (setting["line"], setting["text"])
    assert ["queue root has no room: the nodes together have no more", "no node has room"] == [
        each["text"] for each in others
    ]
    assert "must rise from 40 to 930" in first["changes"][0]
    assert [("t2", "no queue of its path has a guarantee")] == [
        (each["text"], each["why"]) for each in found["victims"]
    ]


def test_a_rejected_application_has_its_reason(page: str) -> None:
    """And nothing that waits."""
    found = answer(page, "explain/sentences?application=lost&rm=rm&partition=default")

    assert ("Rejected", []) == (found["state"], found["waiting"])
    assert "no placement rule matched" in found["rejection"]
    assert "rule 0 provided: queue root.nowhere does not exist" in found["rules"][0]["text"]


def test_a_node_says_what_runs_on_it(page: str) -> None:
    """With quantities as a person reads them."""
    found = answer(page, "page/node?rm=rm&partition=default&node=n1")

    assert [("t1", "app", "memory 30")] == [
        (each["allocationKey"], each["applicationID"], each["resource"]) for each in found["allocations"]
    ]
    assert ("memory 70", True) == (found["available"], found["schedulable"])


def test_applications_that_wait_have_a_reason_in_few_words(page: str) -> None:
    """Of one of which nothing waits, or that is not known, nothing is said."""
    found = answer(
        page, "page/reasons?rm=rm&partition=default&application=app&application=lost&application=x"
    )

    assert {"app": "queue max"} == found


def test_applications_that_wait_are_counted_by_their_reasons(page: str) -> None:
    """In the same words."""
    assert {"queue max": 1} == answer(page, "page/waiting?rm=rm&partition=default")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("explain/sentences", 400, "the parameter application is missing"),
        ("explain/sentences?application=%3Cb%3E", 404, "'<b>' is not known"),
        ("explain/sentences?application=app&partition=other", 404, "there is no partition"),
        ("page/node?rm=rm&partition=default", 400, "the parameter node is missing"),
        ("page/node?rm=rm&partition=default&node=n9", 404, "node 'n9' is not known"),
        ("page/waiting?partition=default", 400, "the parameter rm is missing"),
        ("page/reasons?rm=rm", 400, "the parameter partition is missing"),
        ("page/reasons?rm=rm&partition=none", 404, "there is no partition"),
        (
            f"page/reasons?rm=rm&partition=default{'&application=a' * 101}",
            400,
            "101 applications are asked for",
        ),
        ("page/timeline", 400, "the parameter partition is missing"),
        ("page/timeline?partition=x&since=soon", 400, "expected a time in milliseconds, got since='soon'"),
        ("page/timeline?partition=x&hours=ten", 400, "expected a number of hours, got hours='ten'"),
        ("page/timeline?partition=x&since=-1", 400, "expected a time in milliseconds, got since='-1'"),
        (
            "page/timeline?partition=x&since=9999999999999999999",
            400,
            "expected a time in milliseconds, got since=",
        ),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(page: str, path: str, status: int, text: str) -> None:
    """With the offending value."""
    response = fetch(page, f"/licorne/v1/{path}")

    assert status == response.status
    assert text in response.document["message"]


# --------------------------------------------------------------------------------------------- the last hour


def test_a_timeline_has_a_queue_and_those_right_below(scheduler: Scheduler) -> None:
    """Not the ones below these."""
    timeline = Timeline(scheduler.monitoring.live_view)
    timeline.take(scheduler.monitoring.live_view.queues())

    document: Any = timeline.document("[rm]default", "root", 0)

    assert ["root", "root.leaf", "root.parent"] == list(document["queues"])
    assert [[[30], [900]]] == document["queues"]["root.leaf"]
    assert ["memory"] == document["types"]


def test_a_timeline_is_bounded(scheduler: Scheduler) -> None:
    """The oldest points are forgotten; a viewer may ask for those that are new."""
    timeline = Timeline(scheduler.monitoring.live_view)
    for _ in range(POINTS_MAX + 5):
        scheduler.advance_to(scheduler.now_ns() + 10_000_000_000)
        timeline.take(scheduler.monitoring.live_view.queues())
    everything: Any = timeline.document("[rm]default", "root", 0)
    newest: Any = timeline.document("[rm]default", "root", everything["times"][-2])

    assert POINTS_MAX == len(everything["times"])
    assert everything["times"][-1:] == newest["times"]


def test_a_queue_that_came_later_has_no_points_before(scheduler: Scheduler) -> None:
    """And a partition that has gone has no timeline."""
    timeline = Timeline(scheduler.monitoring.live_view)
    timeline.take(scheduler.monitoring.live_view.queues())
    scheduler.update_configuration(configuration_request(QUEUES + "          - name: new\n"))
    timeline.take(scheduler.monitoring.live_view.queues())

    document: Any = timeline.document("[rm]default", "root", 0)
    timeline.take(())

    assert [None, [[None], [None]]] == [
        point and [[None], [None]] for point in document["queues"]["root.new"]
    ]
    assert [] == timeline.document("[rm]default", "root", 0)["times"]


def test_a_timeline_of_days_is_that_of_the_history(page: str, scheduler: Scheduler, tmp_path: Path) -> None:
    """Means of hours; how far back it reaches is in each answer."""
    path = "page/timeline?partition=[rm]default&parent=root&hours=24"
    without = fetch(page, f"/licorne/v1/{path}")
    writer = HistoryWriter(scheduler, tmp_path / "history.db", lambda *_: "")
    for _ in range(6):
        writer.write()
        scheduler.advance_to(scheduler.now_ns() + HOUR_NS // 4)
    document, last_hour = answer(page, path), answer(page, path.partition("&hours")[0])

    assert (404, "no history is kept") == (without.status, without.document["message"][:18])
    assert (HOUR_NS // 10**6, ["memory"]) == (document["interval"], document["types"])
    assert ["root", "root.leaf"] == list(document["queues"])
    assert [[30], [900]] == document["queues"]["root.leaf"][1]
    assert last_hour["interval"] < document["interval"]
    assert last_hour["kept"] == document["kept"] >= HOUR_NS // 10**6


# ------------------------------------------------------------------------------------------------- the locks


def test_the_graph_of_the_locks_has_their_classes_and_the_declared_order() -> None:
    """What is observed is not known where locks are not checked."""
    threads: Any = locks_document()

    assert ["partition", "queue"] in threads["declared"]
    assert {"name": "queue", "leaf": True, "exclusive": False} in threads["classes"]
    assert (threads["observed"] is None) == (current() is None)


def test_what_is_observed_is_counted_while_locks_are_checked() -> None:
    """With the edges that a run really took."""
    with session(level="full"), Scheduler(engine="threads", stepped=True) as scheduler:
        scheduler.register("rm", Listener(), configuration=QUEUES)
        scheduler.update_node(node_request("n1", memory=100))
        scheduler.run_until_idle()
        document: Any = locks_document()

    assert ["registration", "cluster"] in [edge[:2] for edge in document["observed"]]
