"""The share of processor time that readers get: however many they are, the scheduler goes on.

Python runs one thread at a time. Readers that ask without pause would take half of the time from the
scheduler; here their requests wait instead. None is refused for that.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, final

from .errors import error_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["BURST_SECONDS", "SHARE", "Pace", "Pacing"]

SHARE: Final = 0.15
"""How much of one processor's time readers get, in the long run."""
BURST_SECONDS: Final = 0.25
"""How much of it they get at once, after a while without any."""
_FIRST_GUESS_SECONDS: Final = 0.001
_NEW_SHARE: Final = 0.1
"""How much the latest step counts for what a step takes as a rule."""
_LOOP_SECONDS_MAX: Final = 0.05
"""How much of the event loop's work between two requests counts: its thread may do other work as well."""
_WAIT_SECONDS_MIN: Final = 0.001
_WAIT_SECONDS_MAX: Final = 0.1


@final
class Pace:
    """Counts the processor time of readers, and has further ones wait.

    Args:
        now: Returns the time, in seconds.
        worked: Returns the processor time of the calling thread, in seconds.
        wait: Waits for so many seconds.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        worked: Callable[[], float] = time.thread_time,
        wait: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._now = now
        self._worked = worked
        self._wait = wait
        self._lock = threading.Lock()
        self._left_seconds = BURST_SECONDS
        self._seen = now()
        self._loop_worked: float | None = None
        self._usual_seconds = _FIRST_GUESS_SECONDS
        """How long a step takes as a rule: what is charged for one before it has been done."""
        self.is_closed = False
        """Set by any thread when no request is to wait any more."""
        self._turn = asyncio.Lock()

    async def turn(self) -> bool:
        """Wait until readers have time left; on the event loop, whose own work counts, too.

        Returns:
            Whether it came to that; not if no request is to wait any more.
        """
        async with self._turn:  # In the order in which they came.
            self._count_loop()
            while not self.is_closed and (missing := -self._refilled()) > 0:
                await self._wait(max(_WAIT_SECONDS_MIN, min(missing / SHARE, _WAIT_SECONDS_MAX)))
                self._count_loop()
        return not self.is_closed

    @contextmanager
    def step(self) -> Iterator[None]:
        """Count the processor time of a step on another thread."""
        with self._lock:
            charged = self._usual_seconds
            self._left_seconds -= charged
        begin = self._worked()
        try:
            yield
        finally:
            taken = self._worked() - begin
            with self._lock:
                self._left_seconds += charged - taken
                self._usual_seconds += (taken - self._usual_seconds) * _NEW_SHARE

    def _count_loop(self) -> None:
        worked = self._worked()
        if self._loop_worked is not None:
            self._spend(min(max(0.0, worked - self._loop_worked), _LOOP_SECONDS_MAX))
        self._loop_worked = worked

    def _spend(self, seconds: float) -> None:
        with self._lock:
            self._left_seconds -= seconds

    def _refilled(self) -> float:
        with self._lock:
            now = self._now()
            self._left_seconds = min(BURST_SECONDS, self._left_seconds + (now - self._seen) * SHARE)
            self._seen = now
            return self._left_seconds


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
