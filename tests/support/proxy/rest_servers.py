"""A REST server on a real port, and a client that sends bytes as they are."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from support.proxy.running_scheduler import running
from support.waiting import WAIT_SECONDS

from licorne.proxy.views.rest.running import RestServer, RestSettings


@contextmanager
def rest(**settings: object) -> Iterator[str]:
    """Run a server with these settings, and give its URL; it still answers when the block ends."""
    with running() as scheduler:
        made = RestSettings(**settings)  # type: ignore[arg-type] # whatever the test says
        with RestServer(scheduler, made) as server:
            yield f"http://127.0.0.1:{server.port}"


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    """Give a connection to a server."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), WAIT_SECONDS) as connection:
        yield connection


def received(connection: socket.socket) -> bytes:
    """Return all that comes until the server ends a connection."""
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


def sent(url: str, *parts: bytes) -> bytes:
    """Send bytes, keep the connection open, and return all that comes until the server ends it."""
    with connected(url) as connection:
        for part in parts:
            connection.sendall(part)
        return received(connection)
