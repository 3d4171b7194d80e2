"""The worker threads of a dispatcher and the run queue they serve.

Liveness: while the run queue holds work, at least one worker is awake (until `max_workers` threads
exist). A worker that is about to sleep inside a handler, and a thread that adds work, therefore look for
an awake worker and start a stand-in if there is none. Both look under the pool's lock, the one after
it counted itself as asleep, the other after it queued the work, so one of the two sees the other.
Asks without a deadline do not depend on this, since their waiters help. Asks with a deadline do, and futures
without a mailbox.

Of several idle workers the one that worked last is woken: its processor still has in its caches what it
wrote. To take turns would cost a partition that does little at a time a seventh of its pace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from queue import SimpleQueue
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ..services.log import Log

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
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def sleep(self) -> None:
        """Wait until another thread wakes this one."""
        self._wakes.get()

    def wake(self) -> None:
        """End one `sleep`, also one that has not begun yet."""
        self._wakes.put(None)


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
        self._ready: deque[Runnable] = deque()
        self._lock = Lock()
        self._threads: list[Worker] = []
        self._idle: list[Worker] = []
        """Workers that sleep since there was nothing to do, the last that worked at the end."""
        self._spawned = 0
        self._asleep = 0
        self._blocking = 0
        with self._lock:
            for _ in range(workers):
                self._spawn()

    def push(self, runnable: Runnable) -> None:
        """Queue work and make sure that a worker is awake for it."""
        with self._lock:
            self._ready.append(runnable)
            worker = self._idle.pop() if self._idle else None
            if worker is None:
                self._reinforce()
        if worker is not None:
            worker.wake()

    def serve_here(self, runnable: Runnable) -> None:
        """Serve something on the calling thread for a short turn."""
        runnable.serve(self._budget, TURN_NS)

    def run_pending(self) -> int:
        """Serve the run queue on the calling thread until it is empty; return the number of turns."""
        turns = 0
        while True:
            with self._lock:
                if not self._ready:
                    return turns
                runnable = self._ready.popleft()
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
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.wake()
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
            return len(self._threads), len(self._idle) + self._asleep + self._blocking, len(self._ready)

    def work(self) -> None:
        """Serve the run queue; the body of a worker."""
        worker = _this_worker()
        while (runnable := self._take(worker)) is not None:
            try:
                runnable.serve(self._budget, TURN_NS)
            except BaseException:  # noqa: BLE001 - actors handle their handlers' errors; a worker survives ours
                self._log.exception("{}: a turn failed inside the runtime, please report", self._name)
            if self._leave_if_surplus():
                return
        with self._lock:
            self._threads.remove(worker)

    def _take(self, worker: Worker) -> Runnable | None:
        """Wait for work; `None` if the pool is closed and there is no more."""
        while True:
            with self._lock:
                if self._ready:
                    return self._ready.popleft()
                if not self._target:  # It was above zero when the first worker was made.
                    return None
                self._idle.append(worker)
            worker.sleep()

    def _reinforce(self) -> bool:
        """Start a stand-in if one is needed; `False` at the bound. The caller holds the lock."""
        if not (self._asleep or self._blocking) or not self._target or not self._ready:
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
        except RuntimeError:  # the system has no thread left; the existing ones continue
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


class RequestThread(Thread):
    """A thread that carries out the requests of a peer, one after the other.

    It runs the partition that a request finds idle, as a worker would: a hand-over to a worker takes longer
    than most requests. Its peer waits for the partition anyway.
    """


def on_worker() -> bool:
    """Return whether the calling thread is a worker, which does nothing but run actors."""
    return isinstance(current_thread(), Worker)


def on_request_thread() -> bool:
    """Return whether the calling thread carries out the requests of a peer."""
    return isinstance(current_thread(), RequestThread)


@contextmanager
def asleep() -> Iterator[None]:
    """Count the calling thread as asleep in its pool, if it is a worker."""
    worker = current_thread()
    if isinstance(worker, Worker):
        with worker.pool.asleep():
            yield
    else:
        yield
