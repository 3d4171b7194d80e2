"""The guard of a partition: its lock covers one request of the RM or one cycle, and no question to the RM.

All methods take the lock for writing, also those that only read: the orders of nodes, queues and
applications are brought up to date when they are walked.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

from ..lockcheck import excludes, requires
from ..model.cycle import CycleOutcome
from ..model.marks import marked_methods
from ..model.partition import Partition
from .breakage import blame
from .guards import Guard
from .judgements import Judgements, WorldMovedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..model.quarantine import BrokenKind
    from .afterwards import Afterwards

__all__ = ["GuardedPartition"]


@final
class GuardedPartition(Guard):
    """A partition with its lock.

    Args:
        partition: the partition.
        afterwards: what is to happen without a lock.
        isolate: is told of errors, when the lock has been let go of; `None` if they are the caller's alone.
    """

    __slots__ = ("_isolate", "_turn", "ended", "name", "rm_id")

    lock_class: ClassVar[str] = "partition"

    def __init__(
        self,
        partition: Partition,
        afterwards: Afterwards,
        isolate: Callable[[GuardedPartition, Exception], None] | None = None,
    ) -> None:
        super().__init__(partition, partition.name, afterwards)
        self._isolate = isolate
        self.name = partition.name
        self.rm_id = partition.rm_id
        self.ended = False
        """Nobody is to tell it anything any more; set once."""
        self._turn = 0
        """Counts how often the lock was taken; written with it held."""

    @contextmanager
    def holding(self) -> Iterator[Partition]:
        """Hold the lock, and have what breaks isolated."""
        try:
            with self._locked() as partition:
                yield partition
        except Exception as error:
            if self._isolate is not None:
                self._isolate(self, error)
            raise

    def set_aside(self, kind: BrokenKind, name: str, reason: str) -> bool:
        """Schedule with what broke no more; return whether that is news."""
        with self._locked() as partition:
            return partition.quarantine(kind, name, reason)

    @contextmanager
    def _locked(self) -> Iterator[Partition]:
        partition = self._partition
        with self.afterwards, self.lock.write():
            self._turn += 1
            try:
                yield partition
            except Exception as error:
                blame(error, partition)
                raise

    @requires("lock")
    @contextmanager
    def without_lock(self) -> Iterator[None]:
        """Let go of the lock meanwhile.

        Raises:
            WorldMovedError: when it is held again, and somebody else has had it.
        """
        turn = self._turn
        self.lock.release_write()
        try:
            yield
        finally:
            self.lock.acquire_write()
        if turn != self._turn:
            raise WorldMovedError

    @excludes()
    def flush(self) -> None:
        """Have the RM hear what was announced; no lock is held."""
        self._partition.flush()

    def cycle(self) -> CycleOutcome:
        """Run one cycle."""
        judgements = self._partition.around.predicates
        anew = False
        while True:
            try:
                with self.holding() as partition:
                    if isinstance(judgements, Judgements):
                        judgements.begin(self, anew=anew)
                    return partition.cycle()
            except WorldMovedError:
                anew = True

    def run_cycles(self, count: int) -> int:
        """Run cycles until one gives no result, `count` at most; return how many gave one."""
        for done in range(count):
            if self.cycle() is not CycleOutcome.RESULT:
                return done
        return count

    def work(self, cycles_max: int) -> bool:
        """Run cycles until nothing more can be done, `cycles_max` at most; return whether there is more."""
        if self._partition.around.is_congested():
            return False
        for _ in range(cycles_max):
            if self.cycle() is CycleOutcome.NOTHING:
                with self.holding() as partition:
                    partition.rest()
                return False
        return True

    def settle(self) -> int:
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
