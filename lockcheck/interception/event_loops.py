"""Event loops of asyncio as far as threads meet them: calls that a thread leaves for a loop.

What a thread did before it left a call for a loop comes before the call. The loop is one execution, so all
that it does afterwards counts as later too: coroutines may be thought in order that are not, and no order is
missing. A coroutine that a thread leaves for a loop is a task of the loop's thread: to wait for its
result is to wait for that thread.
"""

from __future__ import annotations

import concurrent.futures
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeVar

from ..holding.runtime import local, next_segment
from .hand_overs import is_checked
from .hooks import Hooks
from .joins import note_task_of_loop

if TYPE_CHECKING:
    import asyncio

__all__ = ["find"]

Result = TypeVar("Result")


def find(hooks: Hooks) -> None:
    """Hook into event loops, if the program has imported asyncio."""
    if hasattr(sys.modules.get("asyncio"), "run_coroutine_threadsafe"):
        package, loops = sys.modules["asyncio"], sys.modules["asyncio.base_events"]

        def put() -> None:
            hooks.wrap(loops.BaseEventLoop, "call_soon_threadsafe", _call_soon_threadsafe)
            hooks.wrap(package, "run_coroutine_threadsafe", _run_coroutine_threadsafe)

        hooks.put_late(package, "run_coroutine_threadsafe", put)


def _call_soon_threadsafe(method: Callable[..., Result]) -> Callable[..., Result]:
    @functools.wraps(method)
    def call_soon_threadsafe(
        self: asyncio.BaseEventLoop, callback: Callable[..., object], *given: object, **named: object
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

    return call_soon_threadsafe


def _run_coroutine_threadsafe(
    function: Callable[..., concurrent.futures.Future[object]],
) -> Callable[..., concurrent.futures.Future[object]]:
    @functools.wraps(function)
    def run_coroutine_threadsafe(
        coro: Coroutine[object, object, object], loop: asyncio.AbstractEventLoop
    ) -> concurrent.futures.Future[object]:
        future = function(coro, loop)
        note_task_of_loop(future, getattr(coro, "__qualname__", "a coroutine"), loop)
        return future

    return run_coroutine_threadsafe
