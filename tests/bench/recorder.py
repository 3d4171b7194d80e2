"""The resource manager of the bench: it counts callbacks and their times.

The scheduler calls it on a thread of its own or inside the caller's call, depending on the engine; the
measuring thread waits for a goal. The first event that must not happen in a bench (a rejection, an allocation
taken away) is kept and raised in the wait for the goal: an exception in a callback would only be logged.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import ClassVar, Final

from figures import BenchError, Gauges
from workload_requests import RM_ID
from workloads import BenchWorkload

from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager

_ENDED_BY_SCHEDULER: Final = frozenset({si.PLACEHOLDER_REPLACED, si.PREEMPTED_BY_SCHEDULER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The number of callbacks that the resource manager must have had since its registration."""

    nodes: int = 0
    applications: int = 0
    allocations: int = 0
    releases: int = 0


class Recorder(ResourceManager):
    """A resource manager callback that counts."""

    expected_ends: ClassVar[frozenset[int]] = frozenset({si.STOPPED_BY_RM})
    """The types of releases that belong to the course of a workload; any other makes the run worthless."""

    def __init__(self, clock_seconds: Callable[[], float]) -> None:
        self._clock_seconds = clock_seconds
        self._changed = Condition()
        self._goal: Goal | None = None
        self._problem: str | None = None
        self._nodes = 0
        self._nodes_at_seconds = 0.0
        self._applications = 0
        self._applications_at_seconds = 0.0
        self._releases = 0
        # When each new allocation arrived: 8 bytes each, so that it does not count in the memory measured.
        self._arrivals = array("d")

    # ------------------------------------------------------------------- what the scheduler calls

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Count new and released allocations."""
        now = self._clock_seconds()
        with self._changed:
            for _ in range(len(response.new)):
                self._arrivals.append(now)
            for release in response.released:
                self._count_release(release)
            for rejected in response.rejectedAllocations:
                self._note(f"{rejected.allocationKey} was rejected: {rejected.reason}")
            self._notify()

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Count accepted applications."""
        now = self._clock_seconds()
        with self._changed:
            if response.accepted:
                self._applications += len(response.accepted)
                self._applications_at_seconds = now
            for rejected in response.rejected:
                self._note(f"application {rejected.applicationID} was rejected: {rejected.reason}")
            self._notify()

    def update_node(self, response: si.NodeResponse) -> None:
        """Count accepted nodes."""
        now = self._clock_seconds()
        with self._changed:
            if response.accepted:
                self._nodes += len(response.accepted)
                self._nodes_at_seconds = now
            for rejected in response.rejected:
                self._note(f"node {rejected.nodeID} was rejected: {rejected.reason}")
            self._notify()

    # --------------------------------------------------------------- what the measuring code calls

    def has_reached(self, goal: Goal) -> bool:
        """Return whether the counts are at least those of the goal.

        Raises:
            BenchError: something happened that makes the run worthless.
        """
        with self._changed:
            return self._reached(goal)

    def wait(self, goal: Goal, timeout_seconds: float) -> bool:
        """Block until the goal is reached; return whether that happened in time.

        Raises:
            BenchError: something happened that makes the run worthless.
        """
        with self._changed:
            self._goal = goal
            reached = self._changed.wait_for(lambda: self._reached(goal), timeout_seconds)
            self._goal = None
            return reached

    def progress(self) -> Goal:
        """Return the counts so far."""
        with self._changed:
            return Goal(
                nodes=self._nodes,
                applications=self._applications,
                allocations=len(self._arrivals),
                releases=self._releases,
            )

    def allocation_times_seconds(self) -> Sequence[float]:
        """Return when each new allocation arrived, in order."""
        with self._changed:
            return self._arrivals[:]

    def last_node_at_seconds(self) -> float:
        """Return when the last node was accepted."""
        return self._nodes_at_seconds

    def last_application_at_seconds(self) -> float:
        """Return when the last application was accepted."""
        return self._applications_at_seconds

    # ------------------------------------------------------------------------------------- inside

    def _count_release(self, release: si.AllocationRelease) -> None:
        if release.terminationType not in self.expected_ends:
            reason = si.TerminationType.Name(release.terminationType)
            self._note(f"{release.allocationKey} was taken away: {reason} {release.message}")
        self._releases += 1

    def _note(self, problem: str) -> None:
        if self._problem is None:
            self._problem = problem

    def _reached(self, goal: Goal) -> bool:
        if self._problem is not None:
            raise BenchError(self._problem)
        return (
            self._nodes >= goal.nodes
            and self._applications >= goal.applications
            and len(self._arrivals) >= goal.allocations
            and self._releases >= goal.releases
        )

    def _notify(self) -> None:
        # Waking the waiter for each allocation would make it a part of what is measured.
        if self._problem is not None or (self._goal is not None and self._reached(self._goal)):
            self._changed.notify_all()


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
