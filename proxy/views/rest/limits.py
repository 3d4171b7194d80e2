"""Limits for readers: how often and how many at once may ask, and how large and slow a body may be.

Python runs one thread at a time. Readers that ask without pause would take half of the time from the
scheduler. While it works, their requests wait here instead, also between the pages of a long list; while it
has nothing to do they get all the time. None is refused for that.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .responses import RestError, error_response

_FIELD_BYTES: Final = len(": \r\n")
_PASSING: Final = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})
"""The refusals that a client may hope to get rid of by coming again."""
_HOSTS_MAX: Final = 10_000
"""How many hosts are remembered; the one that was heard longest ago is forgotten."""
SHARE: Final = 0.05
"""How much of one processor's time readers get in the long run while the scheduler works.

The work of partitions to answer them is about as much again.
"""
BURST_SECONDS: Final = 0.05
"""How much of it they get at once, after a while without any."""
_ACTIVE_SECONDS: Final = 0.2
"""How long the scheduler counts as one that works after it has announced something."""
_FORGETTING: Final = 0.1
"""How much less a long step is expected after each shorter one."""
_LOOP_SECONDS_MAX: Final = 0.05
"""How much of the event loop's work between two requests counts: its thread may do other work as well."""
_WAIT_SECONDS_MIN: Final = 0.001
_WAIT_SECONDS_MAX: Final = 0.1


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
    """Return the size of the head of a request, in bytes."""
    path = scope.get("raw_path") or scope["path"].encode()
    fields = sum(len(name) + len(value) + _FIELD_BYTES for name, value in scope["headers"])
    return len(path) + len(scope["query_string"]) + fields


def _too_large(settings: LimitsSettings) -> str:
    return f"the body of a request may have {settings.body_bytes_max} bytes at most"


@final
class Pace:
    """Counts the processor time of readers, and has further ones wait.

    Args:
        is_busy: Returns whether the scheduler works; if not, readers have all the time.
        announced: Returns a number that grows while the scheduler has something to do: it may wait for a
            resource manager, and that one for a processor.
        now: Returns the time, in seconds.
        worked: Returns the processor time of the calling thread, in seconds.
        wait: Waits for a number of seconds, on the event loop.
        sleep: Waits for a number of seconds, on another thread.
    """

    def __init__(
        self,
        is_busy: Callable[[], bool] = lambda: True,
        announced: Callable[[], int] = lambda: 0,
        *,
        now: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
        wait: Callable[[float], Awaitable[object]] = asyncio.sleep,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._is_busy = is_busy
        self._announced = announced
        self._seen_announced = announced()
        self._active_until = 0.0
        self._now = now
        self._worked = worked
        self._wait = wait
        self._sleep = sleep
        self._lock = threading.Lock()
        self._left_seconds = BURST_SECONDS
        self._seen = now()
        self._loop_worked: float | None = None
        self._expected_seconds = BURST_SECONDS
        """How long a step may take: what is charged for one before it has been done."""
        self.is_closed = False
        """Set by any thread when requests must no longer wait."""
        self._turn = asyncio.Lock()

    async def turn(self) -> bool:
        """Wait until readers have time left; on the event loop, whose own work counts, too.

        Returns:
            Whether it came to that; not if requests must no longer wait.
        """
        async with self._turn:  # In the order in which they came.
            self._count_loop()
            while seconds := self._seconds_to_wait():
                await self._wait(seconds)
                self._count_loop()
        return not self.is_closed

    @contextmanager
    def step(self) -> Iterator[None]:
        """Wait until readers have time left, then count the processor time of a step, on another thread."""
        while seconds := self._seconds_to_wait():
            self._sleep(seconds)
        with self._lock:
            charged = self._expected_seconds
            self._left_seconds -= charged
        begin = self._worked()
        try:
            yield
        finally:
            taken = self._worked() - begin
            with self._lock:
                self._left_seconds += charged - taken
                self._expected_seconds = max(taken, self._expected_seconds * (1 - _FORGETTING))

    def _count_loop(self) -> None:
        worked = self._worked()
        if self._loop_worked is not None:
            self._spend(min(max(0.0, worked - self._loop_worked), _LOOP_SECONDS_MAX))
        self._loop_worked = worked

    def _spend(self, seconds: float) -> None:
        with self._lock:
            self._left_seconds -= seconds

    def _seconds_to_wait(self) -> float:
        """Return how long to wait before the next look; 0 if readers have time left."""
        if self.is_closed:
            return 0.0
        busy, announced = self._is_busy(), self._announced()
        with self._lock:
            now = self._now()
            if announced != self._seen_announced:
                self._seen_announced, self._active_until = announced, now + _ACTIVE_SECONDS
            share = SHARE if busy or now < self._active_until else 1.0
            self._left_seconds = min(BURST_SECONDS, self._left_seconds + (now - self._seen) * share)
            self._seen = now
            missing = -self._left_seconds
        return max(_WAIT_SECONDS_MIN, min(missing / SHARE, _WAIT_SECONDS_MAX)) if missing > 0 else 0.0


@final
class Pacing:
    """Has each request wait for its turn."""

    def __init__(self, app: ASGIApp, pace: Pace) -> None:
        self._app = app
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request when there is time for it."""
        if scope["type"] != "http" or await self._pace.turn():
            await self._app(scope, receive, send)
            return
        response = error_response(HTTPStatus.SERVICE_UNAVAILABLE, "the server stops")
        await response(scope, receive, send)
