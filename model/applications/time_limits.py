"""How long an application and its allocations may run.

The limits of the older generation of `si.v1` are always enforced; walltimes are where the queue says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..values.messages import TerminationType
from .effects import Answer, Effect, ReleaseWanted, TimerKind
from .execution_limits import ExecutionLimits
from .walltimes import walltime_of

if TYPE_CHECKING:
    from .core import ApplicationCore


_TIMEOUT_TEXT: Final = "releasing allocation on execution timeout"
_WALLTIME_TEXT: Final = "releasing allocation that has run for its walltime"


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
    """End what runs longer than its walltime, or not any more, see `Application.follow_walltimes`."""
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
