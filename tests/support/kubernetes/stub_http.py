"""A small server of HTTP/1.1 on a free port: a thread for each connection, answers of any length."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import BinaryIO, Final, final
from urllib.parse import parse_qsl

from support.waiting import WAIT_SECONDS

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


@final
@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What a client asked."""

    method: str
    path: str
    """As it was sent, also what is escaped."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@final
@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What it is answered: a body, or chunks that are sent as they come."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Iterable[Iterable[bytes]] | None = None
    """Groups of chunks; a group is sent at once."""


class LostConnectionError(Exception):
    """Raised instead of an answer: the connection is closed without one."""


@final
class SmallHttpServer:
    """A server on a free port of this machine.

    Args:
        respond: What a request is answered.
        tls: With it the server speaks TLS.

    Attributes:
        port: The port.
        accepted: How many connections there have been.
    """

    def __init__(
        self, respond: Callable[[HttpRequest], HttpResponse], tls: ssl.SSLContext | None = None
    ) -> None:
        self._respond = respond
        self._tls = tls
        self._lock = threading.Lock()
        self._connections: dict[socket.socket, bool] = {}
        self._threads: list[threading.Thread] = []
        self._stopping = False
        self.accepted = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name="stub accepts", daemon=True)
        self._acceptor.start()

    def stop(self) -> None:
        """Close everything, and wait for the threads."""
        self._stopping = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(WAIT_SECONDS)
        self.cut()
        for thread in list(self._threads):
            thread.join(WAIT_SECONDS)

    def cut(self, *, only_streams: bool = False) -> int:
        """Cut connections without a word, all or those with an answer in chunks; return how many."""
        with self._lock:
            cut = [
                each for each, is_streaming in self._connections.items() if is_streaming or not only_streams
            ]
            for connection in cut:
                with suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
        return len(cut)

    @property
    def streams(self) -> int:
        """How many answers in chunks are being sent."""
        with self._lock:
            return sum(self._connections.values())

    def _accept(self) -> None:
        while not self._stopping:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            thread = threading.Thread(target=self._serve, args=(connection,), name="stub serves", daemon=True)
            self._threads = [each for each in self._threads if each.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            if self._tls is not None:
                plain.settimeout(WAIT_SECONDS)
                connection = self._tls.wrap_socket(plain, server_side=True)
                connection.settimeout(None)
            with self._lock:
                self._connections[connection] = False
            with connection.makefile("rb") as incoming:
                while not self._stopping and (request := _read_request(incoming)) is not None:
                    self._answer(connection, self._respond(request))
        except (OSError, LostConnectionError):
            pass  # The client has left, or is to lose its answer.
        finally:
            with self._lock:
                self._connections.pop(connection, None)
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
            connection.close()

    def _answer(self, connection: socket.socket, response: HttpResponse) -> None:
        lines = [f"HTTP/1.1 {response.status} {_PHRASES.get(response.status, '')}"]
        lines += ["Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        if response.chunks is None:
            lines += [f"Content-Length: {len(response.body)}", "", ""]
            connection.sendall("\r\n".join(lines).encode() + response.body)
            return
        lines += ["Transfer-Encoding: chunked", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        with self._lock:
            self._connections[connection] = True
        for group in response.chunks:
            connection.sendall(b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in group))
        connection.sendall(b"0\r\n\r\n")
        with self._lock:
            self._connections[connection] = False


def _read_request(incoming: BinaryIO) -> HttpRequest | None:
    """Return the next request of a connection, `None` when the client has closed it."""
    first = incoming.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = {}
    while line := incoming.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = incoming.read(int(headers.get("content-length", "0")))
    path, _, query = first[1].partition("?")
    return HttpRequest(first[0], path, dict(parse_qsl(query, keep_blank_values=True)), headers, body)
