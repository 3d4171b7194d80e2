"""Programs that wait under a lock for what another thread does under it; in turn, unless they are steered."""

from __future__ import annotations

import _thread
import concurrent.futures
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from support.waiting import WAIT_SECONDS, wait_until

from licorne.lockcheck import Condition, DeadlockError, Lock
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.locks.factories import ExclusiveLock


def in_turn(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Run two in threads, the second one when the first is over, without anything that is recorded."""
    over = _thread.allocate_lock()
    over.acquire()

    def run_first() -> None:
        try:
            with suppress(DeadlockError):
                first()
        finally:
            over.release()

    def run_second() -> None:
        if runtime.steering is None:
            assert over.acquire(timeout=WAIT_SECONDS)
        with suppress(DeadlockError):
            second()

    run_both(run_first, run_second)


def run_both(*works: Callable[[], None]) -> None:
    """Run each in a thread, both to their end."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
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


def of_a_task(awaits: Callable[[ThreadPoolExecutor, Future[None]], Callable[[], object]]) -> None:
    """Wait for what a task ends that takes the lock."""
    lock, over = Lock("lock"), _thread.allocate_lock()
    over.acquire()

    def task() -> None:
        under(lock, int)()
        over.release()

    with ThreadPoolExecutor(2) as pool:
        future = pool.submit(task)
        if runtime.steering is None:
            assert over.acquire(timeout=WAIT_SECONDS)
        with suppress(DeadlockError):
            under(lock, awaits(pool, future))()


def result() -> None:
    """Of a task that takes the lock."""
    of_a_task(lambda _, future: future.result)


def end_of_a_pool() -> None:
    """One of whose tasks takes the lock."""
    of_a_task(lambda pool, _: pool.shutdown)


def all_results() -> None:
    """Waited for by one call."""
    lock, over = Lock("lock"), _thread.allocate_lock()
    over.acquire()

    def task() -> None:
        under(lock, int)()
        over.release()

    with ThreadPoolExecutor(2) as pool:
        futures: list[Future[object]] = [pool.submit(object), pool.submit(task)]
        assert over.acquire(timeout=WAIT_SECONDS)
        under(lock, lambda: concurrent.futures.wait(futures))()


def each_result() -> None:
    """Of two tasks that one thread runs, of which the first one takes the lock."""
    lock, over = Lock("lock"), _thread.allocate_lock()
    over.acquire()

    with ThreadPoolExecutor(1) as pool:
        futures: list[Future[object]] = [pool.submit(under(lock, int)), pool.submit(over.release)]
        if runtime.steering is None:
            assert over.acquire(timeout=WAIT_SECONDS)
        with suppress(DeadlockError):
            under(lock, lambda: list(concurrent.futures.as_completed(futures)))()


def result_before_another_task() -> None:
    """The thread of the first task is idle when another one is submitted: that is chance."""
    lock = Lock("lock")
    with ThreadPoolExecutor(2) as pool:
        future = pool.submit(under(lock, int))
        if runtime.steering is None:
            wait_until(lambda: pool._idle_semaphore._value > 0)
        pool.submit(int)
        with suppress(DeadlockError):
            under(lock, future.result)()


def two_results() -> None:
    """Of tasks that both take the lock, waited for by one call, which raises nothing."""
    lock = Lock("lock")
    over: list[int] = []

    def task() -> None:
        with suppress(DeadlockError):
            under(lock, int)()
        over.append(1)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(task), pool.submit(task)]
        wait_until(lambda: runtime.steering is not None or len(over) == len(futures))
        with suppress(DeadlockError):
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
        with suppress(DeadlockError):
            under(lock, passed.release)()
        assert waits.acquire(timeout=WAIT_SECONDS)
        with changed:
            ready.append(1)
            changed.notify()

    def wait_for_it() -> None:
        if runtime.steering is None:
            assert passed.acquire(timeout=WAIT_SECONDS)
        with suppress(DeadlockError), lock, changed:
            waits.release()
            while not ready:
                changed.wait()

    run_both(notify, wait_for_it)


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
