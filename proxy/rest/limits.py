"""What readers may ask: how often, how many at once, and how large and how slow a body may be."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, final

from starlette.datastructures import Headers

from .errors import RestError, error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["LimitsSettings", "RequestLimits"]

_HOSTS_MAX: Final = 10_000
"""How many hosts are remembered; the one that was heard longest ago is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSettings:
    """The limits; what is above one is answered with a status, and closes nothing else."""

    body_bytes_max: int = 1 << 20
    """Of a request; 413 above."""
    body_seconds_max: float = 10.0
    """How long a body may take to come; 408 above."""
    at_once_max: int = 1_000
    """How many requests are answered at once, streams included; 503 above."""
    per_second_max: float = 1_000.0
    """How many requests a host may make in the long run; 429 above. As many may come at once."""


@final
class RequestLimits:
    """Refuses what is above the limits."""

    def __init__(
        self, app: ASGIApp, settings: LimitsSettings, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._settings = settings
        self._now = now
        self._at_once = 0
        self._hosts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """How many requests a host may make now, and when that was counted."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            response = error_response(*refusal)
            if refusal[0] != HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                response.headers["Retry-After"] = "1"
            await response(scope, receive, send)
            return
        self._at_once += 1
        try:
            await self._app(scope, _Body(receive, self._settings).receive, send)
        finally:
            self._at_once -= 1

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        settings = self._settings
        size = Headers(scope=scope).get("Content-Length", "0")
        if not size.isdecimal() or int(size) > settings.body_bytes_max:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_large(settings)
        if self._at_once >= settings.at_once_max:
            text = f"{settings.at_once_max} requests are being answered already"
            return HTTPStatus.SERVICE_UNAVAILABLE, text
        client = scope.get("client")
        if client is not None and not self._takes(str(client[0])):
            return HTTPStatus.TOO_MANY_REQUESTS, f"more than {settings.per_second_max:g} requests a second"
        return None

    def _takes(self, host: str) -> bool:
        """Count a request of a host; return whether it is within the rate."""
        now, most = self._now(), self._settings.per_second_max
        left, seen = self._hosts.pop(host, (most, now))
        left = min(most, left + (now - seen) * most)
        taken = left >= 1
        self._hosts[host] = (left - 1 if taken else left, now)
        if len(self._hosts) > _HOSTS_MAX:
            self._hosts.popitem(last=False)
        return taken


@final
class _Body:
    """The body of a request, as it comes."""

    def __init__(self, receive: Receive, settings: LimitsSettings) -> None:
        self._receive = receive
        self._settings = settings
        self._size = 0
        self._complete = False
        self._deadline: float | None = None

    async def receive(self) -> Message:
        """Return the next part of it.

        Raises:
            RestError: It is too large, or too slow.
        """
        if self._complete:
            return await self._receive()
        loop = asyncio.get_running_loop()
        if self._deadline is None:
            self._deadline = loop.time() + self._settings.body_seconds_max
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError as error:
            text = f"the body of the request took more than {self._settings.body_seconds_max:g} s"
            raise RestError(HTTPStatus.REQUEST_TIMEOUT, text) from error
        self._size += len(message.get("body", b""))
        if self._size > self._settings.body_bytes_max:
            raise RestError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _too_large(self._settings))
        self._complete = not message.get("more_body", False)
        return message


def _too_large(settings: LimitsSettings) -> str:
    return f"the body of a request may have {settings.body_bytes_max} bytes at most"
