"""The allocations of an application: placing asks, ending allocations, and the swaps of a gang."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from ..marks import Marks
from ..resources.resource import Resource, add
from ..values.allocation import Allocation
from ..values.messages import TerminationType
from . import gang
from .core import ApplicationCore
from .effects import ACTIVE_STATES, Answer, ApplicationEvent, ApplicationState, Effect, TimerKind
from .gang import SwapOffer, SwapWalk
from .holdings import HeldAllocation
from .pending_asks import Reservation


@final
class ApplicationAllocations:
    """The allocations of one application."""

    __slots__ = ("_core",)

    MARKS: Final = Marks(
        reads=("is_preempted", "preempted_keys", "get", "all", "checkpoint_ns"),
        writes=(
            "try_place",
            "try_place_all",
            "recover",
            "remove",
            "remove_all",
            "leave",
            "put_back",
            "resize",
            "mark_released",
            "mark_preempted",
            "unmark_preempted",
            "note_checkpoint",
        ),
    )

    def __init__(self, core: ApplicationCore) -> None:
        self._core = core

    # ---------------------------------------------------------------------------- they come and end

    def try_place(self, allocation: Allocation, now_ns: int) -> Answer | None:
        """Make an allocation of a waiting ask; `None` if the ask is gone or placed.

        A reservation that the ask held anywhere is dropped, and is in the answer.
        """
        core = self._core
        record = core.asks.get(allocation.ask.allocation_key)
        if record is None or record.placed or core.life.state not in ACTIVE_STATES:
            return None
        effects: list[Effect] = []
        reservations = core.place_ask(record)
        core.add_allocation(allocation, now_ns, effects)
        answer = core.answer(effects, reservations=reservations)
        if record.failed_checks:
            answer.failed_checks, record.failed_checks = record.failed_checks, 0
        return answer

    def try_place_all(self, allocations: Sequence[Allocation], now_ns: int) -> Answer | None:
        """Make allocations of waiting asks, of all or of none; `None` if any is gone or placed."""
        core = self._core
        records = [core.asks.get(allocation.ask.allocation_key) for allocation in allocations]
        if core.life.state not in ACTIVE_STATES or any(record is None or record.placed for record in records):
            return None
        effects: list[Effect] = []
        reservations: list[Reservation] = []
        for record, allocation in zip(records, allocations, strict=True):
            assert record is not None, "it is checked above"
            reservations += core.place_ask(record)
            core.add_allocation(allocation, now_ns, effects, of_gang=True)
        return core.answer(effects, reservations=tuple(reservations))

    def recover(self, allocations: Sequence[Allocation], now_ns: int) -> Answer:
        """Take over allocations that the RM reports as existing; their keys must be unknown.

        Several never include a placeholder, and the first of them makes the application run.
        """
        core = self._core
        effects: list[Effect] = []
        for allocation in allocations:
            ask = allocation.ask
            assert not ask.placeholder or len(allocations) == 1, f"{ask!r} is not alone: please report"
            core.forget_ended(ask.allocation_key)
            core.asks.add(ask, placed=True)
            core.submitted_at_ns = min(core.submitted_at_ns, ask.created_at_ns)
            if ask.placeholder:
                core.task_groups.count_placeholder(ask)
        if core.life.state is ApplicationState.NEW:
            core.life.handle(ApplicationEvent.RUN, now_ns, effects)
        core.add_allocation(allocations[0], now_ns, effects)
        if len(allocations) > 1:
            core.add_running(allocations[1:])
        if core.gang_settings.is_announced:
            for allocation in allocations:
                if core.gang_settings.size or allocation.ask.task_group_name:
                    core.holdings.note_member(allocation.ask.allocation_key)
        return core.answer(effects)

    def remove(
        self, allocation_key: str, termination: TerminationType, now_ns: int, *, with_ask: bool = False
    ) -> Answer | None:
        """End an allocation; `None` if it does not exist.

        With `with_ask` its ask is dropped as well where nothing follows from that, or where the application
        begins to complete; then the answer has it.
        """
        core = self._core
        placed = core.holdings.placed.get(allocation_key)
        if placed is None:
            return None
        effects: list[Effect] = []
        allocation, ended = core.end_allocation(allocation_key, termination, now_ns, effects)
        limits = core.execution if termination is TerminationType.TIMEOUT else None
        if limits is not None and limits.is_limited(allocation_key):
            # It has run as long as it may: its key is free again. The ask of a placeholder without a limit is
            # kept, as recorded.
            limits.forget(allocation_key)
            core.asks.remove(allocation_key)
        dropped = core.drop_ended(allocation_key) if with_ask and not effects else None
        last_ask = core.drop_last(allocation_key) if with_ask and effects else None
        answer = core.answer(effects, asks=() if dropped is None else (dropped,), allocations=(allocation,))
        if last_ask is not None:
            answer.last_ask = last_ask
        answer.ended = ended
        if placed.preempted:
            answer.preempted = (allocation,)
        return answer

    def remove_all(self, now_ns: int, *, leaving: bool) -> Answer:
        """End every allocation. `leaving`: the RM removes the application, so that no timer runs on.

        Placeholders count as timed out, also those that were to be replaced: no member waits for them any
        more.
        """
        core = self._core
        life = core.life
        effects: list[Effect] = []
        swaps = core.holdings.drop_swaps()
        placed = tuple(core.holdings.placed.values())
        removed = tuple(entry.allocation for entry in placed)
        core.holdings.end_all(now_ns)
        for allocation in removed:
            if allocation.ask.placeholder:
                gang.count_end(core.task_groups, allocation.ask, TerminationType.TIMEOUT)
        if core.execution is not None:
            core.execution.end_all()
        event = self._everything_ended(leaving=leaving)
        if event is not None:
            life.handle(event, now_ns, effects)
        life.stop_timer(TimerKind.PLACEHOLDER)
        if life.state is ApplicationState.COMPLETING:
            life.linger(now_ns, effects)
        answer = core.answer(effects, allocations=removed)
        answer.preempted = tuple(entry.allocation for entry in placed if entry.preempted)
        answer.swaps = swaps
        answer.ended = leaving or event in (ApplicationEvent.COMPLETE, ApplicationEvent.FAIL)
        return answer

    def leave(self, now_ns: int) -> Answer | None:
        """End all allocations of an application that the RM removes; `None` if it has asks: they go first."""
        return None if self._core.asks.records else self.remove_all(now_ns, leaving=True)

    def put_back(self, allocation_key: str, now_ns: int) -> Answer | None:
        """Have the ask of an allocation wait again, in its old place; `None` if it has to end instead.

        It ends if the allocation does not exist, if it is ending already, or if the application is failing.
        """
        core = self._core
        placed = core.holdings.placed.get(allocation_key)
        record = core.asks.get(allocation_key)
        if placed is None or record is None or placed.is_leaving or placed.swap is not None:
            return None
        if core.life.state is ApplicationState.FAILING:
            return None
        core.asks.displace(record)
        core.pending = add(core.pending, record.ask.resource)
        effects: list[Effect] = []
        allocation, _ = core.end_allocation(
            allocation_key, TerminationType.SCHEDULING_FAILED_ON_RM, now_ns, effects
        )
        return core.answer(effects, asks=(record,), allocations=(allocation,))

    def _everything_ended(self, *, leaving: bool) -> ApplicationEvent | None:
        """Return the event that the end of all allocations is: the same as if they end one by one."""
        state = self._core.life.state
        if not leaving and state is ApplicationState.FAILING:
            return ApplicationEvent.FAIL
        if not leaving and state is ApplicationState.RESUMING:
            return ApplicationEvent.RUN
        return None if self._core.asks.has_waiting else ApplicationEvent.COMPLETE

    def resize(self, allocation_key: str, resource: Resource) -> Answer | None:
        """Give an allocation another size; the answer has it with that size."""
        core = self._core
        placed = core.holdings.placed.get(allocation_key)
        if placed is None:
            return None
        core.holdings.resize(placed, resource)
        record = core.asks.get(allocation_key)
        if record is not None:
            core.asks.resize(record, resource)
        return core.answer(allocations=(placed.allocation,))

    # ----------------------------------------------------------------------------------- their marks

    def mark_released(self, allocation_key: str) -> bool:
        """Note that the RM is asked to end an allocation; `False` if that is under way or it is a victim."""
        return self._core.holdings.release(allocation_key)

    def mark_preempted(self, allocation_key: str) -> bool:
        """Choose an allocation as a victim; `False` if it is gone, ending, or chosen already."""
        placed = self._core.holdings.placed.get(allocation_key)
        if placed is None or placed.is_leaving:
            return False
        placed.preempted = True
        return True

    def unmark_preempted(self, allocation_key: str) -> None:
        """Take a choice back."""
        placed = self._core.holdings.placed.get(allocation_key)
        if placed is not None:
            placed.preempted = False

    def note_checkpoint(self, allocation_key: str, time_ns: int) -> None:
        """Note when the work of an allocation was saved; the latest such time counts."""
        placed = self._core.holdings.placed.get(allocation_key)
        if placed is not None:
            placed.checkpoint_ns = max(time_ns, placed.checkpoint_ns or time_ns)

    def checkpoint_ns(self, allocation_key: str) -> int | None:
        """Return when the work of an allocation was saved last, `None` if that was never reported."""
        placed = self._core.holdings.placed.get(allocation_key)
        return None if placed is None else placed.checkpoint_ns

    def is_preempted(self, allocation_key: str) -> bool:
        """Return whether an allocation has been chosen as a victim."""
        placed = self._core.holdings.placed.get(allocation_key)
        return placed is not None and placed.preempted

    def preempted_keys(self) -> tuple[str, ...]:
        """Return the keys of the allocations that have been chosen as victims."""
        return tuple(key for key, placed in self._core.holdings.placed.items() if placed.preempted)

    def get(self, allocation_key: str) -> Allocation | None:
        """Return an allocation by its key."""
        placed = self._core.holdings.placed.get(allocation_key)
        return None if placed is None else placed.allocation

    def all(self) -> tuple[HeldAllocation, ...]:
        """Return copies of the allocations with their marks."""
        return tuple(placed.copy() for placed in self._core.holdings.placed.values())


@final
class ApplicationSwaps:
    """The swaps of one application."""

    __slots__ = ("_core",)

    MARKS: Final = Marks(reads=("of", "onto"), writes=("next", "begin", "end", "cancel"))

    def __init__(self, core: ApplicationCore) -> None:
        self._core = core

    def next(self, walk: SwapWalk) -> SwapOffer | None:
        """Return the next pair of a waiting member and a placeholder that it may replace."""
        return gang.next_swap(walk, self._core.asks, self._core.holdings.placeholders)

    def begin(self, allocation: Allocation, placeholder_key: str) -> Answer | None:
        """Begin a swap: the allocation replaces the placeholder once the RM has confirmed its end."""
        core = self._core
        record = core.asks.get(allocation.ask.allocation_key)
        placed = core.holdings.placed.get(placeholder_key)
        if record is None or record.placed or placed is None or placed.is_leaving:
            return None
        reservations = core.place_ask(record)
        core.holdings.begin_swap(allocation, placed)
        return core.answer(reservations=reservations)

    def of(self, placeholder_key: str) -> Allocation | None:
        """Return the allocation that is to replace a placeholder, if a swap is under way."""
        placed = self._core.holdings.placed.get(placeholder_key)
        return None if placed is None else placed.swap

    def onto(self, allocation_key: str) -> str:
        """Return the placeholder that the real allocation with this key is to replace, or the empty text."""
        return self._core.holdings.swapping.get(allocation_key, "")

    def end(self, placeholder_key: str, termination: TerminationType, now_ns: int) -> Answer | None:
        """Complete a swap: the placeholder ends, its real allocation counts.

        The answer's allocations are the placeholder and the real one; `None` if no swap is under way.
        """
        core = self._core
        swap = core.holdings.take_swap(placeholder_key)
        if swap is None:
            return None
        effects: list[Effect] = []
        ending = core.life.state in (ApplicationState.COMPLETING, ApplicationState.FAILING)
        # One that is ending would have ended before the real allocation counts.
        placeholder, _ = core.end_allocation(placeholder_key, termination, now_ns, effects, fires=not ending)
        real = swap.in_place_of(placeholder, now_ns)
        core.add_allocation(real, now_ns, effects, replaces=True)
        return core.answer(effects, allocations=(placeholder, real))

    def cancel(self, placeholder_key: str) -> Allocation | None:
        """Cancel a swap; return the allocation that was to replace the placeholder."""
        return self._core.holdings.take_swap(placeholder_key)
