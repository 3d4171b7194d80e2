"""The guard of a partition: its lock covers one request of the RM or one cycle, and no question to the RM.

Who writes has the partition alone, who reads shares it with others that place asks. All methods take the lock
for writing, also those that only read: they see the partition as it is at one moment.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast, final

from ..lockcheck import excludes, requires
from ..model.marks import marked_methods
from ..model.partition import Partition, PartitionReports
from ..model.scheduling.concurrent_placing import ConcurrentOutcome
from ..model.scheduling.cycle import CycleOutcome
from ..model.values.messages import NodeAction
from .error_origin import note_origin
from .guards import Guard
from .predicate_cache import CycleAnswers, CycleInvalidatedError, PredicateCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..model.state.quarantine import BrokenKind
    from ..model.values.messages import AllocationSubmission, NodeUpdate
    from .deferred import DeferredActions

__all__ = ["GuardedPartition", "GuardedReports"]

T = TypeVar("T")
GAP_SECONDS_MAX: Final = 0.002
"""How long who would share a partition waits to be let in. Writers go first, and requests write: where they
leave no gap, whole cycles are run, which wait in the same queue, until the slice is over."""
_CREATIONS: Final = frozenset({NodeAction.CREATE, NodeAction.CREATE_DRAIN})


@final
class GuardedPartition(Guard):
    """A partition with its lock.

    Args:
        partition: the partition.
        afterwards: what is to happen without a lock.
        isolate: is told of errors, when the lock has been let go of; `None` if they are the caller's alone.
        call: has a thread that is free help; `None` if there is none ever.
        shares: several threads may place asks at once, each in a leaf of its own.
    """

    __slots__ = (
        "_call",
        "_isolate",
        "_predicate_cache",
        "_shares",
        "_turn",
        "ended",
        "name",
        "reports",
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
        predicates = partition.host.predicates
        self._predicate_cache = predicates if isinstance(predicates, PredicateCache) else None
        self.name = partition.name
        self.rm_id = partition.rm_id
        self.reports = GuardedReports(self)
        self.ended = False
        """Nobody is to tell it anything any more; set once."""
        self._turn = 0
        """Counts how often the lock was taken; written with it held."""

    @contextmanager
    def holding(self) -> Iterator[Partition]:
        """Hold the lock, and have what breaks isolated."""
        with self._isolating(), self._locked() as partition:
            yield partition

    def _place_concurrently(self) -> ConcurrentOutcome | None:
        """Place an ask while others do; `None` where those who want the partition alone leave no gap."""
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
        """Schedule with what broke no more; return whether that is news."""
        with self._locked() as partition:
            return partition.quarantine(kind, name, reason)

    @contextmanager
    def _locked(self) -> Iterator[Partition]:
        with self.deferred, self.lock.write():
            self._turn += 1
            yield self._partition

    @requires("lock")
    def without_lock(self, question: Callable[[], T]) -> tuple[T, bool]:
        """Ask with the lock let go of; return also whether somebody else has had it meanwhile."""
        turn = self._turn
        self.lock.release_write()
        try:
            answer = question()
        finally:
            self.lock.acquire_write()
        return answer, turn != self._turn

    def call_for_help(self) -> None:
        """Have another thread work for the partition as well, if one is free."""
        if self._call is not None:
            self._call(self)

    @property
    def waits_for_slow_predicate(self) -> bool:
        """Whether its RM is being asked, and took its time before; a hint, for who does not hold the lock."""
        return self._predicate_cache is not None and self._predicate_cache.is_slow

    @excludes()
    def flush(self) -> None:
        """Have the RM hear what was announced; no lock is held."""
        self._partition.flush()

    def update_nodes(self, updates: Sequence[NodeUpdate]) -> None:
        """Carry a request out; what was said of nodes with the names of new ones counts no longer.

        What was said of nodes that only change does count: an RM that tells of a node all the time would
        otherwise never have answered.
        """
        with self.holding() as partition:
            self._forget(node_ids=[update.node_id for update in updates if update.action in _CREATIONS])
            partition.update_nodes(updates)

    def update_allocations(self, submissions: Sequence[AllocationSubmission], *others: Any) -> None:
        """Carry a request out; what was said of asks with these keys before counts no longer."""
        with self.holding() as partition:
            self._forget(keys=[entry.allocation_key for entry in submissions])
            partition.update_allocations(submissions, *others)

    def cycle(self) -> CycleOutcome:
        """Run one cycle."""
        if self._predicate_cache is None:
            with self.holding() as partition:
                return partition.cycle()
        outcome = self._cycle_with_predicates(self._predicate_cache, lambda _: True)
        assert outcome is not None, "a cycle that is wanted is run: please report"
        return outcome

    def _cycle_with_predicates(
        self, predicate_cache: PredicateCache, is_wanted: Callable[[PredicateCache], bool]
    ) -> CycleOutcome | None:
        """Run one cycle if it is wanted when the lock is held, as often anew as it is broken off."""
        answers = CycleAnswers()
        begun = False
        while True:
            try:
                with self.holding() as partition:
                    if not begun and not is_wanted(predicate_cache):
                        return None
                    begun = True
                    return predicate_cache.run(self, answers, partition.cycle)
            except CycleInvalidatedError:
                continue

    def work(self, cycles_max: int, *, helps: bool = False) -> bool:
        """Run cycles until nothing more can be done, `cycles_max` at most; return whether there is more.

        Where the RM judges quickly one thread does that at a time; who finds another one at it leaves it all
        to that. Who only helps begins only while another one waits for an answer. Where threads share the
        partition, each places what it can in a leaf of its own, and has the partition alone for all else.
        """
        if self._partition.host.is_congested():
            return False
        for outcome in islice(self._outcomes(helps=helps), cycles_max):
            if outcome is None:
                return False
            if outcome is CycleOutcome.NOTHING:
                with self.holding() as partition:
                    partition.schedule_wakeups()
                return False
        return True

    def _outcomes(self, *, helps: bool) -> Iterator[CycleOutcome | None]:
        """Run a cycle each; `None` where that is left to those who are at it, and who look again."""
        calls = shares = self._shares
        while shares:
            placed = self._place_concurrently()
            if placed is ConcurrentOutcome.TAKEN:
                yield None
            elif placed is ConcurrentOutcome.PLACED:
                if calls:
                    calls = False
                    self.call_for_help()
                yield CycleOutcome.RESULT
            elif placed is ConcurrentOutcome.ALONE:
                yield self.cycle()
            else:
                shares = False
        is_wanted = PredicateCache.wants_help if helps else PredicateCache.needs_cycle
        while True:
            if self._predicate_cache is None:
                yield self.cycle()
            else:
                yield self._cycle_with_predicates(self._predicate_cache, is_wanted)
            is_wanted = PredicateCache.needs_cycle

    def run_until_idle(self) -> int:
        """Run cycles until nothing more can be done; return how many gave a result."""
        results = 0
        while (outcome := self.cycle()) is not CycleOutcome.NOTHING:
            results += outcome is CycleOutcome.RESULT
        with self.holding() as partition:
            partition.watch_quotas()
        return results

    def _forget(self, *, keys: Sequence[str] = (), node_ids: Sequence[str] = ()) -> None:
        if self._predicate_cache is not None:
            self._predicate_cache.forget(frozenset(keys), frozenset(node_ids))

    @property
    def _partition(self) -> Partition:
        return cast("Partition", self.entity)


def _under_lock(method: Callable[..., Any]) -> Callable[..., Any]:
    def under_lock(guard: GuardedPartition, *args: Any, **kwargs: Any) -> Any:
        with guard.holding() as partition:
            return method(partition, *args, **kwargs)

    return under_lock


class GuardedReports:
    """The reports of a guarded partition, made with its lock held."""

    __slots__ = ("partition",)

    def __init__(self, partition: GuardedPartition) -> None:
        self.partition = partition


def _report(method: Callable[..., Any]) -> Callable[..., Any]:
    def report(reports: GuardedReports, *args: Any, **kwargs: Any) -> Any:
        with reports.partition.holding() as partition:
            return method(partition.reports, *args, **kwargs)

    return report


for _name in marked_methods(PartitionReports):
    setattr(GuardedReports, _name, _report(getattr(PartitionReports, _name)))
_OWN: Final = frozenset(vars(GuardedPartition))
for _name in marked_methods(Partition):
    if _name not in _OWN:
        setattr(GuardedPartition, _name, _under_lock(getattr(Partition, _name)))
