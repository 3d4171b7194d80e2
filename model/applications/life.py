"""The life of an application: its state, the timers that end it, and how long it and its allocations may run.

The limits of the older generation of `si.v1` are always enforced; walltimes where the queue demands it.

The tag of an ask counts before that of its application, and both before what the queue assumes.

The older generation of `si.v1` sets such limits, one an ask; so does a queue that ends what runs longer than
its walltime. Where an ask has both, that of the RM counts. The time begins when the allocation is there
(placed, taken over, or swapped in for a placeholder), not while its ask waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from ..configuration.durations import DurationError, parse_duration_ns
from ..policies.interface import AskView
from ..values.allocation import WALLTIME_TAG, Ask
from ..values.messages import TerminationType
from .effects import (
    Answer,
    ApplicationEvent,
    ApplicationState,
    Effect,
    IllegalTransitionError,
    ReleaseWanted,
    StateEntered,
    TimerKind,
    TimerSet,
    next_state,
)

if TYPE_CHECKING:
    from .core import ApplicationCore

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
_TIMEOUT_TEXT: Final = "releasing allocation on execution timeout"
_WALLTIME_TEXT: Final = "releasing allocation that has run for its walltime"
_STALE_MAX: Final = 64
"""How many stale entries are kept in addition to as many as there are valid ones."""


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
        event is not an error, so it is answered with `False`.
        """
        left = self.state
        if left is ApplicationState.RUNNING and event is ApplicationEvent.RUN:
            return True  # Not looked up in the table, since each allocation is such an event.
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


def limit_execution(core: ApplicationCore, limits: Sequence[tuple[str, int | None]], now_ns: int) -> Answer:
    """Limit how long the allocations of asks may run, see `Application.limit_execution`."""
    effects: list[Effect] = []
    for allocation_key, allowed_ns in limits:
        if allocation_key in core.asks or allocation_key in core.holdings.placed:
            _limit(core, allocation_key, allowed_ns)
    watch_limits(core, effects)
    if not core.task_groups.by_name:
        core.life.limit_running(core.running_limit_ns, now_ns, effects)
    return core.answer(effects)


def _limit(core: ApplicationCore, allocation_key: str, allowed_ns: int | None) -> None:
    if allowed_ns is None:
        if core.execution is not None and not core.execution.is_by_walltime(allocation_key):
            core.execution.forget(allocation_key)
        return
    if core.execution is None:
        core.execution = ExecutionLimits()
    core.execution.allow(allocation_key, allowed_ns)
    _begin(core, core.execution, allocation_key)


def _begin(core: ApplicationCore, execution: ExecutionLimits, allocation_key: str) -> None:
    """Start the time of an allocation that is there already."""
    placed = core.holdings.placed.get(allocation_key)
    if placed is not None and not placed.is_leaving:
        execution.begin(allocation_key, placed.allocation.bound_at_ns)


def follow_walltimes(
    core: ApplicationCore, keys: Sequence[str] | None, default_ns: int | None, *, ends: bool
) -> Answer:
    """Start or stop enforcing walltimes, see `Application.follow_walltimes`."""
    effects: list[Effect] = []
    if core.execution is None:
        if not ends:
            return core.answer()
        core.execution = ExecutionLimits()
    placed = core.holdings.placed
    for key in (*dict.fromkeys((*core.asks.records, *placed)),) if keys is None else keys:
        record = core.asks.get(key)
        ask = placed[key].allocation.ask if key in placed else None if record is None else record.ask
        if ask is None or ask.placeholder:
            continue
        walltime_ns = walltime_of(ask.tags) or default_ns
        core.execution.allow_walltime(key, walltime_ns if ends else None)
        _begin(core, core.execution, key)
    watch_limits(core, effects)
    return core.answer(effects)


def watch_limits(core: ApplicationCore, effects: list[Effect]) -> None:
    """Set a timer that is due when the next allocation has run as long as it may."""
    execution = core.execution
    due_ns = None if execution is None else execution.first_due_ns()
    if execution is None or due_ns is None:
        return
    if execution.timer_due_ns is None or due_ns < execution.timer_due_ns:
        execution.timer_due_ns = due_ns
        core.life.start_timer(TimerKind.ALLOCATION, due_ns, effects)


def end_overdue_allocations(core: ApplicationCore, now_ns: int) -> Answer:
    """Ask the RM to end the allocations that have run as long as they may."""
    effects: list[Effect] = []
    execution = core.execution
    if execution is not None:
        execution.timer_due_ns = None
        for key in execution.take_over(now_ns):
            if core.holdings.release(key):
                text = _WALLTIME_TEXT if execution.is_by_walltime(key) else _TIMEOUT_TEXT
                effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, text))
        watch_limits(core, effects)
    return core.answer(effects)


