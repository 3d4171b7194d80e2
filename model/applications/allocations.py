"""What an application has: asks that are placed, and allocations that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..marks import reads, writes
from ..resources.combinations import prune
from ..resources.resource import EMPTY, add, subtract
from ..values.messages import TerminationType
from . import gang
from .core import ApplicationCore
from .effects import Answer, TimerKind
from .state import ACTIVE_STATES, ApplicationEvent, ApplicationState

if TYPE_CHECKING:
    from ..resources.resource import Resource
    from ..values.allocation import Allocation
    from .effects import Effect
    from .placed import Placed


__all__ = ["AllocationSide"]


class AllocationSide(ApplicationCore):
    """The allocations of one application."""

    @writes
    def try_place(self, allocation: Allocation, now_ns: int) -> Answer | None:
        """Make an allocation of a waiting ask; `None` if the ask is gone or placed.

        A reservation that the ask held anywhere is dropped, and is in the answer.
        """
        record = self._asks.get(allocation.ask.allocation_key)
        if record is None or record.placed or self._life.state not in ACTIVE_STATES:
            return None
        effects: list[Effect] = []
        self._asks.place(record)
        self._take_pending(record.ask.resource)
        reservation = self._reservations.remove(allocation.ask.allocation_key)
        self._add_allocation(allocation, now_ns, effects)
        return self._answer(effects, reservations=() if reservation is None else (reservation,))

    @writes
    def recover(self, allocation: Allocation, now_ns: int) -> Answer:
        """Take over an allocation that the RM says exists; its key must be unknown."""
        effects: list[Effect] = []
        ask = allocation.ask
        self._forget_ended(ask.allocation_key)
        self._asks.add(ask, placed=True)
        self._submitted_at_ns = min(self._submitted_at_ns, ask.created_at_ns)
        if ask.placeholder:
            self._task_groups.count_placeholder(ask)
        if self._life.state is ApplicationState.NEW:
            self._life.handle(ApplicationEvent.RUN, now_ns, effects)
        self._add_allocation(allocation, now_ns, effects)
        return self._answer(effects)

    @writes
    def remove_allocation(
        self,
        allocation_key: str,
        termination: TerminationType,
        now_ns: int,
    ) -> Answer | None:
        """End an allocation; `None` if there is no such allocation."""
        if allocation_key not in self._placed:
            return None
        effects: list[Effect] = []
        preempted = self._placed[allocation_key].preempted
        allocation, ended = self._end_allocation(allocation_key, termination, now_ns, effects)
        if termination is TerminationType.TIMEOUT and self._execution is not None:
            self._forget_limited(allocation_key)
        answer = self._answer(effects, allocations=(allocation,))
        answer.ended = ended
        if preempted:
            answer.preempted = (allocation,)
        return answer

    def _forget_limited(self, allocation_key: str) -> None:
        """Forget an ask whose allocation has run as long as it may: its key is free again.

        The ask of a placeholder that was not limited is kept, as recorded.
        """
        assert self._execution is not None, "the caller has looked"
        if self._execution.is_limited(allocation_key):
            self._execution.forget(allocation_key)
            self._asks.remove(allocation_key)

    @writes
    def remove_all_allocations(self, now_ns: int, *, leaving: bool) -> Answer:
        """End every allocation. `leaving`: the RM takes the application away, so no timer goes on.

        Placeholders count as timed out, also those that were to be replaced: nobody waits for them any more.
        """
        effects: list[Effect] = []
        removed = tuple(placed.allocation for placed in self._placed.values())
        victims = tuple(placed.allocation for placed in self._placed.values() if placed.preempted)
        swaps = self._drop_swaps()
        for placed in self._placed.values():
            self._track(placed, now_ns)
            if placed.allocation.ask.placeholder:
                gang.count_end(self._task_groups, placed.allocation.ask, TerminationType.TIMEOUT)
        self._placed.clear()
        if self._execution is not None:
            self._execution.end_all()
        self._allocated = self._placeholder_allocated = EMPTY
        event = self._everything_ended(leaving=leaving)
        if event is not None:
            self._life.handle(event, now_ns, effects)
        self._life.stop_timer(TimerKind.PLACEHOLDER)
        if self._life.state is ApplicationState.COMPLETING:
            self._life.linger(now_ns, effects)
        answer = self._answer(effects, allocations=removed)
        answer.preempted = victims
        answer.swaps = swaps
        answer.ended = leaving or event in (ApplicationEvent.COMPLETE, ApplicationEvent.FAIL)
        return answer

    def _everything_ended(self, *, leaving: bool) -> ApplicationEvent | None:
        """Return what comes of the end of all allocations at once: the same as if they end one by one."""
        if not leaving and self._life.state is ApplicationState.FAILING:
            return ApplicationEvent.FAIL
        if not leaving and self._life.state is ApplicationState.RESUMING:
            return ApplicationEvent.RUN
        return None if self._asks.has_waiting else ApplicationEvent.COMPLETE

    @writes
    def resize_allocation(self, allocation_key: str, resource: Resource) -> Answer | None:
        """Give an allocation another size; the answer has it as it is now."""
        placed = self._placed.get(allocation_key)
        if placed is None:
            return None
        old = placed.allocation.ask.resource
        placed.allocation = placed.allocation.resized(resource)
        if placed.allocation.ask.placeholder:
            self._placeholder_allocated = prune(add(subtract(self._placeholder_allocated, old), resource))
        else:
            self._allocated = prune(add(subtract(self._allocated, old), resource))
        record = self._asks.get(allocation_key)
        if record is not None:
            self._asks.resize(record, resource)
        return self._answer((), allocations=(placed.allocation,))

    @writes
    def mark_preempted(self, allocation_key: str) -> bool:
        """Choose an allocation as a victim; `False` if it is gone, on its way out, or chosen already."""
        placed = self._placed.get(allocation_key)
        if placed is None or placed.is_leaving:
            return False
        placed.preempted = True
        return True

    @writes
    def unmark_preempted(self, allocation_key: str) -> None:
        """Take a choice back."""
        placed = self._placed.get(allocation_key)
        if placed is not None:
            placed.preempted = False

    @reads
    def is_preempted(self, allocation_key: str) -> bool:
        """Tell whether an allocation has been chosen as a victim."""
        placed = self._placed.get(allocation_key)
        return placed is not None and placed.preempted

    @reads
    def preempted_keys(self) -> tuple[str, ...]:
        """Return the keys of the allocations that have been chosen as victims."""
        return tuple(key for key, placed in self._placed.items() if placed.preempted)

    @reads
    def allocation(self, allocation_key: str) -> Allocation | None:
        """Return an allocation by its key."""
        placed = self._placed.get(allocation_key)
        return None if placed is None else placed.allocation

    @reads
    def allocations(self) -> tuple[Placed, ...]:
        """Return copies of the allocations with their marks."""
        return tuple(placed.copy() for placed in self._placed.values())
