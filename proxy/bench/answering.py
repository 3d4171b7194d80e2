"""Resource managers of the bench that answer: they confirm what was ended, or the choice of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..si import si_pb2 as si
from .gauges import Gauges
from .recorder import Recorder
from .requests import RM_ID
from .workloads import BenchWorkload

_ENDED_BY_SCHEDULER: Final = frozenset({si.PLACEHOLDER_REPLACED, si.PREEMPTED_BY_SCHEDULER})


class ConfirmingRecorder(Recorder):
    """It confirms what the scheduler ends: replaced placeholders and preempted allocations."""

    expected_ends = Recorder.expected_ends | _ENDED_BY_SCHEDULER

    def __init__(
        self, clock_seconds: Callable[[], float], update_allocation: Callable[[si.AllocationRequest], None]
    ) -> None:
        super().__init__(clock_seconds)
        self._update_allocation = update_allocation

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Count, and confirm."""
        super().update_allocation(response)
        ended = [each for each in response.released if each.terminationType in _ENDED_BY_SCHEDULER]
        if ended:
            request = si.AllocationRequest(rmID=RM_ID)
            request.releases.allocationsToRelease.extend(ended)
            self._update_allocation(request)


class PredicateRecorder(Recorder):
    """It takes its time before it accepts a node for an ask."""

    def __init__(
        self, clock_seconds: Callable[[], float], sleep_seconds: Callable[[float], None], seconds: float
    ) -> None:
        super().__init__(clock_seconds)
        self._sleep_seconds = sleep_seconds
        self._seconds = seconds

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Accept, later."""
        del args
        self._sleep_seconds(self._seconds)


def recorder_for(
    workload: BenchWorkload, gauges: Gauges, update_allocation: Callable[[si.AllocationRequest], None]
) -> Recorder:
    """Return the resource manager that a workload needs.

    Args:
        workload: What it is for.
        gauges: What the time is read from.
        update_allocation: Sends a request to the scheduler.
    """
    if workload.predicate_seconds is not None:
        return PredicateRecorder(gauges.clock_seconds, gauges.sleep_seconds, workload.predicate_seconds)
    if workload.confirms:
        return ConfirmingRecorder(gauges.clock_seconds, update_allocation)
    return Recorder(gauges.clock_seconds)
