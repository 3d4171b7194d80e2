"""Whether the program uses asyncio or pools of `multiprocessing`: if it does, these are checked.

Lockcheck does not load asyncio. What a loop leaves to a pool runs on a thread that is started after the
import; so it is enough to look for it
when a session opens, and whenever a thread is started. To hook into the import was rejected: other tools
do that too, and then the order in which hooks are installed and removed matters.

Actions of a thread before it left a call for an event loop come before the call. The loop is one execution,
so all that it does afterwards counts as later too: coroutines may be thought in order that are not, and no
order is missing. A coroutine that a thread leaves for a loop is a task of the loop's thread: to wait for its
result is to wait for that thread. A lock that a step of a coroutine leaves held is reported.
"""

from __future__ import annotations

import concurrent.futures
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ..checking.watch import current, find_greenlets
from ..findings.terms import Kind, Rung
from ..holding.chains import TrieNode, held_nodes
from ..holding.runtime import fails_open, local, next_segment
from .hand_overs import is_checked
from .hooks import Hooks
from .joins import note_task_of_loop
from .thread_pools import find_thread_pools

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")


def _put_all() -> None:
    HOOKS.wrap(threading.Thread, "start", _start)


HOOKS: Final = Hooks(_put_all)


@fails_open(None)
def find() -> None:
    """Hook into asyncio and pools of `multiprocessing`, if they are there."""
    watch = current()
    if watch is None or find_greenlets(watch):
        return
    _find_asyncio(HOOKS)
    find_thread_pools(HOOKS)


def _start(method: Callable[[threading.Thread], None], self: threading.Thread) -> None:
    find()
    method(self)


def _find_asyncio(hooks: Hooks) -> None:
    """Hook into event loops, if the program has imported asyncio."""
    if hasattr(sys.modules.get("asyncio"), "run_coroutine_threadsafe"):
        package, loops = sys.modules["asyncio"], sys.modules["asyncio.base_events"]

        def put() -> None:
            hooks.wrap(loops.BaseEventLoop, "call_soon_threadsafe", _call_soon_threadsafe)
            hooks.wrap(package, "run_coroutine_threadsafe", _run_coroutine_threadsafe)
            handle = sys.modules["asyncio.events"].Handle
            hooks.put(handle, "_run", _steps_of_coroutines(handle._run))  # noqa: SLF001 - no public name

        hooks.put_late(package, "run_coroutine_threadsafe", put)


def _steps_of_coroutines(run: Callable[[object], None]) -> Callable[[object], None]:
    """Return the function by which a loop runs a step of a coroutine, with a look at the locks left held."""

    @functools.wraps(run)
    def checked(handle: object) -> None:
        before = local.execution.node
        run(handle)
        if local.execution.node is not before:
            _left_held(before)

    return checked


@fails_open(None)
def _left_held(before: TrieNode) -> None:
    """Report a lock of a thread that a step leaves held: the next coroutine that wants it stops the loop."""
    watch, execution = current(), local.execution
    held_before = {node.acquisition for node in held_nodes(before)}
    for node in held_nodes(execution.node):
        acquisition = node.acquisition
        if acquisition is None or acquisition in held_before or acquisition.lock.permits is not None:
            continue
        if watch is None or execution.inside or watch.policy.allows("await", acquisition.lock.name):
            continue
        text = f"{acquisition} is held while its event loop runs other coroutines"
        why = ("the next coroutine that wants it stops the loop: release it first, or use a lock of asyncio",)
        report = partial(watch.report_use, Kind.BLOCKING, text, [node], why=why, what="await", rung=Rung.RB)
        watch.guarded_on(execution, report, lambda: None)


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
