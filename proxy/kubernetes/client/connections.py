"""Connections to an API server: reused ones for requests, and one for each watch."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.exceptions import SSLError as PoolSslError

from .credentials import Credentials, Secret, ssl_context
from .errors import ApiError, ApiUnreachable, CredentialError

_CONNECT_TIMEOUT_SECONDS: Final = 10.0
_HEADERS_TIMEOUT_SECONDS: Final = 30.0
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
)
"""A peer that vanished silently is detected after a minute, if the system supports it."""
_READ_BYTES: Final = 2**18
_BATCH_BYTES_MAX: Final = 2**20
_CHUNK_BYTES_MAX: Final = 2**26
"""An object of Kubernetes has 1.5 MiB at most."""


@final
@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of a server."""

    status: int
    body: bytes
    retry_after: str | None


@final
class ApiConnections:
    """Connections that are made with one secret. Threads share them.

    Args:
        credentials: The address of the server, and how it is authenticated.
        secret: The certificate of the client, if it has one; the token is given with each request.
        connections_max: How many requests run at a time; more of them wait.
        user_agent: The name of the program in the server's log.

    Raises:
        CredentialError: The certificates cannot be used.
    """

    def __init__(
        self, credentials: Credentials, secret: Secret, connections_max: int, user_agent: str
    ) -> None:
        address = urlsplit(credentials.server)
        self._host = address.hostname or ""
        self._port = address.port or (443 if address.scheme == "https" else 80)
        self._prefix = address.path.rstrip("/")
        self._server = credentials.server
        self._tls_name = credentials.tls_name or self._host
        self._user_agent = user_agent
        self._context = ssl_context(credentials, secret) if address.scheme == "https" else None
        self._pool = self._new_pool(connections_max)

    def _new_pool(self, connections_max: int) -> urllib3.HTTPConnectionPool:
        if self._context is None:
            return urllib3.HTTPConnectionPool(
                self._host, self._port, maxsize=connections_max, block=True, socket_options=_KEEPALIVE
            )
        return urllib3.HTTPSConnectionPool(
            self._host,
            self._port,
            maxsize=connections_max,
            block=True,
            ssl_context=self._context,
            server_hostname=self._tls_name,
            socket_options=_KEEPALIVE,
        )

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, timeout_seconds: float
    ) -> HttpAnswer:
        """Make a request once.

        Raises:
            ApiUnreachable: The connection failed, or there was no whole answer in time.
            CredentialError: The certificate of the server is not trusted.
        """
        timeout = urllib3.Timeout(
            connect=min(timeout_seconds, _CONNECT_TIMEOUT_SECONDS), read=timeout_seconds
        )
        try:
            answer = self._pool.urlopen(
                method,
                self._prefix + path,
                body=body,
                headers={"User-Agent": self._user_agent, **headers},
                timeout=timeout,
                retries=False,
            )
        except PoolSslError as error:
            raise self._tls_failure(error) from error
        except HTTPError as error:
            raise ApiUnreachable(f"{method} {self._server}{path}: {error}") from error
        return HttpAnswer(answer.status, answer.data, answer.headers.get("Retry-After"))

    def open_lines(self, path: str, headers: Mapping[str, str], idle_timeout_seconds: float) -> LineStream:
        """Make a request whose answer is a stream of lines, on a separate connection.

        Raises:
            ApiError: The server has refused it.
            ApiUnreachable: The connection failed.
            CredentialError: The certificate of the server is not trusted.
        """
        try:
            connected = self._connect()
        except ssl.SSLError as error:
            raise self._tls_failure(error) from error
        except OSError as error:
            raise ApiUnreachable(f"{self._server}: {error}") from error
        connected.settimeout(min(idle_timeout_seconds, _HEADERS_TIMEOUT_SECONDS))
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.sock = connected
        try:
            connection.request(
                "GET", self._prefix + path, headers={"User-Agent": self._user_agent, **headers}
            )
            response = connection.getresponse()
            if response.status == 200 and response.length is None:
                return LineStream(connected, response, idle_timeout_seconds)
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ApiUnreachable(f"GET {self._server}{path}: {error}") from error
        connection.close()
        if response.status == 200:
            raise ApiUnreachable(f"GET {self._server}{path}: the answer has a length, so it is not a watch")
        raise ApiError.of_answer(response.status, body, response.headers.get("Retry-After"))

    def _connect(self) -> socket.socket:
        """Return a connection, with TLS if the server has it."""
        plain = socket.create_connection((self._host, self._port), _CONNECT_TIMEOUT_SECONDS)
        try:
            for option in _KEEPALIVE:
                plain.setsockopt(*option)
            if self._context is None:
                return plain
            return self._context.wrap_socket(plain, server_hostname=self._tls_name)
        except BaseException:
            plain.close()
            raise

    def _tls_failure(self, error: Exception) -> ApiUnreachable | CredentialError:
        """Return the error for a failure of TLS: only an untrusted certificate is a permanent failure."""
        cause = error.__cause__ or error.__context__ or error
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CredentialError(
                f"the certificate of {self._server} is not trusted: {cause.verify_message}"
            )
        return ApiUnreachable(f"{self._server}: {error}")

    def close(self) -> None:
        """Close the idle connections; the others are closed when their requests have ended."""
        self._pool.close()


