"""The headers by which pages of other origins may read an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHARED: Final = "/ws/v1/"
"""Where the paths begin whose answers pages of other origins may read."""
_HEADERS: Final = "X-Requested-With,Content-Type,Accept,Origin"


def preflight_headers(request: Request, methods: str) -> Mapping[str, str]:
    """Return the headers for a browser that asks whether a page of another origin may make a request."""
    asks = {"Origin", "Access-Control-Request-Method"} <= {name.title() for name in request.headers}
    if not asks or not request.url.path.startswith(SHARED):
        return {}
    return {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": f"{_HEADERS},Authorization",
    }


@final
class CrossOrigin:
    """Adds the headers to all answers of a route, errors included."""

    def __init__(self, app: ASGIApp, methods: str) -> None:
        self._app = app
        self._headers = {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": _HEADERS,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)
