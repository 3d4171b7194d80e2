"""The virtual clock: its caller moves the time, which jumps to the next timer that is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...model.state.host import DueTimers, TimerAction, TimerKey

EPOCH_2000_NS: Final = 946_684_800 * 1_000_000_000
"""2000-01-01T00:00:00Z: where the clock of a transcript starts."""


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
