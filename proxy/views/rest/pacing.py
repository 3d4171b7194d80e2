"""The share of processor time that readers get: however many they are, the scheduler goes on.

Python runs one thread at a time. Readers that ask without pause would take half of the time from the
scheduler. While it works, their requests wait here instead, also between the pages of a long list; while it
has nothing to do they get all the time. None is refused for that.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, final

from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import error_response

SHARE: Final = 0.05
"""How much of one processor's time readers get in the long run while the scheduler works.

What partitions do to answer them comes on top, about as much again.
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


@final
class Pace:
    """Counts the processor time of readers, and has further ones wait.

    Args:
        is_busy: Returns whether the scheduler works; if not, readers have all the time.
        announced: Returns a number that grows while the scheduler has something to do: it may wait for a
            resource manager, and that one for a processor.
        now: Returns the time, in seconds.
        worked: Returns the processor time of the calling thread, in seconds.
        wait: Waits for so many seconds, on the event loop.
        sleep: Waits for so many seconds, on another thread.
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
        """Set by any thread when no request is to wait any more."""
        self._turn = asyncio.Lock()

    async def turn(self) -> bool:
        """Wait until readers have time left; on the event loop, whose own work counts, too.

        Returns:
            Whether it came to that; not if no request is to wait any more.
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
