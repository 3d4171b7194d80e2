"""The state of an application, and the steps that several of its parts share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ..resources.comparisons import is_zero
from ..resources.quantities import INT32_MIN
from ..resources.resource import EMPTY
from ..values.allocation import Allocation, Refusal
from ..values.messages import TerminationType, User
from . import gang
from .effects import Answer, ApplicationEvent, ApplicationFacts, ApplicationState, Effect, TimerKind
from .gang import TaskGroups
from .holdings import Holdings, less
from .life import ExecutionLimits, Life, watch_limits
from .pending_asks import AskRecord, PendingAsks, Reservation, Reservations


@final
class ApplicationCore:
    """The state of one application, shared by its parts alone."""

    __slots__ = (
        *("application_id", "partition", "queue_path", "user", "gang_settings", "running_limit_ns"),
        *("submitted_at_ns", "finished_at_ns", "rejection", "backoff_until_ns", "refusals"),
        *("life", "asks", "pending", "task_groups", "reservations", "holdings", "execution", "gang_waits"),
    )

    def __init__(
        self,
        application_id: str,
        *,
        partition: str,
        queue_path: str,
        user: User,
        submitted_at_ns: int,
        gang_settings: gang.GangSettings,
        running_limit_ns: int | None,
    ) -> None:
        self.application_id = application_id
        self.partition = partition
        self.queue_path = queue_path
        self.user = user
        self.gang_settings = gang_settings
        self.running_limit_ns = running_limit_ns
        self.submitted_at_ns = submitted_at_ns
        self.finished_at_ns: int | None = None
        self.rejection = ""
        self.backoff_until_ns: int | None = None
        self.refusals: tuple[Refusal, ...] = ()
        self.life = Life()
        self.asks = PendingAsks()
        self.pending = EMPTY
        """The sum of the asks that wait."""
        self.task_groups = TaskGroups()
        self.reservations = Reservations()
        self.holdings = Holdings()
        self.gang_waits = gang_settings.whole
        """The gang is to be placed whole, and nothing of it has been placed yet."""
        self.execution: ExecutionLimits | None = None
        """Made with the first limit: without one it would only cost memory."""

    def answer(
        self,
        effects: list[Effect] | tuple[()] = (),
        *,
        asks: tuple[AskRecord, ...] = (),
        allocations: tuple[Allocation, ...] = (),
        reservations: tuple[Reservation, ...] = (),
    ) -> Answer:
        """Return the answer to a change."""
        answer = Answer(application_facts(self), tuple(effects))
        if asks:
            answer.asks = asks
        if allocations:
            answer.allocations = allocations
        if reservations:
            answer.reservations = reservations
        return answer

    @property
    def has_nothing_real(self) -> bool:
        """Whether nothing waits, and nothing but placeholders is placed."""
        return not self.asks.has_waiting and is_zero(self.holdings.allocated)

    @property
    def has_placeholders(self) -> bool:
        """Whether placeholders are placed; each allocation is visited."""
        return any(placed.allocation.ask.placeholder for placed in self.holdings.placed.values())

    # ----------------------------------------------------------------------------------------- asks

    def place_ask(self, record: AskRecord) -> tuple[Reservation, ...]:
        """Note that an ask waits no longer; return the reservation that it held, if it did."""
        self.asks.place(record)
        self.pending = less(self.pending, record.ask.resource)
        if not self.reservations.by_key:
            return ()
        reservation = self.reservations.remove(record.ask.allocation_key)
        return () if reservation is None else (reservation,)

    def forget_ended(self, allocation_key: str) -> None:
        """Drop an ask, and its limit, whose allocation has ended: its key may be used again."""
        if self.asks.remove(allocation_key) is not None and self.execution is not None:
            self.execution.forget(allocation_key)

    def drop_ended(self, allocation_key: str) -> AskRecord | None:
        """Drop the ask of an allocation that has ended, and return it, where nothing follows from that.

        Where nothing real is left the application may be complete: then the ask is kept.
        """
        record = self.asks.get(allocation_key)
        if record is None or not record.placed or self.has_nothing_real:
            return None
        self.forget_ended(allocation_key)
        return record

    def drop_last(self, allocation_key: str) -> AskRecord | None:
        """Drop the ask of the last allocation, which has ended, where the application is Completing by that.

        Nothing follows from it there, so that it needs no separate answer.
        """
        record = self.asks.get(allocation_key)
        if record is None or not record.placed or self.life.state is not ApplicationState.COMPLETING:
            return None
        if self.reservations.by_key:
            return None
        self.forget_ended(allocation_key)
        return record

    # ---------------------------------------------------------------------------------- allocations

    def add_allocation(
        self,
        allocation: Allocation,
        now_ns: int,
        effects: list[Effect],
        *,
        replaces: bool = False,
        of_gang: bool = False,
    ) -> None:
        """Count an allocation, and have the application run.

        Args:
            allocation: The allocation.
            now_ns: The time.
            effects: Its effects are added to them.
            replaces: It has replaced a placeholder.
            of_gang: It is a member of a gang without having done so.
        """
        ask = allocation.ask
        self.gang_waits = False
        if ask.placeholder:
            self.holdings.add(allocation)
            self._placeholder_added(now_ns, effects)
        else:
            first_replacement = replaces and is_zero(self.holdings.allocated)
            if not first_replacement or self.life.state is ApplicationState.COMPLETING:
                self.life.handle(ApplicationEvent.RUN, now_ns, effects)
            self.holdings.add(allocation, of_gang=of_gang)
        if self.execution is not None:
            self.execution.begin(ask.allocation_key, allocation.bound_at_ns)
            watch_limits(self, effects)

    def add_running(self, allocations: Sequence[Allocation]) -> None:
        """Count more allocations, none of them a placeholder, of an application that runs by now.

        No limit is on them: those of asks that have ended were forgotten, and others come later.
        """
        self.holdings.add_real(allocations)

    def _placeholder_added(self, now_ns: int, effects: list[Effect]) -> None:
        life = self.life
        if life.state is ApplicationState.ACCEPTED and not life.has_timer(TimerKind.PLACEHOLDER):
            due_ns = self.gang_settings.placeholder_due_ns(now_ns)
            life.start_timer(TimerKind.PLACEHOLDER, due_ns, effects)
        if self.gang_settings.is_complete(self.holdings.placeholder_allocated):
            life.handle(ApplicationEvent.RUN, now_ns, effects)

    def end_allocation(
        self,
        allocation_key: str,
        termination: TerminationType,
        now_ns: int,
        effects: list[Effect],
        *,
        fires: bool = True,
    ) -> tuple[Allocation, bool]:
        """Count an allocation no longer; return it, and whether nothing is left."""
        allocation = self.holdings.end(allocation_key, now_ns)
        if self.execution is not None:
            self.execution.end(allocation_key)
        if allocation.ask.placeholder:
            record = self.asks.get(allocation_key)
            if record is None or record.placed:  # Otherwise it waits again.
                gang.count_end(self.task_groups, allocation.ask, termination)
            event = self._placeholder_ended()
        else:
            event = self._real_ended()
        if event is not None and fires:
            self.life.handle(event, now_ns, effects)
        ends = event in (ApplicationEvent.COMPLETE, ApplicationEvent.FAIL)
        return allocation, ends and not self.holdings.placed

    def _real_ended(self) -> ApplicationEvent | None:
        if self.life.state is ApplicationState.FAILING:
            return None if self.holdings.placed else ApplicationEvent.FAIL
        return ApplicationEvent.COMPLETE if self.has_nothing_real else None

    def _placeholder_ended(self) -> ApplicationEvent | None:
        if not is_zero(self.holdings.placeholder_allocated):
            return None
        life = self.life
        life.stop_timer(TimerKind.PLACEHOLDER)
        if life.state is ApplicationState.FAILING:
            # The remaining ones are real and ending: an application that is Failed uses nothing.
            return None if self.holdings.placed else ApplicationEvent.FAIL
        if life.state is ApplicationState.RESUMING:
            return ApplicationEvent.RUN
        if life.state is ApplicationState.COMPLETING and not life.has_timer(TimerKind.STATE):
            return ApplicationEvent.RUN if self.asks.has_waiting else ApplicationEvent.COMPLETE
        return ApplicationEvent.COMPLETE if self.has_nothing_real else None


def application_facts(core: ApplicationCore) -> ApplicationFacts:
    """Return what the partition keeps of an application."""
    group = core.asks.first_group()
    first = None
    priority = INT32_MIN
    if group is not None:
        priority = -group.order[0]
        alone = not (group.shape.required_node or core.gang_waits)
        if alone and not core.task_groups.makes_wait(group.shape):
            record = group.head()
            first = None if record is None else record.ask
    holdings = core.holdings
    return ApplicationFacts(
        core.life.state,
        core.pending,
        holdings.allocated,
        holdings.placeholder_allocated,
        priority,
        core.submitted_at_ns,
        len(core.reservations.by_key),
        first,
        core.gang_waits,
    )
