"""Ctrl-C, and other signals whose handlers raise: they must not interrupt a step of the scheduler.

The interpreter runs signal handlers on the main thread, between any two instructions. A call that may wait
runs on another thread, so that only the wait is interrupted. A short call defers the interrupt to its end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from importlib import import_module
from types import FrameType
from typing import Any, Final, TypeVar, final

T = TypeVar("T")
_signal: Final = import_module("_signal")
"""The module that `signal` wraps. `signal` turns results into members of enumerations, which takes ten times
as long as all else here, and a section is entered with every request."""


def run_uninterrupted(function: Callable[[], T]) -> T:
    """Run a function that may wait, and return what it returns, or raise what it raises.

    Called on the main thread, the function runs on a separate thread. An error that a signal handler raises
    meanwhile is raised here at once, and the function continues to its end.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    outcome: Future[T] = Future()
    context = copy_context()

    def run() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    start_thread(run, "licorne-call")
    return outcome.result()


def start_thread(run: Callable[[], None], name: str) -> threading.Thread | None:
    """Start a thread; if the interpreter is ending and starts none, run the function here.

    An interrupt that comes meanwhile is raised when the thread has started.

    Returns:
        The thread, `None` if the function has been run.
    """
    thread = threading.Thread(target=run, name=name, daemon=True)
    try:
        with Uninterrupted():  # An interrupt inside would leave the lock of `start` in an unknown state.
            thread.start()
    except RuntimeError:
        run()
        return None
    return thread


@final
class Uninterrupted:
    """A short section on the main thread: an interrupt is handled at its end, a second one at once.

    On other threads, and inside another such section, it does nothing: handlers run on the main thread only.
    """

    __slots__ = ("_frame", "_handler", "_interrupted")
    _is_open = False
    """Whether the main thread is in such a section, so that no other one has anything to do."""

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], Any] | None = None
        self._interrupted = False
        self._frame: FrameType | None = None

    def __enter__(self) -> Uninterrupted:
        if Uninterrupted._is_open or threading.current_thread() is not threading.main_thread():
            return self
        handler = _signal.getsignal(signal.SIGINT)
        if not callable(handler):
            return self
        self._handler = handler
        try:
            _signal.signal(signal.SIGINT, self._defer)
            Uninterrupted._is_open = True
        except ValueError:  # the main thread of another interpreter than the first has no signals
            self._handler = None
        return self

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupt waits for the end of the section."""
        return self._interrupted

    def _defer(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted and self._handler is not None:
            self._handler(number, frame)
        self._interrupted = True
        self._frame = frame

    def __exit__(self, *_: object) -> None:
        if self._handler is None:
            return
        Uninterrupted._is_open = False
        _signal.signal(signal.SIGINT, self._handler)
        if self._interrupted:
            self._handler(signal.SIGINT, self._frame)
