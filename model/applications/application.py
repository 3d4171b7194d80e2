"""An application: what it asks for, what it has, and its state.

The application owns its asks, allocations, placeholders, reservations, state and timers, and changes nothing
else: what a change means for its queue, its user, a node or the RM is returned to the partition in the
`Answer`. Every method may be called with facts that are out of date: what no longer applies is declined with
`None`.

Its state is in `core` and `holdings`. Its methods are in its parts: `asks`, `pending_asks` and
`allocations`, and, for its states, here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never, final

from ..marks import Marks
from ..resources.resource import EMPTY
from ..values.messages import User
from . import gang
from .allocations import ApplicationAllocations, ApplicationSwaps
from .asks import ApplicationAsks
from .core import ApplicationCore, application_facts
from .effects import Answer, ApplicationEvent, ApplicationFacts, ApplicationState, Effect, TimerKind
from .life import end_overdue_allocations, follow_walltimes, limit_execution
from .pending_asks import ApplicationReservations
from .report import (
    ApplicationReport,
    ShownApplication,
    application_report,
    application_summary,
    shown_application,
    validate_application,
)

_COMPLETE_TEXT: Final = "releasing placeholders on app complete"


@final
class Application:
    """One application.

    The attributes of its submission (`application_id`, `user`, `tags`, the gang's settings) never change and
    may be read by any thread.
    """

    MARKS: Final = Marks(
        reads=("facts", "report", "shown", "validate"),
        writes=(
            "limit_execution",
            "follow_walltimes",
            "retag",
            "on_timer",
            "stay",
            "fail",
            "reject",
            "finish",
        ),
    )

    def __init__(
        self,
        application_id: str,
        *,
        partition: str,
        queue_path: str,
        user: User,
        tags: Mapping[str, str],
        submitted_at_ns: int,
        gang_settings: gang.GangSettings,
        running_limit_ns: int | None = None,
    ) -> None:
        self.application_id = application_id
        self.partition = partition
        self.user = user
        self.tags = tags
        self.gang_settings = gang_settings
        core = ApplicationCore(
            application_id,
            partition=partition,
            queue_path=queue_path,
            user=user,
            submitted_at_ns=submitted_at_ns,
            gang_settings=gang_settings,
            running_limit_ns=running_limit_ns,
        )
        self._core = core
        self.asks = ApplicationAsks(core)
        self.allocations = ApplicationAllocations(core)
        self.reservations = ApplicationReservations(core)

    @property
    def swaps(self) -> ApplicationSwaps:
        """Its swaps; few applications have any, so that no object is kept for them."""
        return ApplicationSwaps(self._core)

    def limit_execution(self, limits: Sequence[tuple[str, int | None]], now_ns: int) -> Answer:
        """Limit how long the allocations of asks may run: keys with nanoseconds, `None` for no limit.

        The time of an allocation that exists already counts from when it was placed. A key that is not known,
        such as that of an ask that was rejected, is skipped. An RM that limits asks uses the older generation
        of `si.v1`, so that the application's own limit holds from now on.
        """
        return limit_execution(self._core, limits, now_ns)

    def follow_walltimes(self, keys: Sequence[str] | None, default_ns: int | None, *, ends: bool) -> Answer:
        """End allocations that run longer than their walltimes, or let them run.

        Args:
            keys: Those of asks and allocations; `None` for all. Placeholders are left alone.
            default_ns: The default walltime, if any.
            ends: Whether they end. Limits that the RM has set by its own terms stay in either case.
        """
        return follow_walltimes(self._core, keys, default_ns, ends=ends)

    def retag(self, allocation_key: str, tags: Mapping[str, str]) -> Answer:
        """Give an ask other tags, and its allocation, which the answer has, if it has one."""
        core = self._core
        holdings = core.holdings
        record, placed = core.asks.get(allocation_key), holdings.placed.get(allocation_key)
        if record is not None:
            record.ask = record.ask.retagged(tags)
        if placed is not None:
            placed.allocation = placed.allocation.retagged(tags)
        placeholder = holdings.placed.get(holdings.swapping.get(allocation_key, ""))
        if placeholder is not None and placeholder.swap is not None:
            placeholder.swap = placeholder.swap.retagged(tags)
        return core.answer(
            asks=() if record is None else (record,),
            allocations=() if placed is None else (placed.allocation,),
        )

    def on_timer(self, kind: TimerKind, generation: int, now_ns: int) -> Answer | None:
        """Do what is due; `None` if the timer has been stopped or replaced."""
        core = self._core
        if not core.life.take_timer(kind, generation):
            return None
        match kind:
            case TimerKind.PLACEHOLDER:
                return self._placeholders_timed_out(now_ns)
            case TimerKind.ALLOCATION:
                return end_overdue_allocations(core, now_ns)
            case TimerKind.RUNNING:
                return self._execution_timed_out(now_ns)
            case TimerKind.GANG:
                return self._gang_timed_out(now_ns)
            case TimerKind.STATE:
                return self._state_timed_out(now_ns)
            case _:
                assert_never(kind)

    def _state_timed_out(self, now_ns: int) -> Answer:
        core = self._core
        effects: list[Effect] = []
        if core.life.state is not ApplicationState.COMPLETING:
            core.life.handle(ApplicationEvent.EXPIRE, now_ns, effects)
        elif core.asks.has_waiting:  # A swap was cancelled meanwhile: its member waits again.
            core.life.handle(ApplicationEvent.RUN, now_ns, effects)
        elif not gang.release_placeholders(core.holdings.placed, _COMPLETE_TEXT, effects):
            core.life.handle(ApplicationEvent.COMPLETE, now_ns, effects)
        return core.answer(effects)

    def _placeholders_timed_out(self, now_ns: int) -> Answer:
        core = self._core
        effects: list[Effect] = []
        if core.life.state in (ApplicationState.RUNNING, ApplicationState.COMPLETING):
            gang.release_placeholders(core.holdings.placed, gang.PLACED_TIMEOUT_TEXT, effects)
            return core.answer(effects)
        core.life.handle(self.gang_settings.timeout_event, now_ns, effects, "ResourceReservationTimeout")
        texts = (gang.PLACED_TIMEOUT_TEXT, gang.WAITING_TIMEOUT_TEXT)
        return self._give_up(effects, texts, swaps_go_on=not self.gang_settings.hard)

    def _gang_timed_out(self, now_ns: int) -> Answer:
        """End a gang that has waited for all its room as long as it may, or have it placed ask by ask."""
        core = self._core
        if not core.gang_waits:
            return core.answer()
        if self.gang_settings.wait_ns is None:
            return self._placeholders_missing(now_ns)
        effects: list[Effect] = []
        core.gang_waits = False
        if not self.gang_settings.hard:
            return core.answer()
        for _ in ("it fails", "nothing is placed, so that it has failed"):
            core.life.handle(ApplicationEvent.FAIL, now_ns, effects, "GangWaitTimeout")
        return self._give_up(effects, (gang.WAIT_TEXT, gang.WAIT_TEXT), swaps_go_on=False)

    def _placeholders_missing(self, now_ns: int) -> Answer:
        """Drop what a gang has asked for, if some of its placeholders have not come; a hard one fails."""
        core = self._core
        if gang.whole_members(self.gang_settings, [record.ask for record in core.asks.waiting()]):
            return core.answer()
        effects: list[Effect] = []
        core.gang_waits = False
        fails = (ApplicationEvent.FAIL, ApplicationEvent.FAIL)
        for event in fails if self.gang_settings.hard else (ApplicationEvent.RESUME, ApplicationEvent.RUN):
            core.life.handle(event, now_ns, effects, "ResourceReservationTimeout")
        return self._give_up(effects, (gang.INCOMPLETE_TEXT, gang.INCOMPLETE_TEXT), swaps_go_on=False)

    def _execution_timed_out(self, now_ns: int) -> Answer:
        """End all that the application has: it fails once the RM has confirmed the last of it.

        One that is Completing has finished its work: it completes at once.
        """
        core = self._core
        if core.life.state is ApplicationState.COMPLETING:
            return self._state_timed_out(now_ns)
        effects: list[Effect] = []
        core.life.handle(ApplicationEvent.FAIL, now_ns, effects, "ExecutionTimeout")
        if not core.holdings.placed:
            core.life.handle(ApplicationEvent.FAIL, now_ns, effects)
        text = "releasing {} on execution timeout of the application"
        return self._give_up(effects, (text.format("allocation"), text.format("ask")), swaps_go_on=False)

    def _give_up(self, effects: list[Effect], texts: tuple[str, str], *, swaps_go_on: bool) -> Answer:
        """Ask the RM to end all that is placed, and drop all that waits; swaps may still be completed."""
        core = self._core
        swaps = () if swaps_go_on else core.holdings.drop_swaps()
        members = {swap.ask.allocation_key for swap in swaps}
        removed = gang.give_up(
            core.asks,
            core.holdings.placed,
            core.task_groups,
            effects,
            texts=texts,
            swapping=core.holdings.swapping,
            dropped=members,
        )
        dropped = [core.reservations.remove(record.ask.allocation_key) for record in removed]
        core.pending = EMPTY
        core.execution = None
        reservations = tuple(reservation for reservation in dropped if reservation is not None)
        answer = core.answer(effects, asks=removed, reservations=reservations)
        answer.swaps = swaps
        return answer

    def stay(self, now_ns: int) -> Answer:
        """Stay for asks that are about to come: an application that is Completing gets its time anew."""
        effects: list[Effect] = []
        self._core.life.stay(now_ns, effects)
        return self._core.answer(effects)

    def fail(self, text: str, now_ns: int) -> Answer:
        """Fail the application, from any state that allows it."""
        core = self._core
        effects: list[Effect] = []
        core.life.handle(ApplicationEvent.FAIL, now_ns, effects, text)
        return core.answer(effects)

    def reject(self, text: str, now_ns: int) -> Answer:
        """Reject the application."""
        core = self._core
        effects: list[Effect] = []
        core.rejection = text
        core.finished_at_ns = now_ns
        core.life.handle(ApplicationEvent.REJECT, now_ns, effects)
        return core.answer(effects)

    def finish(self, now_ns: int) -> Answer:
        """Drop what a terminated application no longer needs; the answer has the asks it still had."""
        core = self._core
        removed = tuple(core.asks.records.values())
        for record in removed:
            core.asks.remove(record.ask.allocation_key)
        reservations = core.reservations.all()
        for reservation in reservations:
            core.reservations.remove(reservation.allocation_key)
        core.pending = EMPTY
        core.finished_at_ns = now_ns
        if core.life.state is ApplicationState.COMPLETED:
            core.life.stop_timer(TimerKind.PLACEHOLDER)
        core.execution = None
        summary = None if core.life.started_at_ns is None else application_summary(core)
        core.holdings.forget_usage()
        answer = core.answer(asks=removed, reservations=reservations)
        answer.summary = summary
        return answer

    def facts(self) -> ApplicationFacts:
        """Return what the partition keeps of the application."""
        return application_facts(self._core)

    def report(self, *, only_key: str | None = None, first_of_shapes: bool = False) -> ApplicationReport:
        """Return what an explanation needs to know of the application, all of one moment.

        Args:
            only_key: Have what is to be known of this ask or allocation alone; of all without it.
            first_of_shapes: Of asks that wait have the first one of each shape alone.
        """
        return application_report(self._core, only_key=only_key, first_of_shapes=first_of_shapes)

    def shown(self) -> ShownApplication:
        """Return what the document of the REST interface is made of, see `report`."""
        return shown_application(self._core)

    def validate(self) -> None:
        """Assert that nothing is lost or counted twice."""
        validate_application(self._core)
