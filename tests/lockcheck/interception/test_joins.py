"""Real deadlocks over ends of threads and futures of pools: found, and broken by one victim."""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from support.lockcheck.collected import collected_under
from support.lockcheck.deadlocked import checked, deadlocks, run_all
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS, wait_until

from licorne.lockcheck import DeadlockError, Kind, Lock, Rung, unit
from licorne.lockcheck.holding.chains import Execution, ExecutionWait
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.locks.factories import ExclusiveLock

LEVELS = pytest.mark.parametrize("level", ["order", "full"])


def joins_under_its_lock(lock: ExclusiveLock) -> list[str]:
    """Join a thread while holding what it wants; return who gave way."""
    gave_way: list[str] = []
    held = threading.Event()

    def wants_it() -> None:
        try:
            held.wait(WAIT_SECONDS)
            with lock:
                pass
        except DeadlockError:
            gave_way.append("worker")

    worker = threading.Thread(target=wants_it, name="worker", daemon=True)

    def joins() -> None:
        worker.start()
        with lock:
            held.set()
            worker.join()

    gave_way += run_all(joiner=joins)
    worker.join(WAIT_SECONDS)
    assert not worker.is_alive()
    return gave_way


@LEVELS
def test_a_join_under_the_lock_that_the_joined_thread_wants_is_broken(level: str) -> None:
    """One of the two gives way, and the report says what each waits for."""
    with checked(level) as opened:
        assert 1 == len(joins_under_its_lock(Lock("shared")))

    (finding,) = deadlocks(opened)
    assert {"joiner", "worker"} == {edge.execution for edge in finding.edges}
    (joiner,) = [edge for edge in finding.edges if edge.execution == "joiner"]
    assert "the end of worker, in the way is worker" == joiner.wanted
    assert "joins" in joiner.want_stack[0].function


def test_it_is_found_within_100_milliseconds() -> None:
    """As for locks: two looks at the most."""

    def work() -> float:
        with checked():
            began = time.perf_counter()
            joins_under_its_lock(Lock("shared"))
            return time.perf_counter() - began

    wait_until(lambda: work() < 0.1)


def test_threads_that_join_each_other_are_broken() -> None:
    """No lock is needed for that."""
    threads: dict[str, threading.Thread] = {}
    both = threading.Barrier(2)

    def joins(name: str) -> None:
        threads[threading.current_thread().name] = threading.current_thread()
        both.wait(WAIT_SECONDS)
        threads[name].join()

    with checked() as opened:
        gave_way = run_all(one=lambda: joins("two"), two=lambda: joins("one"))

    assert 1 == len(gave_way)
    assert 1 == len(deadlocks(opened))


def test_what_runs_as_another_unit_on_the_joined_thread_counts() -> None:
    """The thread waits where its named execution does."""
    lock, held = Lock("shared"), threading.Event()

    def wants_it() -> None:
        held.wait(WAIT_SECONDS)
        with unit("inner"), pytest.raises(DeadlockError), lock:
            pass

    with checked() as opened:
        lock = Lock("shared")
        worker = threading.Thread(target=wants_it, daemon=True)
        worker.start()
        with lock:
            held.set()
            worker.join()

    assert {"MainThread", "inner"} == {edge.execution for edge in deadlocks(opened)[0].edges}


def result(future: Future[Any], _: ThreadPoolExecutor) -> None:
    future.result()


def exception(future: Future[Any], _: ThreadPoolExecutor) -> None:
    error = future.exception()
    if error is not None:
        raise error


def wait_for_all(future: Future[Any], pool: ThreadPoolExecutor) -> None:
    both: list[Future[Any]] = [future, pool.submit(int)]
    concurrent.futures.wait(both)
    future.result()


def wait_for_first(future: Future[Any], _: ThreadPoolExecutor) -> None:
    concurrent.futures.wait([future], return_when=concurrent.futures.FIRST_COMPLETED)
    future.result()


def in_turn(future: Future[Any], _: ThreadPoolExecutor) -> None:
    for one in concurrent.futures.as_completed([future]):
        one.result()


