"""Requests to the REST interfaces of workers, over HTTP; bodies are passed on as bytes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeAlias, final

import h11

from .....model.errors import LicorneError
from ...server.access import read_address

HeaderFields: TypeAlias = Sequence[tuple[bytes, bytes]]

ANSWER_SECONDS: Final = 30.0
"""The time limit for the answer of a worker, and between two parts of a body."""
_CONNECT_SECONDS: Final = 2.0
_READ_BYTES: Final = 1 << 16
_BODY_BYTES_MAX: Final = 64 << 20
"""The largest size of a body that is read as a whole."""


class WorkerSilentError(LicorneError):
    """A worker cannot be asked, or does not answer; the text names the worker and the reason."""


@final
class WorkerAnswer:
    """The answer of a worker: its head is complete, its body follows.

    Attributes:
        status: The status.
        headers: The fields, with names in lower case.
    """

    def __init__(self, head: h11.Response, exchange: _Exchange) -> None:
        self.status = head.status_code
        self.headers: HeaderFields = [*head.headers]
        self._exchange = exchange

    def header(self, name: bytes) -> bytes:
        """Return the value of a field, given in lower case; empty without the field."""
        return next((value for each, value in self.headers if each == name), b"")

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Yield the body part by part; the connection ends with it.

        Raises:
            WorkerSilentError: The rest of the body is missing.
        """
        try:
            while True:
                event = await self._exchange.event()
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    return
        finally:
            self.close()

    async def body(self) -> bytes:
        """Return the whole body.

        Raises:
            WorkerSilentError: The body is missing, or larger than 64 MiB.
        """
        found = bytearray()
        async with aclosing(self.parts()) as parts:
            async for part in parts:
                found += part
                if len(found) > _BODY_BYTES_MAX:
                    raise WorkerSilentError(
                        f"the worker at {self._exchange.address} answers more than {_BODY_BYTES_MAX} bytes"
                    )
        return bytes(found)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the server-sent events of the body, each without the empty line after it.

        Raises:
            WorkerSilentError: The rest of the body is missing.
        """
        rest, searched = bytearray(), 0
        async with aclosing(self.parts()) as parts:
            async for part in parts:
                rest += part
                while (end := rest.find(b"\n\n", searched)) >= 0:
                    event = bytes(rest[:end])
                    del rest[: end + 2]
                    searched = 0
                    yield event
                searched = max(0, len(rest) - 1)

    def close(self) -> None:
        """End the connection."""
        self._exchange.close()


@final
class _Exchange:
    """One connection, for one request and its answer."""

    def __init__(
        self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
    ) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._seconds = seconds
        self._state = h11.Connection(h11.CLIENT)

    async def send(self, request: h11.Request, body: bytes) -> None:
        parts: list[h11.Event] = [request, *([h11.Data(data=body)] if body else []), h11.EndOfMessage()]
        self._writer.write(b"".join(self._state.send(part) or b"" for part in parts))
        await self._writer.drain()

    async def event(self) -> object:
        """Return the next part of the answer."""
        try:
            while (event := self._state.next_event()) is h11.NEED_DATA:
                async with asyncio.timeout(self._seconds):
                    self._state.receive_data(await self._reader.read(_READ_BYTES))
        except TimeoutError as error:
            text = f"the worker at {self.address} has not answered within {self._seconds:g} s"
            raise WorkerSilentError(text) from error
        except (OSError, h11.RemoteProtocolError) as error:
            raise WorkerSilentError(f"the worker at {self.address} has ended its answer: {error}") from error
        return event

    def close(self) -> None:
        self._writer.close()


def worker_tls(authorities: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the check of the certificates of workers, `None` without any of these files.

    Args:
        authorities: The certificate authorities of the workers (PEM); `None` for those of this machine.
        certificate: The client certificate (PEM); it needs `key`.
        key: The key of that certificate.

    Raises:
        LicorneError: A file cannot be read.
    """
    if authorities is None and certificate is None:
        return None
    try:
        context = ssl.create_default_context(cafile=authorities)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:
        names = ", ".join(str(path) for path in (authorities, certificate, key) if path is not None)
        raise LicorneError(f"{names}: cannot be read as certificates: {error}") from error
    return context


@final
class WorkerClient:
    """Asks workers; each request has a separate connection.

    Args:
        token: The bearer token for workers without a separate one, if they require one.
        tls: The check of their certificates; `None` if they serve without TLS.
    """

    def __init__(self, *, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._token = token
        self._tls = tls

    async def ask(
        self,
        address: str,
        target: bytes,
        *,
        method: str = "GET",
        headers: HeaderFields = (),
        body: bytes = b"",
        token: str = "",
        seconds: float = ANSWER_SECONDS,
    ) -> WorkerAnswer:
        """Send a request, and return the answer when its head is complete.

        Args:
            address: The address of the worker's REST interface, `HOST:PORT`.
            target: The path with its query, escaped.
            method: The method.
            headers: Fields besides those of the connection.
            body: The body.
            token: The bearer token of this worker; empty for the common one.
            seconds: The time limit for the head, and for each part of the body.

        Raises:
            WorkerSilentError: The worker does not answer.
        """
        # Not its name in the network: without a token it answers only names that no web page has.
        fields = [(b"host", b"localhost"), (b"connection", b"close"), *headers]
        if token := token or self._token or "":
            fields.append((b"authorization", f"Bearer {token}".encode()))
        if body or method != "GET":
            fields.append((b"content-length", b"%d" % len(body)))
        exchange = await self._connected(address, seconds)
        try:
            await exchange.send(h11.Request(method=method, target=target, headers=fields), body)
            while not isinstance(event := await exchange.event(), h11.Response):
                pass
        except (OSError, h11.LocalProtocolError) as error:
            exchange.close()
            raise WorkerSilentError(f"the worker at {address} takes no request: {error}") from error
        except BaseException:
            exchange.close()
            raise
        return WorkerAnswer(event, exchange)

    async def _connected(self, address: str, seconds: float) -> _Exchange:
        where = read_address(address)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(where.host, where.port, ssl=self._tls)
        except TimeoutError as error:
            text = f"the worker at {address} has taken no connection within {_CONNECT_SECONDS:g} s"
            raise WorkerSilentError(text) from error
        except OSError as error:
            raise WorkerSilentError(f"the worker at {address} cannot be reached: {error}") from error
        return _Exchange(address, reader, writer, seconds)
