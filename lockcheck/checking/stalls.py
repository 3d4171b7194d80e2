"""Stalls: no thread has moved for a while, and all wait without a limit; this is written once.

A thread looks at all others now and then. It is not one of `threading`, so that no program counts it. Where
any thread may wait for the outside, or only for a time, or computes, there is no stall.
"""

from __future__ import annotations

import _thread
import os
import selectors
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Final, Self, final

from ..holding.chains import Execution
from ..holding.runtime import Interpreter, has_global_lock, local, runtime
from ..holding.stacks import enters, is_of_checker
from .standing import lines_of_threads
from .watch import current

SECONDS: Final = 10.0
"""How long nothing moves before that is written."""
_LOOKS: Final = 10
"""How often the threads are looked at in that time."""
_IDLE: Final = "work"
_CALL: Final = "a call that another thread leaves for its loop"
_PROCESS: Final = "the end of a process"
_HARMLESS: Final = frozenset({_IDLE, _CALL, _PROCESS})
"""What a thread may wait for while all is well."""
_start_new_thread: Final = _thread.start_new_thread
_allocate_lock: Final = _thread.allocate_lock

WAITS: Final[Mapping[str, str]] = {
    "Event.wait": "an event",
    "Semaphore.acquire": "a semaphore",
    "Barrier.wait": "a barrier",
    "Future.result": "a result",
    "Future.exception": "a result",
}
"""The functions that wait on a condition, and what they wait for."""


@final
class StallWatch:
    """Looks for a stall while a `with` block runs.

    Args:
        seconds: how long nothing moves before that is written.
    """

    threads = 0
    """How many threads of this kind run, which `threading` does not know."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._stopped = _allocate_lock()
        self._over = _allocate_lock()
        self._since: dict[int, tuple[object, float]] = {}
        """The mark of the wait of each thread, and when it was seen first."""

    def __enter__(self) -> Self:
        if has_global_lock():  # else the frames of other threads cannot be looked at
            self._stopped.acquire()
            self._over.acquire()
            StallWatch.threads += 1
            _start_new_thread(self._run, ())
        return self

    def __exit__(self, *_: object) -> None:
        if self._stopped.locked():
            self._stopped.release()
            if StallWatch.threads:  # there is none in a child of a fork
                self._over.acquire()
                StallWatch.threads -= 1

    def _run(self) -> None:
        local.execution.inside = True  # it is not of the program
        runtime.running.pop(Interpreter.thread_number(), None)
        try:
            while not self._stopped.acquire(timeout=self._seconds / _LOOKS):
                watch = current()
                if watch is not None and watch.guarded(self._look, lambda: True):
                    break
        finally:
            self._over.release()

    def _look(self) -> bool:
        """Look at all threads; return whether there was a stall, which is written."""
        now, texts = Interpreter.seconds(), dict[int, str]()
        before, self._since = self._since, {}
        for number, frame in sys._current_frames().items():  # noqa: SLF001 - the documented way
            if number == Interpreter.thread_number():
                continue
            wait = _wait_of(number, frame)
            if wait is None:
                return False
            mark, texts[number] = wait
            known = before.get(number)
            self._since[number] = known if known is not None and known[0] == mark else (mark, now)
        waited = {number: now - since for number, (_, since) in self._since.items()}
        if min(waited.values(), default=0) < self._seconds or _HARMLESS.issuperset(texts.values()):
            return False
        lines = [*self._lines(texts, waited), *lines_of_threads(Interpreter.thread_number())]
        os.write(2, "\n".join([*lines, ""]).encode(errors="replace"))
        return True

    def _lines(self, texts: dict[int, str], waited: dict[int, float]) -> Iterator[str]:
        yield f"lockcheck: no thread has moved for {self._seconds:g} s, and all wait without a limit:"
        for number, text in texts.items():
            thread = threading._active.get(number)  # type: ignore[attr-defined] # noqa: SLF001 - unlike enumerate(), no lock is taken
            name = thread.name if thread is not None else f"thread {number}"
            yield f"  {name} has waited {waited[number]:.0f} s for {text}"


def _wait_of(number: int, frame: FrameType) -> tuple[object, str] | None:
    """Return a mark of the wait of a thread, and the object of it in words, if it does not end by itself."""
    execution: Execution | None = runtime.running.get(number)
    if execution is not None and execution.wait is not None:
        return (id(execution.wait), execution.wait.describe()) if execution.wait.endless else None
    at: FrameType | None = frame
    while at is not None and is_of_checker(at.f_code):
        at = at.f_back
    text = _text_of(at) if at is not None else None
    return ((id(at), at.f_lasti, _used(number)), text) if at is not None and text is not None else None


def _used(number: int) -> int:
    """Return how much time of a processor a thread has used, in milliseconds, if the system tells."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return 0
    return time.clock_gettime_ns(time.pthread_getcpuclockid(number)) // 1_000_000


def _text_of(frame: FrameType) -> str | None:
    """Return what the innermost function of a thread waits for without a limit, if it does."""
    code, names = frame.f_code, frame.f_locals
    if code is threading.Condition.wait.__code__ or code.co_qualname == "Condition.wait":
        return _notification(frame) if names.get("timeout") is None else None
    if code.co_qualname in {"Thread._wait_for_tstate_lock", "Thread.join"}:
        thread = names.get("self")
        endless = names.get("timeout") in {None, -1}
        return f"the end of {thread.name}" if endless and isinstance(thread, threading.Thread) else None
    if code.co_qualname == "_ModuleLock.acquire":
        return f"the import of {getattr(names.get('self'), 'name', 'a module')}"
    if code.co_name == "_worker" and frame.f_globals.get("__name__") == "concurrent.futures.thread":
        return _IDLE
    if code.co_filename == selectors.__file__ and code.co_name == "select":
        alone = len(getattr(names.get("self"), "_fd_to_key", "none")) <= 1
        return _CALL if alone and names.get("timeout") in {None, -1} else None
    if code.co_qualname == "Popen._try_wait":
        return _PROCESS
    return "a lock that is not checked" if enters(code, frame.f_lasti) else None


def _notification(frame: FrameType) -> str:
    """Return what a function waits for that waits on a condition."""
    at = frame.f_back
    while at is not None and is_of_checker(at.f_code):
        at = at.f_back
    if at is None:
        return "a notification"
    if at.f_globals.get("__name__") == "queue":
        return "an item of a queue, or room in it"
    return WAITS.get(at.f_code.co_qualname, "a notification")


def _forked() -> None:
    StallWatch.threads = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