def shut_down(future: Future[Any], pool: ThreadPoolExecutor) -> None:
    pool.shutdown()
    future.result()


@LEVELS
@pytest.mark.parametrize(
    "waits", [result, exception, wait_for_all, wait_for_first, in_turn, shut_down], ids=lambda f: f.__name__
)
def test_a_future_awaited_under_the_lock_that_its_task_wants_is_broken(
    waits: Callable[[Future[Any], ThreadPoolExecutor], None], level: str
) -> None:
    """In whatever way it is awaited."""
    with checked(level) as opened:
        lock, held = Lock("shared"), threading.Event()

        def task() -> None:
            held.wait(WAIT_SECONDS)
            with lock:
                pass

        def asks() -> None:
            with ThreadPoolExecutor(2) as pool:
                future = pool.submit(task)
                with lock:
                    held.set()
                    waits(future, pool)

        assert ["asker"] == run_all(asker=asks)  # its own wait was broken, or it gets the task's error

    assert 1 == len(deadlocks(opened))


@LEVELS
@pytest.mark.parametrize("workers", [1, 2])
def test_a_pool_whose_workers_all_wait_for_tasks_that_nobody_runs_is_broken(workers: int, level: str) -> None:
    """A task waits for one that it has handed in, behind others that do the same."""
    with checked(level) as opened:
        ready = threading.Barrier(workers)

        def task(pool: ThreadPoolExecutor) -> int:
            ready.wait(WAIT_SECONDS)
            return pool.submit(int).result()

        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(task, pool) for _ in range(workers)]
            outcomes = [future.exception() for future in futures]

    errors = [error for error in outcomes if error is not None]
    assert [DeadlockError] == [type(error) for error in errors]
    assert 1 == len(deadlocks(opened))
    assert workers == len(deadlocks(opened)[0].edges)


def test_tasks_that_wait_for_each_other_are_broken() -> None:
    """Each runs, and waits for the result of the other."""
    with checked() as opened, ThreadPoolExecutor(2) as pool:
        futures: list[Future[Any]] = []
        known = threading.Event()

        def task(other: int) -> object:
            known.wait(WAIT_SECONDS)
            return futures[other].result()

        futures += [pool.submit(task, 1), pool.submit(task, 0)]
        known.set()
        outcomes = [type(future.exception()) for future in futures]

    assert [DeadlockError, DeadlockError] == outcomes  # the other one gets the error of its victim
    assert 1 == len(deadlocks(opened))


def slow_task(pool: ThreadPoolExecutor, lock: ExclusiveLock) -> None:
    """Wait for a task that is queued behind one which takes its time, and holds a lock meanwhile."""
    go_on = threading.Event()
    busy = pool.submit(go_on.wait, WAIT_SECONDS)
    with lock:
        queued = pool.submit(int)
        threading.Timer(0.06, go_on.set).start()
        assert 0 == queued.result()
    assert busy.result()


def promised(_: ThreadPoolExecutor, lock: ExclusiveLock) -> None:
    """Wait for a future that somebody keeps who is not known."""
    promise: Future[int] = Future()
    threading.Timer(0.06, promise.set_result, [7]).start()
    with lock:
        assert 7 == promise.result()


def any_of_two(pool: ThreadPoolExecutor, lock: ExclusiveLock) -> None:
    """One of two tasks wants the lock of who waits, and the other one comes first."""
    with lock:
        stuck = pool.submit(lock.acquire)
        threading.Timer(0.06, (promise := Future[int]()).set_result, [7]).start()
        both: list[Future[Any]] = [stuck, promise]
        concurrent.futures.wait(both, return_when=concurrent.futures.FIRST_COMPLETED)
        assert promise.done()
        assert not stuck.done()
    assert stuck.result()
    lock.release()


def for_a_while(pool: ThreadPoolExecutor, lock: ExclusiveLock) -> None:
    """Wait with a limit for what cannot be: that ends by itself."""
    with lock:
        stuck = pool.submit(lock.acquire)
        with pytest.raises(TimeoutError):
            stuck.result(timeout=EXPIRING_SECONDS)
        assert not concurrent.futures.wait([stuck], timeout=EXPIRING_SECONDS).done
    assert stuck.result()
    lock.release()


