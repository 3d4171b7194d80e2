"""An application: what it asks for, what it has, and where it is in its life.

The application owns its asks, allocations, placeholders, reservations, state and timers, and reaches for
nothing else: what a change means for its queue, its user, a node or the RM goes back to the partition in
the `Answer`. Every method may be called when the world has moved on: what no longer applies is declined
with `None`.

The class is in five files by subject: `application_asks`, `application_allocations`, `application_swaps`,
`application_limits`, and here its life.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never, final

from ..marks import reads, writes
from ..resources.resource import EMPTY
from ..resources.resource_seconds import TrackedResource
from . import gang
from .allocations import AllocationSide
from .asks import AskSide
from .effects import Answer, TimerKind
from .report import application_report
from .state import ApplicationEvent, ApplicationState
from .swaps import SwapSide
from .time_limits import LimitSide
from .views import (
    application_facts,
    application_summary,
    shown_application,
    validate_application,
)

if TYPE_CHECKING:
    from .effects import ApplicationFacts, Effect
    from .report import ApplicationReport
    from .views import ShownApplication

__all__ = ["Application"]


@final
class Application(AskSide, AllocationSide, SwapSide, LimitSide):
    """One application.

    What is set when it is made (`application_id`, `user`, `tags`, `submitted_at_ns` of the submission,
    the gang's settings) never changes and may be read by anybody.
    """

    @writes
    def on_timer(self, kind: TimerKind, generation: int, now_ns: int) -> Answer | None:
        """Do what is due; `None` if the timer has been stopped or overtaken."""
        if not self._life.take_timer(kind, generation):
            return None
        match kind:
            case TimerKind.PLACEHOLDER:
                return self._placeholders_timed_out(now_ns)
            case TimerKind.ALLOCATION:
                return self._end_what_ran_too_long(now_ns)
            case TimerKind.RUNNING:
                return self._ran_too_long(now_ns)
            case TimerKind.STATE:
                return self._state_timed_out(now_ns)
            case _:
                assert_never(kind)

    def _state_timed_out(self, now_ns: int) -> Answer:
        effects: list[Effect] = []
        if self._life.state is not ApplicationState.COMPLETING:
            self._life.handle(ApplicationEvent.EXPIRE, now_ns, effects)
        elif self._asks.has_waiting:  # A swap was given up meanwhile: its member waits again.
            self._life.handle(ApplicationEvent.RUN, now_ns, effects)
        elif not gang.release_placeholders(self._placed, "releasing placeholders on app complete", effects):
            self._life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
        return self._answer(effects)

    def _placeholders_timed_out(self, now_ns: int) -> Answer:
        effects: list[Effect] = []
        if self._life.state in (ApplicationState.RUNNING, ApplicationState.COMPLETING):
            gang.release_placeholders(self._placed, gang.PLACED_TIMEOUT_TEXT, effects)
            return self._answer(effects)
        self._life.handle(self.gang_settings.timeout_event, now_ns, effects, "ResourceReservationTimeout")
        texts = (gang.PLACED_TIMEOUT_TEXT, gang.WAITING_TIMEOUT_TEXT)
        return self._give_up(effects, texts, swaps_go_on=not self.gang_settings.hard)

    def _ran_too_long(self, now_ns: int) -> Answer:
        """End all that the application has: it fails once the RM has confirmed the last of it.

        One that is Completing has done its work: it completes at once.
        """
        if self._life.state is ApplicationState.COMPLETING:
            return self._state_timed_out(now_ns)
        effects: list[Effect] = []
        self._life.handle(ApplicationEvent.FAIL, now_ns, effects, "ExecutionTimeout")
        if not self._placed:
            self._life.handle(ApplicationEvent.FAIL, now_ns, effects)
        text = "releasing {} on execution timeout of the application"
        return self._give_up(effects, (text.format("allocation"), text.format("ask")), swaps_go_on=False)

    def _give_up(self, effects: list[Effect], texts: tuple[str, str], *, swaps_go_on: bool) -> Answer:
        """Have the RM end all that is placed, and forget all that waits; swaps may still be completed."""
        swaps = () if swaps_go_on else self._drop_swaps()
        members = {swap.ask.allocation_key for swap in swaps}
        removed = gang.give_up(
            self._asks,
            self._placed,
            self._task_groups,
            effects,
            texts=texts,
            swapping=self._swapping,
            dropped=members,
        )
        dropped = [self._reservations.remove(record.ask.allocation_key) for record in removed]
        self._pending = EMPTY
        self._execution = None
        reservations = tuple(reservation for reservation in dropped if reservation is not None)
        answer = self._answer(effects, asks=removed, reservations=reservations)
        answer.swaps = swaps
        return answer

    @writes
    def fail(self, text: str, now_ns: int) -> Answer:
        """Let the application fail, from any state that can."""
        effects: list[Effect] = []
        self._life.handle(ApplicationEvent.FAIL, now_ns, effects, text)
        return self._answer(effects)

    @writes
    def reject(self, text: str, now_ns: int) -> Answer:
        """Turn the application away."""
        effects: list[Effect] = []
        self._rejection = text
        self._finished_at_ns = now_ns
        self._life.handle(ApplicationEvent.REJECT, now_ns, effects)
        return self._answer(effects)

    @writes
    def finish(self, now_ns: int) -> Answer:
        """Drop what a terminated application needs no longer; the answer has the asks it still had."""
        removed = tuple(self._asks.records.values())
        for record in removed:
            self._asks.remove(record.ask.allocation_key)
        reservations = self._reservations.all()
        for reservation in reservations:
            self._reservations.remove(reservation.allocation_key)
        self._pending = EMPTY
        self._finished_at_ns = now_ns
        if self._life.state is ApplicationState.COMPLETED:
            self._life.stop_timer(TimerKind.PLACEHOLDER)
        self._execution = None
        summary = None if self._life.started_at_ns is None else application_summary(self)
        self._used = TrackedResource()
        self._used_preempted = TrackedResource()
        self._used_placeholder = TrackedResource()
        answer = self._answer((), asks=removed, reservations=reservations)
        answer.summary = summary
        return answer

    @reads
    def facts(self) -> ApplicationFacts:
        """Return what the partition keeps of the application."""
        return application_facts(self)

    @reads
    def state(self) -> ApplicationState:
        """Return where the application is in its life."""
        return self._life.state

    @reads
    def report(self) -> ApplicationReport:
        """Return what an explanation needs to know of the application, all of one moment."""
        return application_report(self)

    @reads
    def shown(self) -> ShownApplication:
        """Return what the document of the REST interface is made of, see `application_views`."""
        return shown_application(self)

    @reads
    def validate(self) -> None:
        """Assert that nothing is lost or counted twice."""
        validate_application(self)
