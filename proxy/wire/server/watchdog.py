"""The end of a process whose interpreter is held, and of one whose parent has ended.

A handler of Python never runs while a thread holds the interpreter, be it in native code or in an expression
that takes years, and neither does a timer. Then a signal that asks for the end would have no effect. So
another process watches. The C code of `faulthandler`, which needs no interpreter, tells it of the signal, and
a thread of Python tells it that the interpreter runs. If it does not, the other process has the stacks of all
threads written, and kills this one.

A thread of gRPC that is just starting another thread may take a signal before the main thread wakes. Such a
thread runs no Python, so `faulthandler` writes nothing of that signal. If the interpreter is held then, only
the next signal has an effect.

Rejected: the wakeup descriptor of the module `signal` instead of `faulthandler`: asyncio needs it, and
only one process can read its bytes. A traceback that `faulthandler` writes later: it is armed before the
signal, and would end a process that was not asked to end. A fork instead of a program: each page of this
process that changes is copied.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Final, final

from ....actors.services.interrupts import start_thread
from ....model.errors import LicorneError
from ....model.values.states import ManagerState
from ...core.scheduler.scheduler import Scheduler
from . import watchdog_process
from .watchdog_process import DUMP_SIGNAL, EXIT_SIGNAL, INPUT_ENDED, LEAVING

PATIENCE_SECONDS: Final = 4.0
"""How long Python may not run after a signal: the process has ended after 5 s."""
INPUT_SECONDS: Final = 30.0
"""How long it may not run after the standard input of a worker has ended: much may go on there."""
ALIVE_SECONDS: Final = 0.5
"""How often a running interpreter reports itself."""
_STDERR: Final = 2
_LOOK_SECONDS: Final = 0.25
"""How often a server without a parent looks whether a resource manager is connected."""
_ORDERLY_SECONDS: Final = 10.0
"""How long an orderly end may take; a server stops within 5 s."""
_LINE_BYTES_MAX: Final = 4_096
_PR_SET_PDEATHSIG: Final = 1


@final
class Watchdog:
    """A small process that ends this one if it does not react to SIGTERM or SIGINT; it ends with this one.

    It takes some 4 MB. From now on SIGUSR2 makes this process write the stacks of its threads to its log.

    Args:
        reads_input: Whether a thread reads the standard input to its end, and then calls `input_ended`. Where
            it does not within 30 s this process is ended as well: the interpreter is held.

    Raises:
        LicorneError: The system starts no process.
    """

    def __init__(self, *, reads_input: bool = False) -> None:
        signals, self._signals = os.pipe()
        alive, self._alive = os.pipe()
        for end in (self._signals, self._alive):
            os.set_blocking(end, False)
        self._watched: tuple[signal.Signals, ...] = ()
        self._is_stopping = threading.Lock()
        """Held until it is: a signal handler may release it, whatever it has interrupted."""
        self._is_stopping.acquire()
        command = [sys.executable, "-I", "-S", watchdog_process.__file__]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                [*command, *map(str, (os.getpid(), signals, alive, PATIENCE_SECONDS, INPUT_SECONDS))],
                stdin=None if reads_input else subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(signals, alive),
            )
        except OSError as error:
            raise LicorneError(f"the watchdog cannot be started: {error.strerror or error}") from error
        finally:
            os.close(signals)
            os.close(alive)
        faulthandler.register(DUMP_SIGNAL, file=_STDERR)
        if os.getpid() == 1:
            _exit_on(EXIT_SIGNAL)
        atexit.register(self._say, LEAVING)
        start_thread(self._say_alive, "licorne-alive")

    def watch(self, *numbers: signal.Signals) -> None:
        """Watch the reaction to signals, whose handlers have been set; each handler calls `stopping`."""
        self._watched = numbers
        for number in numbers:
            faulthandler.register(number, file=self._signals, all_threads=False, chain=True)

    def stopping(self) -> None:
        """Note that the process reacts; from now on another one of the signals ends it at once.

        It is still ended if the interpreter is held then, or if it has not ended after 30 s.
        """
        for number in self._watched:
            faulthandler.unregister(number)
            signal.signal(number, signal.SIG_DFL)
        self._is_stopping.release()

    def input_ended(self) -> None:
        """Note that the end of the standard input has been seen."""
        self._say(INPUT_ENDED)

    def _say(self, what: bytes) -> None:
        with suppress(OSError):
            os.write(self._alive, what)

    def _say_alive(self) -> None:
        self._is_stopping.acquire()
        with suppress(OSError):  # The watchdog has ended.
            while True:
                os.write(self._alive, b".")
                time.sleep(ALIVE_SECONDS)


def _exit_on(number: signal.Signals) -> None:
    """Let a signal call `_exit` of the C library, with its number as the status."""
    library = ctypes.CDLL(None)
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.signal.restype = ctypes.c_void_p
    library.signal(number, ctypes.cast(library._exit, ctypes.c_void_p))  # noqa: SLF001 - its name in C


def orders_line(token: str, *, killed_with_parent: bool) -> str:
    """Return the line that the parent writes to the standard input of a server.

    Args:
        token: The bearer token that the server requires; no other user of the machine can read it there,
            unlike arguments and environment variables.
        killed_with_parent: Whether the system kills the server as soon as the thread that has started it
            ends, even if its interpreter hangs. Only Linux does that.
    """
    return json.dumps({"token": token, "killed_with_parent": killed_with_parent}) + "\n"


def read_orders() -> str:
    """Carry out the line of the parent, see `orders_line`; return the token.

    Raises:
        LicorneError: There is no such line.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) < _LINE_BYTES_MAX and (part := os.read(0, _LINE_BYTES_MAX)):
        line += part
    try:
        orders = json.loads(line)
        token, killed_with_parent = str(orders["token"]), bool(orders["killed_with_parent"])
    except (ValueError, TypeError, KeyError):
        raise LicorneError("--until-stdin-closes: the standard input has no line of a door") from None
    if killed_with_parent and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return token


def end_with_parent(scheduler: Scheduler, watchdog: Watchdog) -> None:
    """Have this process end when the process that started it has ended, however that came about.

    The sign is the standard input, a pipe whose other end that process alone holds: it closes. Connected
    peers are served to the end: the process gets SIGTERM when the last resource manager has disconnected.
    """
    start_thread(partial(_end_with_parent, scheduler, watchdog), "licorne-parent")


def _end_with_parent(scheduler: Scheduler, watchdog: Watchdog) -> None:
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    watchdog.input_ended()
    with suppress(LicorneError):  # It has been stopped: the process is ending already.
        while _is_in_use(scheduler):
            time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ORDERLY_SECONDS)
    os._exit(1)


def _is_in_use(scheduler: Scheduler) -> bool:
    with scheduler.one_caller:
        return any(status.state is ManagerState.RUNNING for status in scheduler.resource_managers())
