"""How long an application and its allocations may run: limits of the older generation of `si.v1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..marks import writes
from ..values.messages import TerminationType
from .core import ApplicationCore
from .effects import ReleaseWanted
from .execution_limits import ExecutionLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .effects import Answer, Effect


__all__ = ["LimitSide"]


class LimitSide(ApplicationCore):
    """The time limits of one application."""

    @writes
    def limit_execution(self, limits: Sequence[tuple[str, int | None]], now_ns: int) -> Answer:
        """Limit how long what comes of asks may run: keys with nanoseconds, `None` for no limit.

        The time of an allocation that is there already counts from when it was placed. A key that is not
        known, such as that of an ask that was not taken, is passed over. Who limits asks speaks the older
        generation, so that the application's own limit holds from now on.
        """
        effects: list[Effect] = []
        for allocation_key, allowed_ns in limits:
            if allocation_key in self._asks or allocation_key in self._placed:
                self._limit(allocation_key, allowed_ns)
        self._watch_limits(effects)
        if not self._task_groups.by_name:
            self._life.limit_running(self.running_limit_ns, now_ns, effects)
        return self._answer(effects)

    def _limit(self, allocation_key: str, allowed_ns: int | None) -> None:
        if allowed_ns is None:
            if self._execution is not None:
                self._execution.forget(allocation_key)
            return
        if self._execution is None:
            self._execution = ExecutionLimits()
        self._execution.allow(allocation_key, allowed_ns)
        placed = self._placed.get(allocation_key)
        if placed is not None and not placed.is_leaving:
            self._execution.begin(allocation_key, placed.allocation.bound_at_ns)

    def _end_what_ran_too_long(self, now_ns: int) -> Answer:
        effects: list[Effect] = []
        execution = self._execution
        if execution is not None:
            execution.timer_due_ns = None
            for key in execution.take_over(now_ns):
                self._release(key, effects)
            self._watch_limits(effects)
        return self._answer(effects)

    def _release(self, allocation_key: str, effects: list[Effect]) -> None:
        """Ask the RM to end an allocation, unless it is on its way out already."""
        placed = self._placed.get(allocation_key)
        if placed is None or placed.is_leaving:
            return
        placed.released = True
        text = "releasing allocation on execution timeout"
        effects.append(ReleaseWanted(allocation_key, TerminationType.TIMEOUT, text))
