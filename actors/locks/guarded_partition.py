"""The guard of a partition: its lock covers one request of the RM or one cycle, and no question to the RM.

A writer has the partition alone; readers share it, and each places asks. All other methods take the lock for
writing, also those that only read: they see the partition as it is at one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast, final

from ...lockcheck import excludes, requires
from ...model.marks import marked_methods
from ...model.partition import Partition
from ...model.scheduling.cycle import ConcurrentOutcome, CycleOutcome
from ...model.state.partition_state import BrokenKind
from ...model.values.messages import AllocationSubmission, NodeUpdate
from ..engines.error_origin import note_origin
from .guards import Guard
from .predicate_calls import CycleInvalidatedError, PredicateCalls, UnlockedPredicates

if TYPE_CHECKING:
    from .deferred import DeferredActions

T = TypeVar("T")
GAP_SECONDS_MAX: Final = 0.002
"""How long a reader waits for the lock. Writers go first, and requests write: if they leave no gap, the
thread runs whole cycles instead, which wait in the same queue, until its slice is over."""


@final
class GuardedPartition(Guard):
    """A partition with its lock.

    Args:
        partition: the partition.
        deferred: the actions that must run without a lock.
        isolate: called with each error after the lock was released; `None` if only the caller gets errors.
        call: calls a free thread to help; `None` if there never is one.
        shares: several threads may place asks at once, each in a leaf of its own.
    """

    __slots__ = (
        "_call",
        "_isolate",
        "_predicate_calls",
        "_shares",
        "_turn",
        "_unlocked",
        "ended",
        "name",
        "rm_id",
    )

    lock_class: ClassVar[str] = "partition"

    def __init__(
        self,
        partition: Partition,
        deferred: DeferredActions,
        isolate: Callable[[GuardedPartition, BaseException], None] | None = None,
        call: Callable[[GuardedPartition], None] | None = None,
        *,
        shares: bool = False,
    ) -> None:
        super().__init__(partition, partition.name, deferred)
        self._isolate = isolate
        self._call = call
        self._shares = shares
        channel = partition.host.question_channel
        self._predicate_calls = channel if isinstance(channel, PredicateCalls) else None
        predicates = partition.host.predicates
        self._unlocked = predicates if isinstance(predicates, UnlockedPredicates) else None
        if self._unlocked is not None:
            self._unlocked.without_lock = self._without_lock
        self.name = partition.name
        self.rm_id = partition.rm_id
        self.ended = False
        """Whether the partition takes no more requests; set once."""
        self._turn = 0
        """How often the lock was taken for writing; written with the lock held."""

    @contextmanager
    def holding(self) -> Iterator[Partition]:
        """Hold the lock for writing, and isolate what breaks."""
        with self._isolating(), self._locked() as partition:
            yield partition

    def _place_concurrently(self) -> ConcurrentOutcome | None:
        """Place an ask while other threads do so, too; `None` if writers leave no gap."""
        with self._isolating(), self.deferred:
            if not self.lock.acquire_read(GAP_SECONDS_MAX):
                return None
            try:
                return self._partition.place_concurrently()
            finally:
                self.lock.release_read()

    @contextmanager
    def _isolating(self) -> Iterator[None]:
        try:
            yield
        except CycleInvalidatedError:
            raise
        except BaseException as error:
            note_origin(error, self._partition)
            if self._isolate is not None:
                self._isolate(self, error)
            raise

    def quarantine_broken(self, kind: BrokenKind, name: str, reason: str) -> bool:
        """Put what broke into quarantine; return whether it was not there yet."""
        with self._locked() as partition:
            return partition.quarantine(kind, name, reason)

    @contextmanager
    def _locked(self) -> Iterator[Partition]:
        with self.deferred, self.lock.write():
            self._turn += 1
            yield self._partition

    @requires("lock")
    def _without_lock(self, call: Callable[[], T]) -> tuple[T, bool]:
        """Call the RM without the lock; return the answer, and whether others have had the lock meanwhile."""
        turn = self._turn
        self.lock.release_write()
        try:
            answer = call()
        finally:
            self.lock.acquire_write()
        return answer, turn != self._turn

    def _call_for_help(self) -> None:
        """Call another thread to work for the partition as well, if one is free."""
        if self._call is not None:
            self._call(self)

    @property
    def waits_for_slow_predicate(self) -> bool:
        """Whether a predicate of the RM runs and is slow; a hint, for callers that do not hold the lock."""
        return self._predicate_calls is not None and self._predicate_calls.is_slow

    @excludes()
    def flush(self) -> None:
        """Have the announcements delivered to the RM; no lock is held."""
        self._partition.host.flush()

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Carry out a request; answers of a cycle about nodes that are created with it are dropped.

        Answers about nodes that only change are kept: otherwise an RM that updates a node all the time would
        never have answered.
        """
        with self.holding() as partition:
            self._forget(node_ids=[update.node_id for update in updates if update.action.creates])
            partition.update_nodes(updates)

    def update_allocations(self, submissions: Sequence[AllocationSubmission], *others: Any) -> None:
        """Carry out a request; answers of a cycle about asks with these keys are dropped."""
        with self.holding() as partition:
            self._forget(keys=[entry.allocation_key for entry in submissions])
            partition.update_allocations(submissions, *others)

    def reconsider(self, *named: Collection[str]) -> None:
        """Try again what the RM refused; all answers of a cycle are dropped."""
        with self.holding() as partition:
            if self._unlocked is not None:
                self._unlocked.forget_all()
            partition.reconsider(*named)

    def _forget(self, *, keys: Sequence[str] = (), node_ids: Sequence[str] = ()) -> None:
        if self._unlocked is not None:
            self._unlocked.forget(keys, node_ids)

    def cycle(self) -> CycleOutcome:
        """Run one cycle; where nothing changes for want of the RM's answers, call the RM and run it again."""
        again = False
        while True:
            try:
                with self.holding() as partition:
                    if self._unlocked is not None:
                        self._unlocked.begin(again=again)
                    outcome = partition.cycle()
            except CycleInvalidatedError:
                again = True
                continue
            if outcome is not CycleOutcome.NOTHING or not self._call_predicates():
                return outcome

    @excludes()
    def _call_predicates(self) -> bool:
        """Ask the RM what no other thread asks, if it is slow one question; return whether there was any."""
        calls, answered = self._predicate_calls, False
        while calls is not None and calls.call_next(self._call_for_help):
            answered = True
            if calls.was_slow and calls.has_allowed:
                break  # Something may be placed.
        return answered

    def work(self, cycles_max: int, *, helps: bool = False) -> bool:
        """Run a slice of cycles, `cycles_max` at most; return whether there is more to do.

        One thread does this at a time; another one helps while the RM's predicates are slow, or places asks
        in a leaf of its own if threads share the partition. Where it cannot, it has the partition alone.
        """
        for outcome in islice(self._outcomes(helps=helps), cycles_max):
            if outcome is None:
                return False
            if outcome is CycleOutcome.NOTHING:
                with self.holding() as partition:
                    partition.schedule_wakeups()
                return False
            if outcome is CycleOutcome.PREPARED:
                break  # As in `Partition.work`.
        return True

    def _outcomes(self, *, helps: bool) -> Iterator[CycleOutcome | None]:
        """Yield the outcome of one cycle after the other; `None` if another thread at work does the rest."""
        calls = shares = self._shares
        while shares:
            placed = self._place_concurrently()
            if placed is ConcurrentOutcome.TAKEN:
                yield None
            elif placed is ConcurrentOutcome.PLACED:
                if calls:
                    calls = False
                    self._call_for_help()
                yield CycleOutcome.RESULT
            elif placed is ConcurrentOutcome.ALONE:
                yield self.cycle()
            else:
                shares = False
        if helps and not self._shares and not self.waits_for_slow_predicate:
            yield None
        while True:
            yield self.cycle()

    def run_until_idle(self) -> int:
        """Run cycles until nothing more can be done; return how many gave a result."""
        results = 0
        while (outcome := self.cycle()) is not CycleOutcome.NOTHING:
            results += outcome is CycleOutcome.RESULT
        with self.holding() as partition:
            partition.watch_quotas()
        return results

    @property
    def _partition(self) -> Partition:
        return cast("Partition", self.entity)


def _under_lock(method: Callable[..., Any]) -> Callable[..., Any]:
    def under_lock(guard: GuardedPartition, *args: Any, **kwargs: Any) -> Any:
        with guard.holding() as partition:
            return method(partition, *args, **kwargs)

    return under_lock


_OWN: Final = frozenset(vars(GuardedPartition))
for _name in marked_methods(Partition):
    if _name not in _OWN:
        setattr(GuardedPartition, _name, _under_lock(getattr(Partition, _name)))
