"""A server that only the garbage collector ends, wherever that runs, and that waits for its thread then."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager


class Server:
    """A thing that only the garbage collector ends, which waits for its thread then."""

    def __init__(self, first: Callable[[], object], last: Callable[[], object]) -> None:
        self.itself, self.stops = self, threading.Semaphore(0)
        begun, stops = threading.Semaphore(0), self.stops

        def serve() -> None:
            first()
            begun.release()
            stops.acquire()
            last()

        self.thread = threading.Thread(target=serve, name="server", daemon=True)
        self.thread.start()
        begun.acquire()

    def __del__(self) -> None:
        self.stops.release()
        self.thread.join()


def collected_under(
    lock: AbstractContextManager[object],
    *,
    first: Callable[[], object] = int,
    last: Callable[[], object] = int,
) -> None:
    """Let the collector run under a lock, and end a server whose thread does some first and last work."""
    gc.collect()
    gc.disable()
    try:
        Server(first, last)
        with lock:
            gc.collect()
    finally:
        gc.enable()
