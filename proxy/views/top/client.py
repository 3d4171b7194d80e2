"""The client of the REST interface: questions over HTTP, with limits, and errors that describe the cause."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

import httpx
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, from_json

from ....model.errors import LicorneError

_Read = TypeVar("_Read")
Query: TypeAlias = "Mapping[str, str | int | Sequence[str]]"
"""The parameters of a question; one with several values is sent several times."""
ANSWER_BYTES_MAX: Final = 256 << 20
"""Ten thousand nodes with ten allocations each are a sixth of it."""
_MISSING: Final = frozenset({404, 500, 501, 503})
"""Statuses of a server that does not have a document now: 500 means that events are off."""
_TEXT_LENGTH_MAX: Final = 200
_PROBLEMS_MAX: Final = 3
_NEEDED: Final = frozenset(
    {"allocationKey", "applicationID", "bucketName", "groupName", "name", "nodeID", "queuePath", "queuename"}
    | {"Healthy", "InstanceUUID", "Succeeded", "userName"}
)
"""The fields without which a document cannot be shown."""
_ERROR: Final = TypeAdapter(dict[str, object])


def checked_address(text: str) -> str:
    """Return the address of a server without a slash at its end.

    Raises:
        ServerReadError: It is not an address of HTTP, or has more than a scheme, a host and a port.
    """
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise ServerReadError(f"address {text!r} cannot be read: {error}") from error
    plain = not (url.query or url.fragment or url.userinfo or url.path.strip("/"))
    if url.scheme not in {"http", "https"} or not url.host or not plain:
        raise ServerReadError(f"expected an address such as http://127.0.0.1:9080, not {text!r}")
    return str(url).rstrip("/")


def tls_context(path: Path | None) -> ssl.SSLContext | None:
    """Return the context that trusts the certificates of a file (PEM) alone, `None` without a file.

    Raises:
        ServerReadError: The file cannot be read, or holds no certificate.
    """
    if path is None:
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:  # an error of ssl is one of these
        raise ServerReadError(f"the certificates in {path} cannot be read: {error.strerror}") from error


@final
class RestClient:
    """Asks one server; to be closed.

    Args:
        address: The address, as `checked_address` returns it.
        token: The bearer token, if the server requires one.
        tls: How certificates are checked, `None` for the trusted ones of httpx.
        timeout_seconds: How long a question may take altogether.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = 10.0,
    ) -> None:
        if token is not None and not (
            token.isascii() and token.isprintable() and token.strip() == token != ""
        ):
            raise ServerReadError(
                "the token has characters that a header cannot have: expected visible ASCII"
            )
        self.address = address
        self._timeout_seconds = timeout_seconds
        self._http = httpx.AsyncClient(
            base_url=address,
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            verify=True if tls is None else tls,
            timeout=timeout_seconds,
            trust_env=False,  # a proxy of the environment is for other servers
        )

    async def read(self, reader: DocumentReader[_Read], path: str, query: Query | None = None) -> _Read:
        """Return the document at a path.

        Raises:
            MissingDocumentError: The server does not have it.
            ServerReadError: The server cannot be read.
        """
        body = await self._body(path, query, "application/json")
        return reader.read(body, f"{self.address}{path}")

    async def read_text(self, path: str) -> str:
        """Return the text at a path; errors as those of `read`."""
        return (await self._body(path, None, "text/plain")).decode("utf-8", "replace")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _body(self, path: str, query: Query | None, accepted: str) -> bytes:
        asked = self._http.stream("GET", path, params=query, headers={"Accept": accepted})
        with _clear_errors(self.address, self._timeout_seconds):
            async with asyncio.timeout(self._timeout_seconds), asked as answer:
                body = await _limited(answer, f"{self.address}{path}")
        if answer.status_code != httpx.codes.OK:
            raise _refusal(answer.status_code, body, f"{self.address}{path}")
        return body


@contextmanager
def _clear_errors(address: str, timeout_seconds: float) -> Iterator[None]:
    """Translate errors on the way to a server into plain words.

    Raises:
        ServerReadError: The server cannot be reached, or ended the connection.
    """
    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise ServerReadError(f"{address} has not answered within {timeout_seconds:g} s") from error
    except httpx.ConnectError as error:
        raise ServerReadError(f"{address} cannot be reached: {error}") from error
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ServerReadError(f"{address} has ended the connection, or speaks no HTTP: {error}") from error


async def _limited(answer: httpx.Response, where: str) -> bytes:
    """Return the body of an answer.

    Raises:
        ServerReadError: It is too long.
    """
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > ANSWER_BYTES_MAX:
            raise ServerReadError(f"the answer of {where} is longer than {ANSWER_BYTES_MAX >> 20} MiB")
    return bytes(body)


def _refusal(status: int, body: bytes, where: str) -> ServerReadError:
    """Return the error for a status; the text is that of the server, if it is JSON."""
    try:
        said = _ERROR.validate_json(body).get("message", "")
    except ValidationError:
        said = ""
    text = f": {said[:_TEXT_LENGTH_MAX]}" if isinstance(said, str) and said else ""
    if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        return ServerReadError(f"{where} requires another token (status {status}{text})")
    kind = MissingDocumentError if status in _MISSING else ServerReadError
    return kind(f"{where} answered with status {status}{text}")


@final
class DocumentReader(Generic[_Read]):
    """Reads documents of one kind from the answers of servers, also of those in Go and of other versions.

    Any field but a name may be missing, or be `null`; fields that are not known are left out.

    Args:
        kind: The declared type of the documents.
    """

    def __init__(self, kind: type[_Read]) -> None:
        self._kind = kind

    @cached_property
    def _validator(self) -> SchemaValidator:
        return SchemaValidator(_lenient(TypeAdapter(self._kind).core_schema))

    def read(self, body: bytes, where: str) -> _Read:
        """Read a document.

        Args:
            body: The JSON text.
            where: The request, for the error.

        Raises:
            ServerReadError: It is not JSON, or not such a document.
        """
        try:
            found: _Read = self._validator.validate_python(_without_null(from_json(body)), strict=True)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
            places = [f"{'.'.join(map(str, each['loc'])) or 'all'}: {each['msg']}" for each in problems]
            more = f"; and {len(places) - _PROBLEMS_MAX} more" if len(places) > _PROBLEMS_MAX else ""
            text = f"{'; '.join(places[:_PROBLEMS_MAX])}{more}"
            raise ServerReadError(f"the answer of {where} cannot be read: {text}") from error
        except ValueError as error:
            raise ServerReadError(f"the answer of {where} cannot be read: invalid JSON: {error}") from error
        return found


def _lenient(schema: Any) -> Any:
    """Return a schema of pydantic's core in which only names are required."""
    if isinstance(schema, list):
        return [*map(_lenient, schema)]
    if not isinstance(schema, dict):
        return schema
    lenient = {key: _lenient(value) for key, value in schema.items()}
    if schema.get("type") == "typed-dict":
        for name, field in lenient["fields"].items():
            field["required"] = name in _NEEDED
    return lenient


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(each) for key, each in value.items() if each is not None}
    return [*map(_without_null, value)] if isinstance(value, list) else value


class ServerReadError(LicorneError):
    """A server could not be read: it cannot be reached, refuses, or answers what cannot be understood."""


@final
class MissingDocumentError(ServerReadError):
    """A server does not have what was asked for, or has switched it off: status 404, 500 or 503."""
