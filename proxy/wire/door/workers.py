"""The worker of a partition, where it runs, and what a launcher is: it starts and replaces workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Protocol, final

from ....model.errors import LicorneError

_LASTING_SECONDS: Final = 10.0
"""A worker that was there so long did well: the next one does not wait."""
_FIRST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 5.0


class LaunchError(LicorneError):
    """There is no worker for a partition, and trying again does not help; the text says why."""


@dataclass(frozen=True, slots=True)
class LaunchedWorker:
    """A process that schedules one partition, for each resource manager that has a partition of that name."""

    partition: str
    """The name of the partition, as the configuration has it."""
    address: str
    """Where it serves `licorne.v1`: `HOST:PORT`."""
    number: int
    """Counts the workers of the partition, from 1."""
    token: str = field(default="", repr=False, compare=False)
    """The bearer token that its launcher has given it; empty for that of all workers, if there is one."""
    has_listened: bool = field(default=False, compare=False)
    """Whether it listened when its launcher returned it: if nothing listens there, it has ended."""


class Launcher(Protocol):
    """Starts the workers of partitions. Its methods are called by several threads."""

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return a worker of a partition that has none; wait until its address is known.

        The worker may not listen yet.

        Args:
            partition: The name of the partition.
            given_up: Set when the caller does not want it any more.

        Raises:
            LaunchError: There can be no worker.
            LicorneError: There is none now, and a later attempt may find one; or it was given up.
        """

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that a worker does not answer any more; return at once.

        A process that still runs is ended. `start` returns another one.
        """

    def stop(self) -> None:
        """End all workers that were started, and what starts them."""


@final
class WorkerTable:
    """The worker of each partition; resource managers with a partition of one name share it.

    Args:
        launcher: Starts and replaces them.

    Raises:
        LicorneError: That is not a launcher.
    """

    def __init__(self, launcher: Launcher) -> None:
        if not all(callable(getattr(launcher, name, None)) for name in ("start", "lost", "stop")):
            raise LicorneError(f"launcher={launcher!r:.200} has no methods start, lost and stop")
        self._launcher = launcher
        self._lock = threading.Lock()
        self._starting: dict[str, threading.Lock] = {}
        """Held while the worker of a partition is started."""
        self._registering: dict[str, threading.Lock] = {}
        self._workers: dict[str, LaunchedWorker] = {}

    def worker_of(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return the worker of a partition; start one if there is none. The arguments are those of `start`.

        Raises:
            LaunchError: There can be no worker.
            LicorneError: There is none now, or it was given up.
        """
        with self._lock:
            starting = self._starting.setdefault(partition, threading.Lock())
        with starting:
            worker = self._workers.get(partition)
            if worker is None:
                worker = self._workers[partition] = self._launcher.start(partition, given_up)
            return worker

    def registering(self, partition: str) -> threading.Lock:
        """Return what is held while a link registers at a worker of a partition.

        So what a link does that is being closed comes before what the next link of the same resource manager
        does.
        """
        with self._lock:
            return self._registering.setdefault(partition, threading.Lock())

    def end(self, partition: str) -> None:
        """End the worker of a partition that no resource manager has."""
        with self._lock:
            worker = self._workers.pop(partition, None)
        if worker is not None:
            self._launcher.lost(worker)

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that a worker does not answer any more; a second report of the same one has no effect."""
        with self._lock:
            if self._workers.get(worker.partition) != worker:
                return
            del self._workers[worker.partition]
        self._launcher.lost(worker)


class LinkState(Enum):
    """How the link to the worker of a partition is."""

    STARTING = "Starting"
    """There is no worker yet."""
    RECOVERING = "Recovering"
    """A worker gets what the partition holds; nothing is placed meanwhile."""
    RUNNING = "Running"
    CLOSED = "Closed"
    """The resource manager has registered again, here or elsewhere, or has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlace:
    """A partition of a resource manager, and the worker that it is on."""

    rm_id: str
    partition: str
    """Its name as the configuration has it, without the resource manager."""
    state: LinkState
    since_ns: int
    """Since when it is in this state, nanoseconds since 1970."""
    reason: str
    """Why the worker before was lost, or why there is none; empty if nothing went wrong."""
    address: str
    """Where the worker serves `licorne.v1`; empty while there is none."""
    rest_address: str
    """Where the worker's REST interface listens, `HOST:PORT`; empty if that is not known, or it has none."""
    worker_number: int
    """Counts the workers of the partition, from 1; 0 while there is none."""
    waiting: int
    """How many requests wait in the door."""
    token: str = field(default="", repr=False, compare=False)
    """The bearer token that this worker alone requires; empty if it has none of its own."""

    def refusal(self, now_ns: int) -> str:
        """Return what is said to those who ask the partition something while it does not run."""
        seconds = (now_ns - self.since_ns) / 1e9
        why = f": {self.reason}" if self.reason else ""
        state = self.state.value.lower()
        return f"partition {self.partition!r} of RM {self.rm_id!r} is {state} since {seconds:.1f} s{why}"

    @classmethod
    def starting(cls, rm_id: str, partition: str, since_ns: int) -> PartitionPlace:
        """Return the place of a partition that has had no worker yet."""
        return cls(
            rm_id=rm_id,
            partition=partition,
            state=LinkState.STARTING,
            since_ns=since_ns,
            reason="",
            address="",
            rest_address="",
            worker_number=0,
            waiting=0,
        )

    def entered(self, state: LinkState, reason: str | None, now_ns: int) -> PartitionPlace:
        """Return the same in another state; without a reason the one before stays."""
        return replace(self, state=state, since_ns=now_ns, reason=self.reason if reason is None else reason)

    def at(self, worker: LaunchedWorker, rest_address: str) -> PartitionPlace:
        """Return the same at a worker."""
        return replace(
            self,
            address=worker.address,
            rest_address=rest_address,
            worker_number=worker.number,
            token=worker.token,
        )


@dataclass(slots=True)
class _Tries:
    """The workers of one partition."""

    failures: int = 0
    """How many failed one after the other."""
    started_at: float | None = None
    """When the present one was there; `None` if there is none."""


@final
class GrowingPauses:
    """The pauses before the workers of partitions.

    The first worker after one that did well starts at once. Those after workers that were lost soon, or did
    not start, wait longer each time: 0.2 s, then twice as long, up to 5 s.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: dict[str, _Tries] = {}
        self._lock = threading.Lock()

    def started(self, partition: str) -> None:
        """Note that a partition has a worker."""
        with self._lock:
            self._tries.setdefault(partition, _Tries()).started_at = self._clock()

    def failed(self, partition: str) -> None:
        """Note that the worker of a partition is lost, or that it did not start."""
        with self._lock:
            tries = self._tries.setdefault(partition, _Tries())
            if tries.started_at is not None and self._clock() - tries.started_at >= _LASTING_SECONDS:
                tries.failures = 0
            tries.failures += 1
            tries.started_at = None

    def next_seconds(self, partition: str) -> float:
        """Return how long the next worker of a partition is to wait."""
        with self._lock:
            failures = self._tries.setdefault(partition, _Tries()).failures
        return min(_FIRST_SECONDS * 2.0 ** (failures - 2), _LONGEST_SECONDS) if failures > 1 else 0.0

    def wait(self, partition: str, given_up: threading.Event) -> None:
        """Wait as long as the next worker of a partition is to wait.

        Raises:
            LicorneError: It was given up.
        """
        if given_up.wait(self.next_seconds(partition)):
            raise LicorneError(f"the worker of partition {partition!r} was given up before it started")
