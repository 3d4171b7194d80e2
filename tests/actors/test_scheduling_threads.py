"""Threads that work for partitions, and help those that have a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from support.waiting import WAIT_SECONDS

from licorne.actors.locks.threads_engine import SchedulingThreads

if TYPE_CHECKING:
    from licorne.actors.locks.guarded_partition import GuardedPartition


class FakePartition:
    """What stands for a partition, with a gate that holds who works for it."""

    def __init__(self, *, waits_for_slow_predicate: bool = False) -> None:
        self.waits_for_slow_predicate = waits_for_slow_predicate
        self.opened = threading.Event()


class ThreadsUnderTest:
    """Threads that note for whom they work, and whether they only help."""

    def __init__(self, count: int) -> None:
        self._heard: list[tuple[FakePartition, bool]] = []
        self._changed = threading.Condition()
        self.threads = SchedulingThreads(count, self._work)

    def want(self, fake: FakePartition) -> None:
        self.threads.want(cast("GuardedPartition", fake))

    def call(self, fake: FakePartition) -> None:
        self.threads.call(cast("GuardedPartition", fake))

    def _work(self, partition: GuardedPartition, helps: bool) -> bool:  # noqa: FBT001 - as it is called
        fake = cast("FakePartition", partition)
        with self._changed:
            self._heard.append((fake, helps))
            self._changed.notify_all()
        assert fake.opened.wait(WAIT_SECONDS)
        return False

    def wait_for(self, *expected: tuple[FakePartition, bool]) -> None:
        """Wait until that was worked for, in this order, and nothing else."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._heard) >= len(expected), WAIT_SECONDS)
            assert list(expected) == self._heard


@contextmanager
def running_threads(count: int, *fakes: FakePartition) -> Iterator[ThreadsUnderTest]:
    tested = ThreadsUnderTest(count)
    try:
        yield tested
    finally:
        for fake in fakes:
            fake.opened.set()
        tested.threads.close()


def test_a_thread_that_is_free_helps() -> None:
    """Beside the one that works for the partition."""
    fake = FakePartition()
    with running_threads(2, fake) as tested:
        tested.want(fake)
        tested.wait_for((fake, False))
        tested.call(fake)
        tested.wait_for((fake, False), (fake, True))


def test_a_single_thread_does_not_help() -> None:
    """It is the one that calls."""
    fake, other = FakePartition(), FakePartition()
    with running_threads(1, fake, other) as tested:
        tested.want(fake)
        tested.wait_for((fake, False))
        tested.call(fake)
        tested.want(other)
        fake.opened.set()
        tested.wait_for((fake, False), (other, False))


def test_who_wants_a_thread_goes_before_who_calls_for_one_more() -> None:
    """Otherwise one slow manager could keep all threads for itself."""
    first, second, late = FakePartition(), FakePartition(), FakePartition()
    with running_threads(2, first, second, late) as tested:
        tested.want(first)
        tested.wait_for((first, False))
        tested.want(second)
        tested.wait_for((first, False), (second, False))
        tested.call(first)
        tested.want(late)
        second.opened.set()
        tested.wait_for((first, False), (second, False), (late, False))
        late.opened.set()
        tested.wait_for((first, False), (second, False), (late, False), (first, True))


def test_changes_during_a_slow_predicate_get_a_thread_at_once() -> None:
    """And once more by the thread that has begun before."""
    fake = FakePartition(waits_for_slow_predicate=True)
    with running_threads(2, fake) as tested:
        tested.want(fake)
        tested.wait_for((fake, False))
        tested.want(fake)
        tested.wait_for((fake, False), (fake, True))
        fake.opened.set()
        tested.wait_for((fake, False), (fake, True), (fake, False))


def test_changes_during_a_quick_predicate_wait_for_their_turn() -> None:
    """The thread that works for the partition comes to them, and another partition is served meanwhile."""
    fake, other = FakePartition(), FakePartition()
    with running_threads(2, fake, other) as tested:
        tested.want(fake)
        tested.wait_for((fake, False))
        tested.want(fake)
        tested.want(other)
        tested.wait_for((fake, False), (other, False))
        fake.opened.set()
        tested.wait_for((fake, False), (other, False), (fake, False))
