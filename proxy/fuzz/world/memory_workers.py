"""Workers of a door in memory: schedulers behind servers of a simulated network, which faults may befall."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Final, final

from ....model.errors import LicorneError
from ...core.scheduler.scheduler import Scheduler
from ...wire.door.workers import LaunchedWorker
from ...wire.server.server import ServerThread
from ..plans import one_of
from .memory_network import MemoryNetwork

_START_SECONDS: Final = (0.0, 0.0, 0.1, 1.0, 4.0)
_FAILING: Final = 0.1
"""How many of the attempts to start a worker fail."""


@final
class MemoryWorkers:
    """A launcher of schedulers in this process.

    Args:
        network: Where they listen.
        rng: Decides how long a start takes, and whether it fails.
        new_scheduler: Makes the scheduler of a worker.
    """

    def __init__(
        self, network: MemoryNetwork, rng: random.Random, new_scheduler: Callable[[], Scheduler]
    ) -> None:
        self._network = network
        self._rng = rng
        self._new_scheduler = new_scheduler
        self._lock = threading.Lock()
        self._started: dict[str, int] = {}
        """How many workers each partition has had."""
        self._running: dict[str, tuple[LaunchedWorker, ServerThread, Scheduler]] = {}
        """By partition."""
        self._ends: list[threading.Thread] = []
        self.outlive_door = False
        """Whether they stay when the door stops: its successor finds them."""

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Start a worker, or return the one that outlived the door before.

        Raises:
            LicorneError: There is none now, or it was given up.
        """
        if given_up.wait(one_of(self._rng, _START_SECONDS)):
            raise LicorneError(f"the worker of partition {partition!r} was given up")
        if self._rng.random() < _FAILING:
            raise LicorneError(f"there is no worker for partition {partition!r} now")
        with self._lock:
            running = self._running.get(partition)
        if running is not None:
            return running[0]
        scheduler = self._new_scheduler()
        server = ServerThread(scheduler)
        server.__enter__()
        with self._lock:
            number = self._started[partition] = self._started.get(partition, 0) + 1
            worker = LaunchedWorker(partition, server.address, number)
            self._running[partition] = worker, server, scheduler
        return worker

    def lost(self, worker: LaunchedWorker) -> None:
        """End a worker."""
        self.end(worker.partition, worker)

    def stop(self) -> None:
        """End all workers, unless they outlive the door."""
        if not self.outlive_door:
            self.end_all()

    def end_all(self) -> None:
        """End all workers, and wait until they have ended."""
        for partition in [*self._running]:
            self.end(partition)
        for thread in self._ends:
            thread.join()

    def end(self, partition: str, worker: LaunchedWorker | None = None) -> None:
        """Kill the worker of a partition, if it is this one: what it says from now on is lost."""
        with self._lock:
            running = self._running.get(partition)
            if running is None or worker not in (None, running[0]):
                return
            del self._running[partition]
        found, server, _ = running
        self._network.end_server(found.address)
        thread = threading.Thread(
            target=server.__exit__, args=(None, None, None), name=f"end of {found.address}", daemon=True
        )
        self._ends.append(thread)
        thread.start()

    def addresses(self) -> dict[str, str]:
        """Return where the worker of each partition listens."""
        return {partition: worker.address for partition, (worker, *_) in sorted(self._running.items())}

    def scheduler_of(self, partition: str) -> Scheduler:
        """Return the scheduler of the worker of a partition."""
        return self._running[partition][2]
