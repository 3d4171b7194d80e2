"""Threads that work for partitions, and help those that have a thread."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from support.proxy.listening import WAIT_SECONDS

from licorne.actors.scheduling_threads import SchedulingThreads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from licorne.actors.guarded_partition import GuardedPartition


class Door:
    """What stands for a partition, with a gate that holds who works for it."""

    def __init__(self, *, is_judged_slowly: bool = False) -> None:
        self.is_judged_slowly = is_judged_slowly
        self.opened = threading.Event()


class Desk:
    """Threads that note for whom they work, and whether they only help."""

    def __init__(self, count: int) -> None:
        self._heard: list[tuple[Door, bool]] = []
        self._changed = threading.Condition()
        self.threads = SchedulingThreads(count, self._work)

    def want(self, door: Door) -> None:
        self.threads.want(cast("GuardedPartition", door))

    def call(self, door: Door) -> None:
        self.threads.call(cast("GuardedPartition", door))

    def _work(self, partition: GuardedPartition, helps: bool) -> bool:  # noqa: FBT001 - as it is called
        door = cast("Door", partition)
        with self._changed:
            self._heard.append((door, helps))
            self._changed.notify_all()
        assert door.opened.wait(WAIT_SECONDS)
        return False

    def wait_for(self, *expected: tuple[Door, bool]) -> None:
        """Wait until that was worked for, in this order, and nothing else."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._heard) >= len(expected), WAIT_SECONDS)
            assert list(expected) == self._heard


@contextmanager
def a_desk(count: int, *doors: Door) -> Iterator[Desk]:
    desk = Desk(count)
    try:
        yield desk
    finally:
        for door in doors:
            door.opened.set()
        desk.threads.close()


def test_a_thread_that_is_free_helps() -> None:
    """Beside the one that works for the partition."""
    door = Door()
    with a_desk(2, door) as desk:
        desk.want(door)
        desk.wait_for((door, False))
        desk.call(door)
        desk.wait_for((door, False), (door, True))


def test_one_thread_alone_helps_nobody() -> None:
    """It is the one that calls."""
    door, other = Door(), Door()
    with a_desk(1, door, other) as desk:
        desk.want(door)
        desk.wait_for((door, False))
        desk.call(door)
        desk.want(other)
        door.opened.set()
        desk.wait_for((door, False), (other, False))


def test_who_wants_a_thread_goes_before_who_calls_for_one_more() -> None:
    """Otherwise one slow manager could keep all threads for itself."""
    first, second, late = Door(), Door(), Door()
    with a_desk(2, first, second, late) as desk:
        desk.want(first)
        desk.wait_for((first, False))
        desk.want(second)
        desk.wait_for((first, False), (second, False))
        desk.call(first)
        desk.want(late)
        second.opened.set()
        desk.wait_for((first, False), (second, False), (late, False))
        late.opened.set()
        desk.wait_for((first, False), (second, False), (late, False), (first, True))


def test_news_while_the_manager_judges_slowly_are_worked_for_at_once() -> None:
    """And once more by the thread that has begun before."""
    door = Door(is_judged_slowly=True)
    with a_desk(2, door) as desk:
        desk.want(door)
        desk.wait_for((door, False))
        desk.want(door)
        desk.wait_for((door, False), (door, True))
        door.opened.set()
        desk.wait_for((door, False), (door, True), (door, False))


def test_news_while_it_judges_quickly_wait_for_their_turn() -> None:
    """The thread that works for the partition comes to them, and another partition is served meanwhile."""
    door, other = Door(), Door()
    with a_desk(2, door, other) as desk:
        desk.want(door)
        desk.wait_for((door, False))
        desk.want(door)
        desk.want(other)
        desk.wait_for((door, False), (other, False))
        door.opened.set()
        desk.wait_for((door, False), (other, False), (door, False))
