"""The worker pool: stand-ins for workers that sleep or block, its bound, its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.waiting import WAIT_SECONDS, wait_until

from licorne.actors.runtime.pool import WorkerPool, asleep
from licorne.actors.services.log import Log

if TYPE_CHECKING:
    from loguru import Record


class Work:
    """Something to run that says when it has begun and when it is over."""

    def __init__(self, body: Callable[[], None] = lambda: None) -> None:
        self.begun = threading.Event()
        self.over = threading.Event()
        self._body = body

    def serve(self, budget: int, limit_ns: int | None = None) -> None:  # noqa: ARG002 - a fake
        assert budget > 0
        self.begun.set()
        try:
            self._body()
        finally:
            self.over.set()


class Gate:
    """Work that stays inside a way to sleep until the gate opens."""

    def __init__(self, pool: WorkerPool | None = None) -> None:
        self.open = threading.Event()
        self.inside = threading.Event()
        self._pool = pool

    def sleep(self) -> None:
        with asleep() if self._pool is None else self._pool.blocking():
            self.inside.set()
            self.open.wait()


def a_pool(workers: int = 1, max_workers: int = 8) -> WorkerPool:
    return WorkerPool(workers=workers, max_workers=max_workers, budget=8, name="test", log=Log())


@contextmanager
def asleep_in(pool: WorkerPool, gate: Gate | None = None) -> Iterator[None]:
    """Have a worker of a pool sleep inside of a gate meanwhile."""
    gate = gate or Gate()
    pool.push(Work(gate.sleep))
    gate.inside.wait()
    yield
    gate.open.set()


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    """Give a pool of one worker."""
    pool = a_pool()
    yield pool
    pool.close()


def test_work_runs_on_a_named_daemon_thread(pool: WorkerPool) -> None:
    """A debugger shows whose thread it is, and it does not keep the process alive."""
    threads: list[threading.Thread] = []
    work = Work(lambda: threads.append(threading.current_thread()))

    pool.push(work)

    work.over.wait()
    assert [("test-1", True)] == [(thread.name, thread.daemon) for thread in threads]


def test_work_pushed_while_the_only_worker_sleeps_gets_a_stand_in(pool: WorkerPool) -> None:
    """Else what the sleeper waits for might never be done."""
    with asleep_in(pool):
        pool.push(next_work := Work())

        next_work.over.wait()
        assert 2 == pool.thread_count()


def test_a_worker_that_falls_asleep_over_waiting_work_gets_a_stand_in(pool: WorkerPool) -> None:
    """The work was pushed while it was awake."""
    gate, hold, next_work = Gate(), threading.Event(), Work()

    def hold_then_sleep() -> None:
        hold.wait()
        gate.sleep()

    pool.push(Work(hold_then_sleep))
    pool.push(next_work)
    hold.set()

    next_work.over.wait()
    gate.open.set()


def test_an_idle_worker_needs_no_stand_in() -> None:
    """One that sleeps is no reason for a thread while another is awake."""
    pool = a_pool(workers=2)
    with asleep_in(pool):
        pool.push(next_work := Work())

        next_work.over.wait()
        assert 2 == pool.thread_count()
    pool.close()


def test_of_idle_workers_the_one_that_worked_last_is_woken() -> None:
    """Its processor has the partition in its caches."""
    pool = a_pool(workers=3)
    names: set[str] = set()
    for _ in range(10):
        wait_until(lambda: pool.load() == (3, 3, 0), "all workers wait")
        work = Work(lambda: names.add(threading.current_thread().name))
        pool.push(work)
        work.over.wait()
    pool.close()

    assert 1 == len(names)


def test_work_for_each_worker_wakes_each() -> None:
    """None of them waits for the others to end."""
    pool = a_pool(workers=3)
    together = threading.Barrier(3)

    def meet() -> None:
        together.wait(WAIT_SECONDS)

    all_work = [Work(meet) for _ in range(3)]
    for work in all_work:
        pool.push(work)
    pool.close()

    assert all(work.over.is_set() for work in all_work)
    assert not together.broken


def test_a_pool_whose_workers_block_keeps_its_strength() -> None:
    """`blocking` is for long waits: each blocked worker is replaced."""
    pool = a_pool(workers=2)
    meeting = threading.Barrier(2)
    both = [Work(lambda: (meeting.wait(), None)[1]) for _ in range(2)]
    with asleep_in(pool, Gate(pool)):
        for work in both:
            pool.push(work)

        for work in both:
            work.over.wait()
    pool.close()


def test_a_stand_in_leaves_when_it_is_surplus(pool: WorkerPool) -> None:
    """The pool comes back to its size."""
    gate, work = Gate(), Work()
    pool.push(sleeper := Work(gate.sleep))
    gate.inside.wait()
    pool.push(work)
    work.over.wait()
    gate.open.set()
    sleeper.over.wait()

    counts: list[int] = []
    for _ in range(3):  # before the third is taken, one of the two threads has left, whichever takes them
        pool.push(last := Work(lambda: counts.append(pool.thread_count())))
        last.over.wait()

    assert 1 == counts[-1]


def test_blocking_outside_of_a_worker_changes_nothing(pool: WorkerPool) -> None:
    """A handler that runs inline on some other thread takes no worker away."""
    with pool.blocking():
        pool.push(work := Work())
        work.over.wait()

    assert 1 == pool.thread_count()


def test_the_bound_on_threads_holds_and_is_logged(records: list[Record]) -> None:
    """When all threads there may be sleep, work waits."""
    pool = a_pool(max_workers=1)
    gate, hold, next_work = Gate(), threading.Event(), Work()

    def hold_then_sleep() -> None:
        hold.wait()
        gate.sleep()

    pool.push(Work(hold_then_sleep))
    pool.push(next_work)
    hold.set()
    gate.inside.wait()

    assert (1, False) == (pool.thread_count(), next_work.begun.is_set())
    assert ["test: all 1 workers wait or block"] == [record["message"] for record in records]
    gate.open.set()
    next_work.over.wait()
    pool.close()


def test_a_system_without_threads_is_like_the_bound(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers there are go on."""
    next_work = Work()

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with asleep_in(pool):
        monkeypatch.setattr(threading.Thread, "start", refuse)
        pool.push(next_work)
        monkeypatch.undo()

        assert 1 == pool.thread_count()
    next_work.over.wait()


def test_a_worker_outlives_an_error_inside_the_runtime(pool: WorkerPool, records: list[Record]) -> None:
    """Such an error is ours; it is logged and asks to be reported."""

    def fail() -> None:
        raise KeyError("bug")

    pool.push(Work(fail))
    pool.push(work := Work())

    work.over.wait()
    assert ["test: a turn failed inside the runtime, please report"] == [r["message"] for r in records]


def test_pending_work_runs_on_the_calling_thread() -> None:
    """A pool without workers is driven by hand."""
    pool = a_pool(workers=0)
    threads: list[threading.Thread] = []
    pool.push(Work(lambda: threads.append(threading.current_thread())))

    assert (1, 0) == (pool.run_pending(), pool.run_pending())
    assert [threading.current_thread()] == threads


def test_closing_ends_all_workers_after_what_is_queued() -> None:
    """Nothing queued is left behind."""
    pool = a_pool(workers=3)
    works = [Work() for _ in range(20)]
    for work in works:
        pool.push(work)

    pool.close()

    assert all(work.over.is_set() for work in works)
    assert (0, 0) == (pool.thread_count(), pool.run_pending())
