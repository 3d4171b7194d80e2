"""The program of `Watchdog`: it ends the process that started it when that does not react to a signal.

It runs apart, with few modules, and imports nothing of this package: `python -I -S watchdog_process.py`.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Final, final

DUMP_SIGNAL: Final = signal.SIGUSR2
"""Makes the watched process write the stacks of its threads."""
EXIT_SIGNAL: Final = signal.Signals(getattr(signal, "SIGRTMAX", signal.SIGUSR1))
"""Ends process 1 of a container: the kernel gives it no SIGKILL that a process of the container sends."""
INPUT_ENDED: Final = b"e"
"""The line that the watched process writes when it has seen the end of its standard input."""
LEAVING: Final = b"l"
"""The line that it writes when its program has ended: it frees its memory then, and runs no threads."""

_INPUT: Final = 0
_LOG: Final = 2
_READ_MAX: Final = 65_536
_STEP_SECONDS: Final = 0.25
_DUMP_SECONDS: Final = 0.3
"""How long writing the stacks may take."""
_ORDERLY_SECONDS: Final = 30.0
"""How long an orderly end may take while the interpreter runs, or frees its memory."""


@final
class WatchedProcess:
    """The process that started this one. It is never mistaken for another one that has got its number."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.handle: int | None = None
        """A file that refers to it; `None` where the system has no such files."""
        with suppress(AttributeError, OSError):
            self.handle = os.pidfd_open(pid)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended; this process has another parent then."""
        return os.getppid() != self.pid

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it has not ended."""
        with suppress(OSError):
            if self.has_ended:
                return
            if self.handle is None:
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(self.handle, number)

    def end(self, why: str) -> None:
        """Make it write its stacks, and kill it."""
        log = select.poll()
        log.register(_LOG, select.POLLOUT)
        if log.poll(0):  # A pipe may be full.
            text = f"licorne: {why}: process {self.pid} is killed; where its threads are:\n"
            with suppress(OSError):
                os.write(_LOG, text.encode())
        self.send(DUMP_SIGNAL)
        time.sleep(_DUMP_SECONDS)
        self.send(EXIT_SIGNAL if self.pid == 1 else signal.SIGKILL)


@final
class HangWatch:
    """The state of the process: whether it was asked to end, and whether its interpreter has run since.

    Args:
        watched: The process.
        signals: Gets bytes when a signal has arrived that asks for the end.
        alive: Gets bytes when the interpreter has run since, and `INPUT_ENDED`.
        patience_seconds: How long the interpreter may not run after such a signal.
        input_seconds: How long it may not run after the end of the standard input.
    """

    def __init__(
        self, watched: WatchedProcess, signals: int, alive: int, patience_seconds: float, input_seconds: float
    ) -> None:
        self._watched = watched
        self._signals = signals
        self._alive = alive
        self._patience_seconds = patience_seconds
        self._input_seconds = input_seconds
        self._seconds = 0.0
        """How long this process has run. While all processes of its group are stopped no time passes."""
        self._asked_at: float | None = None
        self._heard_at = 0.0
        self._input_ended_at: float | None = None

    def wait(self) -> str:
        """Wait until the process has ended or has to be; return why it has to be, nothing if it has ended."""
        poll = select.poll()
        poll.register(self._signals, select.POLLIN)
        poll.register(self._alive, select.POLLIN)
        poll.register(_INPUT, 0)  # Where it is a pipe its end is reported all the same.
        if self._watched.handle is not None:
            poll.register(self._watched.handle, select.POLLIN)
        at = time.monotonic()
        while True:
            is_armed = self._asked_at is not None or self._input_ended_at is not None
            ready = {descriptor for descriptor, _ in poll.poll(_STEP_SECONDS * 1000 if is_armed else None)}
            before, at = at, time.monotonic()
            self._seconds += min(at - before, 2 * _STEP_SECONDS)
            if _INPUT in ready:
                poll.unregister(_INPUT)
                self._input_ended_at = self._seconds
            if not self._take(ready):
                return ""
            why = self._why_to_end()
            if why:
                return why

    def _take(self, ready: set[int]) -> bool:
        """Take what has been written; return whether the process still runs."""
        if self._signals in ready and os.read(self._signals, _READ_MAX) and self._asked_at is None:
            self._asked_at = self._heard_at = self._seconds
        if self._alive in ready:
            said = os.read(self._alive, _READ_MAX)
            self._heard_at = self._seconds
            if INPUT_ENDED in said:
                self._input_ended_at = None
            if LEAVING in said:
                self._patience_seconds = self._input_seconds = _ORDERLY_SECONDS
            if not said:
                return False
        return not self._watched.has_ended

    def _why_to_end(self) -> str:
        if self._asked_at is not None:
            if self._seconds - self._heard_at >= self._patience_seconds:
                return f"a signal asks for the end, and Python has not run for {self._patience_seconds:g} s"
            if self._seconds - self._asked_at >= _ORDERLY_SECONDS:
                return f"a signal asks for the end, which has taken {_ORDERLY_SECONDS:g} s"
        if self._input_ended_at is not None and self._seconds - self._input_ended_at >= self._input_seconds:
            return f"the parent process has ended, and Python has not run for {self._input_seconds:g} s"
        return ""


def _main(parent: str, signals: str, alive: str, patience_seconds: str, input_seconds: str) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # A terminal or systemd sends them to all.
        signal.signal(number, signal.SIG_IGN)
    watched = WatchedProcess(int(parent))
    why = HangWatch(watched, int(signals), int(alive), float(patience_seconds), float(input_seconds)).wait()
    if why:
        watched.end(why)


if __name__ == "__main__":
    _main(*sys.argv[1:])
