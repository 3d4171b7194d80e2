"""Recordings of resource managers of the older generation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.proxy.recorded_traffic import callbacks_in, recorded, recorded_lines, replayed
from support.proxy.wire_manager import amount

from licorne.proxy.core.scheduler.engine_names import EngineName

QUEUES = """
partitions:
  - {name: default, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}
  - {name: gpu, queues: [{name: root, submitacl: '*', queues: [{name: q}]}]}
"""


def node(name: str, *existing: dict[str, Any], partition: str = "", **more: object) -> dict[str, Any]:
    body = {"nodeID": name, "action": "CREATE", "schedulableResource": amount(10), **more}
    place = {"attributes": {"si/node-partition": partition}}
    return {"node": {"rmID": "rm", "nodes": [{**body, **place, "existingAllocations": list(existing)}]}}


def existing(uuid: str, **more: object) -> dict[str, Any]:
    names = {"allocationKey": "k", "applicationID": "app", "UUID": uuid}
    return {**names, "resourcePerAlloc": amount(1), **more}


def allocation(**body: object) -> dict[str, Any]:
    return {"allocation": {"rmID": "rm", **body}}


def releases(**body: object) -> dict[str, Any]:
    return allocation(releases=body)


def ask(key: str, count: int, **more: object) -> dict[str, Any]:
    names = {"allocationKey": key, "applicationID": "app", "maxAllocations": count}
    return {**names, "resourceAsk": amount(3), **more}


APP = {"applicationID": "app"}
LINES: list[dict[str, Any]] = [
    {"register": {"rmID": "rm", "config": QUEUES}},
    {"application": {"rmID": "rm", "new": [{**APP, "queueName": "root.q", "ugi": {"user": "u"}}]}},
    node("n1", existing("u"), existing("k#allocation-2"), existing("k"), occupiedResource=amount(2)),
    node("n2", existing("v", partitionName="default"), partition="gpu"),
    node("n3", existing("w", applicationID="no")),
    node("n4", existing("x", nodeID="n1")),
    allocation(asks=[ask("k", 6, executionTimeoutMilliSeconds=5000), ask("l", -1)]),
    {"schedule": "all"},
    allocation(allocations=[existing("y", nodeID="n1")]),
    releases(allocationsToRelease=[{**APP, "UUID": "u"}, {**APP, "UUID": "k", "allocationKey": "k"}]),
    releases(allocationAsksToRelease=[{**APP, "allocationKey": "k"}]),
    {"node": {"rmID": "rm", "nodes": [{"nodeID": "n1", "action": "UPDATE", "occupiedResource": {}}]}},
    {"schedule": "all"},
    {"advance": "10s"},
    releases(allocationsToRelease=[APP]),
]


@pytest.mark.parametrize(("engine", "other"), [("direct", "actors"), ("actors", "direct")])
def test_the_replay_makes_the_decisions_about_an_older_resource_manager(
    engine: EngineName, other: EngineName, tmp_path: Path
) -> None:
    """Existing allocations with their UUIDs, asks for several, releases by UUID and of asks."""
    heard = recorded("\n".join(map(json.dumps, LINES)), engine, tmp_path)

    assert callbacks_in(heard) == callbacks_in(replayed(tmp_path, other))
    assert 3 == sum("nodeResponse" in row and "rejected" in row["nodeResponse"] for row in heard)
    (first,) = [
        node["existingAllocations"]
        for line in recorded_lines(tmp_path)
        for node in line.get("node", {}).get("nodes", [])
        if node["nodeID"] == "n1" and "existingAllocations" in node
    ]
    assert [("k", "u"), ("k", "k#allocation-2"), ("k", "k")] == [
        (entry["allocationKey"], entry["UUID"]) for entry in first
    ]
