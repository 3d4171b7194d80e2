"""Workers that are child processes of the door, on the same machine, and the process of any worker.

A `ServingProcess` is a `licorne serve` that this process starts: its address, its output, and its end. The
actors of Ray start theirs the same way.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import IO, Final, final

from .....actors.services.interrupts import start_thread
from .....model.errors import LicorneError
from ....base.terminal.standard_output import BAD_INPUT, write_error
from ...server.watchdog import orders_line
from ...server.watchdog_process import DUMP_SIGNAL
from ..workers import GrowingPauses, LaunchedWorker, LaunchError

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
_LOOK_SECONDS: Final = 0.05
"""The interval at which a wait for a process checks whether it was given up."""
_LAST_LINES_SECONDS: Final = 2.0
"""The time limit for the last output of an ended process: its children may hold its standard error."""


def piped_process(arguments: Sequence[str]) -> subprocess.Popen[str]:
    """Start a module of Python, given with its arguments, in a new session.

    Raises:
        OSError: The process cannot be started.
    """
    return subprocess.Popen(  # noqa: S603 - our own programs
        [sys.executable, "-m", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )


@final
class ServingProcess:
    """A process that serves `licorne.v1`; it ends when this process has ended, and no RM is connected to it.

    It runs in a separate session: Ctrl-C in the terminal of this process does not reach it. It accepts
    clients with its token, and others only if its arguments allow it.

    Args:
        arguments: The arguments of `licorne serve`, including `--address`.
        write: Called with each line of its output, after its name.
        killed_with_parent: Whether Linux kills it when this process ends, even if its interpreter hangs.

    Raises:
        LicorneError: The system cannot start a process.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        write: Callable[[str], None] = write_error,
        *,
        killed_with_parent: bool = False,
    ) -> None:
        self.name = "spare worker"
        """The name of the process, for people."""
        self.address = ""
        """The address at which it serves `licorne.v1`; empty until it is known."""
        self.token: Final = secrets.token_urlsafe(32)
        """The bearer token that it requires, over gRPC and over REST."""
        self._write = write
        self._last_line = ""
        self._failure: LicorneError | None = None
        self._known = threading.Event()
        """Set when its address is known, or it has ended before."""
        self._ended = threading.Event()
        self._errors_end = threading.Event()
        command = ["licorne", "serve", *arguments, "--json", "--until-stdin-closes"]
        orders = orders_line(self.token, killed_with_parent=killed_with_parent)
        started: Future[subprocess.Popen[str]] = Future()
        # Linux kills it when the thread that has started it ends: this thread ends after the process.
        start_thread(partial(self._run, command, orders, started), "licorne-worker")
        self._process = started.result()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended completely."""
        return self._ended.is_set()

    def wait_for_address(self, given_up: threading.Event, seconds: float) -> str:
        """Return the address of `licorne.v1` once it is known; a process that takes too long is killed.

        Raises:
            LaunchError: The process refused its arguments.
            LicorneError: The process ended before it listened, did not listen in time, or was given up.
        """
        deadline = time.monotonic() + seconds
        while not self._known.wait(_LOOK_SECONDS):
            if given_up.is_set():
                self.kill()
                raise LicorneError("the worker was given up before it listened")
            if time.monotonic() >= deadline:
                self.kill()
                raise LicorneError(f"the worker did not listen within {seconds:g} s")
        if self._failure is not None:
            raise self._failure
        return self.address

    def wait_for_end(self, seconds: float) -> bool:
        """Return whether it ends within a number of seconds."""
        return self._ended.wait(seconds)

    def kill(self) -> None:
        """End it at once, without waiting for its end."""
        self._process.kill()

    def write_stacks(self) -> None:
        """Ask it to write the stacks of its threads, if it can, without waiting for that."""
        self._process.send_signal(DUMP_SIGNAL)

    def ask_to_end(self) -> None:
        """Ask it to end in order, which takes at most 5 s, without waiting for that."""
        self._process.terminate()

    def _run(self, command: Sequence[str], orders: str, started: Future[subprocess.Popen[str]]) -> None:
        """Start the process, and wait until it has ended."""
        try:
            self._process = process = piped_process(command)
        except OSError as error:
            started.set_exception(LicorneError(f"a worker cannot be started: {error.strerror or error}"))
            return
        assert process.stdin is not None
        with suppress(
            OSError
        ):  # It has ended already. After the line, the pipe only shows when this process is gone.
            process.stdin.write(orders)
            process.stdin.flush()
        started.set_result(process)
        start_thread(self._read_errors, f"licorne-worker-errors-{process.pid}")
        self._watch()

    def _watch(self) -> None:
        """Read the address, then wait for the end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        with suppress(ValueError, TypeError, KeyError):
            self.address = str(json.loads(line)["address"])
        if self.address:
            self._known.set()
        status = self._process.wait()
        if not self.address:
            self._errors_end.wait(_LAST_LINES_SECONDS)
            self._failure = _failure(status, self._last_line)
        self._ended.set()
        self._known.set()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                _closed(stream)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                text = line.rstrip()
                if text:
                    self._last_line = text
                    self._write(line_of(self.name, text))
        self._errors_end.set()


def _failure(status: int, last_line: str) -> LicorneError:
    """Return the reason why a process that has ended never listened."""
    how = f"with status {status}" if status >= 0 else f"by signal {-status}"
    text = f"a worker ended {how} before it listened: {last_line or 'it printed nothing'}"
    return LaunchError(text) if status == BAD_INPUT else LicorneError(text)


def _closed(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()


def line_of(name: str, line: str) -> str:
    """Return a line of a worker with its name: in front of the line, or as a field of a JSON object."""
    if line.startswith("{"):
        with suppress(ValueError):
            return json.dumps({**json.loads(line), "worker": name})
    return f"{name}: {line}"


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
