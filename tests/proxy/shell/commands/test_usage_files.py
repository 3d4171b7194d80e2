"""Usage files of real processes: `licorne serve --usage-file` and `licorne simulate --usage`."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from support.programs import run_python
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request, release_request
from support.proxy.processes import ServerProcess, start_server
from support.waiting import WAIT_SECONDS, let_time_pass

from licorne import RemoteScheduler
from licorne.model.queues.use_order import KeptUse
from licorne.model.resources.decayed_use import DecayedUse, TypeUse, decayed_means
from licorne.proxy.views.dumps import read_usage, usage_text

HOUR_SECONDS: Final = 3600
QUEUES: Final = """
partitions:
  - name: default
    queues:
      - {name: root, submitacl: "*", properties: {fair.half-life: 1h}, queues: [{name: leaf}]}
"""


@contextmanager
def recovered(
    file: Path, started: int, errors: Path | None = None
) -> Iterator[tuple[ServerProcess, RemoteScheduler, Listener]]:
    """Run a server to which a resource manager says that a hundred are in use since then."""
    server = start_server("--usage-file", str(file), "--no-rest", errors=errors)
    listener = Listener()
    try:
        with RemoteScheduler(server.address) as scheduler:
            scheduler.register("rm", listener, configuration=QUEUES)
            scheduler.update_node(node_request("n1", memory=2 * 10**9))
            scheduler.update_application(application_request("app"))
            request = ask_request("old", memory=100, node_id="n1")
            request.allocations[0].allocationTags["licorne/start-time"] = str(started)
            scheduler.update_allocation(request)
            listener.wait_for("placed old")
            yield server, scheduler, listener
    finally:
        server.process.terminate()
        server.process.wait(WAIT_SECONDS)
        assert server.process.stdout is not None
        server.process.stdout.close()


def mean_in(file: Path) -> float:
    """Return the mean of the leaf in a usage file, at the moment that it was written."""
    at_ns, usage = read_usage(file)
    return decayed_means(usage["[rm]default"].uses["root.leaf"], at_ns)["memory"]


def test_what_ran_since_the_last_writing_is_lost_with_a_killed_server(tmp_path: Path) -> None:
    """What was used before it is kept, and what still runs counts as if the server had not been killed."""
    file, started = tmp_path / "usage.json", int(time.time()) - HOUR_SECONDS
    with recovered(file, started):
        pass
    at_stop = mean_in(file)
    with recovered(file, started) as (server, scheduler, listener):
        scheduler.update_allocation(ask_request("short", memory=10**9))
        listener.wait_for("placed short")
        let_time_pass(0.1)
        scheduler.update_allocation(release_request("short"))
        listener.wait_for("released short STOPPED_BY_RM")
        state: Any = scheduler.snapshot()
        (leaf,) = state["queues"]["default"]["children"]
        server.process.kill()
    with recovered(file, started):
        pass

    assert pytest.approx(50, abs=1) == at_stop
    assert 1000 < leaf["decayedMean"]["memory"]
    assert pytest.approx(50, abs=1) == mean_in(file)


def test_a_server_goes_on_without_a_file_that_it_refuses(tmp_path: Path) -> None:
    """It says so in one line, writes a new one at its end, and keeps the other one beside it."""
    file, errors = tmp_path / "usage.json", tmp_path / "errors"
    text, aside = '{"kind": "licorne usage", "version": 9}', tmp_path / "usage.json.refused"
    file.write_text(text, encoding="utf-8")
    with recovered(file, int(time.time()) - HOUR_SECONDS, errors):
        pass

    said = [line for line in errors.read_text(encoding="utf-8").splitlines() if str(file) in line]
    assert 1 == len(said), said
    assert said[0].endswith(
        f"{file}: has the version 9; this program reads 1; it is kept as {aside}, "
        "and fair share begins without past use"
    )
    assert text == aside.read_text(encoding="utf-8")
    assert pytest.approx(50, abs=1) == mean_in(file)


def test_a_recorded_server_takes_no_usage_file(tmp_path: Path) -> None:
    """A replay of the recording would not have it."""
    ran = run_python("-m", "licorne", "serve", "--usage-file", str(tmp_path / "u"), "--record", str(tmp_path))

    assert (2, True) == (ran.returncode, "--usage-file cannot be used with --record" in ran.stderr), (
        ran.stderr
    )


SCENARIO: Final = """
name: two
nodes: [{prefix: n, count: 1, resources: {vcore: 1}}]
queues:
  - {name: root, submitacl: "*", properties: {fair.half-life: 1d}, queues: [{name: a}, {name: b}]}
applications:
  - {name: one, queue: root.a, user: ada, tasks: [{count: 1, resources: {vcore: 1}, duration: 10s}]}
  - {name: two, queue: root.b, user: bob, tasks: [{count: 1, resources: {vcore: 1}, duration: 10s}]}
"""


def test_a_simulation_begins_with_what_was_used(tmp_path: Path) -> None:
    """The queue that has used more goes second, whose name alone would let it go first."""
    file, day, rows = tmp_path / "usage.json", tmp_path / "day.yaml", tmp_path / "jobs.csv"
    use = DecayedUse(24 * HOUR_SECONDS * 10**9, 0, {"vcore": TypeUse(5000, 0)})
    file.write_text(usage_text({"[elsewhere]default": KeptUse(0, {"root.a": use})}, 0), encoding="utf-8")
    day.write_text(SCENARIO, encoding="utf-8")
    ended = []
    for options in ((), ("--usage", str(file))):
        ran = run_python("-m", "licorne", "simulate", str(day), "--jobs-csv", str(rows), *options)
        assert 0 == ran.returncode, ran.stderr
        jobs = csv.DictReader(rows.read_text(encoding="utf-8").splitlines())
        ended.append({row["queue"]: row["wait_ns"] for row in jobs})

    assert [{"root.a": "0", "root.b": "10000000000"}, {"root.a": "10000000000", "root.b": "0"}] == ended


def test_a_simulation_refuses_a_bad_file(tmp_path: Path) -> None:
    """There it is an error, before anything is simulated."""
    file, day = tmp_path / "usage.json", tmp_path / "day.jsonl"
    file.write_text("[]", encoding="utf-8")
    day.write_text(json.dumps({"register": {"rmID": "rm"}}) + "\n", encoding="utf-8")
    ran = run_python("-m", "licorne", "simulate", str(day), "--usage", str(file))

    assert (2, f"licorne simulate: {file}: is not a usage file: its kind is not 'licorne usage'\n") == (
        ran.returncode,
        ran.stderr,
    )
