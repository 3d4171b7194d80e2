"""Locks that a child of a fork takes, and that other threads of its parent take."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from support.lockcheck.deadlocked import checked
from support.lockcheck.forked import forks_beside, had_by_another, in_child
from support.lockcheck.lock_corpus import hold

from licorne.lockcheck import DeadlockPossibleError, Kind, Lock, Rung, session
from licorne.lockcheck.locks.factories import ExclusiveLock


def test_a_lock_that_another_thread_of_the_parent_took_is_a_finding() -> None:
    """It was free at the fork here; the parent has the report of the child."""
    with checked() as opened:
        shared = Lock("shared")
        forks_beside(shared, lambda: hold(shared))

    (finding,) = opened.findings
    assert (Rung.R2, Kind.FORK) == (finding.rung, finding.kind)
    assert "a forked process, and other may have had it at the fork" in finding.text
    assert ["other", "a fork of MainThread"] == [edge.execution for edge in finding.edges]
    assert all(edge.place for edge in finding.edges)
    assert (finding,) == opened.summary().findings


def test_a_child_that_would_wait_for_ever_raises_and_so_does_the_session() -> None:
    """The thread that holds the lock is not there; a child that went on would hang."""

    def program() -> None:
        with session():
            shared = Lock("shared")
            forks_beside(shared, lambda: hold(shared), held=True)

    with pytest.raises(DeadlockPossibleError, match="other had it at the fork"):
        program()


def test_each_child_reports_once() -> None:
    """Whatever it takes how often."""
    with checked() as opened:
        shared, second = Lock("shared"), Lock("second")

        def work() -> None:
            for _ in range(3):
                hold(shared)
            hold(second)

        with had_by_another(second):
            for _ in range(2):
                forks_beside(shared, work)

    assert [2, 2] == [finding.count for finding in opened.findings]


def held_at_the_fork(shared: ExclusiveLock) -> None:
    """The thread that forks has the lock, so nobody else has."""
    with had_by_another(shared), shared:
        in_child(lambda: hold(shared))


def made_anew(shared: ExclusiveLock) -> None:
    """As `threading` and `logging` do with theirs."""

    def work() -> None:
        shared._at_fork_reinit()  # type: ignore[attr-defined] # a lock has it
        hold(shared)

    forks_beside(shared, work)


def only_tried(shared: ExclusiveLock) -> None:
    """Who does not get it goes on without."""

    def work() -> None:
        for limit in (0, 60):
            if shared.acquire(limit > 0, limit or -1):
                shared.release()

    forks_beside(shared, work)


def another_lock(shared: ExclusiveLock) -> None:
    """Nobody else takes it."""
    own = Lock("own")
    forks_beside(shared, lambda: hold(own))


def over_at_the_fork(shared: ExclusiveLock) -> None:
    """A thread that has ended holds nothing."""
    with had_by_another(shared):
        pass
    in_child(lambda: hold(shared))


def in_the_parent(shared: ExclusiveLock) -> None:
    """It is not the child who takes it."""
    with had_by_another(shared):
        in_child(int)
        hold(shared)


@pytest.mark.parametrize(
    "program", [held_at_the_fork, made_anew, only_tried, another_lock, over_at_the_fork, in_the_parent]
)
def test_there_is_no_finding(program: Callable[[ExclusiveLock], None]) -> None:
    """Nobody but the child can have the lock there, or it does not wait for it."""
    with checked() as opened:
        program(Lock("shared"))

    assert () == opened.findings


def test_a_child_that_has_closed_all_files_goes_on() -> None:
    """As a process does that becomes a daemon: its parent hears nothing."""
    closed, ended = os.pipe()

    def work() -> None:
        os.closerange(3, ended)
        os.closerange(ended + 1, 256)
        hold(shared)
        os.write(ended, b"over")

    with checked() as opened:
        shared = Lock("shared")
        forks_beside(shared, work)

    os.close(ended)
    assert b"over" == os.read(closed, 4)
    os.close(closed)
    assert () == opened.findings
