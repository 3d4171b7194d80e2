"""What all sides of an application share: its state, and the steps that several of them take.

An application is one entity with one owner. Its methods stand in files by subject: its asks, its
allocations, its swaps, and its life in `licorne.model.applications.application`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..resources.combinations import component_wise_max
from ..resources.comparisons import is_zero
from ..resources.resource import EMPTY, add, fits, take_away
from ..resources.resource_seconds import TrackedResource
from . import gang
from .effects import Answer, TimerKind
from .life import Life
from .pending_asks import PendingAsks
from .placed import Placed
from .reservations import Reservation, Reservations
from .state import ApplicationEvent, ApplicationState
from .task_groups import TaskGroups
from .views import application_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..resources.resource import Resource
    from ..values.allocation import Allocation
    from ..values.messages import TerminationType
    from ..values.refusals import Refusal
    from ..values.users import User
    from .effects import Effect
    from .execution_limits import ExecutionLimits
    from .pending_asks import AskRecord


__all__ = ["ApplicationCore", "less"]

_SECOND_NS: Final = 1_000_000_000


def less(total: Resource, part: Resource) -> Resource:
    """Return a sum without one of its parts."""
    left = take_away(total, part)
    assert left is not None, f"{part!r} is no part of {total!r}: please report"
    return left


class ApplicationCore:
    """The state of one application."""

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
        self.queue_path = queue_path
        self.user = user
        self.tags = tags
        self.gang_settings = gang_settings
        self.running_limit_ns = running_limit_ns
        self._submitted_at_ns = submitted_at_ns
        self._finished_at_ns: int | None = None
        self._rejection = ""
        self._life = Life()
        self._asks = PendingAsks()
        self._placed: dict[str, Placed] = {}
        self._swapping: dict[str, str] = {}
        """Key of the real allocation -> key of the placeholder that it is to replace."""
        self._task_groups = TaskGroups()
        self._reservations = Reservations()
        self._pending = EMPTY
        self._allocated = EMPTY
        self._placeholder_allocated = EMPTY
        self._most_used = EMPTY
        self._used = TrackedResource()
        self._used_preempted = TrackedResource()
        self._used_placeholder = TrackedResource()
        self._backoff_until_ns: int | None = None
        self._refusals: tuple[Refusal, ...] = ()
        self._execution: ExecutionLimits | None = None
        """Made with the first limit: who has none does not pay for it."""

    def _answer(
        self,
        effects: list[Effect] | tuple[()],
        *,
        asks: tuple[AskRecord, ...] = (),
        allocations: tuple[Allocation, ...] = (),
        reservations: tuple[Reservation, ...] = (),
    ) -> Answer:
        answer = Answer(application_facts(self), tuple(effects))
        if asks:
            answer.asks = asks
        if allocations:
            answer.allocations = allocations
        if reservations:
            answer.reservations = reservations
        return answer

    def _has_nothing_real(self) -> bool:
        return not self._asks.has_waiting and is_zero(self._allocated)

    def _add_allocation(
        self,
        allocation: Allocation,
        now_ns: int,
        effects: list[Effect],
        *,
        replaces: bool = False,
    ) -> None:
        ask = allocation.ask
        if ask.placeholder:
            self._add_placeholder(allocation, now_ns, effects)
        else:
            first_replacement = replaces and is_zero(self._allocated)
            if not first_replacement or self._life.state is ApplicationState.COMPLETING:
                self._life.handle(ApplicationEvent.RUN, now_ns, effects)
            before = self._allocated
            self._allocated = add(before, ask.resource)
            self._note_most(before, self._allocated)
        self._placed[ask.allocation_key] = Placed(allocation)
        if self._execution is not None:
            self._execution.begin(ask.allocation_key, allocation.bound_at_ns)
            self._watch_limits(effects)

    def _watch_limits(self, effects: list[Effect]) -> None:
        """Have a timer that is due when the next allocation has run as long as it may."""
        execution = self._execution
        due_ns = None if execution is None else execution.first_due_ns()
        if execution is None or due_ns is None:
            return
        if execution.timer_due_ns is None or due_ns < execution.timer_due_ns:
            execution.timer_due_ns = due_ns
            self._life.start_timer(TimerKind.ALLOCATION, due_ns, effects)

    def _add_placeholder(self, allocation: Allocation, now_ns: int, effects: list[Effect]) -> None:
        life = self._life
        before = self._placeholder_allocated
        total = add(before, allocation.ask.resource)
        self._placeholder_allocated = total
        if life.state is ApplicationState.ACCEPTED and not life.has_timer(TimerKind.PLACEHOLDER):
            due_ns = self.gang_settings.placeholder_due_ns(now_ns)
            life.start_timer(TimerKind.PLACEHOLDER, due_ns, effects)
        if self.gang_settings.is_complete(total):
            life.handle(ApplicationEvent.RUN, now_ns, effects)
        self._note_most(before, total)

    def _forget_ended(self, allocation_key: str) -> None:
        """Forget an ask, and its limit, of which an allocation came that has ended: its key comes anew."""
        if self._asks.remove(allocation_key) is not None and self._execution is not None:
            self._execution.forget(allocation_key)

    def _add_pending(self, resource: Resource) -> None:
        self._pending = add(self._pending, resource)

    def _take_pending(self, resource: Resource) -> None:
        self._pending = less(self._pending, resource)

    def _note_most(self, before: Resource, used: Resource) -> None:
        most = self._most_used
        # As long as nothing has ended, what is used is the most there was, and grows.
        grows = most is before or fits(used, most)
        self._most_used = used if grows else component_wise_max(most, used)

    def _end_allocation(
        self,
        allocation_key: str,
        termination: TerminationType,
        now_ns: int,
        effects: list[Effect],
        *,
        fires: bool = True,
    ) -> tuple[Allocation, bool]:
        placed = self._placed.pop(allocation_key)
        if self._execution is not None:
            self._execution.end(allocation_key)
        allocation = placed.allocation
        self._track(placed, now_ns)
        if allocation.ask.placeholder:
            event = self._placeholder_ended(allocation, termination)
        else:
            self._allocated = less(self._allocated, allocation.ask.resource)
            event = self._real_ended()
        if event is not None and fires:
            self._life.handle(event, now_ns, effects)
        return allocation, event in (ApplicationEvent.COMPLETE, ApplicationEvent.FAIL) and not self._placed

    def _real_ended(self) -> ApplicationEvent | None:
        if self._life.state is ApplicationState.FAILING:
            return None if self._placed else ApplicationEvent.FAIL
        return ApplicationEvent.COMPLETE if self._has_nothing_real() else None

    def _placeholder_ended(
        self, allocation: Allocation, termination: TerminationType
    ) -> ApplicationEvent | None:
        self._placeholder_allocated = less(self._placeholder_allocated, allocation.ask.resource)
        gang.count_end(self._task_groups, allocation.ask, termination)
        if not is_zero(self._placeholder_allocated):
            return None
        life = self._life
        life.stop_timer(TimerKind.PLACEHOLDER)
        if life.state is ApplicationState.FAILING:
            # What is left is real and on its way out: an application that is Failed uses nothing.
            return None if self._placed else ApplicationEvent.FAIL
        if life.state is ApplicationState.RESUMING:
            return ApplicationEvent.RUN
        if life.state is ApplicationState.COMPLETING and not life.has_timer(TimerKind.STATE):
            return ApplicationEvent.RUN if self._asks.has_waiting else ApplicationEvent.COMPLETE
        return ApplicationEvent.COMPLETE if self._has_nothing_real() else None

    def _track(self, placed: Placed, now_ns: int) -> None:
        allocation = placed.allocation
        if placed.preempted:
            tracked = self._used_preempted
        elif allocation.ask.placeholder:
            tracked = self._used_placeholder
        else:
            tracked = self._used
        seconds = max(0, now_ns - allocation.bound_at_ns) // _SECOND_NS
        tracked.aggregate(allocation.instance_type, allocation.ask.resource, seconds)

    def _drop_swaps(self) -> tuple[Allocation, ...]:
        """Give up all swaps that are under way; return the allocations that hold room for them."""
        swaps = []
        for placeholder_key in self._swapping.values():
            placed = self._placed[placeholder_key]
            assert placed.swap is not None, f"the swap of {placeholder_key} is lost: please report"
            swaps.append(placed.swap)
            placed.swap = None
        self._swapping.clear()
        return tuple(swaps)
