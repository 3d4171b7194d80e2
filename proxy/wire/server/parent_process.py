"""A server that another process has started, and that ends with it."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Final

from ....actors.services.interrupts import start_thread
from ....model.errors import LicorneError
from ....model.values.states import ManagerState
from ...core.scheduler.scheduler import Scheduler
from .watchdog import Watchdog

_LOOK_SECONDS: Final = 0.25
"""How often a server without a parent looks whether a resource manager is connected."""
_ORDERLY_SECONDS: Final = 10.0
"""How long an orderly end may take; a server stops within 5 s."""
_LINE_BYTES_MAX: Final = 4_096
_PR_SET_PDEATHSIG: Final = 1


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

    That is seen by the standard input, a pipe whose other end that process alone holds: it closes. Who is
    connected is served to the end: the process gets SIGTERM when no resource manager is connected any more.
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