def walltime_of(tags: Mapping[str, str]) -> int | None:
    """Return the walltime that tags name, in nanoseconds; `None` if they name none that can be read."""
    text = tags.get(WALLTIME_TAG)
    if text is None:
        return None
    try:
        walltime_ns = parse_duration_ns(text)
    except DurationError:
        return None
    return walltime_ns if walltime_ns > 0 else None


def view_of_ask(ask: Ask) -> AskView:
    """Return what a policy is shown of an ask."""
    return AskView(
        ask.allocation_key,
        ask.application_id,
        ask.resource,
        ask.priority,
        ask.created_at_ns,
        MappingProxyType(ask.tags),
        ask.placeholder,
        ask.task_group_name,
        walltime_of(ask.tags),
    )


def tag_refusal(whose: str, tags: Mapping[str, str]) -> str | None:
    """Return why the walltime in tags is not valid, `None` if it is valid or missing.

    Args:
        whose: The owner of the tags, for the text.
        tags: Its tags.
    """
    if WALLTIME_TAG not in tags or walltime_of(tags) is not None:
        return None
    text = tags[WALLTIME_TAG]
    return f"the tag {WALLTIME_TAG} of {whose} is {text[:60]!r}: it must be a duration above zero, as 90m is"


@final
class ExecutionLimits:
    """The limits of one application's allocations. Owned by the application.

    One timer serves all of them: it is due when the first time is over. A timer that has been set is not
    cancelled when its allocation ends early; it finds nothing to end then, and sets the next one.
    """

    __slots__ = ("_allowed_ns", "_by_walltime", "_due_ns", "_order", "timer_due_ns")

    def __init__(self) -> None:
        self._allowed_ns: dict[str, int] = {}
        """How long the allocation of an ask may run, by its key."""
        self._by_walltime: set[str] = set()
        """The asks whose limits are their walltimes."""
        self._due_ns: dict[str, int] = {}
        """When the allocations that run now have run long enough."""
        self._order: list[tuple[int, str]] = []
        """The same as a heap; stale entries are skipped."""
        self.timer_due_ns: int | None = None
        """When the timer that runs is due."""

    def allow(self, allocation_key: str, allowed_ns: int) -> None:
        """Limit the allocation of an ask by the terms of its RM; an earlier limit is replaced."""
        self._allowed_ns[allocation_key] = allowed_ns
        self._by_walltime.discard(allocation_key)

    def allow_walltime(self, allocation_key: str, walltime_ns: int | None) -> None:
        """Start or stop limiting the allocation of an ask by its walltime; a limit of its RM stays."""
        if allocation_key in self._allowed_ns and allocation_key not in self._by_walltime:
            return
        if walltime_ns is None:
            self.forget(allocation_key)
            return
        self._allowed_ns[allocation_key] = walltime_ns
        self._by_walltime.add(allocation_key)

    def begin(self, allocation_key: str, bound_at_ns: int) -> None:
        """Start the time of an allocation, if its ask is limited."""
        allowed_ns = self._allowed_ns.get(allocation_key)
        if allowed_ns is None or self._due_ns.get(allocation_key) == bound_at_ns + allowed_ns:
            return
        due_ns = bound_at_ns + allowed_ns
        self._due_ns[allocation_key] = due_ns
        heappush(self._order, (due_ns, allocation_key))
        if len(self._order) > 2 * len(self._due_ns) + _STALE_MAX:
            self._order = sorted((due_ns, key) for key, due_ns in self._due_ns.items())

    def end(self, allocation_key: str) -> None:
        """Note that an allocation runs no longer; its ask stays limited."""
        self._due_ns.pop(allocation_key, None)

    def end_all(self) -> None:
        """Note that no allocation runs any longer; the asks stay limited."""
        self._due_ns.clear()

    def forget(self, allocation_key: str) -> None:
        """Drop the limit of an ask."""
        self._by_walltime.discard(allocation_key)
        self._allowed_ns.pop(allocation_key, None)
        self._due_ns.pop(allocation_key, None)

    def is_limited(self, allocation_key: str) -> bool:
        """Return whether an ask is limited."""
        return allocation_key in self._allowed_ns

    def is_by_walltime(self, allocation_key: str) -> bool:
        """Return whether the limit of an ask is its walltime."""
        return allocation_key in self._by_walltime

    def running(self) -> frozenset[str]:
        """Return the allocations whose time runs."""
        return frozenset(self._due_ns)

    def first_due_ns(self) -> int | None:
        """Return when the next allocation has run long enough, `None` if no time runs."""
        order = self._order
        while order:
            due_ns, allocation_key = order[0]
            if self._due_ns.get(allocation_key) == due_ns:
                return due_ns
            heappop(order)
        return None

    def take_over(self, now_ns: int) -> tuple[str, ...]:
        """Return the allocations that have run long enough, by time and then by key; their time is over."""
        keys = []
        while (due_ns := self.first_due_ns()) is not None and due_ns <= now_ns:
            _, allocation_key = heappop(self._order)
            del self._due_ns[allocation_key]
            keys.append(allocation_key)
        return tuple(keys)
