"""The steps of a stepped scheduler: its cycles, its callbacks, and its virtual clock.

A scheduler that is not stepped refuses steps that would conflict with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final

from ....actors.engines.engine import Engine
from ....actors.services.clocks import RealClock, VirtualClock
from ....actors.services.interrupts import Uninterrupted
from ....model.cluster import Cluster
from ....model.errors import LicorneError, RequestError
from ....model.partition import Partition
from ....model.resources.quantities import INT64_MAX
from ....model.scheduling.cycle import CycleOutcome
from ....model.scheduling.timer_actions import is_resting
from ...si.arguments import check_type
from .managers.callbacks import Outbox
from .managers.predicates import AnswerWait

_ALL_CYCLES: Final = 2**31
_RESULT, _PREPARED, _NOTHING = 2, 1, 0
_CODES: Final = {
    CycleOutcome.RESULT: _RESULT,
    CycleOutcome.PREPARED: _PREPARED,
    CycleOutcome.NOTHING: _NOTHING,
}


class Stepping(ABC):
    """The steps of a scheduler; the scheduler sets what they need."""

    _clock: VirtualClock | RealClock
    _cluster: Cluster
    _engine: Engine
    _outbox: Outbox | None
    _answer_wait: AnswerWait | None

    @abstractmethod
    def _check_step(self) -> None:
        """Refuse a step inside a predicate, whose partition waits for it, and after the end."""

    def now_ns(self) -> int:
        """Return the scheduler's time, nanoseconds since 1970."""
        return self._clock.now_ns()

    def deliver(self) -> int:
        """Deliver all announcements; return how many callbacks there were."""
        return self._stepped_outbox().deliver()

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles until one gives no result in any partition, up to a maximum; return how many did.

        Where nothing changed because predicates are answered later, it waits for their answers, and goes on.
        """
        check_type("cycles", cycles, int, type(None))
        if cycles is not None and cycles < 0:
            raise RequestError(f"cycles={cycles} is below 0")
        self._stepped_outbox()
        partitions = self._cluster.partitions()
        done, cycles_max = 0, _ALL_CYCLES if cycles is None else cycles
        while done < cycles_max and self._run_one_cycle(partitions):
            done += 1
        return done

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result.

        It waits for predicates that are answered later.
        """
        outbox = self._stepped_outbox()
        results = 0
        while True:
            delivered = outbox.deliver()
            done = self._run_cycles()
            results += done
            if not done and not delivered and not outbox.deliver():
                return results

    def settle(self) -> int:
        """Do what `run_until_idle` does where no callback calls the scheduler: then once is enough.

        Changes by a callback are scheduled the next time.
        """
        outbox = self._stepped_outbox()
        outbox.deliver()
        results = self._run_cycles()
        outbox.deliver()
        return results

    def _run_cycles(self) -> int:
        """Run cycles of each partition until nothing can be done; return how many gave a result."""
        partitions: Sequence[Partition] = self._cluster.partitions()
        results = sum(self._step_each(partitions, _run_until_idle))
        while partitions := self._wait_for_answers(partitions):
            results += sum(self._step_each(partitions, _run_until_idle))
        return results

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer or check is due on the virtual clock, `None` if nothing is."""
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
        """Move the virtual clock, firing everything that is due on the way, and deliver after each.

        Raises:
            LicorneError: The time is before that of the clock, or not whole nanoseconds.
        """
        clock, outbox = self._clock_before(time_ns), self._stepped_outbox()
        while _advance(clock, time_ns):
            outbox.deliver()
            self._check_step()

    def _clock_before(self, time_ns: int) -> VirtualClock:
        """Return the clock.

        Raises:
            LicorneError: It is past a time, or that is not whole nanoseconds.
        """
        check_type("time_ns", time_ns, int)
        clock = self._virtual()
        now_ns = clock.now_ns()
        if time_ns < now_ns:
            raise RequestError(
                f"time_ns={time_ns} is {(now_ns - time_ns) / 1e9:g} s before the time of the clock, "
                f"{now_ns}: it does not go back"
            )
        if time_ns > INT64_MAX:
            raise RequestError(f"time_ns={time_ns} is more than {INT64_MAX}")
        return clock

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster, and report them to the RMs."""
        self._check_step()
        with Uninterrupted():
            for partition in self._cluster.partitions():
                partition.inspect_outstanding()

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due, where a partition is configured to."""
        self._check_step()
        with Uninterrupted():
            for partition in self._cluster.partitions():
                partition.preempt_over_quota()

    def _step_each(self, partitions: Sequence[Partition], step: Callable[[Partition], int]) -> list[int]:
        """Run a step of each partition, which an interrupt does not stop half-way; return what they give."""
        with Uninterrupted():
            return self._engine.step_each(partitions, step)

    def _run_one_cycle(self, partitions: Sequence[Partition]) -> bool:
        """Run a cycle of each partition, again where answers were missing; return whether any placed."""
        has_result = False
        while partitions:
            codes = self._step_each(partitions, _cycle_code)
            has_result = has_result or _RESULT in codes
            idle = [each for each, code in zip(partitions, codes, strict=True) if code == _NOTHING]
            partitions = self._wait_for_answers(idle)
        return has_result

    def _wait_for_answers(self, partitions: Sequence[Partition]) -> Sequence[Partition]:
        """Wait for the answers to open questions; return those of the partitions that got any."""
        answered = () if self._answer_wait is None else self._answer_wait.wait()
        return [partition for partition in partitions if partition.name in answered]

    def _virtual(self) -> VirtualClock:
        self._check_step()
        if not isinstance(self._clock, VirtualClock):
            raise LicorneError("this scheduler is not stepped: it has no virtual clock")
        return self._clock

    def _stepped_outbox(self) -> Outbox:
        self._check_step()
        if self._outbox is None:
            raise LicorneError("this scheduler is not stepped")
        return self._outbox


def rests(scheduler: Stepping) -> bool:
    """Return whether steps would do nothing, however late they are made, until something changes."""
    return all(partition.read(is_resting) for partition in scheduler._cluster.partitions())  # noqa: SLF001


def advance_while_resting(scheduler: Stepping, time_ns: int, must_stop: Callable[[], bool]) -> None:
    """Do what `Stepping.advance_to` does, but stop at a moment whose timers leave something to do.

    Args:
        scheduler: The stepped scheduler.
        time_ns: The time.
        must_stop: Returns whether to stop at a moment whatever the scheduler has to do.

    Raises:
        LicorneError: As for `advance_to`.
    """
    clock, outbox = scheduler._clock_before(time_ns), scheduler._stepped_outbox()  # noqa: SLF001
    while _advance(clock, time_ns):
        outbox.deliver()
        due_ns = clock.next_due_ns()
        is_last = due_ns is None or due_ns > clock.now_ns()
        if is_last and (must_stop() or not rests(scheduler)):
            return


def _advance(clock: VirtualClock, time_ns: int) -> bool:
    """Move the clock to the next timer that is due by then; return whether one was."""
    with Uninterrupted():
        return clock.advance_to(time_ns)


def _cycle_code(partition: Partition) -> int:
    return _CODES[partition.cycle()]


def _run_until_idle(partition: Partition) -> int:
    return partition.run_until_idle()
