"""Exclusive locks that are taken and released by name: what that costs, and what is noted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
from support.lockcheck.deadlocked import run_all
from support.waiting import wait_until

from licorne.lockcheck import Kind, Level, Lock, RLock, held, session
from licorne.lockcheck.adoption.adopted import LOCKS, RLOCKS
from licorne.lockcheck.checking.policy import NOTE_ALL
from licorne.lockcheck.locks.factories import ExclusiveLock

OWN = (Lock, RLock)
ADOPTED = {
    Level.ORDER: (LOCKS[0], RLOCKS[0]),
    Level.FULL: (LOCKS[1], RLOCKS[1]),
    Level.CONFIRM: (LOCKS[2], RLOCKS[2]),
}
LEVELS = (Level.ORDER, Level.FULL, Level.CONFIRM)


def functions_called(work: Callable[[], object]) -> list[str]:
    """Return which functions written in Python some work calls."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return called


def take_twice(lock: ExclusiveLock) -> None:
    for _ in range(2):
        lock.acquire()
        lock.release()


def try_twice(lock: ExclusiveLock) -> None:
    for _ in range(2):
        lock.acquire(False)
        lock.release()


@pytest.mark.parametrize("level", [Level.ORDER, Level.FULL])
@pytest.mark.parametrize("kind", [0, 1])
def test_what_is_nothing_new_calls_no_further_function(level: Level, kind: int) -> None:
    with session(level=level):
        for make in (OWN[kind], ADOPTED[level][kind]):
            lock = make("lock")
            take_twice(lock)

            assert ["take_twice", *["acquire", "release"] * 2] == functions_called(partial(take_twice, lock))


@pytest.mark.parametrize("level", LEVELS)
def test_adopted_locks_have_no_hook_for_attributes(level: Level) -> None:
    """One would slow every access to an attribute of the lock."""
    for kind in ADOPTED[level]:
        assert not hasattr(kind, "__getattr__")


@pytest.mark.parametrize("level", LEVELS)
def test_adopted_locks_lack_what_those_of_threading_lack(level: Level) -> None:
    for made, plain in zip(ADOPTED[level], (threading.Lock(), threading.RLock()), strict=True):
        lock = made("lock")
        for name in {*dir(threading.Lock()), *dir(threading.RLock()), "_recursion_count", "nothing"}:
            if not name.startswith("__"):
                assert hasattr(plain, name) == hasattr(lock, name), name


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", [0, 1])
def test_locks_are_held_as_they_are_taken_by_name(level: Level, kind: int) -> None:
    with session(level=level):
        for make in (OWN[kind], ADOPTED[level][kind]):
            outer, inner = make("outer"), make("inner")
            outer.acquire()
            assert inner.acquire(False)
            names = [name.partition(" ")[0] for name in held()]
            outer.release()
            left = [name.partition(" ")[0] for name in held()]
            inner.release()

            assert (["outer", "inner"], ["inner"], ()) == (names, left, held())


@pytest.mark.parametrize("level", LEVELS)
def test_an_inner_hold_ends_before_the_outer_one(level: Level) -> None:
    """The lock notes only its last hold, and each of them is released without a search."""
    with session(level=level):
        for make in (RLock, ADOPTED[level][1]):
            lock = make("lock")

            def nested(lock: ExclusiveLock = lock) -> None:
                lock.acquire()
                lock.acquire()
                lock.release()
                lock.release()

            nested()
            called = functions_called(nested)

            assert ((), []) == (held(), [name for name in called if name == "take_out"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("make", OWN)
def test_a_release_by_another_thread_is_none_of_the_holder(
    level: Level, make: Callable[[str], ExclusiveLock]
) -> None:
    """It is reported; and a re-entrant lock refuses it, so that its holder still has it."""
    with session(level=level, on=NOTE_ALL) as opened:
        lock = make("lock")
        refused: list[RuntimeError] = []
        lock.acquire()

        def release() -> None:
            try:
                lock.release()
            except RuntimeError as error:
                refused.append(error)

        run_all(other=release)
        if make is RLock:
            lock.release()

        assert Kind.WRONG_RELEASE in {finding.kind for finding in opened.findings}
        assert (make is RLock) == bool(refused)
        assert () == held()


@pytest.mark.parametrize("level", LEVELS)
def test_an_adopted_lock_that_another_thread_releases_is_a_signal(level: Level) -> None:
    with session(level=level, on=NOTE_ALL) as opened:
        lock = ADOPTED[level][0]("lock")
        lock.acquire()
        other = threading.Thread(target=lock.release)
        other.start()
        wait_until(lambda: not other.is_alive())  # To join it may be a finding: a wait under the lock.
        taken = [lock.acquire(False), lock.acquire(False)]

        assert ([True, False], ()) == (taken, opened.findings)
