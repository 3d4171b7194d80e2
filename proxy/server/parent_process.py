"""A server that another process has started, and that ends with it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import partial
from typing import Final

from ...actors.services.interrupts import start_thread
from ...model.errors import LicorneError
from ...model.values.manager_state import ManagerState
from ..scheduler.scheduler import Scheduler
from .watchdog import Watchdog

__all__ = ["end_with_parent"]

_LOOK_SECONDS: Final = 0.25
"""How often a server without a parent looks whether a resource manager is connected."""
_ORDERLY_SECONDS: Final = 10.0
"""How long an orderly end may take; a server stops within 5 s."""


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