@final
class ChunkedBody:
    """Takes chunks of HTTP/1.1 out of the received bytes.

    A server writes each event of a watch as one chunk. `http.client` would return one chunk a reading.

    Attributes:
        has_ended: Whether the last chunk has arrived.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self._pending = b""

    def feed(self, arrived: bytes) -> bytes:
        """Return the content of the chunks that are complete now.

        Raises:
            ApiUnreachable: The bytes are not chunks.
        """
        pending = self._pending + arrived
        contents = []
        position = 0
        while not self.has_ended:
            end = pending.find(b"\r\n", position)
            if end < 0:
                break
            size = _chunk_size(pending[position:end])
            following = end + 2 + size + 2
            if len(pending) < following:
                break
            contents.append(pending[end + 2 : following - 2])
            self.has_ended = size == 0
            position = following
        self._pending = pending[position:]
        return b"".join(contents)


def _chunk_size(line: bytes) -> int:
    """Return the size in the line before a chunk."""
    try:
        size = int(line.partition(b";")[0], 16)
    except ValueError:
        size = -1
    if not 0 <= size <= _CHUNK_BYTES_MAX:
        raise ApiUnreachable(f"the size of a chunk of HTTP is wrong: {line[:40]!r}")
    return size


@final
class LineStream:
    """The lines of an answer. One thread reads and closes it; any thread may cut it.

    Args:
        connected: The connection, which the stream closes.
        response: The answer, with its headers read.
        idle_timeout_seconds: How long nothing arrives before the connection counts as lost.
    """

    def __init__(
        self, connected: socket.socket, response: http.client.HTTPResponse, idle_timeout_seconds: float
    ) -> None:
        self._socket = connected
        self._response = response
        self._idle_timeout_seconds = idle_timeout_seconds
        connected.settimeout(idle_timeout_seconds)  # instead of the time for the answer to begin
        self._chunks = ChunkedBody() if response.chunked else None
        self._first = True
        self._has_ended = False
        self._rest = b""

    def read(self) -> list[bytes]:
        """Wait for lines, and return all that have arrived; return nothing when the answer has ended.

        Raises:
            ApiUnreachable: The connection was lost, or nothing has arrived for too long.
        """
        lines: list[bytes] = []
        while not lines and not self._has_ended:
            try:
                arrived = self._arrived()
            except OSError as error:
                raise ApiUnreachable(f"the watch was cut: {error}") from error
            if self._chunks is not None:
                arrived = self._chunks.feed(arrived)
                self._has_ended = self._has_ended or self._chunks.has_ended
            *lines, self._rest = (self._rest + arrived).split(b"\n")
            if len(self._rest) > _CHUNK_BYTES_MAX:
                raise ApiUnreachable(f"a line has more than {_CHUNK_BYTES_MAX:,} bytes")
        return [line for line in lines if line]

    def _arrived(self) -> bytes:
        """Wait for bytes, then take all that have arrived."""
        if self._first:
            # Bytes that came with the headers are in the buffer of the answer; this empties it.
            self._first = False
            pieces = [self._response.fp.read1(_READ_BYTES)]
        else:
            pieces = [self._socket.recv(_READ_BYTES)]
        size = len(pieces[0])
        self._socket.settimeout(0)
        try:
            while pieces[-1] and size < _BATCH_BYTES_MAX:
                pieces.append(self._socket.recv(_READ_BYTES))
                size += len(pieces[-1])
        except (BlockingIOError, ssl.SSLWantReadError):
            return b"".join(pieces)
        except OSError:
            # Data received before the cut is valid; the next reading meets the error again.
            return b"".join(pieces)
        finally:
            self._socket.settimeout(self._idle_timeout_seconds)
        self._has_ended = not pieces[-1]
        return b"".join(pieces)

    def cut(self) -> None:
        """End the stream; a thread that reads it returns at once, with an error or without lines."""
        with suppress(OSError):  # The other side may have closed it first.
            # Not the method of a TLS connection, which would remove its state while the other thread reads.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, after the last reading."""
        self._response.close()
        self._socket.close()
