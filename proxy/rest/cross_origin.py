"""The headers by which pages of other origins may read an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CrossOrigin"]


@final
class CrossOrigin:
    """Adds the headers to all answers of a route, errors included."""

    def __init__(self, app: ASGIApp, methods: str) -> None:
        self._app = app
        self._headers = {
            "Access-Control-Allow-Origin": "*",
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": "X-Requested-With,Content-Type,Accept,Origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await self._app(scope, receive, send_with_headers)
