"""A pool of threads that the end of the process does not wait for: what they wait for may never come."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DaemonPool"]

P = ParamSpec("P")
T = TypeVar("T")


@final
class DaemonPool(Executor):
    """Runs tasks in order of arrival, as many at once as it has threads; each is started when it is needed.

    Args:
        threads_max: How many threads there may be.
        name: Their name.
    """

    def __init__(self, threads_max: int, name: str) -> None:
        self._threads_max = threads_max
        self._name = name
        self._tasks: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._threads = 0
        self._is_closed = False

    def submit(self, task: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a task run; as `concurrent.futures.Executor.submit`.

        Raises:
            RuntimeError: The pool is shut down.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the pool of threads is shut down")
            self._tasks.put((future, lambda: task(*args, **kwargs)))
            if not self._idle.acquire(blocking=False) and self._threads < self._threads_max:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}_{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as its base
        """Take no more tasks; those that have not begun are cancelled on request. Nothing is waited for."""
        with self._lock:
            self._is_closed = True
            waiting = []
            while cancel_futures and not self._tasks.empty():
                waiting.append(self._tasks.get())
            for _ in range(self._threads):
                self._tasks.put(None)
        for item in waiting:
            if item is not None:
                item[0].cancel()

    def _work(self) -> None:
        while (item := self._tasks.get()) is not None:
            future, task = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(task())
                except BaseException as error:  # noqa: BLE001 - it is the outcome
                    future.set_exception(error)
            del item, future, task
            self._idle.release()
