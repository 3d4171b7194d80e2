"""What readers may ask: how often, how many at once, and how large and how slow a body may be."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import RestError, error_response

_FIELD_BYTES: Final = len(": \r\n")
_PASSING: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})
"""The refusals that a client may hope to get rid of by coming again."""
_HOSTS_MAX: Final = 10_000
"""How many hosts are remembered; the one that was heard longest ago is forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsSettings:
    """The limits; what is above one is answered with a status, and closes nothing else."""

    head_bytes_max: int = 16 << 10
    """Of the path and the header fields of a request; 431 above."""
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
            is_passing = refusal[0] in _PASSING
            if is_passing:
                response.headers["Retry-After"] = "1"
            stays = is_passing and not _has_body(scope)
            await response(scope, receive, send if stays else _closing(send))
            return
        body = _Body(receive, self._settings, has_any=_has_body(scope))
        self._at_once += 1
        try:
            await self._app(scope, body.receive, body.sender(send))
        finally:
            self._at_once -= 1

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        settings = self._settings
        headers = Headers(scope=scope)
        if _head_bytes(scope) > settings.head_bytes_max:
            text = f"the head of a request may have {settings.head_bytes_max} bytes at most"
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text
        size = headers.get("Content-Length", "0")
        if "Transfer-Encoding" in headers and "Content-Length" in headers:
            # Servers that differ in which of the two counts see different requests.
            return HTTPStatus.BAD_REQUEST, "a request has Content-Length or Transfer-Encoding, and not both"
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

    def __init__(self, receive: Receive, settings: LimitsSettings, *, has_any: bool) -> None:
        self._receive = receive
        self._settings = settings
        self._size = 0
        self._has_any = has_any
        self._complete = False
        self._deadline: float | None = None

    def sender(self, send: Send) -> Send:
        """Return what sends an answer; one that does not wait for the body is the last of the connection."""
        closing = _closing(send)

        async def sent(message: Message) -> None:
            await (closing if self._has_any and not self._complete else send)(message)

        return sent

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


def _closing(send: Send) -> Send:
    """Return what sends an answer after which the connection ends."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return sent


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "Transfer-Encoding" in headers or headers.get("Content-Length", "0") != "0"


def _head_bytes(scope: Scope) -> int:
    """Return the size of what a request says before its body, in bytes."""
    path = scope.get("raw_path") or scope["path"].encode()
    fields = sum(len(name) + len(value) + _FIELD_BYTES for name, value in scope["headers"])
    return len(path) + len(scope["query_string"]) + fields


def _too_large(settings: LimitsSettings) -> str:
    return f"the body of a request may have {settings.body_bytes_max} bytes at most"
