"""Threads that run the cycles of partitions which have something to do.

A partition is worked for by one thread at a time, slice by slice, so that its RM is never asked two
questions for it at once. Several partitions are worked for at once, if there are several threads.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, final

from ..lockcheck import Condition, excludes
from ..model.errors import LicorneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .guarded_partition import GuardedPartition

__all__ = ["SchedulingThreads"]


@final
class SchedulingThreads:
    """The threads, and the partitions that want one.

    Args:
        count: how many threads; they start with the first partition that wants one.
        work: works for a partition for a while and tells whether there is more to do; does not raise.
    """

    def __init__(self, count: int, work: Callable[[GuardedPartition], bool]) -> None:
        self._count = count
        self._work = work
        self._changed = Condition(name="scheduling")
        self._wanting: deque[GuardedPartition] = deque()
        self._worked_for: dict[GuardedPartition, bool] = {}
        """Partitions that have a thread, and whether they have wanted one since."""
        self._threads: list[threading.Thread] = []
        self.closed = False
        """No thread runs any more; set once."""

    @excludes()
    def want(self, partition: GuardedPartition) -> None:
        """Have a thread work for a partition soon, if one that works for it now has begun before."""
        with self._changed:
            if self.closed:
                return
            new = [] if self._threads else self._make_threads()
            if partition in self._worked_for:
                self._worked_for[partition] = True
            elif partition not in self._wanting:
                self._wanting.append(partition)
                self._changed.notify()
        for thread in new:
            thread.start()

    @excludes()
    def close(self) -> None:
        """End the threads after the slices that run.

        Raises:
            LicorneError: one of them calls, which cannot end itself.
        """
        with self._changed:
            if threading.current_thread() in self._threads:
                raise LicorneError("a scheduling thread cannot stop its own scheduler")
            self.closed = True
            self._wanting.clear()
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            if thread.ident is not None:
                thread.join()

    def _make_threads(self) -> list[threading.Thread]:
        self._threads = [
            threading.Thread(target=self._run, name=f"licorne-scheduling-{number}", daemon=True)
            for number in range(self._count)
        ]
        return self._threads

    def _run(self) -> None:
        while (partition := self._take()) is not None:
            more = self._work(partition)
            with self._changed:
                if self._worked_for.pop(partition) or more:
                    self._wanting.append(partition)
                    self._changed.notify()

    def _take(self) -> GuardedPartition | None:
        """Wait for a partition that wants a thread; `None` when they are to end."""
        with self._changed:
            while not self._wanting and not self.closed:
                self._changed.wait()
            if self.closed:
                return None
            partition = self._wanting.popleft()
            self._worked_for[partition] = False
            return partition
