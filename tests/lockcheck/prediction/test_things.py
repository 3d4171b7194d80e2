"""Waits under a lock for events, results, items and notifications, whose other side needs that lock.

In each recorded run the thing was done already, or was done in time; another order is a deadlock.
"""

from __future__ import annotations

import _thread
import concurrent.futures
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from licorne.lockcheck import Condition, Lock
from licorne.lockcheck.prediction.predicted_findings import findings_of
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.file import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from licorne.lockcheck.locks.exclusive import ExclusiveLock

SECONDS_MAX = 10


def in_turn(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Run two in threads, the second one when the first is over, without anything that is recorded."""
    over = _thread.allocate_lock()
    over.acquire()

    def run_first() -> None:
        try:
            first()
        finally:
            over.release()

    def run_second() -> None:
        assert over.acquire(timeout=SECONDS_MAX)
        second()

    threads = [threading.Thread(target=run) for run in (run_first, run_second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive()


def under(lock: ExclusiveLock, work: Callable[[], object]) -> Callable[[], None]:
    """Return what does something under a lock."""

    def run() -> None:
        with lock:
            work()

    return run


def event() -> None:
    """It is set under the lock, under which it is waited for."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, done.wait))


def item() -> None:
    """Of a queue."""
    lock, items = Lock("lock"), queue.Queue[int]()
    in_turn(under(lock, lambda: items.put(1)), under(lock, items.get))


def result() -> None:
    """Of a task that takes the lock."""
    lock, over = Lock("lock"), _thread.allocate_lock()
    over.acquire()

    def task() -> None:
        under(lock, int)()
        over.release()

    with ThreadPoolExecutor(2) as pool:
        future = pool.submit(task)
        assert over.acquire(timeout=SECONDS_MAX)
        under(lock, future.result)()


def all_results() -> None:
    """Waited for by one call."""
    lock, over = Lock("lock"), _thread.allocate_lock()
    over.acquire()

    def task() -> None:
        under(lock, int)()
        over.release()

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(int), pool.submit(task)]
        assert over.acquire(timeout=SECONDS_MAX)
        under(lock, lambda: concurrent.futures.wait(futures))()


def promise() -> None:
    """A result that a thread sets itself."""
    lock, future = Lock("lock"), Future[int]()
    in_turn(under(lock, lambda: future.set_result(1)), under(lock, future.result))


def notification() -> None:
    """The notifier takes another lock before, and that is held meanwhile."""
    lock, changed = Lock("lock"), Condition(name="changed")
    passed, waits = _thread.allocate_lock(), _thread.allocate_lock()
    passed.acquire()
    waits.acquire()
    ready: list[int] = []

    def notify() -> None:
        under(lock, passed.release)()
        assert waits.acquire(timeout=SECONDS_MAX)
        with changed:
            ready.append(1)
            changed.notify()

    def wait_for_it() -> None:
        assert passed.acquire(timeout=SECONDS_MAX)
        with lock, changed:
            waits.release()
            while not ready:
                changed.wait()

    threads = [threading.Thread(target=work) for work in (notify, wait_for_it)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS_MAX)
        assert not thread.is_alive()


def through_a_third() -> None:
    """Who sets the event waits for a thread that needs the lock."""
    lock, one, other = Lock("lock"), threading.Event(), threading.Event()

    def relay() -> None:
        other.wait()
        one.set()

    relayed = threading.Thread(target=relay)
    relayed.start()
    in_turn(under(lock, other.set), under(lock, one.wait))
    relayed.join()


@pytest.mark.parametrize(
    "program", [event, item, result, all_results, promise, notification, through_a_third]
)
def test_a_wait_under_a_lock_that_the_other_side_needs_is_predicted(
    program: Callable[[], None], tmp_path: Path
) -> None:
    """Also where it was over at once."""
    assert 1 == len(predicted(program, tmp_path / "locks.lct"))


def limited() -> None:
    """It ends by itself."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, lambda: done.wait(SECONDS_MAX)))


def looked_at() -> None:
    """Not waited for."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, done.is_set))


def set_before_the_lock() -> None:
    """What comes after does not matter."""
    lock, done = Lock("lock"), threading.Event()

    def set_it() -> None:
        done.set()
        under(lock, int)()

    in_turn(set_it, under(lock, done.wait))


def set_by_two() -> None:
    """One of them without the lock."""
    lock, done = Lock("lock"), threading.Event()
    in_turn(under(lock, done.set), under(lock, done.wait))
    in_turn(done.set, int)


def item_of_two() -> None:
    """The one that is put under the lock is not needed."""
    lock, items = Lock("lock"), queue.Queue[int]()

    def put() -> None:
        items.put(1)
        under(lock, lambda: items.put(2))()

    in_turn(put, under(lock, items.get))


def item_of_before() -> None:
    """It was there when the recording began, as far as that is known."""
    lock, items = Lock("lock"), queue.Queue[int]()
    items.queue.append(0)

    def get() -> None:
        under(lock, items.get)()
        items.get()

    in_turn(under(lock, lambda: items.put(1)), get)


def started_under_the_lock() -> None:
    """The setter is started before, and by the one that waits after."""
    lock, done = Lock("lock"), threading.Event()
    under(lock, int)()
    thread = threading.Thread(target=under(lock, done.set))
    thread.start()
    done.wait()
    under(lock, done.wait)()
    thread.join()


@pytest.mark.parametrize(
    "program",
    [
        limited,
        looked_at,
        set_before_the_lock,
        set_by_two,
        item_of_two,
        item_of_before,
        started_under_the_lock,
    ],
)
def test_a_wait_that_ends_in_every_order_is_not_predicted(
    program: Callable[[], None], tmp_path: Path
) -> None:
    """Whatever else happens under the lock."""
    assert [] == predicted(program, tmp_path / "locks.lct")


def predicted(program: Callable[[], None], path: Path) -> list[str]:
    """Return what a recorded run of a program predicts."""
    with recording(path):
        program()
    return [finding.text for finding in findings_of(read_trace(path))[0]]
