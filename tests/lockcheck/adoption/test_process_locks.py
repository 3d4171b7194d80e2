"""Locks and semaphores of `multiprocessing` take part in cycles of threads; other processes are not seen."""

from __future__ import annotations

import importlib
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from support.lockcheck.deadlocked import run_all
from support.lockcheck.lock_corpus import nest
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS, stays, wait_until

from licorne.lockcheck import Rung, Session, adopt, session, unit
from licorne.lockcheck.checking.policy import NOTE_ALL
from licorne.lockcheck.findings.terms import Kind

pytestmark = [
    pytest.mark.lockcheck(off=True),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
"""Sessions are opened here."""

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def watched() -> Iterator[Session]:
    """Adopt what the test makes, in a session that raises nothing but the end of a deadlock."""
    with session(on=NOTE_ALL) as opened, adopt():
        yield opened


def both_ways(make: Callable[[], AbstractContextManager[object]]) -> None:
    """Take two things of a kind in both orders."""
    first, second = make(), make()
    nest("one", first, second)
    nest("two", second, first)


@pytest.mark.parametrize("kind", ["Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition"])
def test_a_cycle_is_found(watched: Session, kind: str) -> None:
    """They are locks, by whatever class."""
    both_ways(getattr(multiprocessing, kind))
    assert [finding.rung for finding in watched.findings] == [Rung.R2]
    places = [point.wanted.place.source for point in watched.findings[0].points]
    assert places == ["stack.enter_context(guard)"] * 2


def test_a_cycle_by_name_is_found(watched: Session) -> None:
    """A function that takes a lock by name and releases it holds it meanwhile."""
    first, second = multiprocessing.Lock(), multiprocessing.Lock()
    for name, outer, inner in (("one", first, second), ("two", second, first)):
        with unit(name):
            outer.acquire()
            inner.acquire()
            inner.release()
            outer.release()
    assert [finding.rung for finding in watched.findings] == [Rung.R2]


def test_a_value_has_a_lock(watched: Session) -> None:
    """The program takes the lock of a shared value itself."""
    value, lock = multiprocessing.Value("i"), threading.Lock()
    nest("one", value.get_lock(), lock)
    nest("two", lock, value.get_lock())
    assert [finding.rung for finding in watched.findings] == [Rung.R2]


def test_what_may_be_taken_again_is(watched: Session) -> None:
    """A re-entrant lock is no finding in itself."""
    lock = multiprocessing.RLock()
    with lock, lock:
        pass
    assert not watched.findings


def test_a_lock_that_is_wanted_again(watched: Session) -> None:
    """What is taken by `with` is released by the same thread, so to want it again is an error."""
    lock = multiprocessing.Lock()
    with lock:
        assert not lock.acquire(timeout=EXPIRING_SECONDS)
    assert [finding.kind for finding in watched.findings] == [Kind.RECURSION]


def test_a_deadlock_is_broken(watched: Session) -> None:
    """One of two threads that wait for each other gets an error, and the other goes on."""
    first, second = multiprocessing.Lock(), multiprocessing.Lock()
    meet = threading.Barrier(2)

    def work(outer: AbstractContextManager[object], inner: AbstractContextManager[object]) -> None:
        with outer:
            meet.wait()
            with inner:
                pass

    broken = run_all(one=lambda: work(first, second), other=lambda: work(second, first))
    assert len(broken) == 1
    assert any(finding.rung is Rung.R5 for finding in watched.findings)


def test_a_lock_that_another_process_releases_is_left_alone(watched: Session) -> None:
    """It hands something over: that this process wants it again is no finding."""
    lock, other = FORK.Lock(), threading.Lock()
    lock.acquire()
    child = FORK.Process(target=lock.release)
    child.start()
    lock.acquire()
    child.join()
    with other:
        pass
    lock.release()
    nest("two", other, lock)
    assert not watched.findings


def test_a_child_waits_for_what_its_parent_holds(watched: Session) -> None:
    """A forked process begins where its parent holds a lock, and may wait for that."""
    lock = FORK.Lock()

    def work() -> None:
        with lock, adopt(), session():
            pass

    with lock:
        child = FORK.Process(target=work)
        child.start()
        assert stays(child.is_alive, 0.2)
    child.join(WAIT_SECONDS)
    assert child.exitcode == 0
    assert not watched.findings


def test_a_condition_waits(watched: Session) -> None:
    """Who waits on a condition holds its lock no more, and holds it again afterwards."""
    condition, lock = multiprocessing.Condition(), threading.Lock()
    came = []

    def work() -> None:
        with condition:
            came.append(1)
            condition.wait(WAIT_SECONDS)
            with lock:
                came.append(2)

    thread = threading.Thread(target=work)
    with condition:
        thread.start()
    wait_until(lambda: came)
    with condition:
        condition.notify()
    thread.join(WAIT_SECONDS)
    assert came == [1, 2]
    assert not watched.findings
    nest("two", lock, condition)
    assert [finding.rung for finding in watched.findings] == [Rung.R2]


def test_events_barriers_and_queues_have_no_locks_of_the_program(watched: Session) -> None:
    """They work as before, and what they do inside is no finding."""
    event, queue, lock = FORK.Event(), FORK.SimpleQueue(), threading.Lock()
    with lock:
        event.set()
        queue.put(1)
    child = FORK.Process(target=lambda: queue.put(event.is_set()))
    child.start()
    assert [queue.get(), queue.get()] == [1, True]
    child.join(WAIT_SECONDS)
    assert not watched.findings


def test_after_adoption() -> None:
    """The original class is there again, and locks that were made meanwhile work unchecked."""
    module = importlib.import_module("_multiprocessing")
    plain = module.SemLock
    with session(on=NOTE_ALL) as opened:
        with adopt():
            first, second = multiprocessing.Lock(), multiprocessing.Lock()
            assert module.SemLock is not plain
            assert repr(first) == "<Lock(owner=None)>"
        assert module.SemLock is plain
        nest("one", first, second)
        nest("two", second, first)
    assert not opened.findings


@pytest.mark.usefixtures("watched")
def test_arguments_that_are_refused() -> None:
    """The original refuses them, and this with it."""
    lock = multiprocessing.Lock()
    with pytest.raises(TypeError):
        lock.acquire(blocking=False)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="semaphore or lock released too many times"):
        lock.release()
    with pytest.raises(AssertionError):
        multiprocessing.RLock().release()
    assert lock.acquire(False)
    assert not lock.acquire(block=False)
    assert not lock.acquire(True, -1)
    lock.release()
