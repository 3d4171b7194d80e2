"""Transcripts of the older generation in a simulation: what their report counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.proxy.simulation_builders import written
from support.proxy.wire_manager import amount

from licorne.proxy.simulation.driver import NoProgress
from licorne.proxy.simulation.scheduler_core import SchedulerCore
from licorne.proxy.simulation.simulation import simulate
from licorne.proxy.simulation.workloads.transcript_input import read_timed_transcript

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
    report = simulate(
        read_timed_transcript(written(folder / "t.jsonl", text)),
        SchedulerCore,
        engine="direct",
        configuration=None,
        progress=NoProgress(),
        stopwatch=lambda: 0.0,
    )
    names = ("submitted", "placed", "completed", "running", "waiting", "withdrawn", "rejected")
    return {name: getattr(report.total, name) for name in names if getattr(report.total, name)}


def test_an_ask_counts_once_for_each_allocation(tmp_path: Path) -> None:
    """Those that wait, too."""
    assert {"submitted": 12, "placed": 10, "running": 10, "waiting": 2} == counted(
        tmp_path, ask("k", 12), ALL
    )


def test_an_allocation_is_completed_by_its_uuid(tmp_path: Path) -> None:
    """With its key or without; the same ask then wants others."""
    lines = (ask("k", 3), ALL, release(UUID="k#allocation-2"), release(allocationKey="k", UUID="k"))

    assert {"submitted": 3, "placed": 3, "completed": 2, "running": 1} == counted(tmp_path, *lines)
    assert {"submitted": 5, "placed": 5, "completed": 2, "running": 3} == counted(
        tmp_path, *lines, ask("k", 3), ALL
    )


def test_fewer_allocations_withdraw_what_waits(tmp_path: Path) -> None:
    """What runs goes on."""
    assert {"submitted": 4, "placed": 2, "running": 2, "waiting": 1, "withdrawn": 1} == counted(
        tmp_path, ask("k", 4, vcore=4), ALL, ask("k", 3, vcore=4), ALL
    )


@pytest.mark.parametrize("name", [{"allocationKey": "k"}, {"applicationID": "app"}])
def test_a_release_of_asks_withdraws_what_waits(tmp_path: Path, name: dict[str, str]) -> None:
    """By the key alone, or all of an application."""
    assert {"submitted": 4, "placed": 2, "running": 2, "withdrawn": 2} == counted(
        tmp_path, ask("k", 4, vcore=4), ALL, ask_release(**name)
    )


def test_a_release_without_a_name_completes_what_runs(tmp_path: Path) -> None:
    """What waits is placed then."""
    assert {"submitted": 4, "placed": 4, "completed": 2, "running": 2} == counted(
        tmp_path, ask("k", 4, vcore=4), ALL, release(), ALL
    )


@pytest.mark.parametrize("count", [-1, 20_000])
def test_an_ask_for_a_number_out_of_bounds_is_rejected_once(tmp_path: Path, count: int) -> None:
    """It is one ask that was sent."""
    assert {"submitted": 1, "rejected": 1} == counted(tmp_path, ask("k", count), ALL)


def test_a_gang_that_gives_up_withdraws_what_waits(tmp_path: Path) -> None:
    """The members of it, each for itself; its placeholders are no work."""
    gang = {"placeholderAsk": amount(20), "executionTimeoutMilliSeconds": 5000}
    room = ask("p", 5, vcore=4, placeholder=True, taskGroupName="tasks")
    work = ask("m", 2, vcore=4, taskGroupName="others")

    counts = counted(tmp_path, room, ALL, work, {"advance": "10s"}, **gang)

    assert {"submitted": 2, "withdrawn": 2} == counts


def test_what_exists_on_a_new_node_runs(tmp_path: Path) -> None:
    """Unless the node is rejected with it."""
    known = {"allocationKey": "k", "UUID": "u", "applicationID": "app", "resourcePerAlloc": amount(1)}

    assert {"submitted": 1, "placed": 1, "running": 1} == counted(tmp_path, node("m", known))
    assert {"submitted": 1, "placed": 1, "completed": 1} == counted(
        tmp_path, node("m", known), ALL, release(UUID="u")
    )
    assert {"submitted": 2, "rejected": 2} == counted(
        tmp_path, node("m", known, {**known, "UUID": "v", "applicationID": "no"})
    )
