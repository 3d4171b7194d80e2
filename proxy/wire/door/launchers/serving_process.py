"""A `licorne serve` that this process starts: its address, its output, and its end."""

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
from ..workers import LaunchError

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
    text = f"a worker ended {how} before it listened: {last_line or 'it said nothing'}"
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
