"""Contents of a request: the reader, the scheduler, and the parameters of its path."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final, final
from urllib.parse import unquote_plus

from anyio import CapacityLimiter
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ....model.configuration.names import QUEUE_NAME_RULE, is_queue_name
from ....model.errors import LicorneError
from ...core.scheduler.answering.views import UnknownPartitionError, Views
from .responses import RestError, error_response

if TYPE_CHECKING:
    from ...core.scheduler.scheduler import Scheduler
    from .limits import Pace
    from .responses import EventTexts

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_TOKEN: Final = re.compile(r"[!-~]{16,}")
_FILE_BYTES_MAX: Final = 4_096
_PRIVATE_ZONES: Final = frozenset({"internal", "local", "localhost", "svc"})
"""The last parts of names that no public name has: `svc` and `local` are those of services in Kubernetes."""
_DATA: Final = ("/ws/", "/licorne/", "/debug/")
"""Where all paths are that answer with data."""


def scheduler_of(request: Request) -> Scheduler:
    """Return the scheduler that a request is about."""
    scheduler: Scheduler = request.app.state.scheduler
    return scheduler


def views_of(request: Request) -> Views:
    """Return the views of that scheduler."""
    return scheduler_of(request).views


def events_of(request: Request) -> EventTexts:
    """Return the events that are kept."""
    events: EventTexts = request.app.state.events
    return events


def pace_of(request: Request) -> Pace:
    """Return what counts the time of readers."""
    pace: Pace = request.app.state.pace
    return pace


def checks_of(request: Request) -> CapacityLimiter:
    """Return what lets one check of a configuration run at a time."""
    checks: CapacityLimiter = request.app.state.checks
    return checks


def partition_of(request: Request) -> str:
    """Return the full name of the partition in the path.

    Raises:
        RestError: It does not exist.
    """
    try:
        return views_of(request).find(request.path_params["partition"])
    except UnknownPartitionError as error:
        raise RestError(HTTPStatus.NOT_FOUND, "Partition not found") from error


def unescaped(request: Request, name: str) -> str:
    """Return a parameter of the path in which escapes count twice: once in the path, once in the name.

    Raises:
        RestError: An escape is wrong.
    """
    text: str = request.path_params[name]
    wrong = _BAD_ESCAPE.search(text)
    if wrong is not None:
        raise RestError(HTTPStatus.BAD_REQUEST, f'invalid URL escape "{wrong[0]}"')
    return unquote_plus(text, errors="replace")


def queue_path_of(request: Request) -> str:
    """Return the path of the queue in the path, in lower case.

    Raises:
        RestError: No queue can have that name.
    """
    path = unescaped(request, "queue")
    if not all(is_queue_name(part) for part in path.split(".")):
        raise RestError(HTTPStatus.BAD_REQUEST, QUEUE_NAME_RULE)
    return path.lower()


def read_token(path: Path) -> str:
    """Return the token in a file; blanks and newlines around it do not count.

    Raises:
        LicorneError: The file cannot be read, or has no token. The text does not quote it.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX)
    except OSError as error:
        raise LicorneError(f"{path}: cannot be read: {error.strerror or error}") from error
    token = content.decode(errors="replace").strip()
    if not _TOKEN.fullmatch(token):
        raise LicorneError(f"{path}: a token has 16 visible ASCII characters at least, and no spaces")
    return token


def check_tokens(tokens: Sequence[str]) -> None:
    """Refuse what is not a list of tokens; one text would be a list of tokens of one letter.

    Raises:
        LicorneError: It is something else; the text does not quote it.
    """
    is_list = isinstance(tokens, Sequence) and not isinstance(tokens, str | bytes)
    if not is_list or not all(isinstance(token, str) and token for token in tokens):
        raise LicorneError("tokens: expected a list of texts that are not empty")


@final
class Access:
    """Lets in requests that have one of the tokens; without tokens, those that are meant for this server.

    A web page can point its own name to any address, and so make a browser read a server that the
    browser alone reaches. Such a request has that name in `Host`. A number, a name without dots and one of a
    private zone are not that of a page, and over TLS the browser compares the name with the certificate: all
    of these are let in, and the names that are given.

    The files of the page tell nothing, and a browser asks for them without a token: they are for all. So is
    OPTIONS, which asks for the methods of a path: before a request with a token a browser sends it without
    one.
    Where no token is required, a path that begins with one of `closed` is refused.
    """

    def __init__(
        self, app: ASGIApp, tokens: Sequence[str], hosts: Sequence[str] = (), *, closed: Sequence[str] = ()
    ) -> None:
        self._app = app
        self._closed = tuple(closed)
        self._hosts = frozenset(map(str.lower, (socket.gethostname(), *hosts)))
        self._tokens = [token.encode() for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with 401 or 421."""
        is_data = scope["type"] == "http" and scope["method"] != "OPTIONS" and scope["path"].startswith(_DATA)
        refusal = self._refusal(scope) if is_data else None
        if is_data and not self._tokens and scope["path"].startswith(self._closed or ("\n",)):
            refusal = error_response(HTTPStatus.FORBIDDEN, "it is closed without a token: see --rest-token")
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not let in, `None` for one that is."""
        headers = Headers(scope=scope)
        if self._tokens:
            if self._is_known(headers):
                return None
            response = error_response(HTTPStatus.UNAUTHORIZED, "a valid bearer token is required")
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        host = _host_of(headers)
        if scope.get("scheme") == "https" or _is_private(host) or host in self._hosts:
            return None
        text = f"the host {host!r:.100} is not known here: see --rest-host and --rest-token"
        return error_response(HTTPStatus.MISDIRECTED_REQUEST, text)

    def _is_known(self, headers: Headers) -> bool:
        kind, _, given = headers.get("Authorization", "").partition(" ")
        # All are compared, each in constant time: how long it takes tells nothing about a token.
        found = [hmac.compare_digest(token, given.strip().encode()) for token in self._tokens]
        return kind.lower() == "bearer" and any(found)


def _host_of(headers: Headers) -> str:
    """Return the name or number in `Host`, without port and brackets; empty if there is none."""
    host = headers.get("Host", "").strip().lower()
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return name.removesuffix(".")


def _is_private(host: str) -> bool:
    """Return whether a host is not the name of a web page: a number, or a name that cannot be registered."""
    if "." not in host and ":" not in host:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.rpartition(".")[2] in _PRIVATE_ZONES
    return True
