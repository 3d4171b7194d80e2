"""`licorne door` as an operator starts it: what it serves, and what it refuses before it listens."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any, Final

import pytest
from support.proxy.command_runs import run
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, TWO, application_request, ask_request, node_request
from support.proxy.processes import children, start_server
from support.waiting import WAIT_SECONDS, wait_until

from licorne import RemoteScheduler

REFUSED: Final[dict[str, tuple[list[str], str]]] = {
    "a launcher that there is not": (
        ["--launcher", "dask"],
        "--launcher 'dask': there are local, fixed, ray",
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


def document(address: str, path: str) -> Any:
    """Return a document of a REST interface."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=WAIT_SECONDS) as answer:
        return json.load(answer)


def test_a_door_serves_clients_and_readers_as_a_server_does(tmp_path: Path) -> None:
    """With the file for those that send no queues; SIGTERM ends its workers, too."""
    queues = tmp_path / "queues.yaml"
    queues.write_text(TWO, encoding="utf-8")
    server = start_server("--config", str(queues), name="door", errors=tmp_path / "errors.txt")
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
        queues.write_text(TWO + "# changed\n", encoding="utf-8")
        wait_until(lambda: client.configuration_text("rm").endswith("# changed\n"), "it has read the file")
        wait_until(lambda: len(children(server.process.pid)) == 3, "two workers, and one that is ready")
        workers = children(server.process.pid)

    server.process.send_signal(signal.SIGTERM)
    server.process.communicate(timeout=WAIT_SECONDS)
    assert server.process.returncode == 0
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), "its workers have ended")


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
