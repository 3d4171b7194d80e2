"""An event loop without threads: the clock goes on when a test says so, and work is done in order."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
_CALLS_MAX: Final = 200_000
"""With more calls than this in one moment something goes round in circles."""


class ManualLoop:
    """Carries out in `run` what is posted and worked on, and in `advance` what is due later.

    Args:
        start_seconds: The time at the beginning, in seconds since 1970.

    Attributes:
        errors: What calls have raised.
        holds_work: Whether work waits until a test calls `work_next`.
    """

    def __init__(self, start_seconds: float) -> None:
        self.errors: list[Exception] = []
        self.holds_work = False
        self._now = start_seconds
        self._posted: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._work: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._timers: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = itertools.count()

    def now(self) -> float:
        """Return the time of the test."""
        return self._now

    def unix_seconds(self) -> float:
        """Return the time of the test."""
        return self._now

    def post(self, call: Callable[..., None], *args: Any) -> None:
        """Keep a call for `run`."""
        self._posted.append((call, args))

    def later(self, seconds: float, call: Callable[..., None], *args: Any) -> None:
        """Keep a call for `advance`."""
        heapq.heappush(self._timers, (self._now + seconds, next(self._number), call, args))

    def work(
        self, call: Callable[[], T], then: Callable[[T | Exception], None], *, is_urgent: bool = True
    ) -> None:
        """Keep work for `run`."""
        del is_urgent
        self._work.append((call, then))

    @property
    def posted(self) -> int:
        """How many calls wait for `run`."""
        return len(self._posted)

    @property
    def open_work(self) -> int:
        """How much work waits."""
        return len(self._work)

    @property
    def timers(self) -> int:
        """How many calls wait for their time."""
        return len(self._timers)

    def next_due(self) -> float | None:
        """Return when the next call is due, `None` without any."""
        return self._timers[0][0] if self._timers else None

    def run(self) -> int:
        """Carry out what is posted, and all work, until nothing is left; return how many calls that were."""
        for count in itertools.count():
            assert count < _CALLS_MAX, "the calls go round in circles"
            if self._posted:
                call, args = self._posted.popleft()
                self._carry_out(call, args)
            elif self._work and not self.holds_work:
                self.work_next()
            else:
                return count
        raise AssertionError

    def work_next(self) -> None:
        """Do the work that has waited longest, and keep what follows from it for `run`."""
        call, then = self._work.popleft()
        try:
            answer = call()
        except Exception as error:  # noqa: BLE001 - as the real loop
            answer = error
        self.post(then, answer)

    def move_to(self, time: float) -> None:
        """Move the clock, and carry out the calls that are due."""
        self._now = max(self._now, time)
        while self._timers and self._timers[0][0] <= self._now:
            _, _, call, args = heapq.heappop(self._timers)
            self._carry_out(call, args)

    def _carry_out(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            call(*args)
        except Exception as error:  # noqa: BLE001 - as the real loop
            self.errors.append(error)
