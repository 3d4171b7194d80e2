"""Time limits of the older generation, from the request of a resource manager to its callbacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.simulation_builders import simulated
from support.proxy.wire_manager import amount
from support.transcripts.transcript_witness import output_of

from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.play.simulation.workloads.inputs import read_timed_transcript

ENGINES: Final[tuple[EngineName, ...]] = ("direct", "actors")
QUEUES: Final = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"


def an_older_ask(key: str, timeout_ms: int = 0, **more: object) -> dict[str, Any]:
    ask = {"allocationKey": key, "applicationID": "app", "maxAllocations": 1, "resourceAsk": amount(1)}
    return ask | {"executionTimeoutMilliSeconds": timeout_ms, **more}


def asks(*bodies: dict[str, Any]) -> dict[str, Any]:
    return {"allocation": {"rmID": "rm", "asks": list(bodies)}}


def transcript(*lines: dict[str, Any], timeout_ms: int = 0) -> str:
    """Return a transcript with a node and an application; then come the lines."""
    node = {"nodeID": "n", "action": "CREATE", "schedulableResource": amount(10)}
    application = {"applicationID": "app", "queueName": "root.q", "ugi": {"user": "u"}}
    start: list[dict[str, Any]] = [
        {"register": {"rmID": "rm", "config": QUEUES}},
        {"node": {"rmID": "rm", "nodes": [node]}},
        {"application": {"rmID": "rm", "new": [application | {"executionTimeoutMilliSeconds": timeout_ms}]}},
    ]
    return "\n".join(json.dumps(line) for line in [*start, *lines])


def replayed(text: str) -> list[dict[str, Any]]:
    """Return what both engines answer, which must be the same."""
    direct = output_of(text, "direct")
    assert direct == output_of(text, "actors", check_direction=True)
    return [json.loads(row) for row in direct]


def releases(output: list[dict[str, Any]], field: str = "released") -> list[tuple[int, str, str]]:
    return [
        (row["line"], entry["allocationKey"], entry["terminationType"])
        for row in output
        for entry in row.get("allocationResponse", {}).get(field, [])
    ]


def states(output: list[dict[str, Any]]) -> list[str]:
    return [
        entry["state"] for row in output for entry in row.get("applicationResponse", {}).get("updated", [])
    ]


def test_a_replayed_allocation_is_released_when_its_time_is_over() -> None:
    """At the line that lets the time pass; it is confirmed, and the application completes."""
    text = transcript(
        asks(an_older_ask("k", 5_000)), {"schedule": "all"}, {"advance": "4s"}, {"advance": "1s"}
    )

    output = replayed(text)

    assert [(7, "k", "TIMEOUT")] == releases(output)
    assert ["Accepted", "Running", "Completing"] == states(output)


def test_a_key_that_is_twice_in_a_request_has_the_limit_of_the_ask_that_was_taken() -> None:
    """The other one is rejected, and its limit with it."""
    bad = an_older_ask("k", 1_000) | {"resourceAsk": amount(-1)}
    text = transcript(
        asks(an_older_ask("k", 5_000), bad), {"schedule": "all"}, {"advance": "4s"}, {"advance": "1s"}
    )

    assert [(7, "k", "TIMEOUT")] == releases(replayed(text))


def test_a_replayed_application_fails_when_its_time_is_over() -> None:
    """Its allocations are released, and what waits is given back."""
    wide = an_older_ask("wide") | {"resourceAsk": amount(11)}
    text = transcript(asks(an_older_ask("k"), wide), {"schedule": "all"}, {"advance": "5s"}, timeout_ms=5_000)

    output = replayed(text)

    assert [(6, "k", "TIMEOUT")] == releases(output)
    assert [(6, "wide", "TIMEOUT")] == releases(output, "releasedAsks")
    assert ["Accepted", "Running", "Failing", "Failed"] == states(output)


def test_an_allocation_that_is_not_confirmed_keeps_its_room() -> None:
    """It is asked for once, and the books hold it until the resource manager says that it has ended."""
    text = transcript(
        {"confirm": "manual"},
        asks(an_older_ask("k", 5_000)),
        {"schedule": "all"},
        {"advance": "1h"},
        {"snapshot": True},
    )

    output = replayed(text)

    assert [(7, "k", "TIMEOUT")] == releases(output)
    assert {"vcore": 1} == output[-1]["snapshot"]["nodes"]["default"][0]["allocated"]


def test_a_release_by_uuid_ends_the_allocation() -> None:
    """The resource manager sends back the name that the placement gave."""
    release = {"applicationID": "app", "UUID": "k", "terminationType": "STOPPED_BY_RM"}
    text = transcript(
        asks(an_older_ask("k"), an_older_ask("stays")),
        {"schedule": "all"},
        {"allocation": {"rmID": "rm", "releases": {"allocationsToRelease": [release]}}},
    )

    assert [(6, "k", "STOPPED_BY_RM")] == releases(replayed(text))


def test_only_who_asks_in_the_older_generation_is_answered_in_it() -> None:
    """From the first such ask on; what was placed before has no second name."""
    current = {"allocationKey": "c", "applicationID": "app", "resourcePerAlloc": amount(1)}
    text = transcript(
        {"allocation": {"rmID": "rm", "allocations": [current]}},
        {"schedule": "all"},
        asks(an_older_ask("k")),
        {"schedule": "all"},
    )

    placed = [entry for row in replayed(text) for entry in row.get("allocationResponse", {}).get("new", [])]

    assert [("c", None), ("k", "k")] == [(entry["allocationKey"], entry.get("UUID")) for entry in placed]


def test_the_limit_goes_to_the_partition_of_the_ask() -> None:
    """A request with asks of two partitions is taken apart, the limits with it."""
    second = (
        QUEUES.removesuffix("]")
        + ", {name: second, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
    )
    lines = [json.loads(line) for line in transcript().splitlines()]
    lines[0]["register"]["config"] = second
    node = {"nodeID": "m", "action": "CREATE", "schedulableResource": amount(10)}
    there = {"attributes": {"si/node-partition": "second"}}
    application = {"applicationID": "other", "queueName": "root.q", "ugi": {"user": "u"}}
    lines += [
        {"node": {"rmID": "rm", "nodes": [node | there]}},
        {"application": {"rmID": "rm", "new": [application | {"partitionName": "second"}]}},
        asks(
            an_older_ask("k", 5_000),
            an_older_ask("l", 9_000, applicationID="other", partitionName="second"),
        ),
        {"schedule": "all"},
        {"advance": "6s"},
        {"advance": "6s"},
    ]

    output = replayed("\n".join(json.dumps(line) for line in lines))

    assert [(8, "k", "TIMEOUT"), (9, "l", "TIMEOUT")] == releases(output)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulated_transcript_has_its_limits(tmp_path: Path, engine: EngineName) -> None:
    """The report counts what timed out as taken back: it is neither running nor completed."""
    text = transcript(
        asks(an_older_ask("k", 5_000), an_older_ask("l")), {"schedule": "all"}, {"advance": "9s"}
    )
    path = tmp_path / "t.jsonl"
    path.write_text(text, encoding="utf-8")

    report = simulated(read_timed_transcript(path), engine=engine)

    total = report.total
    assert (2, 2, 0, 1) == (total.submitted, total.placed, total.completed, total.running)
