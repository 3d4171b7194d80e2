"""The steps of a remote scheduler that is stepped, as `Scheduler` has them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...si import licorne_v1_pb2 as v1
from ...si.arguments import check_type


class RemoteSteps(ABC):
    """The steps of a stepped scheduler; one that runs by itself refuses them. See `Stepping`."""

    @abstractmethod
    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer."""

    def _step(self, method: v1.Step.Method, argument: int | None = None) -> int | None:
        answer = self._call(v1.ManagerMessage(step=v1.Step(method=method, argument=argument)))
        return answer.number if answer.HasField("number") else None

    def now_ns(self) -> int:
        """Return the scheduler's time, nanoseconds since 1970."""
        return self._step(v1.Step.NOW) or 0

    def deliver(self) -> int:
        """Deliver all announcements; return how many callbacks there were."""
        return self._step(v1.Step.DELIVER) or 0

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles until one gives no result in any partition, at most so many; return how many did."""
        check_type("cycles", cycles, int, type(None))
        return self._step(v1.Step.SCHEDULE, cycles) or 0

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result."""
        return self._step(v1.Step.RUN_UNTIL_IDLE) or 0

    def settle(self) -> int:
        """Do what `run_until_idle` does where no callback calls the scheduler: then once is enough.

        A scheduler in another process does all of it.
        """
        return self.run_until_idle()

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer or check is due on the virtual clock, `None` if none is."""
        return self._step(v1.Step.NEXT_DEADLINE)

    def next_timer_ns(self) -> int | None:
        """Return when the next timer is due on the virtual clock, `None` if none runs."""
        return self._step(v1.Step.NEXT_TIMER)

    def fire_next(self) -> None:
        """Move the virtual clock to the next timer and fire it, without delivering what follows."""
        self._step(v1.Step.FIRE_NEXT)

    def advance_to(self, time_ns: int) -> None:
        """Move the virtual clock, firing everything that is due on the way, and deliver after each."""
        check_type("time_ns", time_ns, int)
        self._step(v1.Step.ADVANCE_TO, time_ns)

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster, and report them to the RMs."""
        self._step(v1.Step.INSPECT_OUTSTANDING)

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due, where a partition is configured to."""
        self._step(v1.Step.PREEMPT_OVER_QUOTA)

    def deliver_events(self) -> None:
        """Queue events for the resource managers' callbacks now."""
        self._step(v1.Step.DELIVER_EVENTS)

    def record_history(self) -> None:
        """Add to the history how many applications run now, and how many allocations there are."""
        self._step(v1.Step.RECORD_HISTORY)
