"""Whether the program uses Pykka or asyncio: if it does, asks of actors and calls of event loops are checked.

Lockcheck does not need Pykka (`pykka_asks`), and does not load asyncio. An actor, and what a
loop leaves to a pool, runs on a thread that is started after the import; so it is enough to look for both
when a session opens, and whenever a thread is started. To hook into the import was rejected: other tools
do that too, and then the order in which hooks are installed and removed matters.

Actions of a thread before it left a call for an event loop come before the call. The loop is one execution,
so all that it does afterwards counts as later too: coroutines may be thought in order that are not, and no
order is missing. A coroutine that a thread leaves for a loop is a task of the loop's thread: to wait for its
result is to wait for that thread.
"""

from __future__ import annotations

import concurrent.futures
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeVar

from ..checking.watch import current
from ..findings.foreign import shown
from ..findings.terms import LockUsageError
from ..holding.runtime import fails_open, local, next_segment
from .hand_overs import is_checked
from .hooks import Hooks
from .joins import note_task_of_loop

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")


def _put_all() -> None:
    HOOKS.wrap(threading.Thread, "start", _start)


HOOKS: Final = Hooks(_put_all)


@fails_open(None)
def find() -> None:
    """Hook into Pykka and asyncio, if they are there; imports for that are made without the latch."""
    _find_pykka()
    _find_asyncio(HOOKS)


def _start(method: Callable[[threading.Thread], None], self: threading.Thread) -> None:
    find()
    method(self)


def _find_pykka() -> None:
    """Hook into the asks of Pykka's actors, if Pykka is there; an unknown kind of version is a fault."""
    watch = current()
    if watch is not None and hasattr(sys.modules.get("pykka"), "ThreadingFuture"):
        try:
            _hear()
        except Exception as error:  # noqa: BLE001 - whatever that version is like
            watch.note_fault(LockUsageError(f"this version of pykka is not known: {shown(error)}"))


def _hear() -> None:
    from . import pykka_asks  # noqa: PLC0415 - not loaded without Pykka

    HOOKS.put_late(*pykka_asks.ASK, lambda: pykka_asks.put_all(HOOKS))


def _find_asyncio(hooks: Hooks) -> None:
    """Hook into event loops, if the program has imported asyncio."""
    if hasattr(sys.modules.get("asyncio"), "run_coroutine_threadsafe"):
        package, loops = sys.modules["asyncio"], sys.modules["asyncio.base_events"]

        def put() -> None:
            hooks.wrap(loops.BaseEventLoop, "call_soon_threadsafe", _call_soon_threadsafe)
            hooks.wrap(package, "run_coroutine_threadsafe", _run_coroutine_threadsafe)

        hooks.put_late(package, "run_coroutine_threadsafe", put)


def _call_soon_threadsafe(
    method: Callable[..., Result],
    self: asyncio.BaseEventLoop,
    callback: Callable[..., object],
    /,
    *given: object,
    **named: object,
) -> Result:
    if not is_checked() or not callable(callback) or inspect.iscoroutinefunction(callback):
        return method(self, callback, *given, **named)
    execution = local.execution
    before = execution.segment
    next_segment(execution)

    @functools.wraps(callback, updated=())
    def called(*arguments: object) -> object:
        if local.execution is not execution:
            next_segment(local.execution, before, "by a call that a thread left for an event loop")
        return callback(*arguments)

    return method(self, called, *given, **named)


def _run_coroutine_threadsafe(
    function: Callable[..., concurrent.futures.Future[object]],
    coro: Coroutine[object, object, object],
    loop: asyncio.AbstractEventLoop,
) -> concurrent.futures.Future[object]:
    future = function(coro, loop)
    note_task_of_loop(future, getattr(coro, "__qualname__", "a coroutine"), loop)
    return future
