"""The event queue of a simulated resource manager: submissions, known from the start, and ends."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from .workloads.workload import SimulatedApplication, SimulatedTask, Workload

__all__ = ["EventQueue"]


@final
class EventQueue:
    """The events of one workload; equal times keep the order of the workload, and of the placements."""

    def __init__(self, workload: Workload) -> None:
        self._submissions = _submissions(workload)
        self._submissions_done = 0
        self._ends: list[tuple[int, int, str]] = []
        self._serial = count()

    def next_ns(self) -> int | None:
        """Return when the next event is due, `None` if there is none."""
        moments_ns = [self._ends[0][0]] if self._ends else []
        if self._submissions_done < len(self._submissions):
            moments_ns.append(self._submissions[self._submissions_done][0])
        return min(moments_ns, default=None)

    def add_end(self, key: str, at_ns: int) -> None:
        """Note when the work with that key ends."""
        heapq.heappush(self._ends, (at_ns, next(self._serial), key))

    def pop_end(self, now_ns: int) -> str | None:
        """Take and return the key of work that ends now or should have ended, `None` if there is none."""
        if not self._ends or self._ends[0][0] > now_ns:
            return None
        return heapq.heappop(self._ends)[2]

    def pop_submission(self, now_ns: int) -> tuple[SimulatedApplication, SimulatedTask | None] | None:
        """Take and return what is to be submitted now: an application, or a task of one."""
        if self._submissions_done == len(self._submissions):
            return None
        at_ns, application, task = self._submissions[self._submissions_done]
        if at_ns > now_ns:
            return None
        self._submissions_done += 1
        return application, task


def _submissions(workload: Workload) -> list[tuple[int, SimulatedApplication, SimulatedTask | None]]:
    """Return all submissions in the order of their times, an application before its tasks."""
    submissions: list[tuple[int, SimulatedApplication, SimulatedTask | None]] = []
    for application in workload.applications:
        submissions.append((application.submit_at_ns, application, None))
        submissions.extend((task.submit_at_ns, application, task) for task in application.tasks)
    return sorted(submissions, key=lambda submission: submission[0])
