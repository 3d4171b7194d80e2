"""Transcripts of the older generation in a simulation: what their report counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.proxy.simulation_builders import simulated, written
from support.proxy.wire_manager import amount

from licorne.proxy.play.simulation.workloads.inputs import read_timed_transcript

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}]"
ALL: dict[str, Any] = {"schedule": "all"}


def node(name: str = "n", *existing: dict[str, Any]) -> dict[str, Any]:
    body = {"nodeID": name, "action": "CREATE", "schedulableResource": amount(10)}
    return {"node": {"rmID": "rm", "nodes": [{**body, "existingAllocations": list(existing)}]}}


def allocation(**body: object) -> dict[str, Any]:
    return {"allocation": {"rmID": "rm", **body}}


def ask(key: str, count: int, vcore: int = 1, **more: object) -> dict[str, Any]:
    names = {"allocationKey": key, "applicationID": "app", "maxAllocations": count}
    return allocation(asks=[{**names, "resourceAsk": amount(vcore), **more}])


def release(**more: object) -> dict[str, Any]:
    one = {"applicationID": "app", "terminationType": "STOPPED_BY_RM", **more}
    return allocation(releases={"allocationsToRelease": [one]})


def ask_release(**more: object) -> dict[str, Any]:
    return allocation(releases={"allocationAsksToRelease": [more]})


def counted(folder: Path, *lines: dict[str, Any], **application: object) -> dict[str, int]:
    """Return what the report of a transcript with a node and an application counts, without zeros."""
    app = {"applicationID": "app", "queueName": "root.q", "ugi": {"user": "u"}, **application}
    start = [
        {"register": {"rmID": "rm", "config": QUEUES}},
        node(),
        {"application": {"rmID": "rm", "new": [app]}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in [*start, *lines])
    report = simulated(read_timed_transcript(written(folder / "t.jsonl", text)))
    names = ("submitted", "placed", "completed", "running", "waiting", "withdrawn", "rejected")
    return {name: getattr(report.total, name) for name in names if getattr(report.total, name)}


SEVERAL = (ask("k", 3), ALL, release(UUID="k#allocation-2"), release(allocationKey="k", UUID="k"))
"""One of its allocations is released by its UUID alone, one by key and UUID."""
TWO_FIT = (ask("k", 4, vcore=4), ALL)
KNOWN = {"allocationKey": "k", "UUID": "u", "applicationID": "app", "resourcePerAlloc": amount(1)}
REFUSED = {**KNOWN, "UUID": "v", "applicationID": "no"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            (ask("k", 12), ALL),
            {"submitted": 12, "placed": 10, "running": 10, "waiting": 2},
            id="an ask counts once for each allocation, also for those that wait",
        ),
        pytest.param(
            SEVERAL,
            {"submitted": 3, "placed": 3, "completed": 2, "running": 1},
            id="an allocation is completed by its UUID",
        ),
        pytest.param(
            (*SEVERAL, ask("k", 3), ALL),
            {"submitted": 5, "placed": 5, "completed": 2, "running": 3},
            id="more allocations of the same ask are placed then",
        ),
        pytest.param(
            (*TWO_FIT, ask("k", 3, vcore=4), ALL),
            {"submitted": 4, "placed": 2, "running": 2, "waiting": 1, "withdrawn": 1},
            id="fewer allocations withdraw what waits, and what runs goes on",
        ),
        *(
            pytest.param(
                (*TWO_FIT, ask_release(**name)),
                {"submitted": 4, "placed": 2, "running": 2, "withdrawn": 2},
                id=f"a release of asks by {next(iter(name))} withdraws what waits",
            )
            for name in ({"allocationKey": "k"}, {"applicationID": "app"})
        ),
        pytest.param(
            (*TWO_FIT, release(), ALL),
            {"submitted": 4, "placed": 4, "completed": 2, "running": 2},
            id="a release without a name completes what runs, and what waits is placed",
        ),
        *(
            pytest.param(
                (ask("k", count), ALL),
                {"submitted": 1, "rejected": 1},
                id=f"an ask for {count} allocations is rejected once",
            )
            for count in (-1, 20_000)
        ),
        pytest.param(
            (node("m", KNOWN),), {"submitted": 1, "placed": 1, "running": 1}, id="what exists on a node runs"
        ),
        pytest.param(
            (node("m", KNOWN), ALL, release(UUID="u")),
            {"submitted": 1, "placed": 1, "completed": 1},
            id="what exists on a node is completed by its UUID",
        ),
        pytest.param(
            (node("m", KNOWN, REFUSED),),
            {"submitted": 2, "rejected": 2},
            id="what exists on a node that is rejected is rejected with it",
        ),
    ],
)
def test_the_report_counts_allocations(
    tmp_path: Path, lines: tuple[dict[str, Any], ...], expected: dict[str, int]
) -> None:
    """What is submitted is placed, waits, is withdrawn or is rejected."""
    assert expected == counted(tmp_path, *lines)


def test_a_gang_that_gives_up_withdraws_what_waits(tmp_path: Path) -> None:
    """The members of it, each for itself; its placeholders are no work."""
    gang = {"placeholderAsk": amount(20), "executionTimeoutMilliSeconds": 5000}
    room = ask("p", 5, vcore=4, placeholder=True, taskGroupName="tasks")
    work = ask("m", 2, vcore=4, taskGroupName="others")

    counts = counted(tmp_path, room, ALL, work, {"advance": "10s"}, **gang)

    assert {"submitted": 2, "withdrawn": 2} == counts
