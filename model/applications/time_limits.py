"""How long an application and its allocations may run: limits of the older generation of `si.v1`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..values.messages import TerminationType
from .effects import Answer, Effect, ReleaseWanted, TimerKind
from .execution_limits import ExecutionLimits

if TYPE_CHECKING:
    from .core import ApplicationCore


__all__ = ["end_overdue_allocations", "limit_execution", "watch_limits"]


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
        if core.execution is not None:
            core.execution.forget(allocation_key)
        return
    if core.execution is None:
        core.execution = ExecutionLimits()
    core.execution.allow(allocation_key, allowed_ns)
    placed = core.holdings.placed.get(allocation_key)
    if placed is not None and not placed.is_leaving:
        core.execution.begin(allocation_key, placed.allocation.bound_at_ns)


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
                text = "releasing allocation on execution timeout"
                effects.append(ReleaseWanted(key, TerminationType.TIMEOUT, text))
        watch_limits(core, effects)
    return core.answer(effects)
