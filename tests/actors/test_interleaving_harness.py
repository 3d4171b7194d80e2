"""The rehearsal itself: it finds what it is for, and finds it again."""

from __future__ import annotations

import pytest
from support.actors.interleaving import DeadlockError, LivelockError, Rehearsal, RehearsedLock, RehearsedQueue


class Cell:
    """A number that two threads add to, with or without a lock."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.lock = RehearsedLock(rehearsal)
        self.value = 0

    def add(self) -> None:
        value = self.value
        self.value = value + 1

    def add_locked(self) -> None:
        with self.lock:
            self.add()


def values(*, locked: bool, seeds: int = 50) -> list[int]:
    """Add twice at once under every seed, and return what came out."""
    found = []
    for seed in range(seeds):
        rehearsal = Rehearsal(seed, [__file__])
        cell = Cell(rehearsal)
        part = cell.add_locked if locked else cell.add
        rehearsal.run(part, part)
        found.append(cell.value)
    return found


def test_a_lost_update_shows_under_some_seed() -> None:
    """Two additions without a lock lose one sometimes, and not always."""
    assert {1, 2} == set(values(locked=False))


def test_a_lock_prevents_the_lost_update_under_every_seed() -> None:
    """The same additions under a lock never lose one."""
    assert {2} == set(values(locked=True))


def test_the_same_seeds_give_the_same_runs() -> None:
    """A find can be looked at again."""
    assert values(locked=False) == values(locked=False)


def test_a_deadlock_is_an_error_that_names_the_threads() -> None:
    """Two threads that wait for each other's item do not hang the test."""
    rehearsal = Rehearsal(1, [__file__])
    mine, theirs = RehearsedQueue(rehearsal), RehearsedQueue(rehearsal)

    with pytest.raises(DeadlockError, match=r"player-0.*player-1"):
        rehearsal.run(lambda: theirs.put(mine.get()), lambda: mine.put(theirs.get()))


def test_an_error_of_a_part_is_raised_by_the_run() -> None:
    """What fails on a player's thread fails the test."""
    rehearsal = Rehearsal(1, [__file__])

    with pytest.raises(ZeroDivisionError):
        rehearsal.run(lambda: None, lambda: print(1 // 0))  # noqa: T201 - never printed


def test_threads_that_only_wait_for_each_other_by_looking_are_an_error() -> None:
    """A loop that never ends does not hang the test either."""
    rehearsal = Rehearsal(1, [__file__], switches_max=100)
    never: list[None] = []

    def look() -> None:
        while not never:
            pass

    with pytest.raises(LivelockError, match="player-0"):
        rehearsal.run(look, look)
