"""The worker of a partition, and what a launcher is: it starts workers, and replaces them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Protocol, final

from ....model.errors import LicorneError


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
