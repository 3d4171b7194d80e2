"""`licorne save`, and the commands that go on from its file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from support.proxy.command_runs import run
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request

from licorne import RemoteScheduler, RequestError, Scheduler
from licorne.proxy.core.scheduler.answering.answers import Answers
from licorne.proxy.wire.server.server import ServerThread

CLOSED = "127.0.0.1:1"


@pytest.fixture
def address() -> Iterator[str]:
    """Return the address of a server with one ask that is placed, and one for which no node has room."""
    core = Scheduler(engine="direct")
    with ServerThread(core) as server, RemoteScheduler(server.address) as client:
        client.register("rm", Listener(), configuration=ONE)
        client.update_node(node_request("n1", memory=100))
        client.update_application(application_request("app"))
        client.update_allocation(ask_request("small", application="app", memory=10))
        client.update_allocation(ask_request("large", application="app", memory=1000))
        client.run_until_idle()
        yield server.address


def test_the_three_commands_go_on_from_the_file(address: str, tmp_path: Path) -> None:
    """They need the file alone; one that is there already is replaced."""
    file = tmp_path / "now.jsonl"
    file.write_text("before", encoding="utf-8")

    assert (0, f"{file}\n", "") == run("save", address, str(file))
    status, explained, _ = run("explain", "app", "--ask", "large", "-i", str(file))
    assert (0, True) == (status, "large" in explained and "n1" in explained)
    status, where, _ = run("dry-run", "--of", "app", "-r", "memory=90", "-i", str(file))
    assert (0, True) == (status, "n1" in where)
    status, report, _ = run("simulate", str(file))
    assert (0, True) == (status, "root.leaf" in report)


def test_a_dry_run_sees_what_is_taken(address: str, tmp_path: Path) -> None:
    """The node has room for 90 besides what runs on it, and not for 91."""
    file = tmp_path / "now.jsonl"
    run("save", address, str(file), "--rm", "rm")
    _, fits, _ = run("dry-run", "--of", "app", "-r", "memory=90", "-i", str(file), "--json")
    _, lacks, _ = run("dry-run", "--of", "app", "-r", "memory=91", "-i", str(file), "--json")

    assert [1, 0] == [json.loads(text)["ask"]["nodes"]["withRoom"] for text in (fits, lacks)]


def test_the_result_can_be_one_document(address: str, tmp_path: Path) -> None:
    """With the resource managers that the file has."""
    file = tmp_path / "now.jsonl"
    status, output, _ = run("save", address, str(file), "--json")

    assert (0, {"file": str(file), "managers": ["rm"]}) == (status, json.loads(output))


def test_a_server_that_does_not_listen_is_named(tmp_path: Path) -> None:
    """And no file is written."""
    file = tmp_path / "now.jsonl"
    status, output, error = run("save", CLOSED, str(file), "--timeout", "100ms")

    assert (2, "", 1, True, False) == (status, output, error.count("\n"), CLOSED in error, file.exists())


def test_a_server_of_an_older_version_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not know the question, and says that it has no body."""

    def refuse(*_: Any) -> NoReturn:
        raise RequestError("a question without a body")

    monkeypatch.setattr(Answers, "answer", refuse)
    refused = f"licorne save: the server at {address} cannot be saved: it is of an older version\n"

    assert (2, "", refused) == run("save", address, str(tmp_path / "now.jsonl"))


def test_a_resource_manager_that_is_not_there_is_refused(address: str, tmp_path: Path) -> None:
    """In the words of the server."""
    status, _, error = run("save", address, str(tmp_path / "now.jsonl"), "--rm", "other")

    assert (2, 1, True) == (status, error.count("\n"), '"other" not registered' in error)


def test_a_server_without_resource_managers_has_nothing_to_save(tmp_path: Path) -> None:
    """An empty file would be no transcript."""
    with ServerThread(Scheduler(engine="direct")) as server:
        status, _, error = run("save", server.address, str(tmp_path / "now.jsonl"))

    assert (2, True) == (status, "has nothing to save: no resource manager has registered" in error)


def test_a_file_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    """Before the server is asked."""
    file = tmp_path / "none" / "now.jsonl"
    refused = f"licorne save: {file}: cannot be written: there is no directory {file.parent}\n"

    assert (2, "", refused) == run("save", CLOSED, str(file))


@pytest.mark.parametrize("text", ["soon", "0s", "-1s"])
def test_a_time_to_wait_is_a_duration_above_zero(text: str, tmp_path: Path) -> None:
    """The error names the option."""
    status, _, error = run("save", CLOSED, str(tmp_path / "now.jsonl"), "--timeout", text)

    assert (2, True) == (status, "--timeout" in error)
