"""Whether the program uses Pykka or asyncio: if it does, asks of actors and calls of event loops are checked.

Lockcheck does not need Pykka (`pykka_asks`), and does not load asyncio (`event_loops`). An actor, and what a
loop leaves to a pool, runs on a thread that is started after the import; so it is enough to look for both
when a session opens, and whenever a thread is started. To hook into the import was rejected: other tools
do that too, and then the order in which hooks are installed and removed matters.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Final

from ..checking.active import current
from ..findings.errors import LockUsageError
from ..findings.foreign import shown
from ..holding.runtime import fails_open
from . import event_loops
from .hooks import Hooks

__all__ = ["HOOKS", "find"]


def _put_all() -> None:
    HOOKS.wrap(threading.Thread, "start", _start)


HOOKS: Final = Hooks(_put_all)


@fails_open(None)
def find() -> None:
    """Hook into Pykka and asyncio, if they are there; imports for that are made without the latch."""
    _find_pykka()
    event_loops.find(HOOKS)


def _start(method: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    @functools.wraps(method)
    def start(self: threading.Thread) -> None:
        find()
        method(self)

    return start


def _find_pykka() -> None:
    """Hook into the asks of Pykka's actors, if Pykka is there; an unknown kind of version is a fault."""
    watch = current()
    if watch is not None and hasattr(sys.modules.get("pykka"), "ThreadingFuture"):
        try:
            _hear()
        except Exception as error:  # noqa: BLE001 - whatever that version is like
            watch.note_fault(LockUsageError(f"this version of pykka is not known: {shown(error)}"))


def _hear() -> None:
    from . import pykka_asks  # noqa: PLC0415 - not loaded where there is no Pykka

    HOOKS.put_late(*pykka_asks.ASK, lambda: pykka_asks.put_all(HOOKS))
