"""Workers on threads of this process: real servers, which start at once."""

from __future__ import annotations

import threading
from typing import final

from licorne import Scheduler
from licorne.proxy.wire.door.workers import LaunchedWorker, LaunchError
from licorne.proxy.wire.server.server import ServerThread


@final
class ThreadWorkers:
    """A launcher of servers on threads.

    Attributes:
        missing: Why there is no worker for a partition, by its name.
        started: The workers that were started, in order.
        lost_workers: Those that were reported as lost, in order.
    """

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        self.started: list[LaunchedWorker] = []
        self.lost_workers: list[LaunchedWorker] = []
        self._lock = threading.Lock()
        self._servers: dict[LaunchedWorker, ServerThread] = {}
        self._schedulers: dict[LaunchedWorker, Scheduler] = {}

    def start(self, partition: str, _: threading.Event) -> LaunchedWorker:
        """Start a server."""
        if partition in self.missing:
            raise LaunchError(self.missing[partition])
        scheduler = Scheduler()
        server = ServerThread(scheduler)
        server.__enter__()
        with self._lock:
            number = 1 + sum(worker.partition == partition for worker in self.started)
            worker = LaunchedWorker(partition, server.address, number)
            self.started.append(worker)
            self._servers[worker], self._schedulers[worker] = server, scheduler
        return worker

    def scheduler_of(self, partition: str) -> Scheduler:
        """Return the scheduler of the last worker of a partition."""
        return self._schedulers[[worker for worker in self.started if worker.partition == partition][-1]]

    def end(self, partition: str) -> None:
        """End the last worker of a partition; its sessions are lost."""
        self._end([worker for worker in self.started if worker.partition == partition][-1])

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that a worker is lost, and end it."""
        self.lost_workers.append(worker)
        threading.Thread(target=self._end, args=[worker]).start()

    def _end(self, worker: LaunchedWorker) -> None:
        with self._lock:
            server = self._servers.pop(worker, None)
        if server is not None:
            server.__exit__(None, None, None)

    def stop(self) -> None:
        """End all servers."""
        for worker in [*self._servers]:
            self._end(worker)
