"""When a waiting ask is expected to start, over a real server: as data, in sentences, in a dry run."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from support.proxy.manager_requests import ONE
from support.proxy.page_cluster import fetch, serving_page
from support.proxy.promised_starts import SECOND_NS, promise_starts, send_job

from licorne import ResourceManager, Scheduler
from licorne.proxy.views.top.details import explanation_lines

HOUR_NS = 3600 * SECOND_NS
NO_ROOM = "no node has room for it after all that runs there"


class Start(NamedTuple):
    """What is said of the ask of a job: in data, with the hours from now, and in a sentence."""

    job: str
    hours: int | None
    is_promised: bool
    why_not: str | None
    sentence: str


CASES = {
    "a promise has its node and its time": Start(
        "big", 1, True, None, "promised a start on n1 in 1h; at most 3 may go first for their shares"
    ),
    "what would delay it is expected after it": Start(
        "small", 2, False, None, "expected to start on n1 in 2h"
    ),
    "what is too large has a reason in place of a time": Start(
        "wide", None, False, NO_ROOM, f"no expected start: {NO_ROOM}"
    ),
}


@pytest.fixture
def origin() -> Iterator[str]:
    with Scheduler(engine="direct") as scheduler:
        promise_starts(scheduler)
        with serving_page(scheduler) as served:
            yield served


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_explanation_has_the_planned_start(origin: str, case: Start) -> None:
    """As data for programs, and as the page and `licorne top` show it."""
    found = fetch(origin, f"/licorne/v1/explain?application={case.job}").document
    sentences = fetch(origin, f"/licorne/v1/explain/sentences?application={case.job}").document

    expected = {
        "time": None if case.hours is None else found["time"] + case.hours * HOUR_NS,
        "nodeID": None if case.hours is None else "n1",
        "isPromised": case.is_promised,
        "passed": 0,
        "passesLeft": 3 if case.is_promised else None,
        "whyNot": case.why_not,
    }
    assert [expected] == [ask["plannedStart"] for ask in found["asks"]]
    assert [case.sentence] == [group["start"] for group in sentences["waiting"]]
    assert f"    {case.sentence}" in explanation_lines(sentences)


def test_what_runs_has_no_planned_start(origin: str) -> None:
    """It has begun."""
    (ask,) = fetch(origin, "/licorne/v1/explain?application=now").document["asks"]

    assert ("PLACED", False) == (ask["status"], "plannedStart" in ask)


def test_a_dry_run_has_the_planned_start(origin: str) -> None:
    """Of an ask that would come behind all that waits; one that would fit beside the promise starts now."""
    starts = [dry_run(origin, memory)["ask"]["plannedStart"] for memory in (8, 2)]

    hours = [(start["time"] - dry_run(origin, 2)["time"]) // HOUR_NS for start in starts]
    assert ([4, 0], [None, None]) == (hours, [start["whyNot"] for start in starts])


def dry_run(origin: str, memory: int) -> Any:
    """Return where another ask of `now` would go."""
    size = {"resources": {"memory": {"value": memory}}}
    ask = {"allocationKey": "new", "applicationID": "now", "resourcePerAlloc": size}
    ask["allocationTags"] = {"walltime": "1h"}
    connection = http.client.HTTPConnection(urlsplit(origin).netloc)
    connection.request("POST", "/licorne/v1/dry-run", json.dumps({"ask": ask}))
    document = json.loads(connection.getresponse().read())
    connection.close()
    return document


def test_nothing_is_said_of_starts_where_queues_do_not_backfill() -> None:
    """The documents are as they were without it."""
    with Scheduler(engine="direct") as scheduler, serving_page(scheduler) as origin:
        scheduler.register("rm", ResourceManager(), configuration=ONE)
        send_job(scheduler, "app", 6, "1h")
        (ask,) = fetch(origin, "/licorne/v1/explain?application=app").document["asks"]
        (group,) = fetch(origin, "/licorne/v1/explain/sentences?application=app").document["waiting"]

    assert ("WAITING", False, False) == (ask["status"], "plannedStart" in ask, "start" in group)
