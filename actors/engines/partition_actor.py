"""The actor of a partition that schedules by itself.

After every change it sends itself one message to work, however many changes there were. It works in slices,
so that messages get their turn in between, and stops when nothing more can be placed: it does not poll. If
time alone may change an answer, it sets a timer.

The first slice after a rest has a cycle for each entry of the request, and each further one is twice as long,
up to `CYCLES_PER_SLICE`. A cycle that places nothing, but reserves a node, ends a slice: a request does not
wait for many of them. What a short slice has placed is delivered before the next one: the last cycle, which
finds nothing more, may be a long walk, and the RM would wait for it.

Messages must not keep it from scheduling, however many there are. While something can be placed, it schedules
for at least four fifths of its time: when requests have taken `REQUESTS_NS`, it runs slices for `WORK_SHARE`
times as long before the next request. With an equal share the placements that releases allow would fall
behind, and each release would wait for all before it.
"""

from __future__ import annotations

from time import perf_counter_ns, sleep
from types import TracebackType
from typing import Any, Final

from ...model.partition import Partition
from ...model.scheduling.cycle import CycleOutcome
from ..runtime.mailbox import Inflow
from ..runtime.pool import on_request_thread, on_worker
from ..runtime.reference import Invocation, PooledRef
from .handles import EntityActor, broken_entity

CYCLES_PER_SLICE: Final = 16
"""The most cycles between two messages: a cycle that reserves a node of thousands takes some 0.2 ms."""
RUN_NS: Final = 1_000_000
PAUSE_SECONDS: Final = 100e-6
"""While messages keep coming, the partition pauses for this time after each `RUN_NS`."""
REQUESTS_NS: Final = 2_000_000
WORK_SHARE: Final = 4
TURNS_PER_FLUSH: Final = 8
"""How many turns an announcement may wait while messages keep coming: a flush may switch threads."""


class PartitionRef(PooledRef["PartitionActor"]):
    """A reference to a partition's actor, with the count of the entries that were sent to it."""

    def __init__(self, actor: PartitionActor) -> None:
        super().__init__(actor)
        self.inflow = Inflow()


class PartitionActor(EntityActor):
    """The owner of a partition."""

    rank = 1
    entity: Partition

    def __init__(self, entity: Any) -> None:
        super().__init__(entity)
        self._actor_ref: PartitionRef = PartitionRef(self)
        self._work_pending = False
        self._cycles = 1
        """How many cycles the next slice has."""
        self._slice_was_short = False
        """The last slice had few cycles, and is to be followed by another one."""
        self._outcome = CycleOutcome.NOTHING
        """The result of the last cycle of the last slice."""
        self._turns = 0
        """Turns since the last flush."""
        self._requests_ns = 0
        """How long requests have taken for which the partition has not worked its share yet."""
        self._let_run_ns = 0
        """When the actor last paused for other threads."""

    def _handle_receive(self, message: object) -> object:
        if type(message) is not Invocation or message.method is PartitionActor.work:
            self._slice_was_short = False
            try:
                return super()._handle_receive(message)
            finally:
                if self._slice_was_short and self.actor_inbox.waiting() <= 1:  # one is its own, to work
                    self._flush()
                    self._let_others_run()
                else:
                    self._flush_in_time()
        began_ns = perf_counter_ns()
        try:
            return super()._handle_receive(message)
        finally:
            self._actor_ref.inflow.remove(message.entries)
            self._cycles = max(self._cycles, min(message.entries, CYCLES_PER_SLICE))
            self._wake()
            self._requests_ns += perf_counter_ns() - began_ns
            if self.actor_inbox.waiting() > 1:  # one is its own, to work
                if self._requests_ns > REQUESTS_NS:
                    self._take_share()
                self._let_others_run()
            self._flush_in_time()

    def _take_share(self) -> None:
        """Run slices `WORK_SHARE` times as long as requests have taken, while there is something to do."""
        end_ns = perf_counter_ns() + WORK_SHARE * self._requests_ns
        self._requests_ns = 0
        try:
            while (
                self.entity.work(CYCLES_PER_SLICE) is not CycleOutcome.NOTHING and perf_counter_ns() < end_ns
            ):
                self._let_others_run()
        except BaseException as error:  # noqa: BLE001 - the sender of the message did not cause it
            self._fail(error, None)

    def _let_others_run(self) -> None:
        """Pause briefly: otherwise threads that wait for the interpreter get it after 5 ms or more.

        A thread that helps while it waits for an answer does not pause: it may hold locks.
        """
        if perf_counter_ns() - self._let_run_ns > RUN_NS and (on_worker() or on_request_thread()):
            sleep(PAUSE_SECONDS)
            self._let_run_ns = perf_counter_ns()

    def on_withdrawn(self) -> None:
        """Flush after the last message, also if that one was withdrawn."""
        self._flush_in_time()

    def _end(self) -> None:
        super()._end()
        self._actor_ref.inflow.close()

    def _flush_in_time(self) -> None:
        self._turns += 1
        if self._turns >= TURNS_PER_FLUSH or self.actor_inbox.empty():
            self._flush()

    def _flush(self) -> None:
        self._turns = 0
        self.entity.host.flush()

    # Entities that broke.

    def _note_returned(self, error: BaseException) -> None:
        super()._note_returned(error)
        self._isolate(error)

    def on_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - Pykka's signature
        exception_value: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002 - Pykka's signature
    ) -> None:
        """Put broken entities into quarantine, and continue with the rest."""
        if exception_value is not None:
            self._isolate(exception_value)

    def _isolate(self, error: BaseException) -> None:
        broken = broken_entity(error)
        if broken is None:
            return
        kind, name, reason = broken
        if self.entity.quarantine(kind, name, reason):
            log = self.dispatcher.log.bind(**{"partition": self.entity.name, kind.value: name})
            log.error("{} {} is quarantined, please report: {}", kind.value, name, reason)  # noqa: PLE1205 - loguru's braces
            self._wake()

    def _wake(self) -> None:
        if not self._work_pending:
            self._work_pending = True
            self.actor_ref.send(PartitionActor.work)

    def work(self) -> None:
        """Run one slice of cycles; the next one follows after the messages that came meanwhile."""
        self._work_pending = False
        cycles, began_ns = self._cycles, perf_counter_ns()
        before, outcome = self._outcome, self.entity.work(cycles)
        self._outcome = outcome
        if outcome is CycleOutcome.NOTHING:
            self._cycles, self._requests_ns = 1, 0
            return
        worked_ns = perf_counter_ns() - began_ns
        self._requests_ns = max(0, self._requests_ns - worked_ns // WORK_SHARE)
        has_placed = outcome is CycleOutcome.RESULT
        if has_placed and before is CycleOutcome.PREPARED:
            self._let_run_ns = 0  # A request has brought this; its RM is to hear of it before more is done.
        self._cycles = min(2 * cycles, CYCLES_PER_SLICE) if has_placed else 1
        self._slice_was_short = cycles < CYCLES_PER_SLICE or not has_placed
        self._wake()
