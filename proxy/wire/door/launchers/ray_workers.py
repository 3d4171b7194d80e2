"""Which workers Ray has started, and which partitions they are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict, final

from ..workers import LaunchedWorker

if TYPE_CHECKING:
    from .ray_worker import WorkerSeen

_LOST_MAX: Final = 1_000
"""How many lost workers are remembered."""


class WorkerToEnd(TypedDict):
    """A process that is to end: the number of its actor, and its id."""

    actor: int
    id: str


@dataclass(frozen=True, slots=True)
class _Placed:
    """A process on a node, held by an actor."""

    actor: int
    id: str
    address: str
    token: str
    node: str


@final
class RayWorkers:
    """The table of workers: spare ones, and those in use. Its user makes one call at a time."""

    def __init__(self) -> None:
        self.refusal = ""
        """Why `licorne serve` starts nowhere; empty if it does."""
        self._spares: dict[str, _Placed] = {}
        self._used: dict[LaunchedWorker, _Placed] = {}
        self._counts: dict[str, int] = {}
        """How many workers each partition has had."""
        self._left: dict[str, str] = {}
        """The node on which each partition has lost its last worker."""
        self._lost: dict[str, None] = {}
        """The ids of workers that were lost, the latest last."""

    @property
    def partitions(self) -> int:
        """How many partitions have asked for a worker."""
        return len(self._counts)

    def want(self, partition: str) -> None:
        """Note that a partition wants a worker."""
        self._counts.setdefault(partition, 0)

    def take(self, partition: str) -> LaunchedWorker | None:
        """Return a spare as the worker of a partition, on another node than its last one if there is one."""
        left = self._left.get(partition)
        placed = min(self._spares.values(), key=lambda spare: spare.node == left, default=None)
        if placed is None:
            return None
        del self._spares[placed.id]
        self._counts[partition] += 1
        worker = LaunchedWorker(partition, placed.address, self._counts[partition], placed.token, True)
        self._used[worker] = placed
        return worker

    def lose(self, worker: LaunchedWorker) -> WorkerToEnd | None:
        """Note that a worker is lost; return what is to end, `None` for one that is not known."""
        placed = self._used.pop(worker, None)
        if placed is None:
            return None
        self._left[worker.partition] = placed.node
        self._lost[placed.id] = None
        if len(self._lost) > _LOST_MAX:
            del self._lost[next(iter(self._lost))]
        return WorkerToEnd(actor=placed.actor, id=placed.id)

    def seen(self, actor: int, seen: WorkerSeen) -> WorkerToEnd | None:
        """Note a worker that Ray has started; return what is to end if it is one that was lost."""
        self.refusal = seen["refusal"]
        if self.refusal:
            return None
        if seen["id"] in self._lost:
            return WorkerToEnd(actor=actor, id=seen["id"])
        if all(placed.id != seen["id"] for placed in self._used.values()):
            placed = _Placed(actor, seen["id"], seen["address"], seen["token"], seen["node"])
            self._spares[placed.id] = placed
        return None

    def gone(self, worker_id: str) -> None:
        """Note that Ray does not reach a worker; one that is in use is lost when the door says so."""
        self._spares.pop(worker_id, None)

    def forget_spares(self) -> None:
        """Note that nothing is known of the spares any more."""
        self._spares.clear()
