"""`licorne serve --history` and `licorne usage`: real processes, killed ones too."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from support.programs import run_python
from support.proxy.command_runs import run
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.proxy.processes import ServerProcess, serving, start_server
from support.waiting import WAIT_SECONDS, let_time_pass, wait_until

from licorne import RemoteScheduler
from licorne.proxy.views.history.questions import HistoryFile, Period
from licorne.proxy.views.history.subjects import HistorySubject

QUEUES: Final = (
    "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]\n"
)
ALWAYS: Final = Period(0, 2**62)
_SLOW_SECONDS_MAX: Final = 3.0
"""A batch is written twice a second; a machine that runs other tests may take longer."""


@contextmanager
def placed(server: ServerProcess) -> Iterator[tuple[RemoteScheduler, Listener]]:
    """Run a resource manager whose application uses something."""
    listener = Listener()
    with RemoteScheduler(server.address) as scheduler:
        scheduler.register("rm", listener)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("one", memory=60))
        listener.wait_for("placed one")
        yield scheduler, listener


def hears(listener: Listener, begin: str) -> bool:
    return any(text.startswith(begin) for text in listener.heard)


def rows_of(path: Path, subject: HistorySubject) -> list[Any]:
    return HistoryFile(path).ask(subject, ALWAYS).rows


def usage(*arguments: str) -> str:
    status, text, errors = run("usage", *arguments)
    assert 0 == status, errors
    return text


def test_a_server_keeps_a_history_that_the_command_reads(tmp_path: Path) -> None:
    """As a table, as CSV and as JSON; the configuration is that of the file, with its owner."""
    queues, path = tmp_path / "queues.yaml", tmp_path / "history.db"
    queues.write_text(QUEUES, encoding="utf-8")
    with (
        serving("--config", str(queues), "--history", str(path), "--no-rest") as server,
        placed(server) as (scheduler, listener),
    ):
        scheduler.update_application(application_request("lost", queue="root.nowhere"))
        wait_until(lambda: hears(listener, "rejected lost"))
        wait_until(lambda: rows_of(path, HistorySubject.USAGE), "the use is in the file")
    (used,) = json.loads(usage(str(path), "--by", "user", "--since", "30d", "--json"))
    header, ended = csv.reader(io.StringIO(usage(str(path), "--show", "ended", "--csv")))
    changed = usage(str(path), "--show", "configurations")

    assert ("bob", "memory", "GiB h") == (used["user"], used["type"], used["unit"])
    assert ("time", "lost", "Rejected") == (header[0], ended[1], ended[7])
    assert f"{queues} of {queues.owner()}" in changed
    assert "placed" in usage(str(path), "--show", "waits")


def test_a_file_that_is_no_history_is_refused_in_one_line(tmp_path: Path) -> None:
    """By the server and by the command."""
    path = tmp_path / "queues.yaml"
    path.write_text(QUEUES, encoding="utf-8")
    served = run_python("-m", "licorne", "serve", "--history", str(path), "--address", "127.0.0.1:0")
    status, _, asked = run("usage", path)

    assert (2, 2) == (served.returncode, status)
    assert f"licorne serve: {path}: is not a history" in served.stderr
    assert f"licorne usage: {path}: cannot be read as a history" in asked


@pytest.mark.parametrize(
    ("kills", "lost_seconds_max"), [(2, _SLOW_SECONDS_MAX), pytest.param(30, 1.0, marks=pytest.mark.soak)]
)
def test_a_killed_server_leaves_all_until_its_last_batch(
    tmp_path: Path, kills: int, lost_seconds_max: float
) -> None:
    """What is lost is a second old at most, and nothing before it; the next server goes on with the file."""
    queues, path = tmp_path / "queues.yaml", tmp_path / "history.db"
    queues.write_text(QUEUES, encoding="utf-8")
    ages: list[float] = []
    before: set[Any] = set()
    for kill in range(kills):
        server = start_server("--config", str(queues), "--history", str(path), "--no-rest")
        with placed(server) as (scheduler, listener):
            rejected: dict[str, int] = {}
            for number in range(15 + kill):
                name = f"lost-{kill}-{number}"
                scheduler.update_application(application_request(name, queue="root.nowhere"))
                wait_until(partial(hears, listener, f"rejected {name}"))
                rejected[name] = time.monotonic_ns()
                let_time_pass(0.1)
            server.process.kill()
            killed_ns = time.monotonic_ns()
        server.process.wait(WAIT_SECONDS)
        assert server.process.stdout is not None
        server.process.stdout.close()
        with sqlite3.connect(path) as database:
            assert [("ok",)] == database.execute("PRAGMA integrity_check").fetchall()
        kept = {row[1] for row in rows_of(path, HistorySubject.ENDED)}
        lost_ns = [killed_ns - at_ns for name, at_ns in rejected.items() if name not in kept]
        ages.append(max(lost_ns, default=0) / 1e9)
        assert list(rejected)[: len(rejected) - len(lost_ns)] == [name for name in rejected if name in kept]
        assert before <= kept
        before = kept

    assert max(ages) < lost_seconds_max, ages
