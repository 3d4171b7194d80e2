"""Applications that have ended are kept for explanations, until they expire.

There may be millions of them, for days. So the clock has one timer a partition: for the first to expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, final

from ..applications.effects import StateEntered, TimerKind
from ..applications.state import ApplicationState
from .applying import announce_state
from .due_timers import DueTimers
from .host import ApplicationTimer, Expiry, PartitionHost

if TYPE_CHECKING:
    from .partition_state import PartitionState


@final
class Expiries:
    """When the applications of a partition that have ended expire. Owned by the partition."""

    __slots__ = ("_due", "_host", "_watched_ns")

    def __init__(self, host: PartitionHost) -> None:
        self._host = host
        self._due = DueTimers()
        self._watched_ns: int | None = None
        """The time of the timer that is set."""

    def __len__(self) -> int:
        return len(self._due)

    def add(self, due_ns: int, timer: ApplicationTimer) -> None:
        """Have an application expire at a time, in nanoseconds since 1970."""
        self._due.add(due_ns, "", timer)
        self._watch()

    def forget(self, serial: int) -> None:
        """Drop an application that has not expired; it need not be here."""
        self._due.cancel("", (serial, TimerKind.STATE))

    def take_due(self, now_ns: int) -> Iterator[ApplicationTimer]:
        """Take those that expire now, in order of their times and then of their ends."""
        self._watched_ns = None
        while (due_ns := self._due.next_due_ns()) is not None and due_ns <= now_ns:
            timer = self._due.pop()[3]
            assert isinstance(timer, ApplicationTimer), f"{timer!r} expires: please report"
            yield timer
        self._watch()

    def _watch(self) -> None:
        """Set the timer for the first one to expire."""
        due_ns = self._due.next_due_ns()
        if due_ns is not None and (self._watched_ns is None or due_ns < self._watched_ns):
            self._watched_ns = due_ns
            self._host.cancel(Expiry)
            self._host.call_at(due_ns, Expiry())


def expire_due(state: PartitionState) -> None:
    """Forget the applications that expire now, and report it to the RM."""
    for timer in state.expiries.take_due(state.now_ns()):
        _expire(state, timer)


def _expire(state: PartitionState, timer: ApplicationTimer) -> None:
    name, serial = timer.application_id, timer.serial
    kept = state.rejected.get(name)
    rejected = kept is not None and kept.serial == serial
    ended = kept if rejected else state.completed.get(serial)
    if ended is None:
        return
    application = ended.application
    answer = application.on_timer(timer.kind, timer.generation, state.now_ns())
    if answer is not None and answer.facts.state is ApplicationState.EXPIRED:
        for effect in answer.effects:
            if isinstance(effect, StateEntered):
                announce_state(state, name, effect)
        state.host.release(application)
        if rejected:
            del state.rejected[name]
        else:
            del state.completed[serial]
