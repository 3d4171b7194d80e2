"""Answers to requests that no route takes: unknown paths, other methods, and paths that are nearly right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from .cross_origin import preflight_headers

_NO_SNIFFING: Final = {"X-Content-Type-Options": "nosniff"}


def not_found() -> Response:
    """Return the answer to a path that is unknown."""
    return PlainTextResponse("404 page not found\n", HTTPStatus.NOT_FOUND, headers=_NO_SNIFFING)


def allowed_methods(methods: set[str]) -> str:
    """Return the methods of a path as a header lists them; OPTIONS is answered for every path."""
    return ", ".join(sorted({*methods, "OPTIONS"}))


def method_refused(request: Request, error: Exception) -> Response:
    """Return the answer to OPTIONS, which every path has, or the refusal of a method that a path has not."""
    allow = {"Allow": _allow(error)}  # type: ignore[arg-type] # Starlette hands over errors of its own class
    if request.method == "OPTIONS":
        return Response(headers={**allow, **preflight_headers(request, allow["Allow"])})
    status = HTTPStatus.METHOD_NOT_ALLOWED
    return PlainTextResponse("Method Not Allowed\n", status, headers=_NO_SNIFFING | allow)


def _allow(error: HTTPException) -> str:
    named = (error.headers or {}).get("Allow", "")
    return allowed_methods({method for method in re.split(r",\s*", named) if method})


@final
class EscapedSlashes:
    """Answers requests whose path has a slash in a name, written as `%2F`: an ordinary unknown path.

    The server has resolved the escape when it says what the path is: there it is a slash like others.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_unknown = scope["type"] == "http" and b"%2f" in (scope.get("raw_path") or b"").lower()
        await (not_found() if is_unknown else self._app)(scope, receive, send)


def repaired_path(path: str, method: str, routes: Sequence[Route]) -> str | None:
    """Return the path that a client meant: with other slashes or other case; `None` if none is close.

    A path with `.` or `..` in it is an ordinary unknown path.
    """
    cleaned = "/" + "/".join(step for step in path.split("/") if step)
    for wanted in (cleaned, cleaned + "/"):
        for route in routes:
            if method not in (route.methods or ()):
                continue
            found = re.fullmatch(route.path_regex.pattern, wanted, re.IGNORECASE | re.ASCII)
            if found is not None:
                meant = route.path_format.format(**found.groupdict())
                return None if meant == path else meant
    return None


def redirect(location: str, method: str, query: str = "") -> Response:
    """Return the answer that sends a client to another path of this server, for good."""
    target = quote(location) + (f"?{query}" if query else "")
    if method != "GET":
        return Response(status_code=HTTPStatus.PERMANENT_REDIRECT, headers={"Location": target})
    shown = target.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
    headers = {"Location": target, "Content-Type": "text/html; charset=utf-8"}
    body = f'<a href="{shown}">Moved Permanently</a>.\n\n'
    return Response(body, HTTPStatus.MOVED_PERMANENTLY, headers=headers)
