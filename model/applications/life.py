"""The state of an application, since when it is in it, and the timers that end it."""

from __future__ import annotations

from typing import Final, final

from .effects import Effect, StateEntered, TimerKind, TimerSet
from .state import ApplicationEvent, ApplicationState, IllegalTransitionError, next_state

COMPLETING_TIMEOUT_NS: Final = 30 * 1_000_000_000
LINGERING_TIMEOUT_NS: Final = 3600 * 1_000_000_000
"""How long an application whose RM has released everything at once waits for more work. The recorded
core waits for ever: an RM may send asks again after minutes, but a forgotten application must end."""
TERMINATED_RETENTION_NS: Final = 3 * 24 * 3600 * 1_000_000_000

_STATE_TIMEOUT_NS: Final = {
    ApplicationState.COMPLETING: COMPLETING_TIMEOUT_NS,
    ApplicationState.COMPLETED: TERMINATED_RETENTION_NS,
    ApplicationState.FAILED: TERMINATED_RETENTION_NS,
    ApplicationState.REJECTED: TERMINATED_RETENTION_NS,
}
_LIMITED_STATES: Final = frozenset({ApplicationState.RUNNING, ApplicationState.COMPLETING})


@final
class Life:
    """State, state log and timers of one application. Owned by the application."""

    def __init__(self) -> None:
        self.state = ApplicationState.NEW
        self.log: list[tuple[int, ApplicationState]] = []
        self.last_text = ""
        """Why it is in its state. One that has failed keeps the reason why it began to fail."""
        self.started_at_ns: int | None = None
        self._running_limit_ns: int | None = None
        self._generations = 0
        self._timers: dict[TimerKind, tuple[int, int]] = {}
        """Running timers with their generations and times: one of another generation has been replaced."""

    def handle(self, event: ApplicationEvent, now_ns: int, effects: list[Effect], text: str = "") -> bool:
        """Apply an event; return whether it was legal. An illegal one changes nothing.

        The rules fire events that may come too late (a release after the application completed); such an
        event is no error, so it is answered with `False`.
        """
        left = self.state
        if left is ApplicationState.RUNNING and event is ApplicationEvent.RUN:
            return True  # As the table says; not looked up there, since each allocation is such an event.
        try:
            entered = next_state(left, event)
        except IllegalTransitionError:
            return False
        if entered is left:
            return True
        self.stop_timer(TimerKind.STATE)
        self.state = entered
        self.log.append((now_ns, entered))
        if entered is ApplicationState.RUNNING and self.started_at_ns is None:
            self.started_at_ns = now_ns
        message = text or event.value
        if text or entered is not ApplicationState.FAILED:
            self.last_text = message
        effects.append(StateEntered(left, entered, message, now_ns, text))
        self._watch_running(now_ns, effects)
        timeout_ns = _STATE_TIMEOUT_NS.get(entered)
        if timeout_ns is not None:
            self.start_timer(TimerKind.STATE, now_ns + timeout_ns, effects)
        return True

    def start_timer(self, kind: TimerKind, due_ns: int, effects: list[Effect]) -> None:
        """Start a timer; it replaces one of the same kind."""
        self._generations += 1
        self._timers[kind] = self._generations, due_ns
        effects.append(TimerSet(kind, due_ns, self._generations))

    def limit_running(self, limit_ns: int | None, now_ns: int, effects: list[Effect]) -> None:
        """Limit how long the application may run, counted from its first start; Completing counts as well."""
        self._running_limit_ns = limit_ns
        self._watch_running(now_ns, effects)

    def _watch_running(self, now_ns: int, effects: list[Effect]) -> None:
        if self._running_limit_ns is None or self.started_at_ns is None:
            return
        if self.state not in _LIMITED_STATES:
            self.stop_timer(TimerKind.RUNNING)
        elif not self.has_timer(TimerKind.RUNNING):
            due_ns = max(now_ns, self.started_at_ns + self._running_limit_ns)
            self.start_timer(TimerKind.RUNNING, due_ns, effects)

    def linger(self, now_ns: int, effects: list[Effect]) -> None:
        """Give an application that is Completing more time than usual."""
        self.start_timer(TimerKind.STATE, now_ns + LINGERING_TIMEOUT_NS, effects)

    def stay(self, now_ns: int, effects: list[Effect]) -> None:
        """Give an application that is Completing at least its usual time from now on."""
        timer = self._timers.get(TimerKind.STATE)
        due_ns = now_ns + COMPLETING_TIMEOUT_NS
        if self.state is ApplicationState.COMPLETING and timer is not None and timer[1] < due_ns:
            self.start_timer(TimerKind.STATE, due_ns, effects)

    def stop_timer(self, kind: TimerKind) -> None:
        """Stop a timer, if it runs."""
        self._timers.pop(kind, None)

    def has_timer(self, kind: TimerKind) -> bool:
        """Return whether a timer runs."""
        return kind in self._timers

    def take_timer(self, kind: TimerKind, generation: int) -> bool:
        """Take a timer that is due; `False` if it has been stopped or replaced meanwhile."""
        if self._timers.get(kind, (0, 0))[0] != generation:
            return False
        del self._timers[kind]
        return True
