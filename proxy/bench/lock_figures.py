"""What checking locks costs beside taking and releasing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lock_asks import checked_asks
from .lock_costs import added_by_chain
from .lock_load import checked_throughput
from .lock_memory import bytes_per_lock
from .lock_traces import analysis, recorded_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from .lock_figure import LockFigure

__all__ = ["measure_lock_figures"]


def measure_lock_figures(clock_seconds: Callable[[], float], *, trace_events: int) -> tuple[LockFigure, ...]:
    """Measure chains, threads, asks, recording, the analysis of a trace of so many events, and memory."""
    return (
        *added_by_chain(clock_seconds),
        *checked_throughput(clock_seconds),
        *checked_asks(clock_seconds),
        *recorded_events(clock_seconds),
        *analysis(clock_seconds, events=trace_events),
        *bytes_per_lock(),
    )
