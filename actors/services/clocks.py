"""The clocks: that of the wall with its timers, and a virtual one whose caller moves the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, final

from ...lockcheck import Condition, excludes
from ...model.state.host import DueTimer, DueTimers, TimerAction, TimerKey
from .log import Log

_NS: Final = 1_000_000_000
_STEP_NS: Final = 1_000_000
"""How far the wall clock must be ahead to have been set; the two clocks are not read at the same moment."""
_SLEEP_MAX_SECONDS: Final = 1.0
"""A wall clock that is set ahead does not wake the thread: timers that are due then are late by up to this
time."""
EPOCH_2000_NS: Final = 946_684_800 * 1_000_000_000
"""2000-01-01T00:00:00Z: where the clock of a transcript starts."""


@final
class RealClock:
    """The wall-clock time and its timers. The thread starts with the first timer.

    Args:
        fire: has a partition run a timer that is due; called on the clock's thread only.
        log: gets the failures of timers.
    """

    def __init__(self, fire: Callable[[str, TimerAction], None], log: Log | None = None) -> None:
        self._fire = fire
        self._log = log or Log()
        self._due = DueTimers()
        self._changed = Condition(name="clock")
        self._thread: threading.Thread | None = None
        self._closed = False
        self._ahead_ns = time.time_ns() - time.monotonic_ns()
        """How far the time is ahead of the monotonic clock."""

    def now_ns(self) -> int:
        """Return the time, nanoseconds since 1970: that of the wall, but it does not go back with it."""
        elapsed_ns = time.monotonic_ns()
        ahead_ns = time.time_ns() - elapsed_ns
        if ahead_ns > self._ahead_ns + _STEP_NS:
            self._ahead_ns = ahead_ns
        return self._ahead_ns + elapsed_ns

    def call_at(self, due_ns: int, partition: str, action: TimerAction) -> None:
        """Set a timer of a partition."""
        with self._changed:
            if self._closed:
                return
            is_next = self._due.add(due_ns, partition, action)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="licorne-clock", daemon=True)
                self._thread.start()
            elif is_next:
                self._changed.notify()

    def cancel(self, partition: str, key: TimerKey) -> None:
        """Cancel the timer of a partition that has a key; one that is due already may still fire."""
        with self._changed:
            self._due.cancel(partition, key)

    def forget(self, partition: str) -> None:
        """Cancel all timers of a partition."""
        with self._changed:
            self._due.forget(partition)

    @excludes()
    def close(self) -> None:
        """Cancel all timers, and end the thread."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while (entry := self._next()) is not None:
            _, _, partition, action = entry
            try:
                self._fire(partition, action)
            except BaseException:
                log = self._log.bind(partition=partition)
                log.exception("timer {} of partition {} failed", action, partition)  # noqa: PLE1205 - loguru's braces

    def _next(self) -> DueTimer | None:
        """Wait for the next timer that is due; `None` when the clock is closed."""
        with self._changed:
            while not self._closed:
                due_ns = self._due.next_due_ns()
                if due_ns is None:
                    self._changed.wait()
                    continue
                wait_ns = due_ns - self.now_ns()
                if wait_ns <= 0:
                    return self._due.pop()
                self._changed.wait(min(wait_ns / _NS, _SLEEP_MAX_SECONDS))
        return None


@final
class VirtualClock:
    """A clock of one thread. Timers fire in order of their time, then in the order they were set."""

    def __init__(self, fire: Callable[[str, TimerAction], None], start_ns: int = EPOCH_2000_NS) -> None:
        self._now_ns = start_ns
        self._fire = fire
        self._due = DueTimers()

    def now_ns(self) -> int:
        """Return the time, nanoseconds since 1970."""
        return self._now_ns

    def call_at(self, due_ns: int, partition: str, action: TimerAction) -> None:
        """Set a timer of a partition; one in the past is due at once, not before now."""
        self._due.add(due_ns, partition, action)

    def cancel(self, partition: str, key: TimerKey) -> None:
        """Cancel the timer of a partition that has a key."""
        self._due.cancel(partition, key)

    def forget(self, partition: str) -> None:
        """Cancel all timers of a partition."""
        self._due.forget(partition)

    def next_due_ns(self) -> int | None:
        """Return when the next timer is due, `None` if there is none."""
        return self._due.next_due_ns()

    def set_to(self, time_ns: int) -> None:
        """Set the time, also back; no timer fires."""
        self._now_ns = time_ns

    def advance_to(self, time_ns: int) -> bool:
        """Move to the next timer that is due by that time and fire it, or else move to that time.

        Returns:
            Whether a timer was fired, so that there may be more.
        """
        next_ns = self._due.next_due_ns()
        if next_ns is not None and next_ns <= time_ns:
            due_ns, _, partition, action = self._due.pop()
            self._now_ns = max(self._now_ns, due_ns)
            self._fire(partition, action)
            return True
        self._now_ns = max(self._now_ns, time_ns)
        return False
