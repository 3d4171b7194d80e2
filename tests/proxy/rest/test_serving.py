"""An application on a thread of its own: what is called there, and what ends it."""

from __future__ import annotations

import http.client
import socket
import threading
from contextlib import closing

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from support.proxy.waiting import wait_until

from licorne.model.errors import LicorneError
from licorne.proxy.rest.serving import AsgiServer, ServingThread

APPLICATION = Starlette(routes=[Route("/", lambda _: PlainTextResponse("here"))])


def a_server() -> AsgiServer:
    return AsgiServer("test", uvicorn.Config(APPLICATION, log_config=None, lifespan="off", ws="none"))


def end() -> None:
    raise SystemExit(3)


def asked(port: int) -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
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
