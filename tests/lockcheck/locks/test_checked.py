"""Exclusive locks that are taken and released by name: what that costs, and what is noted."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import pytest
from support.lockcheck.deadlocked import run_all
from support.waiting import wait_until

from licorne.lockcheck import Kind, Level, Lock, RLock, held, session
from licorne.lockcheck.adoption.adopted import LOCKS, RLOCKS
from licorne.lockcheck.checking.policy import NOTE_ALL
from licorne.lockcheck.holding.runtime import has_global_lock
from licorne.lockcheck.locks.factories import ExclusiveLock
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.trace import read_trace

OWN = (Lock, RLock)
ADOPTED = {
    Level.ORDER: (LOCKS[0], RLOCKS[0]),
    Level.FULL: (LOCKS[1], RLOCKS[1]),
    Level.RECORD: (LOCKS[2], RLOCKS[2]),
}
LEVELS = (Level.ORDER, Level.FULL, Level.RECORD)
WRITES_AT_ONCE = pytest.mark.skipif(
    not has_global_lock(), reason="without a global lock the trace is written in turn, by further functions"
)


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


@WRITES_AT_ONCE
def test_a_recorded_lock_calls_no_further_function_for_what_is_nothing_new(tmp_path: Path) -> None:
    with recording(tmp_path / "trace"):
        for make in (*OWN, *ADOPTED[Level.RECORD]):
            lock = make("lock")
            take_twice(lock)

            assert ["take_twice", *["acquire", "release"] * 2] == functions_called(partial(take_twice, lock))


@WRITES_AT_ONCE
def test_an_attempt_on_a_recorded_lock_calls_a_bounded_number_of_functions(tmp_path: Path) -> None:
    """Its place is found without a walk through the stack."""
    with recording(tmp_path / "trace"):
        for make in (*OWN, *ADOPTED[Level.RECORD]):
            lock = make("lock")
            try_twice(lock)
            asked = ["_attempt"] * (2 if make in ADOPTED[Level.RECORD] else 1)

            once = ["acquire", *asked, "_asked", "_take_or_try", "_take", "record_taken", "release"]
            assert ["try_twice", *once * 2] == functions_called(partial(try_twice, lock))


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


def take_here(lock: ExclusiveLock) -> None:
    lock.acquire()
    lock.release()


def take_there(lock: ExclusiveLock) -> None:
    lock.acquire()
    lock.release()


def test_each_place_at_which_a_lock_is_taken_by_name_has_its_times() -> None:
    with session(level=Level.FULL) as opened:
        lock = Lock("lock")
        for _ in range(3):
            take_here(lock)
            take_there(lock)
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock)
    counts = sorted(usage.hold.count for usage in opened.summary().usages)

    assert [1, 3, 3] == counts


def test_the_lines_of_recorded_acquisitions_are_those_of_the_program(tmp_path: Path) -> None:
    with recording(tmp_path / "trace"):
        lock = Lock("lock")
        for _ in range(2):
            take_here(lock)
            take_there(lock)
            try_twice(lock)
    lines = [site.source for site in read_trace(tmp_path / "trace").sites.values()]

    assert {"lock.acquire()", "lock.acquire(False)"} == set(lines)
    assert len(lines) == 3
