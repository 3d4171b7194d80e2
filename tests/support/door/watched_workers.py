"""Workers of a door that a test can kill, stop, and cut off: real processes, also behind a TCP proxy."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import final

from support.proxy.cutting_proxy import CuttingProxy
from support.proxy.worker_processes import is_alive

from licorne.proxy.wire.door.launchers.local import LocalLauncher
from licorne.proxy.wire.door.workers import LaunchedWorker, PartitionPlace


@final
class WatchedWorkers:
    """A launcher of child processes.

    Args:
        behind_proxies: Whether each worker is behind a proxy. Then one that is lost stays alive, as if it
            were on another machine that cannot be reached.

    Attributes:
        proxies: The proxy of each worker, also of one that was lost.
    """

    def __init__(self, *, behind_proxies: bool = False) -> None:
        self._launcher = LocalLauncher(write=lambda _: None, spare_after_seconds=0)
        self._behind_proxies = behind_proxies
        self._lock = threading.Lock()
        self.proxies: dict[LaunchedWorker, CuttingProxy] = {}
        self._processes: dict[LaunchedWorker, int] = {}
        self._last: dict[str, LaunchedWorker] = {}
        """The last one of each partition."""

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Start a worker."""
        worker = self._launcher.start(partition, given_up)
        process = self._launcher.process_of(worker)
        assert process is not None
        if self._behind_proxies:
            proxy = CuttingProxy(int(worker.address.rpartition(":")[2]))
            proxy.__enter__()
            worker = replace(worker, address=proxy.address)
            self.proxies[worker] = proxy
        with self._lock:
            self._processes[worker] = process.pid
        self._last[partition] = worker
        return worker

    def of_another_door(self) -> SameWorkers:
        """Return a launcher for another door, which gives it the workers of this one."""
        return SameWorkers(self._last)

    def lost(self, worker: LaunchedWorker) -> None:
        """Have a process that is lost killed, unless it is behind a proxy."""
        self._launcher.lost(worker)

    def stop(self) -> None:
        """End all processes; those that were stopped by a signal go on first."""
        for pid in self._processes.values():
            _send(pid, signal.SIGCONT)
        self._launcher.stop()
        for proxy in self.proxies.values():
            proxy.__exit__(None, None, None)

    def signal(self, place: PartitionPlace, number: signal.Signals) -> None:
        """Send a signal to the worker at a place; one that has ended is left alone."""
        worker = LaunchedWorker(place.partition, place.address, place.worker_number)
        with self._lock:
            pid = self._processes.get(worker)
        if pid is not None:
            _send(pid, number)

    def is_alive(self, place: PartitionPlace) -> bool:
        """Return whether the process of the worker at a place is there."""
        worker = LaunchedWorker(place.partition, place.address, place.worker_number)
        return is_alive(self._processes[worker])

    def proxy_of(self, place: PartitionPlace) -> CuttingProxy:
        """Return the proxy of the worker at a place."""
        return self.proxies[LaunchedWorker(place.partition, place.address, place.worker_number)]


@final
class SameWorkers:
    """A launcher that starts nothing: it gives another door the last worker of each partition."""

    def __init__(self, last: Mapping[str, LaunchedWorker]) -> None:
        self._last = last

    def start(self, partition: str, _: threading.Event) -> LaunchedWorker:
        """Return the worker."""
        return self._last[partition]

    def lost(self, worker: LaunchedWorker) -> None:
        """Leave the worker to whoever has started it."""

    def stop(self) -> None:
        """Leave all workers to whoever has started them."""


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
