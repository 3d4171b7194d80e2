"""The end of a scheduler: it happens once, and every thread that stops it waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import final

from ....actors.services.interrupts import start_thread


@final
class Stopping:
    """Ends a scheduler on a thread of its own, so that a caller whose wait is interrupted may wait again.

    Args:
        halt: ends the scheduling; nothing new is announced afterwards.
        finish: waits until all announcements are delivered; may wait for a callback to end.
        on_thread: whether it may start a thread; otherwise the first caller ends the scheduler.
    """

    def __init__(self, halt: Callable[[], None], finish: Callable[[], None], *, on_thread: bool) -> None:
        self._halt = halt
        self._finish = finish
        self._on_thread = on_thread
        self._lock = threading.Lock()
        self._halted: Future[None] | None = None
        self._ended: Future[None] = Future()
        self._thread: threading.Thread | None = None

    def wait(self, *, inside_callback: bool) -> None:
        """Begin, unless it has begun, and wait for the end; in a callback, only until scheduling has ended.

        Raises:
            LicorneError: something could not be ended; the next call tries again.
        """
        with self._lock:
            begins = self._halted is None
            halted, ended = (Future(), Future()) if self._halted is None else (self._halted, self._ended)
            self._halted, self._ended = halted, ended
            if begins and self._on_thread:
                self._thread = start_thread(self._run, "licorne-stop")
            thread = self._thread
        if begins and not self._on_thread:
            self._run()
        halted.result()
        if not inside_callback:
            ended.result()
            if thread is not None:
                thread.join()

    def _run(self) -> None:
        halted, ended = self._halted, self._ended
        assert halted is not None, "no thread has begun to stop: please report"
        for step, outcome in ((self._halt, halted), (self._finish, ended)):
            try:
                step()
            except BaseException as error:  # noqa: BLE001 - the threads that wait get it
                self._halted = None
                for each in (halted, ended):
                    if not each.done():
                        each.set_exception(error)
                return
            outcome.set_result(None)