def cancelled(pool: ThreadPoolExecutor, lock: ExclusiveLock) -> None:
    """A task that was never run is cancelled while somebody waits for it."""
    go_on = threading.Event()
    busy = pool.submit(go_on.wait, WAIT_SECONDS)
    queued = pool.submit(int)
    threading.Timer(0.06, queued.cancel).start()
    with lock, pytest.raises(concurrent.futures.CancelledError):
        queued.result()
    go_on.set()
    assert busy.result()


@pytest.mark.parametrize(
    "work", [slow_task, promised, any_of_two, for_a_while, cancelled], ids=lambda f: f.__name__
)
def test_a_wait_that_somebody_ends_is_no_deadlock(
    work: Callable[[ThreadPoolExecutor, ExclusiveLock], None],
) -> None:
    """However long it takes."""
    with checked() as opened, ThreadPoolExecutor(1) as pool:
        work(pool, Lock("shared", check="order"))

    assert [] == deadlocks(opened)


def test_a_wait_for_the_first_result_needs_nobody_once_there_is_one() -> None:
    """Also in the moment before the waiter notices, while the other task is stuck behind the waiter."""
    promise = Future[int]()
    with checked() as opened, ThreadPoolExecutor(1) as pool:
        lock = Lock("shared", check="order")
        with lock:
            stuck = pool.submit(_take_and_release, lock)
            waiter = threading.Thread(
                target=concurrent.futures.wait,
                args=([stuck, promise],),
                kwargs={"return_when": concurrent.futures.FIRST_COMPLETED},
            )
            waiter.start()
            wait, execution_of_waiter = wait_of(waiter.name)
            promise.set_result(7)

            assert [] == wait.needs(execution_of_waiter)
            waiter.join(WAIT_SECONDS)
    assert not deadlocks(opened)


def _take_and_release(lock: ExclusiveLock) -> None:
    with lock:
        pass


def wait_of(name: str) -> tuple[ExecutionWait, Execution]:
    """Wait until a thread waits; return for what."""

    def waits() -> list[tuple[ExecutionWait, Execution]]:
        named = (one for one in runtime.all_executions() if one.name == name)
        return [(one.wait, one) for one in named if one.wait is not None]

    return wait_until(waits, f"{name} waits")[0]


def take(lock: ExclusiveLock) -> None:
    """Take a lock, unless that would be a deadlock."""
    with contextlib.suppress(DeadlockError), lock:
        pass


def test_a_collected_thread_that_took_nothing_is_no_finding() -> None:
    """It ends without whatever is held where the collector happens to run."""
    with checked() as opened:
        collected_under(Lock("registrations"))

    assert () == opened.findings


@pytest.mark.parametrize("waits", [False, True])
def test_a_collected_thread_that_took_another_lock_or_waited_may_block(*, waits: bool) -> None:
    """It needed more than the interpreter."""
    with checked() as opened:
        other, queued = Lock("other"), queue.Queue[int]()
        queued.put(1)
        collected_under(Lock("registrations"), last=queued.get if waits else lambda: take(other))

    assert [(Rung.RB, Kind.BLOCKING)] == [(one.rung, one.kind) for one in opened.findings]
    assert opened.findings[0].text.startswith("join server may block")


def test_a_collected_thread_that_wants_the_lock_is_a_deadlock() -> None:
    """The collector waits for the thread, and the thread for the lock."""
    with checked() as opened:
        lock = Lock("registrations")
        collected_under(lock, last=lambda: take(lock))

    assert 1 == len(deadlocks(opened))


def test_a_collected_thread_that_had_the_lock_before_could_deadlock() -> None:
    """It was done with the lock in time here."""
    with checked() as opened:
        lock = Lock("registrations")
        collected_under(lock, first=lambda: take(lock))

    assert (Rung.R2, Kind.CYCLE) in [(one.rung, one.kind) for one in opened.findings]
