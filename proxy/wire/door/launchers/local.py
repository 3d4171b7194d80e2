"""Workers that are child processes of the door, on the same machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, final

from .....model.errors import LicorneError
from ....base.terminal.standard_output import write_error
from ..workers import GrowingPauses, LaunchedWorker
from .serving_process import ServingProcess

_LISTENING_SECONDS: Final = 120.0
"""The time limit until a worker listens; on an overloaded machine it took 18 s."""
_SPARE_AFTER_SECONDS: Final = 10.0
"""The time from taking a spare to the start of the next one. The start uses a core for more than a second,
which the recovering partition and the others need more."""
_ORDERLY_SECONDS: Final = 2.5
"""The time limit for the end of all workers; the door itself has 5 s."""
_STACKS_SECONDS: Final = 0.2
_KILLED_SECONDS: Final = 1.0
_ADDRESSES: Final = ("--address", "127.0.0.1:0", "--rest-address", "127.0.0.1:0")


@final
class LocalLauncher:
    """Starts workers as processes that listen on the loopback interface, and keeps a spare one ready.

    The spare has loaded everything and listens. It can serve any partition, since a worker learns its
    partition when a resource manager registers. It is started when the first worker listens, and again some
    seconds after it was taken. All workers end when this process has ended, for whatever reason. Each
    requires its own bearer token, which only the door knows.

    Args:
        arguments: The arguments of `licorne serve`, for each worker, such as `--engine threads`.
        write: Called with each line of output of a worker, after its name.
        spare_after_seconds: The time from taking a spare to the start of the next one.
    """

    def __init__(
        self,
        arguments: Sequence[str] = (),
        write: Callable[[str], None] = write_error,
        *,
        spare_after_seconds: float = _SPARE_AFTER_SECONDS,
    ) -> None:
        self._spare_after_seconds = spare_after_seconds
        self._arguments = (*arguments, *_ADDRESSES)
        self._write = write
        self._pauses = GrowingPauses()
        self._lock = threading.Lock()
        self._spare: ServingProcess | None = None
        self._had_spare = False
        self._spare_timer: threading.Timer | None = None
        """The timer that starts the next spare; `None` if it is not due."""
        self._processes: dict[LaunchedWorker, ServingProcess] = {}
        self._starting: set[ServingProcess] = set()
        self._counts: dict[str, int] = {}
        """The number of workers that each partition has had."""
        self._is_stopped = False

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return the spare process as the worker of a partition; the next spare is started later.

        Without a spare it starts a process, and waits until it listens. After workers that were lost soon
        there is a pause, see `GrowingPauses`.

        Raises:
            LaunchError: The process refuses its arguments.
            LicorneError: The process ended before it listened, the start was given up, or the launcher has
                stopped.
        """
        self._pauses.wait(partition, given_up)
        process, number = self._take(partition)
        try:
            address = process.wait_for_address(given_up, _LISTENING_SECONDS)
        except LicorneError:
            self._pauses.failed(partition)
            raise
        finally:
            with self._lock:
                self._starting.discard(process)
        worker = LaunchedWorker(partition, address, number, process.token, has_listened=True)
        self._pauses.started(partition)
        self._keep(worker, process)
        return worker

    def lost(self, worker: LaunchedWorker) -> None:
        """Kill the process of a worker; an unknown worker is ignored."""
        with self._lock:
            process = self._processes.pop(worker, None)
        if process is not None:
            self._pauses.failed(worker.partition)
            process.kill()

    def stop(self) -> None:
        """End all processes; those that do not end within 2.5 s are killed."""
        with self._lock:
            self._is_stopped = True
            if self._spare_timer is not None:
                self._spare_timer.cancel()
            spares = [] if self._spare is None else [self._spare]
            processes = [*self._processes.values(), *self._starting, *spares]
            self._processes.clear()
            self._spare = None
        for process in processes:
            process.ask_to_end()
        hung = _left(processes, _ORDERLY_SECONDS)
        for process in hung:
            process.write_stacks()
        hung = _left(hung, _STACKS_SECONDS)
        for process in hung:
            process.kill()
        _left(hung, _KILLED_SECONDS)

    def process_of(self, worker: LaunchedWorker) -> ServingProcess | None:
        """Return the process of a worker, `None` if it is lost or unknown."""
        with self._lock:
            return self._processes.get(worker)

    def _take(self, partition: str) -> tuple[ServingProcess, int]:
        """Return a process for a partition, and its number: the spare if there is one.

        Raises:
            LicorneError: The system cannot start a process, or the launcher has stopped.
        """
        with self._lock:
            if self._is_stopped:
                raise LicorneError("the launcher has been stopped")
            process, self._spare = self._spare, None
            if process is None or process.has_ended:
                process = self._new_process()
            number = self._counts[partition] = self._counts.get(partition, 0) + 1
            process.name = f"worker {number} of {partition}"
            self._starting.add(process)
            return process, number

    def _new_process(self) -> ServingProcess:
        return ServingProcess(self._arguments, self._write, killed_with_parent=True)

    def _keep(self, worker: LaunchedWorker, process: ServingProcess) -> None:
        """Note that a process is a worker; a new spare is started later if one is missing."""
        with self._lock:
            self._processes[worker] = process
            if self._is_stopped:  # `stop` did not have it.
                process.kill()
            elif self._spare is None and self._spare_timer is None:
                seconds = self._spare_after_seconds if self._had_spare else 0.0
                self._spare_timer = threading.Timer(seconds, self._start_spare)
                self._spare_timer.daemon = True
                self._spare_timer.start()

    def _start_spare(self) -> None:
        with self._lock:
            self._spare_timer = None
            self._had_spare = True
            if self._spare is None and not self._is_stopped:
                with suppress(LicorneError):  # The next start tries again, and raises the error.
                    self._spare = self._new_process()


def _left(processes: Sequence[ServingProcess], seconds: float) -> list[ServingProcess]:
    """Return the processes that have not all ended within a number of seconds."""
    deadline = time.monotonic() + seconds
    return [each for each in processes if not each.wait_for_end(max(deadline - time.monotonic(), 0.0))]
