"""Children of forks, and threads of the parent that took a lock before."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from support.waiting import WAIT_SECONDS


def in_child(work: Callable[[], object]) -> None:
    """Do some work in a child of a fork, and wait for its end, whatever it raises."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)  # nothing of the parent is to be ended here
    os.waitpid(child, 0)


@contextmanager
def had_by_another(lock: AbstractContextManager[object], *, held: bool = False) -> Iterator[None]:
    """Let another thread live meanwhile that has taken a lock, and may hold it still."""
    ready, over = threading.Semaphore(0), threading.Semaphore(0)

    def take() -> None:
        with lock:
            if held:
                ready.release()
                over.acquire(timeout=WAIT_SECONDS)
        if not held:
            ready.release()
            over.acquire(timeout=WAIT_SECONDS)

    thread = threading.Thread(target=take, name="other")
    thread.start()
    ready.acquire()
    try:
        yield
    finally:
        over.release()
        thread.join()


def forks_beside(
    lock: AbstractContextManager[object], work: Callable[[], object], *, held: bool = False
) -> None:
    """Do some work in a child, while a thread of its parent lives that has taken a lock."""
    with had_by_another(lock, held=held):
        in_child(work)
