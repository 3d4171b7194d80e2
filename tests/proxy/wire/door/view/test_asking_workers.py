"""How a door asks workers: over TLS with a token, one that is no worker, and real processes that end."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest
from support.proxy.certificates import Certificates
from support.proxy.door_views import StandingDoor, filled, place_at, viewed
from support.proxy.manager_requests import TWO
from support.proxy.processes import serving
from support.waiting import WAIT_SECONDS

from licorne import RemoteScheduler, ResourceManager, Scheduler
from licorne.proxy.views.page.application import Page
from licorne.proxy.views.rest.application import OPERATIONS
from licorne.proxy.views.rest.running import RestServer, RestSettings
from licorne.proxy.wire.door.view.application import OWN_PATHS, DoorRest, door_operations
from licorne.proxy.wire.door.view.worker_client import WorkerClient, WorkerSilentError

TOKEN: Final = "a-token-of-the-workers"  # noqa: S105 - of this test alone


def test_a_door_has_each_path_of_a_scheduler() -> None:
    """With the same method and description, and with an endpoint of its own but for a few."""
    operations = [*OPERATIONS, *Page.OPERATIONS]
    same = {
        one.path
        for one, door in zip(operations, door_operations(), strict=True)
        if one.endpoint is door.endpoint
    }

    assert [(each.path, each.method, each.name) for each in operations] == [
        (each.path, each.method, each.name) for each in door_operations()
    ]
    assert OWN_PATHS == {path for path in same if not path.startswith("/debug/pprof/")}


ASKED: Final = (
    "/ws/v1/partition/default/queues",
    "/ws/v1/partitions",
    "/ws/v1/events/batch",
    "/debug/fullstatedump",
)
"""A document of one worker, of all, and what the door puts together itself."""


def test_a_worker_is_asked_with_the_token_that_its_launcher_gave_it() -> None:
    """Each worker has one of its own; the page has its content, too."""
    with ExitStack() as stack:
        places = []
        for name, token in (("default", TOKEN), ("second", TOKEN[::-1])):
            scheduler = filled(stack.enter_context(Scheduler(engine="direct")), [name])
            worker = stack.enter_context(RestServer(scheduler, RestSettings(tokens=(token,))))
            places.append(replace(place_at(f"127.0.0.1:{worker.port}", name), token=token))
        client = stack.enter_context(viewed(StandingDoor(scheduler, places)))
        answers = [client.get(path) for path in ASKED]
        live = stack.enter_context(client.stream("GET", "/licorne/v1/live"))
        full = next(line for line in live.iter_lines() if line.startswith("data: "))

    assert [200] * len(ASKED) == [answer.status_code for answer in answers]
    assert [None] * len(ASKED) == [answer.headers.get("Licorne-Missing") for answer in answers]
    assert len(answers[2].json()["EventRecords"]) > 0
    assert {"[rm]default", "[rm]second"} == {*json.loads(full[6:])["partitions"]}


def test_workers_are_asked_over_tls_with_their_token(certificates: Certificates) -> None:
    """The token of a reader of the door is not theirs, and goes no further."""
    settings = RestSettings(certificate=certificates.server, key=certificates.server_key, tokens=(TOKEN,))
    tls = ssl.create_default_context(cafile=certificates.authority)
    with ExitStack() as stack:
        scheduler = filled(stack.enter_context(Scheduler(engine="direct")), ["default"])
        worker = stack.enter_context(RestServer(scheduler, settings))
        door = StandingDoor(scheduler, [place_at(f"localhost:{worker.port}")])
        statuses = []
        for client in (WorkerClient(token=TOKEN, tls=tls), WorkerClient(tls=tls)):
            server = stack.enter_context(DoorRest(door, client=client))
            asked = httpx.get(f"http://127.0.0.1:{server.port}/ws/v1/partition/default/queues")
            statuses.append(asked.status_code)

    assert [200, 401] == statuses


def _answering(answer: bytes) -> Callable[[socket.socket], None]:
    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    return serve


BROKEN: Final = {
    "another protocol": (b"SSH-2.0-OpenSSH\r\n\r\n", "has ended its answer: illegal status line"),
    "no answer": (b"", "has ended its answer: "),
    "half a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "has ended its answer: "),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_answer_is_an_error_of_the_worker(case: tuple[bytes, str]) -> None:
    """It names the address."""
    answer, text = case
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_answering(answer), args=[listening], daemon=True).start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        async def ask() -> bytes:
            return await (await WorkerClient().ask(address, b"/")).body()

        with pytest.raises(WorkerSilentError) as caught:
            anyio.run(ask)

    assert f"the worker at {address} {text}" in str(caught.value)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(Path(tmp_path_factory.mktemp("certificates")))


def test_a_process_that_is_killed_is_503_and_the_other_goes_on() -> None:
    """Where each listens, its session has said."""
    with ExitStack() as stack:
        servers = {name: stack.enter_context(serving()) for name in ("default", "second")}
        places = []
        for name, server in servers.items():
            client = stack.enter_context(RemoteScheduler(server.address))
            client.register("rm", ResourceManager(), configuration=TWO, partitions=[name])
            places.append(place_at(client.rest_address, name))
        one = stack.enter_context(Scheduler(engine="direct"))
        one.register("rm", ResourceManager(), configuration=TWO)
        reader = stack.enter_context(viewed(StandingDoor(one, places)))
        before = [each["name"] for each in reader.get("/ws/v1/partitions").json()]
        servers["second"].process.kill()
        servers["second"].process.wait(WAIT_SECONDS)
        statuses = [reader.get(f"/ws/v1/partition/{name}/queues").status_code for name in servers]
        after = [each["name"] for each in reader.get("/ws/v1/partitions").json()]

    assert (["default", "second"], [200, 503], ["default"]) == (before, statuses, after)
