"""`licorne door` as an operator starts it: what it serves, and what it refuses before it listens."""

from __future__ import annotations

import json
import signal
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.command_runs import run
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, TWO, application_request, ask_request, node_request
from support.proxy.processes import children, start_server
from support.waiting import WAIT_SECONDS, wait_until

from licorne import RemoteScheduler
from licorne.proxy.views.history.questions import HistoryFile, Period
from licorne.proxy.views.history.subjects import Grouping, HistorySubject

LAUNCHERS: Final = """
from licorne import LaunchedWorker, LicorneError

class Attaching:
    def __init__(self, address, arguments):
        if arguments:
            raise LicorneError(f"expected no options for workers at {address}, got {arguments}")
        self.address = address

    def start(self, partition, given_up):
        return LaunchedWorker(partition, self.address, 1)

    def lost(self, worker):
        pass

    def stop(self):
        pass
"""
REFUSED: Final[dict[str, tuple[list[str], str]]] = {
    "a launcher that there is not": (
        ["--launcher", "dask"],
        "--launcher: expected one of local, fixed, ray, got 'dask'",
    ),
    "fixed workers without addresses": (
        ["--launcher", "fixed"],
        "--launcher fixed needs --workers PARTITION=HOST:PORT,...",
    ),
    "addresses for another launcher": (
        ["--workers", "default=127.0.0.1:1"],
        "--workers is for --launcher fixed: others start the workers themselves",
    ),
    "options for workers that are not started": (
        ["--launcher", "fixed", "--workers", "a=127.0.0.1:1", "--worker-options", "--no-rest"],
        "--worker-options is for workers that are started: give it to `licorne serve`",
    ),
    "two workers that claim one partition": (
        ["--launcher", "fixed", "--workers", "a=127.0.0.1:1,a=127.0.0.1:2"],
        "'a'",
    ),
    "quotes that do not end": (["--worker-options", "--engine 'x"], "--worker-options"),
    "one usage file for all workers": (
        ["--worker-options", "--usage-file=/tmp/use"],
        "--worker-options: all workers would write one --usage-file: give it to the door",
    ),
    "one history that each worker gets": (
        ["--worker-options", "--history history.db"],
        "--worker-options: all workers write one --history: give it to the door",
    ),
    "a history of workers elsewhere": (
        ["--launcher", "fixed", "--workers", "a=127.0.0.1:1", "--history", "history.db"],
        "--history is for --launcher local, whose workers write one file",
    ),
    "a history that is none": (["--history", __file__], f"{__file__}: is not a history"),
    "a usage file in no folder": (["--usage-file", "/nowhere/use"], "/nowhere"),
    "an authority that is no file": (["--worker-ca", "/nowhere"], "/nowhere: cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_an_option_that_cannot_be_used_is_refused_in_one_line(case: tuple[list[str], str]) -> None:
    """It listens nowhere, and starts nothing."""
    options, text = case
    ports = ["--address", "127.0.0.1:0", "--rest-address", "127.0.0.1:0"]
    status, output, errors = run("door", *ports, *options)

    assert (2, "", 1) == (status, output, errors.count("\n"))
    assert text in errors


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with launchers, which programs started by the test see, too."""
    (tmp_path / "launchers_of_a_test.py").write_text(LAUNCHERS, encoding="utf-8")
    install(tmp_path, "one", attach="launchers_of_a_test:Attaching", broken="launchers_of_a_test:Attached")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def install(folder: Path, package: str, **launchers: str) -> None:
    """Declare a package that has launchers."""
    declared = folder / f"{package}_of_a_test-1.0.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}-of-a-test\nVersion: 1.0\n")
    rows = "".join(f"{name} = {place}\n" for name, place in launchers.items())
    (declared / "entry_points.txt").write_text(f"[licorne.launchers]\n{rows}")


def test_a_launcher_of_another_package_is_used(packages: Path) -> None:
    """It gets the address and the options of workers, and its errors are those of the command."""
    worker = start_server("--no-rest")
    options = ["--launcher", "attach", "--launcher-address", worker.address]
    server = start_server(*options, name="door", errors=packages / "errors.txt")
    with RemoteScheduler(server.address) as client:
        client.register("rm", Listener(), configuration=ONE)
        with RemoteScheduler(worker.address) as other:
            assert ["rm"] == [each.rm_id for each in other.resource_managers()]
    for process in (server.process, worker.process):
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)
    status, _, errors = run("door", *options, "--worker-options", "--no-rest")

    assert 2 == status
    assert errors.endswith(f"expected no options for workers at {worker.address}, got ['--no-rest']\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dask", "--launcher: expected one of local, fixed, attach, broken, ray, twice, got 'dask'"),
        ("broken", "--launcher 'broken': launchers_of_a_test:Attached: AttributeError: module"),
        ("twice", "--launcher 'twice': expected one package with it, got a_package:A and b_package:B"),
    ],
)
def test_a_launcher_that_cannot_be_used_is_refused(name: str, text: str, packages: Path) -> None:
    """It is unknown, cannot be imported, or two packages have it."""
    install(packages, "two", twice="a_package:A")
    install(packages, "three", twice="b_package:B")
    status, _, errors = run("door", "--launcher", name)

    assert 2 == status
    assert text in errors


def document(address: str, path: str) -> Any:
    """Return a document of a REST interface."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=WAIT_SECONDS) as answer:
        return json.load(answer)


def test_a_door_serves_clients_and_readers_as_a_server_does(tmp_path: Path) -> None:
    """With the file for those that send no queues; SIGTERM ends its workers, which have written a history."""
    queues, history = tmp_path / "queues.yaml", tmp_path / "history.db"
    queues.write_text(TWO, encoding="utf-8")
    options = ["--config", str(queues), "--history", str(history)]
    server = start_server(*options, name="door", errors=tmp_path / "errors.txt")
    with RemoteScheduler(server.address) as client:
        listener = Listener()
        client.register("rm", listener)
        for name in ("default", "second"):
            client.update_node(node_request(f"node-{name}", partition=name))
            client.update_application(application_request(f"app-{name}", partition=name))
            ask = ask_request(f"ask-{name}", application=f"app-{name}", memory=10, partition=name)
            client.update_allocation(ask)
            listener.wait_for(f"placed ask-{name}")
        assert "app-second" == client.explain("app-second").application_id
        assert ["default", "second"] == [
            each["partition"] for each in document(str(server.rest), "/licorne/v1/workers")
        ]
        nodes = document(str(server.rest), "/ws/v1/partition/second/nodes")
        assert ["node-second"] == [each["nodeID"] for each in nodes]
        answer = partial(HistoryFile(history).ask, period=Period(0, 2**62), by=Grouping.PARTITION)
        both, subjects = {"[rm]default", "[rm]second"}, (HistorySubject.USAGE, HistorySubject.WAITS)
        wait_until(
            lambda: all(both == {row[0] for row in answer(subject).rows} for subject in subjects),
            "both workers have written what they did, and their first configuration",
        )
        queues.write_text(TWO + "# changed\n", encoding="utf-8")
        wait_until(lambda: client.configuration_text("rm").endswith("# changed\n"), "it has read the file")
        wait_until(lambda: len(children(server.process.pid)) == 3, "two workers, and one that is ready")
        workers = children(server.process.pid)

    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=WAIT_SECONDS)
    assert server.process.returncode == 0
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "its workers have ended")
    assert ["changed", "registered"] == [row[2] for row in answer(HistorySubject.CONFIGURATIONS).rows]


def test_a_worker_at_a_fixed_address_is_used_and_left_running(tmp_path: Path) -> None:
    """It belongs to whoever has started it."""
    worker = start_server("--no-rest")
    options = ["--launcher", "fixed", "--workers", f"default={worker.address}"]
    server = start_server(*options, name="door", errors=tmp_path / "errors.txt")
    with RemoteScheduler(server.address) as client:
        client.register("rm", Listener(), configuration=ONE)
        with RemoteScheduler(worker.address) as other:
            assert ["rm"] == [each.rm_id for each in other.resource_managers()]

    server.process.terminate()
    server.process.communicate(timeout=WAIT_SECONDS)
    assert server.process.returncode == 0
    assert worker.process.poll() is None
    worker.process.kill()
    worker.process.communicate()
