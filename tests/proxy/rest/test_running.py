"""The REST interface on a port: in this process, and in `licorne serve`."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import threading
import time

import httpx
import pytest
from support.proxy.certificates import Certificates
from support.proxy.listening import Listener
from support.proxy.processes import serving, start_server
from support.proxy.running_scheduler import begin, running

from licorne import LicorneError
from licorne.proxy.rest.running import RestServer, RestSettings
from licorne.proxy.scheduler.scheduler import EngineName

END_SECONDS = 5


def test_it_listens_on_a_port_that_is_free_and_leaves_no_thread() -> None:
    """The scheduler goes on when the server has ended."""
    with running() as scheduler:
        with RestServer(scheduler) as server:
            assert [] == httpx.get(f"http://127.0.0.1:{server.port}/ws/v1/clusters").json()
        assert "licorne-rest" not in {thread.name for thread in threading.enumerate()}
        scheduler.validate()


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_partitions_of_a_scheduler_that_runs_by_itself_are_shown(engine: EngineName) -> None:
    """The document is that of the snapshot."""
    with running(engine) as scheduler, RestServer(scheduler) as server:
        begin(scheduler, Listener())
        shown = httpx.get(f"http://127.0.0.1:{server.port}/ws/v1/partitions").json()

        assert scheduler.snapshot()["partitions"] == shown
        assert 1 == shown[0]["totalNodes"]
        below = f"http://127.0.0.1:{server.port}/ws/v1/partition/default"
        paths = ("queues", "queue/root", "placementrules", "nodes", "applications/active")
        assert [200] * 5 == [httpx.get(f"{below}/{path}").status_code for path in paths]
        assert {"partitions", "checksum"} <= {
            line.partition(":")[0] for line in httpx.get(f"{below}/../../config").text.splitlines()
        }


def test_it_listens_on_addresses_of_the_sixth_version() -> None:
    """Without brackets in the settings."""
    with running() as scheduler, RestServer(scheduler, RestSettings(host="::1")) as server:
        assert 200 == httpx.get(f"http://[::1]:{server.port}/ws/v1/clusters").status_code


def test_a_port_that_is_in_use_is_named() -> None:
    """Before anything is served."""
    with running() as scheduler, RestServer(scheduler) as server:
        text = f"cannot listen on 127.0.0.1:{server.port} for REST: Address already in use"
        with (
            pytest.raises(LicorneError, match=text),
            RestServer(scheduler, RestSettings(port=server.port)),
        ):
            pass


def test_it_listens_with_tls(tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the certificate of the server; clients without TLS are not served."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    files = ("--tls-cert", str(certificates.server), "--tls-key", str(certificates.server_key))
    with serving(*files) as server:
        port = str(server.rest).rpartition(":")[2]
        context = ssl.create_default_context(cafile=certificates.authority)
        assert [] == httpx.get(f"https://localhost:{port}/ws/v1/clusters", verify=context).json()
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://localhost:{port}/ws/v1/clusters")


def test_serve_starts_it_and_prints_its_address() -> None:
    """On a line of its own, behind that of the scheduler; the page for people is on the next one."""
    arguments = ["serve", "--address", "127.0.0.1:0", "--rest-address", "127.0.0.1:0"]
    command = [sys.executable, "-m", "licorne", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    address = lines[1].removeprefix("REST on ").strip()
    answer = httpx.get(f"http://{address}/ws/v1/clusters")
    page = httpx.get(lines[2].removeprefix("page on ").strip())
    process.terminate()
    process.communicate(timeout=END_SECONDS * 2)

    assert lines[0].startswith("listening on 127.0.0.1:")
    assert (200, []) == (answer.status_code, answer.json())
    assert (200, "text/html") == (page.status_code, page.headers["content-type"].partition(";")[0])


def test_serve_ends_in_time_while_a_client_is_connected() -> None:
    """A connection that is kept open does not hold it up."""
    server = start_server()
    with httpx.Client(base_url=f"http://{server.rest}") as client:
        assert 200 == client.get("/ws/v1/clusters").status_code
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert 0 == server.process.wait(END_SECONDS * 2)
        assert time.monotonic() - began < END_SECONDS
    assert server.process.stdout is not None
    server.process.stdout.close()
