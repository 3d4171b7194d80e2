"""Workers that are child processes of the door, on its machine."""

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
"""How long a worker may take until it listens; on a machine with too much to do it took 18 s."""
_SPARE_AFTER_SECONDS: Final = 10.0
"""From the moment when a spare is taken to the start of the next one. That takes a core for more than a
second, which a partition that recovers, and those beside it, need more."""
_ORDERLY_SECONDS: Final = 2.5
"""How long the end of all workers may take: the door itself has 5 s."""
_STACKS_SECONDS: Final = 0.2
_KILLED_SECONDS: Final = 1.0
_ADDRESSES: Final = ("--address", "127.0.0.1:0", "--rest-address", "127.0.0.1:0")


@final
class LocalLauncher:
    """Starts workers as processes that listen on the loopback interface, and keeps a spare one ready.

    The spare has loaded all and listens; it is for any partition, since a worker learns its partition when
    a resource manager registers. It is started when the first worker listens, and again some seconds after
    it was taken. All workers end when this process has ended, however that came about. Each
    requires a bearer token of its own, which the door alone knows.

    Args:
        arguments: Of `licorne serve`, for each worker, such as `--engine threads`.
        write: Gets each line that a worker says, with its name in front.
        spare_after_seconds: How long after a spare was taken the next one is started.
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
        """Starts the next spare; `None` if none is due."""
        self._processes: dict[LaunchedWorker, ServingProcess] = {}
        self._starting: set[ServingProcess] = set()
        self._counts: dict[str, int] = {}
        """How many workers each partition has had."""
        self._is_stopped = False

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return the spare process as the worker of a partition; the next spare is started later.

        Where there is none it starts a process, and waits until it listens.
        After workers that were lost soon there is a pause, see `GrowingPauses`.

        Raises:
            LaunchError: It refuses its arguments.
            LicorneError: It ended before it listened, or it was given up, or this has been stopped.
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
        """Kill the process of a worker; one that is not known is left alone."""
        with self._lock:
            process = self._processes.pop(worker, None)
        if process is not None:
            self._pauses.failed(worker.partition)
            process.kill()

    def stop(self) -> None:
        """End all processes; those that do not end in order, within 2.5 s, are killed."""
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
        """Return the process of a worker, `None` if it is lost or not known."""
        with self._lock:
            return self._processes.get(worker)

    def _take(self, partition: str) -> tuple[ServingProcess, int]:
        """Return a process for a partition, and its number: the spare if there is one.

        Raises:
            LicorneError: The system starts no process, or this has been stopped.
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
        """Note that a process is a worker; a spare is started later if there is none."""
        with self._lock:
            self._processes[worker] = process
            if self._is_stopped:  # `stop` did not know of it.
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
                with suppress(LicorneError):  # The next start tries again, and says why it fails.
                    self._spare = self._new_process()


def _left(processes: Sequence[ServingProcess], seconds: float) -> list[ServingProcess]:
    """Return which processes have not ended within so many seconds for all of them."""
    deadline = time.monotonic() + seconds
    return [each for each in processes if not each.wait_for_end(max(deadline - time.monotonic(), 0.0))]
