"""The end of `licorne serve`: in time, with what is queued delivered; and what it prints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.programs import run_python
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, node_request
from support.proxy.processes import serving, start_server
from support.waiting import WAIT_SECONDS, wait_until

from licorne import RemoteScheduler


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_within_5_seconds(number: signal.Signals) -> None:
    """Also while an RM is connected, which loses its connection and is told so."""
    wait_until(lambda: seconds_of_an_end(number) < 5)


def seconds_of_an_end(number: signal.Signals) -> float:
    """Return how long a server takes to end when it gets a signal."""
    server = start_server()
    listener = Listener()
    with RemoteScheduler(server.address) as scheduler:
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("task"))
        listener.wait_for("placed task")

        began = time.monotonic()
        server.process.send_signal(number)
        assert server.process.wait(WAIT_SECONDS) == 0
        seconds = time.monotonic() - began
    assert server.process.stdout is not None
    server.process.stdout.close()
    return seconds


def test_it_prints_its_address_as_one_line() -> None:
    """The port is the one that was chosen."""
    process = subprocess.Popen(
        [sys.executable, "-m", "licorne", "serve", "--no-rest", "--address", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.terminate()
    rest, _ = process.communicate(timeout=WAIT_SECONDS)

    start, _, port = line.rstrip("\n").rpartition(":")
    assert (start, rest) == ("listening on 127.0.0.1", "")
    assert int(port) > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address", "0.0.0.0:0"], "can be reached from other machines"),
        (["--address", "somewhere"], "'somewhere' is not an address"),
        (["--address", "127.0.0.1:99999"], "'127.0.0.1:99999' is not an address"),
        (["--address", "192.0.2.1:0", "--insecure-public", "--no-rest"], "cannot listen on 192.0.2.1:0"),
        (["--rest-address", "0.0.0.0:0"], "0.0.0.0:0 can be reached from other machines"),
        (["--rest-address", "nowhere"], "'nowhere' is not an address"),
        (
            ["--address", "127.0.0.1:0", "--rest-address", "192.0.2.1:0", "--insecure-public"],
            "cannot listen on 192.0.2.1:0 for REST",
        ),
        (["--config", "missing.yaml"], "missing.yaml: cannot be read"),
        (["--stop-after", "soon"], "soon"),
        (["--stop-after", "-1s"], "-1s"),
        (["--engine", "other"], "other"),
    ],
)
def test_options_that_cannot_be_used_end_it_with_status_2(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    """One line on standard error quotes the value; nothing is printed."""
    ran = run_python("-m", "licorne", "serve", *arguments, folder=tmp_path)

    assert (2, "") == (ran.returncode, ran.stdout)
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_second_server_on_one_port_is_an_error() -> None:
    """It does not share the port with the first one."""
    with serving() as server:
        ran = run_python("-m", "licorne", "serve", "--no-rest", "--address", server.address)
    assert ran.returncode == 2
    assert f"cannot listen on {server.address}" in ran.stderr


def test_the_document_says_whether_there_is_tls() -> None:
    """For programs that start a server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "licorne", "serve", "--no-rest", "--address", "127.0.0.1:0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    document = json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=WAIT_SECONDS)

    assert document.keys() == {"address", "tls", "rest"}
    assert (document["tls"], document["rest"]) == (False, None)
