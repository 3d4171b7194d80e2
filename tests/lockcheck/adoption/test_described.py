"""Locks of fasteners and readerwriterlock, described by the names of their methods."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import fasteners
import pytest
from readerwriterlock import rwlock
from support.lockcheck.broken_parts import broken
from support.lockcheck.deadlocked import checked, found, run_all
from support.waiting import WAIT_SECONDS

from licorne import lockcheck
from licorne.lockcheck import Kind, LockUsageError, Rung
from licorne.lockcheck.checking.policy import NOTE_ALL

KINDS = (rwlock.RWLockFair, rwlock.RWLockRead, rwlock.RWLockWrite)
LEVELS = ("order", "full", "confirm")
"""The first one finds no cycles, as for all locks."""


@pytest.fixture(autouse=True)
def described() -> Iterator[None]:
    """Describe the classes of both libraries."""
    opened = [
        lockcheck.describe(fasteners.InterProcessLock, acquire="acquire", release="release"),
        lockcheck.describe(
            fasteners.ReaderWriterLock,
            read=["read_lock", ("acquire_read_lock", "release_read_lock")],
            write=["write_lock", ("acquire_write_lock", "release_write_lock")],
            reentrant=True,
        ),
        *(lockcheck.describe(kind, read="gen_rlock", write="gen_wlock") for kind in KINDS),
    ]
    yield
    for description in opened:
        description.close()


@pytest.mark.parametrize("level", LEVELS[1:])
def test_opposite_orders_of_locks_of_two_libraries_are_a_cycle(level: str) -> None:
    """One takes users and then groups, the other groups and then users, each for writing."""
    turn = threading.Semaphore(0)
    with checked(level) as opened, lockcheck.adopt():
        users = fasteners.ReaderWriterLock()
        groups = rwlock.RWLockFair()

        def rename() -> None:
            with users.read_lock(), groups.gen_wlock():
                pass

        def move() -> None:
            with groups.gen_rlock(), users.write_lock():
                pass

        def in_turn(work: Callable[[], None]) -> None:
            work()
            turn.release()

        for work in (rename, move):
            threading.Thread(target=in_turn, args=(work,)).start()
            turn.acquire()

    assert [Kind.CYCLE] == [finding.kind for finding in opened.summary().findings]
    assert "users" in opened.summary().findings[0].text
    assert "groups" in opened.summary().findings[0].text


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_first_reader_in_and_another_last_reader_out_are_no_finding(kind: type, level: str) -> None:
    """The lock inside is taken on one thread and released on the other."""
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))
    with checked(level) as opened, lockcheck.adopt():
        table = kind()

        def first() -> None:
            with table.gen_rlock():
                first_is_in.set()
                second_is_in.wait(WAIT_SECONDS)
            first_is_out.set()

        def second() -> None:
            first_is_in.wait(WAIT_SECONDS)
            with table.gen_rlock():
                second_is_in.set()
                first_is_out.wait(WAIT_SECONDS)

        assert [] == run_all(first=first, second=second)
        with table.gen_wlock():
            assert 1 == len(lockcheck.held())

    assert [] == found(opened, Rung.R0, Rung.R1, Rung.R2)


def test_a_lock_is_held_in_its_mode_under_the_name_that_it_is_assigned_to() -> None:
    """The pair of methods, and the context manager, are two ways to the same lock."""
    with checked():
        table = fasteners.ReaderWriterLock()
        table.acquire_read_lock()
        (by_method,) = lockcheck.held()
        table.release_read_lock()
        with table.read_lock():
            (by_context,) = lockcheck.held()

        assert () == tuple(lockcheck.held())
    assert str(by_method) == str(by_context)
    assert "table" in str(by_method)


def test_a_lock_of_a_subclass_has_the_name_that_it_is_assigned_to() -> None:
    """Not that of the constructor that calls the described one."""

    class Table(rwlock.RWLockFair):
        def __init__(self) -> None:
            super().__init__()

    with checked():
        guests = Table()
        with guests.gen_rlock():
            assert "guests" in str(lockcheck.held()[0])


def test_a_lock_that_was_not_got_is_not_held() -> None:
    """The attempt returned False, as another thread has the lock."""
    with checked() as opened:
        table = rwlock.RWLockFair()
        writer = table.gen_wlock()
        assert writer.acquire()
        tried: list[bool] = []
        run_all(other=lambda: tried.append(table.gen_rlock().acquire(blocking=False)))
        writer.release()

    assert [False] == tried
    assert [] == found(opened, Rung.R0, Rung.R2)


def test_what_a_method_returns_is_what_the_library_returns(tmp_path: Path) -> None:
    """Its class, its attributes and its errors."""
    with checked() as opened:
        reader = rwlock.RWLockFair().gen_rlock()
        assert isinstance(reader, rwlock.RWLockFair._aReader)
        assert not reader.locked()
        with pytest.raises(RuntimeError):
            reader.release()
        with fasteners.InterProcessLock(tmp_path / "file") as entered:
            assert entered
        with pytest.raises(RuntimeError):
            fasteners.ReaderWriterLock().release_write_lock()

    assert [] == found(opened, Rung.R0)


def test_a_lock_that_was_made_before_has_the_name_of_its_class() -> None:
    """Nothing says any more what it was assigned to."""

    class Early:
        def take(self) -> None:
            """Take nothing."""

        def leave(self) -> None:
            """Release nothing."""

    lock = Early()
    with lockcheck.describe(Early, acquire="take", release="leave"), checked():
        lock.take()
        assert "Early" in str(lockcheck.held()[0])
        lock.leave()


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_deadlock_is_broken_by_the_thread_that_would_complete_it(level: str) -> None:
    """One thread waits in a library already: the other one does not begin to wait."""
    with checked(level) as opened:
        users, groups = fasteners.ReaderWriterLock(), rwlock.RWLockFair()
        both = threading.Barrier(2)

        def work(first: AbstractContextManager[object], second: AbstractContextManager[object]) -> None:
            with first:
                both.wait()
                with second:
                    pass

        broken = run_all(
            one=lambda: work(users.write_lock(), groups.gen_wlock()),
            other=lambda: work(groups.gen_wlock(), users.write_lock()),
        )

    assert 1 == len(broken)
    assert Rung.R5 in {finding.rung for finding in opened.summary().findings}


def test_a_lock_that_may_be_taken_again_is_no_deadlock_of_one_thread() -> None:
    """The library lets its writer read and write."""
    with checked() as opened:
        users = fasteners.ReaderWriterLock()
        with users.write_lock(), users.write_lock(), users.read_lock():
            pass

    assert [] == found(opened, *Rung)


class Turnstile:
    """A lock with names of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Take it."""
        self._lock.acquire()

    def leave(self) -> None:
        """Release it."""
        self._lock.release()


class NamedTurnstile(Turnstile):
    """One whose methods are inherited."""


@pytest.mark.parametrize(
    ("kind", "given", "method"),
    [
        (Turnstile, {"acquire": "enter", "release": "leave"}, "Turnstile.__init__"),
        (NamedTurnstile, {"acquire": "enter", "release": "leave"}, "NamedTurnstile.enter"),
    ],
)
def test_a_method_is_not_described_twice(kind: type, given: dict[str, str], method: str) -> None:
    """Each description would note the same lock as one of its own."""
    with lockcheck.describe(Turnstile, acquire="enter", release="leave"):
        during = dict(vars(kind))
        with pytest.raises(LockUsageError, match=f"describe: {method} is described already"):
            lockcheck.describe(kind, **given)  # type: ignore[arg-type] # texts only

        assert during.keys() == vars(kind).keys()


def test_a_method_is_not_described_for_reading_and_for_writing() -> None:
    """The second one would change nothing."""
    before = dict(vars(Turnstile))
    ways = ("enter", "leave")
    with pytest.raises(LockUsageError, match=r"Turnstile\.enter is described already"):
        lockcheck.describe(Turnstile, read=ways, write=ways)

    assert before == dict(vars(Turnstile))


def test_a_lock_is_not_held_once_its_description_is_closed() -> None:
    """Its release is not seen any more, and what is taken later is not taken under it."""
    with checked() as opened:
        description = lockcheck.describe(Turnstile, acquire="enter", release="leave")
        lock = Turnstile()
        lock.enter()
        description.close()
        with lockcheck.Lock("later"):
            assert ["later"] == [str(one).split(" ")[0] for one in lockcheck.held()]
        lock.leave()
        with lockcheck.describe(Turnstile, acquire="enter", release="leave"):
            lock.enter()
            lock.leave()

    assert [] == found(opened, *Rung)


def test_a_method_that_the_program_replaced_meanwhile_is_left_as_it_is() -> None:
    """Only what the description has put there is taken away."""

    class Kind(Turnstile):
        pass

    def enter(self: Turnstile) -> None:
        """Take it in another way."""

    with lockcheck.describe(Kind, acquire="enter", release="leave"):
        Kind.enter = enter  # type: ignore[method-assign] # that is the test

    assert enter is Kind.enter
    assert "leave" not in vars(Kind)


@pytest.mark.parametrize("part", ["name_at", "take_slow_path_at", "steer", "entered", "take_out"])
def test_a_fault_of_the_checker_leaves_the_lock_as_it_is(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken and released by the methods of the class, and the fault switches the checker off."""
    monkeypatch.setattr(f"licorne.lockcheck.adoption.described.{part}", broken)
    session = lockcheck.session(level="full", on=NOTE_ALL)
    with session as opened, lockcheck.describe(Turnstile, acquire="enter", release="leave"):
        lock = Turnstile()
        lock.enter()
        taken = lock._lock.locked()
        lock.leave()

    assert [True, False] == [taken, lock._lock.locked()]
    assert ["ZeroDivisionError: on purpose"] == opened.faults[:1]


def test_a_class_is_as_it_was_once_the_description_is_closed() -> None:
    """Methods of its own and inherited ones."""

    class Base:
        def take(self) -> None:
            """Take nothing."""

        def leave(self) -> None:
            """Release nothing."""

    class Lock(Base):
        def leave(self) -> None:
            """Release nothing else."""

    before = dict(vars(Lock))
    with lockcheck.describe(Lock, acquire="take", release="leave"):
        assert before != dict(vars(Lock))

    assert before == dict(vars(Lock))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"acquire": "take", "release": "leave"}, "object has no method 'take'"),
        ({"read": "reading"}, "object has no method 'reading'"),
        ({"acquire": "take"}, "name both acquire and release"),
        ({}, "name both acquire and release, or read and write"),
    ],
)
def test_a_wrong_description_is_refused_and_changes_nothing(given: dict[str, str], error: str) -> None:
    """The error names the class and what it lacks."""

    class Kind(threading.local):
        pass

    Kind.__qualname__ = "object"
    before = dict(vars(Kind))
    with pytest.raises(LockUsageError, match=error):
        lockcheck.describe(Kind, **given)  # type: ignore[arg-type] # texts only

    assert before.keys() == vars(Kind).keys()
