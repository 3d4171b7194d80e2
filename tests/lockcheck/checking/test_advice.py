"""Advice: a path that takes a second one of what only so many can have, while it has the first one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest
from support.lockcheck.lock_corpus import RECORD

from licorne.lockcheck import Kind, Rung, adopt, session

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""


class Connection:
    """A thing that a pool lends."""


def advice_of(program: Callable[[], None]) -> list[str]:
    """Return the advice that a program gets; nothing else is found in it."""
    with adopt("program"), session(on=RECORD) as opened:
        program()
    assert opened.faults == []
    assert opened.failures == ()
    assert all((one.rung, one.kind) == (Rung.R1, Kind.RECURSION) for one in opened.findings)
    return [one.sentence for one in opened.findings]


def pool_of(*items: object) -> queue.Queue[object]:
    """Return a queue with some items."""
    pool: queue.Queue[object] = queue.LifoQueue()
    for item in items:
        pool.put(item)
    return pool


def two_permits() -> None:
    """A request that is tried again takes a second permit."""
    permits = threading.BoundedSemaphore(2)
    with permits, permits:
        pass


def two_connections() -> None:
    """A request that is tried again takes a second connection."""
    pool = pool_of(Connection(), Connection())
    first = pool.get()
    second = pool.get()
    pool.put(second)
    pool.put(first)


def two_tokens() -> None:
    """Connections are made anew, and tokens count them."""
    pool = pool_of(object(), object())
    first = pool.get()
    second = pool.get()
    pool.put(first)
    pool.put(second)


@pytest.mark.parametrize("program", [two_permits, two_connections, two_tokens])
def test_a_second_one_is_advice_which_fails_nothing(program: Callable[[], None]) -> None:
    """Two such threads could each have one, and wait for ever."""
    (sentence,) = advice_of(program)

    assert sentence.startswith("Advice: MainThread takes a")
    assert sentence.endswith("while it has one")


def one_after_the_other() -> None:
    """Each is given back before the next one is taken."""
    permits, pool = threading.Semaphore(2), pool_of(Connection(), Connection())
    for _ in range(3):
        with permits:
            pool.put(pool.get())


def only_tried() -> None:
    """Who does not get a second one goes on without."""
    permits, pool = threading.Semaphore(2), pool_of(Connection(), Connection())
    with permits:
        if permits.acquire(blocking=False):
            permits.release()
    first = pool.get()
    second = pool.get(timeout=60)
    pool.put(second)
    pool.put(first)


def tasks() -> None:
    """Items that are worked on are not given back; new ones may have their addresses."""
    work = pool_of(Connection(), Connection())
    for _ in range(6):
        task = work.get()
        del task
        work.put(Connection())


def tried_again() -> None:
    """One of two tasks is put back."""
    work = pool_of(Connection(), Connection())
    first, _ = work.get(), work.get()
    work.put(first)


def numbers() -> None:
    """Equal numbers are one object, and no resource."""
    work = pool_of(1, 2)
    for number in (work.get(), work.get()):
        work.put(number)


@pytest.mark.parametrize("program", [one_after_the_other, only_tried, tasks, tried_again, numbers])
def test_there_is_no_advice(program: Callable[[], None]) -> None:
    """Nothing waits for what it has."""
    assert [] == advice_of(program)
