"""The worker of a partition, its place, and the interface of launchers, which start and replace workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Protocol, final

from ....model.errors import LicorneError

_LASTING_SECONDS: Final = 10.0
"""The lifetime after which a worker counts as successful: the next one does not wait."""
_FIRST_SECONDS: Final = 0.2
_LONGEST_SECONDS: Final = 5.0


class LaunchError(LicorneError):
    """A partition has no worker, and another try does not help; the text has the reason."""


@dataclass(frozen=True, slots=True)
class LaunchedWorker:
    """A process that schedules one partition, for each resource manager that has a partition of that name."""

    partition: str
    """The name of the partition in the configuration."""
    address: str
    """The address at which it serves `licorne.v1`: `HOST:PORT`."""
    number: int
    """The number of the worker among those of the partition, from 1."""
    token: str = field(default="", repr=False, compare=False)
    """The bearer token from its launcher; empty if it has the common one, if any."""
    has_listened: bool = field(default=False, compare=False)
    """Whether it listened when its launcher returned it: if nothing listens there, it has ended."""


class Launcher(Protocol):
    """Starts the workers of partitions. Its methods are called by several threads."""

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Start a worker of a partition without one; wait until its address is known, and return it.

        The worker may not listen yet.

        Args:
            partition: The name of the partition.
            given_up: Set when the caller gives up.

        Raises:
            LaunchError: The partition cannot have a worker.
            LicorneError: No worker is available now, but a later attempt may succeed; or the start was given
                up.
        """

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that a worker does not answer any longer; return at once.

        A process that still runs is ended. `start` returns another one.
        """

    def stop(self) -> None:
        """End all started workers, and the threads that start them."""


@final
class WorkerTable:
    """The worker of each partition; resource managers with a partition of one name share it.

    Args:
        launcher: The launcher of the workers.

    Raises:
        LicorneError: The argument is not a launcher.
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
        """Return the worker of a partition; start one if necessary. The arguments are those of `start`.

        Raises:
            LaunchError: The partition cannot have a worker.
            LicorneError: No worker is available now, or the start was given up.
        """
        with self._lock:
            starting = self._starting.setdefault(partition, threading.Lock())
        with starting:
            worker = self._workers.get(partition)
            if worker is None:
                worker = self._workers[partition] = self._launcher.start(partition, given_up)
            return worker

    def registering(self, partition: str) -> threading.Lock:
        """Return the lock for the registration of a link at a worker of a partition.

        So the actions of a link that is being closed come before those of the next link of the same resource
        manager.
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
        """Note that a worker does not answer any longer; a second report of the same one has no effect."""
        with self._lock:
            if self._workers.get(worker.partition) != worker:
                return
            del self._workers[worker.partition]
        self._launcher.lost(worker)


class LinkState(Enum):
    """The state of the link to the worker of a partition."""

    STARTING = "Starting"
    """The partition does not have a worker yet."""
    RECOVERING = "Recovering"
    """A worker gets the contents of the partition; nothing is placed in the meantime."""
    RUNNING = "Running"
    CLOSED = "Closed"
    """The resource manager has registered again, here or elsewhere, or has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlace:
    """A partition of a resource manager, and its worker."""

    rm_id: str
    partition: str
    """The name of the partition in the configuration, without the resource manager."""
    state: LinkState
    since_ns: int
    """The start of the present state, nanoseconds since 1970."""
    reason: str
    """The reason for the loss or the lack of a worker; empty without a failure."""
    address: str
    """The address at which the worker serves `licorne.v1`; empty without a worker."""
    rest_address: str
    """The address of the worker's REST interface, `HOST:PORT`; empty if it is unknown, or missing."""
    worker_number: int
    """The number of the worker among those of the partition, from 1; 0 without a worker."""
    waiting: int
    """The number of requests that wait in the door."""
    token: str = field(default="", repr=False, compare=False)
    """The bearer token that only this worker requires; empty without one."""

    def refusal(self, now_ns: int) -> str:
        """Return the error text for questions to the partition while it does not run."""
        seconds = (now_ns - self.since_ns) / 1e9
        why = f": {self.reason}" if self.reason else ""
        state = self.state.value.lower()
        return f"partition {self.partition!r} of RM {self.rm_id!r} is {state} since {seconds:.1f} s{why}"

    @classmethod
    def starting(cls, rm_id: str, partition: str, since_ns: int) -> PartitionPlace:
        """Return the place of a partition that has not had a worker yet."""
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
        """Return the same in another state; without a reason the earlier one stays."""
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
    """The number of failures in a row."""
    started_at: float | None = None
    """The start of the present worker; `None` without one."""


@final
class GrowingPauses:
    """The pauses before the workers of partitions.

    The first worker after a successful one starts at once. After workers that were lost soon, or did not
    start, the pauses grow: 0.2 s, then twice as long each time, up to 5 s.

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
        """Return the pause before the next worker of a partition."""
        with self._lock:
            failures = self._tries.setdefault(partition, _Tries()).failures
        return min(_FIRST_SECONDS * 2.0 ** (failures - 2), _LONGEST_SECONDS) if failures > 1 else 0.0

    def wait(self, partition: str, given_up: threading.Event) -> None:
        """Wait for the pause before the next worker of a partition.

        Raises:
            LicorneError: The start was given up.
        """
        if given_up.wait(self.next_seconds(partition)):
            raise LicorneError(f"the worker of partition {partition!r} was given up before it started")
