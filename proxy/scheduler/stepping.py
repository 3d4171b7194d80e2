"""The steps of a stepped scheduler: its cycles, its callbacks, and its virtual clock.

A scheduler that runs by itself refuses steps that would conflict with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...actors.interrupts import Uninterrupted
from ...actors.virtual_clock import VirtualClock
from ...model.errors import LicorneError
from ...model.scheduling.cycle import CycleOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...actors.engine import Engine
    from ...actors.real_clock import RealClock
    from ...model.cluster import Cluster
    from ...model.partition import Partition
    from .outbox import Outbox

__all__ = ["Stepping"]

_ALL_CYCLES: Final = 2**31


class Stepping:
    """The steps of a scheduler; the scheduler sets what they need."""

    _clock: VirtualClock | RealClock
    _cluster: Cluster
    _engine: Engine
    _outbox: Outbox | None

    def now_ns(self) -> int:
        """Return the scheduler's time, nanoseconds since 1970."""
        return self._clock.now_ns()

    def deliver(self) -> int:
        """Deliver all announcements; return how many callbacks there were."""
        return self._stepped_outbox().deliver()

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles until one gives no result in any partition, at most so many; return how many did."""
        self._stepped_outbox()
        partitions = self._cluster.partitions()
        for done in range(_ALL_CYCLES if cycles is None else cycles):
            if not self._step(partitions, _run_one_cycle):
                return done
        return _ALL_CYCLES if cycles is None else cycles

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result."""
        outbox = self._stepped_outbox()
        results = 0
        while True:
            delivered = outbox.deliver()
            done = self._step(self._cluster.partitions(), _run_until_idle)
            results += done
            if not done and not delivered and not outbox.deliver():
                return results

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer or check is due on the virtual clock, `None` if none is."""
        with Uninterrupted():
            due = [self._virtual().next_due_ns()]
            due += [partition.next_retry_ns() for partition in self._cluster.partitions()]
        return min((time_ns for time_ns in due if time_ns is not None), default=None)

    def next_timer_ns(self) -> int | None:
        """Return when the next timer is due on the virtual clock, `None` if none runs."""
        return self._virtual().next_due_ns()

    def fire_next(self) -> None:
        """Move the virtual clock to the next timer and fire it, without delivering what follows."""
        due_ns = self._virtual().next_due_ns()
        if due_ns is not None:
            with Uninterrupted():
                self._virtual().advance_to(due_ns)

    def advance_to(self, time_ns: int) -> None:
        """Move the virtual clock, firing everything that is due on the way, and deliver after each."""
        while self._advance(time_ns):
            self._stepped_outbox().deliver()

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster, and report them to the RMs."""
        with Uninterrupted():
            for partition in self._cluster.partitions():
                partition.inspect_outstanding()

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due, where a partition is configured to."""
        with Uninterrupted():
            for partition in self._cluster.partitions():
                partition.preempt_over_quota()

    def _step(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> int:
        """Run a step of each partition, which an interrupt does not stop half-way; return the sum."""
        with Uninterrupted():
            return sum(self._engine.step_each(partitions, step))

    def _advance(self, time_ns: int) -> bool:
        """Move the clock to the next timer that is due by then; return whether one was."""
        with Uninterrupted():
            return self._virtual().advance_to(time_ns)

    def _virtual(self) -> VirtualClock:
        if not isinstance(self._clock, VirtualClock):
            raise LicorneError("this scheduler runs by itself: it has no virtual clock, and is not stepped")
        return self._clock

    def _stepped_outbox(self) -> Outbox:
        if self._outbox is None:
            raise LicorneError("this scheduler runs by itself: it is not stepped")
        return self._outbox


def _run_one_cycle(partition: Partition) -> int:
    return int(partition.cycle() is CycleOutcome.RESULT)


def _run_until_idle(partition: Partition) -> int:
    return partition.run_until_idle()
