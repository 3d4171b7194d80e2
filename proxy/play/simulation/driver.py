"""Drives a simulation: goes from moment to moment of virtual time, and runs the core until idle at each.

A moment is an event of the traffic (a submission or an end) or a deadline of the core (one of its timers).
When the traffic has no events left, the simulation continues for as long as the core's timers still have
effects. It ends when nothing has happened for `QUIET_LIMIT_NS`, or when nothing is open.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final, Protocol, TextIO, final

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ....actors.services.interrupts import Uninterrupted
from ....model.configuration.durations import short_duration_text
from ....model.errors import LicorneError
from .core import Core, Traffic
from .record import SimulationRecord

QUIET_LIMIT_NS: Final = 20 * 60 * 10**9
"""Longer than every delay of the core while work waits; the longest is that of placeholders, 15 minutes."""
HELD_LIMIT_NS: Final = 8 * 86_400 * 10**9
"""The same limit if a policy decides when work may start: nights, weekends, the first of the week."""
_VIRTUAL_TIME_MAX_NS: Final = 200 * 365 * 86_400 * 10**9
"""Times of the scheduler interface are signed 64-bit nanoseconds since 1970: they end in the year 2262."""
_ROUNDS_AT_ONE_MOMENT_MAX: Final = 10_000


def never() -> bool:
    """Return false, for runs without interrupts."""
    return False


@contextmanager
def interruption_noted() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C while the context is open; yield a function that returns whether it has occurred.

    Signals are left alone if another handler than Python's own is set, and on other threads than the main
    one.

    Raises:
        KeyboardInterrupt: A second Ctrl-C has occurred.
    """
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield never
        return
    is_noted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal is_noted
        if is_noted:
            signal.default_int_handler(number, frame)
        is_noted = True

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: is_noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class SimulationError(LicorneError):
    """A simulation that cannot continue."""


class Progress(Protocol):
    """Receives the progress of a simulation."""

    def advanced(self, done: int, total: int, now_ns: int) -> None:
        """Process the progress; called once for each moment."""
        ...


