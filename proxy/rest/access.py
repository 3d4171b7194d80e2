"""Who may read: clients that send a bearer token, where one is required."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ...model.errors import LicorneError
from .errors import error_response

__all__ = ["Access", "read_token"]

_TOKEN: Final = re.compile(r"[!-~]{16,}")
_FILE_BYTES_MAX: Final = 4_096
_DATA: Final = ("/ws/", "/licorne/", "/debug/")
"""Where all paths are that answer with data."""


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


@final
class Access:
    """Lets in requests that have one of the tokens; without tokens, all of them.

    The files of the page tell nothing, and a browser asks for them without a token: they are for all. So is
    OPTIONS, which says how a path may be asked: before a request with a token a browser sends it without one.
    """

    def __init__(self, app: ASGIApp, tokens: Sequence[str]) -> None:
        self._app = app
        self._tokens = [token.encode() for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with 401."""
        is_data = scope["type"] == "http" and scope["method"] != "OPTIONS" and scope["path"].startswith(_DATA)
        if not is_data or not self._tokens or self._is_known(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        response = error_response(HTTPStatus.UNAUTHORIZED, "a valid bearer token is required")
        response.headers["WWW-Authenticate"] = "Bearer"
        await response(scope, receive, send)

    def _is_known(self, headers: Headers) -> bool:
        kind, _, given = headers.get("Authorization", "").partition(" ")
        # All are compared, each in constant time: how long it takes tells nothing about a token.
        found = [hmac.compare_digest(token, given.strip().encode()) for token in self._tokens]
        return kind.lower() == "bearer" and any(found)
