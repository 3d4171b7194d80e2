"""`licorne top --once` and `--json`, as a user would run them, against a server on a port."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.proxy.command_runs import run
from support.proxy.document_server import DocumentServer


def top(server: DocumentServer, *arguments: str) -> tuple[int, str, str]:
    """Run the command; return its status, its output and what it said on standard error."""
    return run("top", "--address", server.address, *arguments)


def lines(server: DocumentServer, *arguments: str) -> list[str]:
    """Return the lines that it prints, without the blanks at their ends."""
    status, output, said = top(server, *arguments)

    assert (0, "") == (status, said)
    return [line.rstrip() for line in output.splitlines()]


def test_queues_are_printed_with_their_paths(server: DocumentServer) -> None:
    """A row is a line, so that other programs can pick it out."""
    assert [
        f"default Active  {server.address}  3 nodes  9 allocations",
        "vcore 7.75/24.6 (31 %)  healthy",
        "queue          used  guarant  maximum  pending  apps  status  policy",
        "root           7.75        -     24.6       22     4  Active  fair",
        "root.a         2.75        4       12       15  1/20  Active  fair",
        "root.b            5        -       20        7     3  Active  fair",
        "root.b.static     4        2        -        7     2  Active  fifo",
        "root.b.team-x     1        1        5        0   1/7  Active  fifo",
    ] == lines(server)


@pytest.mark.parametrize(
    ("view", "row"),
    [
        ("applications", ["app-1", "Running", "root.a", "alice", "2.75", "15", "1"]),
        ("nodes", ["node-2", "7", "0.6", "8.2", "7.6", "1", "drained"]),
        ("users", ["alice", "root.a", "2.75", "8", "1/4"]),
        ("groups", ["dev", "root.a", "2.75", "10", "1/5"]),
        ("health", ["Failed", "nodes", "ok", "There", "were", "0"]),
        ("utilization", ["vcore", "80-90%", "1"]),
    ],
)
def test_each_view_can_be_printed(server: DocumentServer, view: str, row: list[str]) -> None:
    assert row in [line.split()[: len(row)] for line in lines(server, "--view", view)]


def test_events_are_printed_newest_first(server: DocumentServer) -> None:
    """Their ids are those of the server."""
    records: Any = server.documents["/ws/v1/events/batch"]
    server.documents["/ws/v1/events/batch"] = {
        "InstanceUUID": "one",
        "LowestID": 0,
        "HighestID": 1,
        "EventRecords": records["EventRecords"][:2],
    }

    printed = [line.split() for line in lines(server, "--view", "events")[3:]]

    assert ["1", "0"] == [row[0] for row in printed]
    assert ["node", "node-1", "added:", "Node", "added", "to", "the", "scheduler"] == printed[0][2:]
    assert ["node", "node-1", "state", "changed:", "schedulable:", "true"] == printed[1][2:]


def test_an_application_is_explained_in_lines(server: DocumentServer) -> None:
    """With its place, and who would be preempted for it; `--json` prints the document of the server."""
    explanation = {
        "applicationID": "app-1",
        "headline": "app-1 in root.a",
        "rejection": "",
        "waiting": [{"text": "ask a1-huge waits", "sentence": "0/3 nodes are available", "blockers": []}],
        "places": [{"text": "place 1 of 2 in root.a"}],
        "victims": [{"text": "a1-huge on n1", "why": "b", "victims": [{"title": "x of app-2", "why": "y"}]}],
    }
    server.documents["/licorne/v1/explain/sentences"] = explanation

    assert [
        "app-1 in root.a",
        "",
        "why it waits",
        "  ask a1-huge waits",
        "    0/3 nodes are available",
        "its place in the orders",
        "  place 1 of 2 in root.a",
        "preemption for a1-huge on n1: b",
        "  x of app-2, y",
    ] == lines(server, "--explain", "app-1")
    assert explanation == json.loads(top(server, "--explain", "app-1", "--json")[1])


def test_an_application_that_the_server_does_not_explain_is_named(server: DocumentServer) -> None:
    """It is not known there, or the server is YuniKorn's."""
    said = f"licorne top: the server at {server.address} does not explain 'app-9'\n"

    assert (2, "", said) == top(server, "--explain", "app-9")