@final
class NoProgress:
    """Discards the progress."""

    def advanced(self, done: int, total: int, now_ns: int) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: decisions of the core, seconds of real time, and whether it was stopped early."""

    decisions: int
    wall_seconds: float
    is_interrupted: bool = False


@final
class Driver:
    """One run of a simulation.

    Args:
        core: The scheduler; its clock may have any time.
        traffic: The side of the resource managers.
        record: The record that the traffic writes.
        progress: The receiver of the progress.
        stopwatch: Real time in seconds, from any start.
        is_interrupted: Returns whether to stop before the next moment.
        quiet_limit_ns: The time without any change after which it ends, once nothing is left to submit or to
            end.
    """

    def __init__(
        self,
        core: Core,
        traffic: Traffic,
        record: SimulationRecord,
        *,
        progress: Progress,
        stopwatch: Callable[[], float],
        is_interrupted: Callable[[], bool] = never,
        quiet_limit_ns: int = QUIET_LIMIT_NS,
    ) -> None:
        self._quiet_limit_ns = quiet_limit_ns
        self._core = core
        self._traffic = traffic
        self._record = record
        self._progress = progress
        self._stopwatch = stopwatch
        self._is_interrupted = is_interrupted
        self._origin_ns = core.now_ns()
        self._visits_all = False
        self._decisions = 0
        self._rounds_at_this_moment = 0

    def run(
        self, *, until_ns: int | None = None, after_each: Callable[[int], None] | None = None
    ) -> RunResult:
        """Run to the end, to a moment with all its due events, or to an interrupt.

        Args:
            until_ns: The moment; `None` for the end.
            after_each: Is called after each moment with its time.

        Raises:
            LicorneError: The core refuses the registration; then nothing has happened.
            SimulationError: The simulation would take more than 200 years of virtual time.
        """
        started = self._stopwatch()
        self._visits_all = after_each is not None
        self._traffic.start()
        self._run_until_idle()
        is_interrupted = None
        while is_interrupted is None:
            is_interrupted = self._visit_moments(until_ns, after_each)
        while (
            not is_interrupted and until_ns is not None and self._core.now_ns() < self._origin_ns + until_ns
        ):
            self._visit(until_ns)
        return RunResult(self._decisions, self._stopwatch() - started, is_interrupted=is_interrupted)

    def _visit_moments(self, until_ns: int | None, after_each: Callable[[int], None] | None) -> bool | None:
        """Visit all moments, in one section without signal handlers: the core enters dozens for each moment.

        Returns:
            Whether it has been interrupted; `None` if a handler has to run first.
        """
        with Uninterrupted() as section:
            while not section.is_interrupted:
                moment_ns = self._next_moment_ns()
                if moment_ns is None or (until_ns is not None and moment_ns > until_ns):
                    return False
                if self._is_interrupted():
                    return True
                reached_ns = self._visit(moment_ns)
                if after_each is not None:
                    after_each(reached_ns)
                self._progress.advanced(*self._traffic.progress(), reached_ns)
        return None

    def go_on(self, is_done: Callable[[], bool]) -> None:
        """Continue from the present moment until something holds, or nothing more happens."""
        while not is_done() and (moment_ns := self._next_moment_ns()) is not None:
            self._visit(moment_ns)

    def _visit(self, moment_ns: int) -> int:
        """Go to a moment or a timer before it that has an effect; process the due events, run until idle.

        Returns:
            The reached moment.
        """
        before_ns = self._core.now_ns()
        self._core.advance_to(self._origin_ns + moment_ns, self._traffic.has_to_send)
        now_ns = self._core.now_ns()
        if now_ns > before_ns:
            self._rounds_at_this_moment = 0
        moment_ns = now_ns - self._origin_ns
        event_ns = self._traffic.next_event_ns()
        if event_ns is not None and event_ns <= moment_ns:
            self._rounds_at_this_moment = 0
            self._traffic.deliver(moment_ns)
        self._run_until_idle()
        series = self._record.series
        if series is not None and series.unknown_queues:
            series.note_bounds(self._core.queue_bounds())
        return moment_ns

    def _run_until_idle(self) -> None:
        """Exchange all messages, then run the core; again until neither has anything to send.

        The asks of an application follow its acceptance. They are sent before the core decides, so that each
        decision considers all ends and submissions of its moment.
        """
        self._traffic.send()
        while True:
            self._rounds_at_this_moment += 1
            assert self._rounds_at_this_moment < _ROUNDS_AT_ONE_MOMENT_MAX, (
                "core and traffic never stop exchanging messages"
            )
            self._core.deliver()
            if not self._traffic.has_to_send():
                self._decisions += self._core.run_until_idle()
                if not self._traffic.has_to_send():
                    return
            self._traffic.send()

    def _next_moment_ns(self) -> int | None:
        """Return the next moment with a due event, `None` at the end.

        While the core is idle, its timers are not visited.
        """
        now_ns = self._core.now_ns() - self._origin_ns
        moment_ns = event_ns = self._traffic.next_event_ns()
        if event_ns is None:
            may_matter = self._traffic.is_anything_open()
        else:
            may_matter = self._visits_all or not self._core.is_idle()
        deadline_ns = self._core.next_deadline_ns() if may_matter else None
        if deadline_ns is not None:
            deadline_ns -= self._origin_ns
            moment_ns = deadline_ns if event_ns is None else min(event_ns, deadline_ns)
        if moment_ns is None:
            return None
        moment_ns = max(moment_ns, now_ns)
        if moment_ns > _VIRTUAL_TIME_MAX_NS:
            raise SimulationError("the simulation takes more than 200 years of virtual time")
        if event_ns is None and moment_ns > self._record.last_change_ns + self._quiet_limit_ns:
            return None
        return moment_ns


@contextmanager
def progress_on(stream: TextIO, description: str) -> Iterator[Progress]:
    """Show progress on a stream while the context is open, if the stream is a terminal.

    Only the stream decides whether it is one: variables such as `FORCE_COLOR`, which are meant for colours,
    must not put a moving bar into a file.
    """
    if not stream.isatty():
        yield NoProgress()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[moment]}"),
        TimeElapsedColumn(),
        TextColumn("remaining:"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(file=stream), transient=True) as bar:
        yield TerminalProgress(bar, description)


@final
class TerminalProgress:
    """Moves a bar when the difference is visible."""

    def __init__(self, bar: Bar, description: str) -> None:
        self._bar = bar
        self._task = bar.add_task(description, total=1000, moment="")
        self._shown_permille = -1

    def advanced(self, done: int, total: int, now_ns: int) -> None:
        """Show the progress, in steps of a thousandth."""
        permille = done * 1000 // total if total else 0
        if permille != self._shown_permille:
            self._shown_permille = permille
            self._bar.update(self._task, completed=permille, moment=short_duration_text(now_ns))
