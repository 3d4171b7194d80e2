"""What a simulated resource manager has to do: the events of its workload, and requests that it keeps."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from itertools import count
from typing import TypeAlias, final

from ....model.values.dependencies import ARRAY_TAG, ApplicationOutcome, Terms, terms_of
from ...si import si_pb2 as si
from ...si.api import SchedulerAPI
from .si_messages import PARTITION
from .workloads.workload import SimulatedApplication, SimulatedTask, SimulatedWorkload

_Submission: TypeAlias = "tuple[int, int, SimulatedApplication, SimulatedTask | None]"


def _pieces_of_linked(workload: SimulatedWorkload) -> dict[str, int]:
    """Return the number of pieces of work of each application that others wait for, or follow."""
    named = {each.follows for each in workload.applications}
    for application in workload.applications:
        terms = terms_of(application.tags)
        named.update(terms.names if isinstance(terms, Terms) else ())
    return {
        each.application_id: sum(task.count for task in each.tasks)
        for each in workload.applications
        if each.application_id in named or ARRAY_TAG in each.tags
    }


@final
class EventQueue:
    """The events of one workload; equal times keep the order of the workload, and of the placements."""

    def __init__(self, workload: SimulatedWorkload) -> None:
        self._serial = count()
        self._submissions: list[_Submission] = []
        self._ends: list[tuple[int, int, str]] = []
        self._followers: dict[str, list[SimulatedApplication]] = {}
        """By the application whose end they follow."""
        for application in workload.applications:
            if application.follows:
                self._followers.setdefault(application.follows, []).append(application)
            else:
                self._submit(application, 0)

    def next_ns(self) -> int | None:
        """Return the time of the next event, `None` without one."""
        moments_ns = [self._ends[0][0]] if self._ends else []
        if self._submissions:
            moments_ns.append(self._submissions[0][0])
        return min(moments_ns, default=None)

    def follow(self, application_id: str, now_ns: int) -> None:
        """Note the submissions of those that follow the end of an application, each after its think time."""
        for application in self._followers.pop(application_id, ()):
            self._submit(application, now_ns + application.think_ns - application.submit_at_ns)

    def _submit(self, application: SimulatedApplication, shift_ns: int) -> None:
        """Note the submissions of an application and its tasks, all moved by a time."""
        moved = [(application.submit_at_ns, None), *((task.submit_at_ns, task) for task in application.tasks)]
        for at_ns, task in moved:
            heapq.heappush(self._submissions, (at_ns + shift_ns, next(self._serial), application, task))

    def add_end(self, key: str, at_ns: int) -> None:
        """Note the end of the work with that key."""
        heapq.heappush(self._ends, (at_ns, next(self._serial), key))

    def replace_by(self, ends_ns: Mapping[str, int]) -> None:
        """Forget all events, and note these ends by key."""
        self._submissions.clear()
        self._followers.clear()
        self._ends = [(at_ns, next(self._serial), key) for key, at_ns in ends_ns.items()]
        heapq.heapify(self._ends)

    def pop_end(self, now_ns: int) -> str | None:
        """Remove and return the key of work that ends by now, `None` without one."""
        if not self._ends or self._ends[0][0] > now_ns:
            return None
        return heapq.heappop(self._ends)[2]

    def pop_submission(self, now_ns: int) -> tuple[SimulatedApplication, SimulatedTask | None] | None:
        """Remove and return the next due submission: an application, or a task of one."""
        if not self._submissions or self._submissions[0][0] > now_ns:
            return None
        return heapq.heappop(self._submissions)[2:]


@final
class PendingRequests:
    """The messages of one resource manager on their way to the scheduler, in order within each kind.

    A callback only adds: the scheduler is never called from inside its own callback.
    """

    def __init__(self, api: SchedulerAPI, rm_id: str) -> None:
        self._api = api
        self._rm_id = rm_id
        self._releases = si.AllocationRequest(rmID=rm_id)
        self._applications = si.ApplicationRequest(rmID=rm_id)
        self._asks = si.AllocationRequest(rmID=rm_id)
        self._count = 0

    def add_application(self, application: si.AddApplicationRequest) -> None:
        """Keep the submission of an application."""
        self._applications.new.append(application)
        self._count += 1

    def add_removal(self, application_id: str, outcome: ApplicationOutcome) -> None:
        """Keep the removal of an application that has ended."""
        removal = si.RemoveApplicationRequest(
            applicationID=application_id, partitionName=PARTITION, outcome=outcome.value
        )
        self._applications.remove.append(removal)
        self._count += 1

    def add_ask(self, ask: si.Allocation) -> None:
        """Keep an ask."""
        self._asks.allocations.append(ask)
        self._count += 1

    def add_release(self, release: si.AllocationRelease) -> None:
        """Keep a release; it is copied, so that it may be part of a callback's message."""
        self._releases.releases.allocationsToRelease.append(release)
        self._count += 1

    def is_empty(self) -> bool:
        """Return whether there is nothing to send."""
        return not self._count

    def send(self) -> None:
        """Send releases, then applications, then asks: at most one request for each kind.

        Additions by callbacks in the meantime are sent with a later kind in this order, or the next time.
        """
        if not self._count:
            return
        if self._releases.HasField("releases"):
            releases, self._releases = self._releases, si.AllocationRequest(rmID=self._rm_id)
            self._count -= len(releases.releases.allocationsToRelease)
            self._api.update_allocation(releases)
        if self._applications.new or self._applications.remove:
            applications, self._applications = self._applications, si.ApplicationRequest(rmID=self._rm_id)
            self._count -= len(applications.new) + len(applications.remove)
            self._api.update_application(applications)
        if self._asks.allocations:
            asks, self._asks = self._asks, si.AllocationRequest(rmID=self._rm_id)
            self._count -= len(asks.allocations)
            self._api.update_allocation(asks)


@final
class PiecesOfWork:
    """Counts the pieces of work of one simulation; the last one ends an application that others wait for.

    Args:
        workload: The workload.
        events: Those that follow an application are submitted by it.
        requests: Gets the removals of these applications.
        outcome_of: Returns how an application ends, by its id.
    """

    def __init__(
        self,
        workload: SimulatedWorkload,
        events: EventQueue,
        requests: PendingRequests,
        outcome_of: Callable[[str], ApplicationOutcome],
    ) -> None:
        self.steps_done = 0
        """How many pieces were submitted, and how many are over."""
        self._events = events
        self._requests = requests
        self._outcome_of = outcome_of
        self._left = _pieces_of_linked(workload)

    def over(self, application_id: str, now_ns: int) -> None:
        """Count a piece of an application that is over; with the last one the application ends."""
        self.steps_done += 1
        left = self._left.get(application_id)
        if left is None:
            return
        self._left[application_id] = left - 1
        if left == 1:
            self._requests.add_removal(application_id, self._outcome_of(application_id))
            self._events.follow(application_id, now_ns)
