"""The worker threads of a dispatcher and the run queue they serve.

Liveness: while the run queue holds work, at least one worker is awake (until `max_workers` threads
exist). A worker that is about to sleep inside a handler, and a thread that adds work, therefore look for
an awake worker and start a stand-in if there is none. Both look under the pool's lock, the one after
it counted itself as asleep, the other after it queued the work, so one of the two sees the other.
Asks without a deadline do not depend on this, since their waiters help. Asks with a deadline do, and futures
without a mailbox.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from queue import Empty, SimpleQueue
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from .log import Log

__all__ = ["WorkerPool", "asleep", "on_worker"]

TURN_NS: Final = 5_000_000
"""How long a worker serves one mailbox while others wait; a calling thread has no such limit."""


class Runnable(Protocol):
    """An entry of a run queue: a mailbox with messages."""

    def serve(self, budget: int, limit_ns: int | None = None) -> None:
        """Handle messages, `budget` or for `limit_ns` at most, unless another thread does so already."""


class Worker(Thread):
    """A thread that knows which pool it belongs to."""

    def __init__(self, pool: WorkerPool, name: str) -> None:
        super().__init__(target=pool.work, name=name, daemon=True)
        self.pool = pool
        self.works = False
        """Whether it serves a mailbox now."""


class WorkerPool:
    """Serve the mailboxes that are pushed, on few threads.

    Args:
        workers: how many threads serve the run queue; 0 leaves it to `run_pending`.
        max_workers: bound on all threads, those that sleep inside a handler included.
        budget: messages that a mailbox may handle in one turn.
        name: prefix of the threads' names.
        log: gets a warning when the pool is at its bound.
    """

    def __init__(self, *, workers: int, max_workers: int, budget: int, name: str, log: Log) -> None:
        self._target = workers
        self._max_workers = max_workers
        self._budget = budget
        self._name = name
        self._log = log
        self._ready: SimpleQueue[Runnable | None] = SimpleQueue()
        self._lock = Lock()
        self._threads: list[Worker] = []
        self._spawned = 0
        self._asleep = 0
        self._blocking = 0
        with self._lock:
            for _ in range(workers):
                self._spawn()

    def push(self, runnable: Runnable) -> None:
        """Queue work and make sure that a worker is awake for it."""
        self._ready.put(runnable)
        with self._lock:
            self._reinforce()

    def run_pending(self) -> int:
        """Serve the run queue on the calling thread until it is empty; return the number of turns."""
        turns = 0
        while True:
            try:
                runnable = self._ready.get_nowait()
            except Empty:
                return turns
            if runnable is None:
                self._ready.put(None)
                return turns
            runnable.serve(self._budget)
            turns += 1

    def asleep(self) -> AbstractContextManager[None]:
        """Count the calling worker as asleep: it waits for an answer."""
        return self._counted(asleep=1)

    def blocking(self) -> AbstractContextManager[None]:
        """Count the calling thread as blocked, if it is a worker, and keep the pool at full strength."""
        worker = current_thread()
        is_ours = isinstance(worker, Worker) and worker.pool is self
        return self._counted(blocking=1) if is_ours else nullcontext()

    @contextmanager
    def _counted(self, *, asleep: int = 0, blocking: int = 0) -> Iterator[None]:
        with self._lock:
            self._asleep += asleep
            self._blocking += blocking
            at_bound = not self._reinforce()
        try:
            if at_bound:
                self._log.warning("{}: all {} workers wait or block", self._name, self.thread_count())
            yield
        finally:
            with self._lock:
                self._asleep -= asleep
                self._blocking -= blocking

    def close(self) -> None:
        """End the workers after what is queued, and wait for each of them, the caller excepted."""
        with self._lock:
            self._target = 0
            threads = list(self._threads)
        self._ready.put(None)
        for thread in threads:
            if thread is not current_thread():
                thread.join()

    def thread_count(self) -> int:
        """Return the number of threads now."""
        with self._lock:
            return len(self._threads)

    def load(self) -> tuple[int, int, int]:
        """Return how many threads there are, how many of them wait, and how many mailboxes wait for one."""
        with self._lock:
            idle = sum(not worker.works for worker in self._threads)
            return len(self._threads), idle + self._asleep + self._blocking, self._ready.qsize()

    def work(self) -> None:
        """Serve the run queue; the body of a worker."""
        worker = _this_worker()
        while (runnable := self._ready.get()) is not None:
            worker.works = True
            try:
                runnable.serve(self._budget, TURN_NS)
            except BaseException:  # noqa: BLE001 - actors handle their handlers' errors; a worker survives ours
                self._log.exception("{}: a turn failed inside the runtime, please report", self._name)
            worker.works = False
            if self._leave_if_surplus():
                return
        self._ready.put(None)  # for the next worker
        with self._lock:
            self._threads.remove(worker)

    def _reinforce(self) -> bool:
        """Start a stand-in if one is needed; `False` at the bound. The caller holds the lock."""
        if not (self._asleep or self._blocking) or not self._target or self._ready.empty():
            return True
        at_work = len(self._threads) - self._blocking
        if at_work > self._asleep and at_work >= self._target:
            return True
        return len(self._threads) < self._max_workers and self._spawn()

    def _spawn(self) -> bool:
        self._spawned += 1
        worker = Worker(self, f"{self._name}-{self._spawned}")
        try:
            worker.start()
        except RuntimeError:  # the system has no thread left; those there are go on
            return False
        self._threads.append(worker)
        return True

    def _leave_if_surplus(self) -> bool:
        with self._lock:
            if len(self._threads) - self._blocking - self._asleep <= max(self._target, 1):
                return False
            self._threads.remove(_this_worker())
            return True


def _this_worker() -> Worker:
    worker = current_thread()
    assert isinstance(worker, Worker)
    return worker


def on_worker() -> bool:
    """Return whether the calling thread is a worker, which does nothing but run actors."""
    return isinstance(current_thread(), Worker)


@contextmanager
def asleep() -> Iterator[None]:
    """Count the calling thread as asleep in its pool, if it is a worker."""
    worker = current_thread()
    if isinstance(worker, Worker):
        with worker.pool.asleep():
            yield
    else:
        yield
