"""The plain read/write lock: who gets in, who goes first, who gives up, and what it refuses."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from support.waiting import WAIT_SECONDS, wait_until

from licorne.lockcheck import LockUsageError
from licorne.lockcheck.locks.rwlock import PlainRWLock


def take(lock: PlainRWLock, mode: str, seconds: float = -1.0) -> bool:
    """Take a lock and release it; return whether it was taken."""
    if not (lock.acquire_read if mode == "R" else lock.acquire_write)(seconds):
        return False
    (lock.release_read if mode == "R" else lock.release_write)()
    return True


def started(work: Callable[[], object]) -> threading.Thread:
    """Start a thread."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(*threads: threading.Thread) -> None:
    """Wait until threads have ended."""
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Have the interpreter switch threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_readers_share_and_writers_do_not() -> None:
    """Two readers are in at once; a writer gets in when both have left."""
    lock = PlainRWLock()
    both_in = threading.Barrier(3)
    leave = threading.Event()
    order: list[str] = []

    def read() -> None:
        with lock.read():
            both_in.wait(WAIT_SECONDS)
            leave.wait(WAIT_SECONDS)
            order.append("reader")

    def write() -> None:
        with lock.write():
            order.append("writer")

    readers = [started(read), started(read)]
    both_in.wait(WAIT_SECONDS)
    writer = started(write)
    wait_until(lambda: len(lock.queued()) == 1)
    leave.set()
    ended(*readers, writer)

    assert ["reader", "reader", "writer"] == order


@pytest.mark.parametrize(("policy", "enters"), [("writer", False), ("reader", True)])
def test_a_waiting_writer_stops_new_readers_unless_readers_go_first(policy: str, enters: bool) -> None:  # noqa: FBT001
    """That is what the policy says."""
    lock = PlainRWLock(policy=policy)  # type: ignore[arg-type] # one of the two
    got: list[bool] = []
    with lock.read():
        writer = started(lambda: take(lock, "W"))
        wait_until(lambda: len(lock.queued()) == 1)
        ended(started(lambda: got.append(take(lock, "R", 0))))
    ended(writer)

    assert [enters] == got


def test_a_writer_goes_before_readers_that_came_first() -> None:
    """The lock is handed to the writer although a reader has waited longer."""
    lock = PlainRWLock()
    order: list[str] = []

    def enter(name: str) -> None:
        with lock.read() if name == "reader" else lock.write():
            order.append(name)

    with lock.write():
        reader = started(partial(enter, "reader"))
        wait_until(lambda: len(lock.queued()) == 1)
        writer = started(partial(enter, "writer"))
        wait_until(lambda: len(lock.queued()) == 2)
    ended(reader, writer)

    assert ["writer", "reader"] == order


def test_a_writer_that_gives_up_lets_the_readers_behind_it_in() -> None:
    """Otherwise they would wait for a writer that is gone."""
    lock = PlainRWLock()
    with lock.read():
        writer = started(lambda: lock.acquire_write(0.05))
        wait_until(lambda: len(lock.queued()) == 1)
        reader = started(lambda: take(lock, "R"))
        ended(writer, reader)

    assert (None, frozenset()) == lock.holders()


def test_a_timeout_leaves_the_lock_as_it_was() -> None:
    """And says that the lock was not taken."""
    lock = PlainRWLock()
    results: list[bool] = []
    with lock.write():
        ended(started(lambda: results.extend((lock.acquire_read(0.01), lock.acquire_write(0.01)))))

    assert [False, False] == results
    assert () == lock.queued()
    assert lock.acquire_write(0)


@pytest.mark.parametrize("held", ["read", "write"])
@pytest.mark.parametrize("wanted", ["read", "write"])
def test_who_holds_it_is_refused_instead_of_waiting_for_themselves(held: str, wanted: str) -> None:
    """In every combination; what was held stays held."""
    lock = PlainRWLock("partition")
    getattr(lock, f"acquire_{held}")()
    with pytest.raises(LockUsageError, match=r"partition None: thread \d+ holds"):
        getattr(lock, f"acquire_{wanted}")()
    assert not getattr(lock, f"acquire_{wanted}")(0)

    getattr(lock, f"release_{held}")()
    assert (None, frozenset()) == lock.holders()


@pytest.mark.parametrize("mode", ["read", "write"])
def test_who_does_not_hold_it_cannot_release_it(mode: str) -> None:
    """Neither a lock that is free nor one that another thread holds."""
    lock = PlainRWLock()
    other = PlainRWLock()
    ended(started(getattr(other, f"acquire_{mode}")))
    for each in (lock, other):
        with pytest.raises(LockUsageError, match="it does not hold"):
            getattr(each, f"release_{mode}")()


def test_an_unknown_policy_is_refused() -> None:
    """By its name."""
    with pytest.raises(LockUsageError, match="got 'fair'"):
        PlainRWLock(policy="fair")  # type: ignore[arg-type] # on purpose


@pytest.mark.parametrize("policy", ["writer", "reader"])
@pytest.mark.usefixtures("quick_switches")
def test_many_threads_never_see_a_half_written_pair(policy: str) -> None:
    """Readers, writers and those that give up, at the smallest switch interval."""
    lock = PlainRWLock(policy=policy)  # type: ignore[arg-type] # one of the two
    pair = [0, 0]
    torn: list[tuple[int, int]] = []

    def write() -> None:
        for _ in range(100):
            with lock.write():
                pair[0] += 1
                pair[1] += 1

    def read() -> None:
        for _ in range(100):
            if lock.acquire_read(0.0005):
                if pair[0] != pair[1]:
                    torn.append((pair[0], pair[1]))
                lock.release_read()

    ended(*[started(work) for work in (write, read, write, read, write, read)])

    assert [] == torn
    assert [300, 300] == pair
    assert (None, frozenset()) == lock.holders()
    assert () == lock.queued()