def test_json_has_raw_quantities(server: DocumentServer) -> None:
    """And says which type of resource they are of."""
    status, output, _ = top(server, "--json", "--resource", "memory")
    document = json.loads(output)

    assert 0 == status
    assert ("memory", "default", True) == (document["resource"], document["partition"], document["healthy"])
    assert {
        "queue": "root.a",
        "used": 5_500_000_000,
        "guaranteed": 8_000_000_000,
        "maximum": 24_000_000_000,
        "pending": 30_000_000_000,
        "applications": 1,
        "status": "Active",
        "policy": "fair",
    } == document["rows"][1]


def test_a_server_without_partitions_says_so(server: DocumentServer) -> None:
    """No resource manager has registered: nothing is wrong."""
    server.documents["/ws/v1/partitions"] = []

    assert "no partition: no resource manager has registered yet" in lines(server)


def test_what_the_server_has_switched_off_is_said(server: DocumentServer) -> None:
    """Here events are off, the rest is there."""
    from starlette.responses import JSONResponse

    refusal = {"status_code": 500, "message": "Event tracking is disabled", "description": ""}
    server.documents["/ws/v1/events/batch"] = JSONResponse(refusal, 500)

    assert lines(server, "--view", "events")[2].endswith("status 500: Event tracking is disabled")


def test_names_change_nothing_in_the_terminal(server: DocumentServer) -> None:
    """A name may come from anybody who may submit an application."""
    applications: Any = server.documents["/ws/v1/partition/default/applications/active"]
    applications[0]["applicationID"] = "a\x1b]0;title\x07\n[red]b"

    (row,) = [line for line in lines(server, "--view", "applications") if "title" in line]

    assert row.startswith("a\ufffd]0;title\ufffd\ufffd[red]b ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--partition", "gpu"], "the server has no partition 'gpu', but default"),
        (
            ["--resource", "gpu"],
            "the partition has no resource 'gpu', but vcore, memory, ephemeral-storage, pods",
        ),
    ],
)
def test_what_the_server_does_not_have_is_refused(
    server: DocumentServer, arguments: list[str], said: str
) -> None:
    assert (2, f"licorne top: {said}\n") == top(server, *arguments)[::2]


def test_partitions_of_one_name_are_told_apart_by_their_managers(server: DocumentServer) -> None:
    """A name alone means the first of them that is active, as over REST."""
    partitions: Any = server.documents["/ws/v1/partitions"]
    partitions.append({**partitions[0], "clusterId": "other"})
    server.documents["/ws/v1/partition/[other]default/nodes"] = [{"nodeID": "theirs", "schedulable": True}]

    assert "theirs" in lines(server, "--view", "nodes", "--partition", "[other]default")[3]
    assert "theirs" not in "".join(lines(server, "--view", "nodes", "--partition", "default"))
    partitions[0]["state"] = "Stopped"
    assert "theirs" in lines(server, "--view", "nodes", "--partition", "default")[3]


def test_once_prints_although_there_is_a_terminal(
    server: DocumentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the application is run, with what the options say."""
    from licorne.proxy.shell.commands import top as top_module
    from licorne.proxy.views.top.main_screen import TopApp

    ran: list[float] = []
    monkeypatch.setattr(top_module, "is_for_people", lambda: True)
    monkeypatch.setattr(TopApp, "run", lambda app: ran.append(app._main._interval_seconds))

    assert "root.a" in top(server, "--once")[1]
    assert "root.a" in top(server, "--json")[1]
    assert [] == ran
    assert (0, "", "") == top(server, "--interval", "500ms")
    assert [0.5] == ran


@pytest.mark.parametrize("interval", ["x", "10ms", "-1s", "5"])
def test_an_interval_that_is_none_is_refused(server: DocumentServer, interval: str) -> None:
    status, output, said = top(server, "--interval", interval)

    assert (2, "") == (status, output)
    assert "--interval" in said
    assert [] == server.asked
