"""How the REST interface is served, with the page, by which address, and where it is switched off."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from support.proxy.certificates import Certificates
from support.proxy.listening import Listener
from support.proxy.processes import serving, start_server
from support.proxy.rest_clients import reader
from support.proxy.running_scheduler import begin, running
from support.waiting import WAIT_SECONDS, wait_until

from licorne import LicorneError
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.views.rest.running import AsgiServer, RestServer, RestSettings, ServingThread

APPLICATION = Starlette(routes=[Route("/", lambda _: PlainTextResponse("here"))])


def a_server() -> AsgiServer:
    return AsgiServer("test", uvicorn.Config(APPLICATION, log_config=None, lifespan="off", ws="none"))


def end() -> None:
    raise SystemExit(3)


def asked(port: int) -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().read()


def test_a_function_is_called_on_the_thread_of_the_server_while_it_runs() -> None:
    """Before and after that it is called at once."""
    names: list[str] = []

    def note() -> None:
        names.append(threading.current_thread().name)

    serving = ServingThread("TEST", a_server)
    serving.call(note)
    serving.start("127.0.0.1", 0)
    serving.call(note)
    wait_until(lambda: len(names) == 2)
    serving.end()
    serving.call(note)

    here = threading.current_thread().name
    assert [here, "licorne-test", here] == names


def test_an_answer_does_not_wait_until_its_head_is_acknowledged() -> None:
    """What the socket has set its connections inherit."""
    serving = ServingThread("TEST", a_server)
    serving.start("127.0.0.1", 0)

    assert serving._socket is not None
    assert serving._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    serving.end()


def test_a_server_that_ends_starts_again() -> None:
    """On the same port; what has ended it is noted, and that it answers again."""
    ends: list[BaseException | None] = []
    serving = ServingThread("TEST", a_server, ends.append)
    serving.start("127.0.0.1", 0)

    serving.call(end)
    wait_until(lambda: len(ends) == 3)

    assert (b"here", ["NoneType", "SystemExit", "NoneType"]) == (
        asked(serving.port),
        [type(end).__name__ for end in ends],
    )
    serving.end()


def test_a_server_that_does_not_start_is_an_error() -> None:
    """With what has ended it."""

    def broken() -> AsgiServer:
        server = a_server()
        server.config.lifespan_class = None
        return server

    with pytest.raises(LicorneError, match="the TEST server does not start: TypeError"):
        ServingThread("TEST", broken).start("127.0.0.1", 0)


# --------------------------------------------------------------------------------------------- the page


TOKEN = "a-token-of-the-tests"  # noqa: S105 - no secret


def test_the_page_and_its_live_data_come_from_the_same_server_as_the_documents() -> None:
    """And what neither knows is answered as an unknown path, whatever the method."""
    with running() as scheduler, RestServer(scheduler) as server:
        begin(scheduler, Listener())
        at = f"http://127.0.0.1:{server.port}"
        page = httpx.get(f"{at}/")
        with httpx.stream("GET", f"{at}/licorne/v1/live") as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data:"))
            first = json.loads(next(lines).removeprefix("data:"))

        assert (200, "text/html; charset=utf-8") == (page.status_code, page.headers["Content-Type"])
        assert first
        for path in ("/nothing.js", "/ws/v1/nothing", "/licorne/v1/nothing"):
            answer = httpx.get(at + path)
            assert (404, "404 page not found\n") == (answer.status_code, answer.text)
        assert 404 == httpx.post(f"{at}/nothing").status_code


def test_the_files_of_the_page_need_no_token_and_its_data_does() -> None:
    """A browser asks for the page before anybody could give it a token."""
    with running() as scheduler, RestServer(scheduler, RestSettings(tokens=(TOKEN,))) as server:
        at = f"http://127.0.0.1:{server.port}"

        assert 200 == httpx.get(f"{at}/").status_code
        for path in ("/licorne/v1/live", "/licorne/v1/page/timeline", "/ws/v1/partitions"):
            assert 401 == httpx.get(at + path).status_code
        known = {"Authorization": f"Bearer {TOKEN}"}
        assert 400 == httpx.get(f"{at}/licorne/v1/explain", headers=known).status_code


def test_the_build_of_another_user_interface_stands_in_place_of_the_page(tmp_path: Path) -> None:
    """Its own routes are its `index.html`; the documents stay where they are."""
    (tmp_path / "index.html").write_text("<title>another</title>", "utf-8")
    with running() as scheduler, RestServer(scheduler, RestSettings(ui_dir=tmp_path)) as server:
        at = f"http://127.0.0.1:{server.port}"

        assert "another" in httpx.get(f"{at}/").text
        assert "another" in httpx.get(f"{at}/applications").text
        assert 200 == httpx.get(f"{at}/ws/v1/partitions").status_code
        assert 404 == httpx.get(f"{at}/ws/v1/nothing").status_code


def test_a_folder_without_a_user_interface_is_refused_before_anything_listens(tmp_path: Path) -> None:
    """The text names the folder."""
    with running() as scheduler, pytest.raises(LicorneError, match=r"--ui-dir .*index\.html"):
        RestServer(scheduler, RestSettings(ui_dir=tmp_path)).__enter__()


@pytest.mark.parametrize("path", ["live", "page/node", "page/reasons", "page/waiting", "page/timeline"])
def test_the_data_of_the_page_is_refused_as_documents_are_and_not_shared(path: str) -> None:
    """Another method is refused with those that there are, also HEAD, which would open a stream."""
    with reader() as served:
        for method in ("HEAD", "POST"):
            answer = served.client.request(method, f"/licorne/v1/{path}")
            assert (405, "GET, OPTIONS") == (answer.status_code, answer.headers["allow"])
        if path != "live":
            assert "access-control-allow-origin" not in served.client.get(f"/licorne/v1/{path}").headers


# ---------------------------------------------------------------------------------------------- running


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
    process.communicate(timeout=WAIT_SECONDS)

    assert lines[0].startswith("listening on 127.0.0.1:")
    assert (200, []) == (answer.status_code, answer.json())
    assert (200, "text/html") == (page.status_code, page.headers["content-type"].partition(";")[0])


def test_serve_ends_in_time_while_a_client_is_connected() -> None:
    """A connection that is kept open does not hold it up."""
    wait_until(lambda: seconds_of_an_end() < 5)


def seconds_of_an_end() -> float:
    """Return how long a server takes to end while a client is connected."""
    server = start_server()
    with httpx.Client(base_url=f"http://{server.rest}") as client:
        assert 200 == client.get("/ws/v1/clusters").status_code
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert 0 == server.process.wait(WAIT_SECONDS)
        seconds = time.monotonic() - began
    assert server.process.stdout is not None
    server.process.stdout.close()
    return seconds
