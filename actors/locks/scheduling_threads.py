"""Threads that run the cycles of partitions which have something to do.

A thread works for a partition for one slice at a time, and several threads for several partitions at once.
While the predicates of an RM are slow, free threads help its partition: they call predicates for other asks
of it (`licorne.actors.locks.predicate_calls`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from ...lockcheck import Condition, excludes
from ...model.errors import LicorneError

if TYPE_CHECKING:
    from .guarded_partition import GuardedPartition


@final
class SchedulingThreads:
    """The threads, and the partitions that want one.

    Args:
        count: how many threads; they start with the first partition that wants one.
        work: works for a partition for a slice, or helps threads that do, and returns whether there is more
            to do; does not raise.
    """

    def __init__(self, count: int, work: Callable[[GuardedPartition, bool], bool]) -> None:
        self.count = count
        self._work = work
        self._changed = Condition(name="scheduling")
        self._wanting: deque[GuardedPartition] = deque()
        self._calling: deque[GuardedPartition] = deque()
        """Partitions that have a thread and can use another one; partitions without a thread go first."""
        self._workers: dict[GuardedPartition, int] = {}
        """How many threads work for a partition."""
        self._wanted_since: set[GuardedPartition] = set()
        """Partitions that wanted a thread while an earlier one still worked for them."""
        self._threads: list[threading.Thread] = []
        self.closed = False
        """Whether the threads are to end; set once."""

    @excludes()
    def want(self, partition: GuardedPartition) -> None:
        """Have a thread work for a partition soon, also if one works for it now."""
        with self._changed:
            if self.closed:
                return
            new = [] if self._threads else self._make_threads()
            if partition not in self._workers:
                self._queue(self._wanting, partition)
            else:
                self._wanted_since.add(partition)
                if partition.waits_for_slow_predicate:
                    self._call(partition)
        for thread in new:
            thread.start()

    @excludes()
    def call(self, partition: GuardedPartition) -> None:
        """Have a free thread help a partition."""
        with self._changed:
            if not self.closed:
                self._call(partition)

    @excludes()
    def close(self) -> None:
        """End the threads after their current slices.

        Raises:
            LicorneError: the calling thread is one of them, and cannot wait for its own end.
        """
        self.check_may_close()
        with self._changed:
            self.closed = True
            self._wanting.clear()
            self._calling.clear()
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            if thread.ident is not None:
                thread.join()

    @excludes()
    def check_may_close(self) -> None:
        """Raise if the calling thread is one of these threads.

        Raises:
            LicorneError: it is, and cannot wait for its own end.
        """
        with self._changed:
            threads = self._threads
        if threading.current_thread() in threads:
            raise LicorneError("a scheduling thread cannot stop its own scheduler")

    @excludes()
    def load(self) -> tuple[int, int, int]:
        """Return how many threads there are, how many are idle, and how many partitions want one."""
        with self._changed:
            idle = len(self._threads) - sum(self._workers.values())
            return len(self._threads), idle, len(self._wanting) + len(self._calling)

    def _make_threads(self) -> list[threading.Thread]:
        self._threads = [
            threading.Thread(target=self._run, name=f"licorne-scheduling-{number}", daemon=True)
            for number in range(self.count)
        ]
        return self._threads

    def _call(self, partition: GuardedPartition) -> None:
        if self.count > 1:
            self._queue(self._calling, partition)

    def _queue(self, queue: deque[GuardedPartition], partition: GuardedPartition) -> None:
        if partition not in queue:
            queue.append(partition)
            self._changed.notify()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            partition, helps = taken
            more = self._work(partition, helps)
            with self._changed:
                self._workers[partition] -= 1
                if not self._workers[partition]:
                    del self._workers[partition]
                if not self.closed and (more or partition in self._wanted_since):
                    self._wanted_since.discard(partition)
                    self._queue(self._wanting, partition)

    def _take(self) -> tuple[GuardedPartition, bool] | None:
        """Wait for a partition that wants a thread or help; `None` when the threads are to end."""
        with self._changed:
            while not (self._wanting or self._calling or self.closed):
                self._changed.wait()
            if self.closed:
                return None
            helps = not self._wanting
            partition = (self._calling if helps else self._wanting).popleft()
            self._workers[partition] = self._workers.get(partition, 0) + 1
            return partition, helps
