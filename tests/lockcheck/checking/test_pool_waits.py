"""A pool whose tasks wait for later tasks of it is found, whether or not it came to a standstill."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pytest
from support.waiting import wait_until

from licorne.lockcheck import Lock, Rung, Session, session
from licorne.lockcheck.locks.factories import ExclusiveLock

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

WAITS: Final[dict[str, Callable[[Future[int]], object]]] = {
    "result": lambda future: future.result(),
    "exception": lambda future: future.exception(),
    "wait": lambda future: concurrent.futures.wait([future]),
    "as_completed": lambda future: list(concurrent.futures.as_completed([future])),
}


def one() -> int:
    """Return 1; a task that waits for nothing."""
    return 1


def rungs_of(opened: Session) -> list[Rung]:
    """Return the rungs of the findings about pools."""
    return [finding.rung for finding in opened.findings if "a pool waits for itself" in finding.text]


def run_twice(work: Callable[[], object], pool: ThreadPoolExecutor) -> None:
    """Have a pool do some work in two tasks, the second one when the first is over."""
    for _ in range(2):
        wait_until(pool.submit(work).done)


def test_as_many_tasks_as_threads_that_wait_for_later_ones_are_unguarded() -> None:
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool:
        run_twice(lambda: pool.submit(one).result(), pool)

    (found,) = opened.findings
    assert rungs_of(opened) == [Rung.R2]
    assert "of ThreadPoolExecutor waits for the result of one, a later one" in found.text
    assert len(found.edges) == 2
    assert any("none of its 2 threads is left" in line for line in found.why)


@pytest.mark.parametrize("way", WAITS)
def test_every_wait_without_a_limit_counts(way: str) -> None:
    """Also for a task that is over already when it is waited for."""
    with session(level="full") as opened, ThreadPoolExecutor(2, thread_name_prefix="disk") as pool:

        def outer() -> object:
            inner = pool.submit(one)
            wait_until(inner.done)
            return WAITS[way](inner)

        run_twice(outer, pool)

    assert rungs_of(opened) == [Rung.R2]
    assert "of disk waits for" in opened.findings[0].text


@dataclass(frozen=True)
class Things:
    """What a task has at hand: its own pool, another one, and a lock."""

    pool: ThreadPoolExecutor
    other_pool: ThreadPoolExecutor
    gate: ExclusiveLock = field(default_factory=lambda: Lock("gate"))


def waits_for_a_while(things: Things) -> int:
    return things.pool.submit(one).result(timeout=60)


def waits_for_another_pool(things: Things) -> int:
    return things.other_pool.submit(one).result()


def waits_under_a_lock(things: Things) -> int:
    with things.gate:
        return things.pool.submit(one).result()


@pytest.mark.parametrize(
    ("work", "rungs"),
    [
        pytest.param(waits_for_a_while, [], id="a wait with a limit ends"),
        pytest.param(waits_for_another_pool, [], id="a task may wait for another pool"),
        pytest.param(waits_under_a_lock, [Rung.R1], id="a lock that all tasks hold guards the pool"),
    ],
)
def test_two_tasks_that_leave_the_pool_a_way_out_are_no_deadlock(
    work: Callable[[Things], int], rungs: list[Rung]
) -> None:
    """Each task waits for a later one, under a limit, in another pool, or behind the other task."""
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(1) as other:
        run_twice(partial(work, Things(pool, other)), pool)

    assert rungs_of(opened) == rungs


def test_a_task_may_wait_for_what_was_submitted_before_it() -> None:
    """The pool has begun that before: its tasks begin in the order of their submission."""
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool:

        def after(before: Future[int]) -> int:
            return before.result() + 1

        future = pool.submit(one)
        for _ in range(4):
            future = pool.submit(after, future)
        assert future.result() == 5

    assert rungs_of(opened) == []


def test_a_task_may_wait_for_another_pool() -> None:
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(1) as other:

        def outer() -> int:
            return other.submit(one).result()

        wait_until(pool.submit(outer).done)
        wait_until(pool.submit(outer).done)

    assert rungs_of(opened) == []


def run_in_turn(work: Callable[[], object], pool: ThreadPoolExecutor) -> None:
    """Do the same, and wait for the result of each."""
    for _ in range(2):
        pool.submit(work).result()


@pytest.mark.parametrize(("run", "threads"), [(run_in_turn, 2), (run_twice, 3)])
def test_fewer_such_tasks_than_threads_are_only_a_cycle(
    run: Callable[[Callable[[], object], ThreadPoolExecutor], None], threads: int
) -> None:
    """Of two that come one after the other in every run, one counts."""
    with session(level="full") as opened, ThreadPoolExecutor(threads) as pool:
        run(lambda: pool.submit(one).result(), pool)

    assert rungs_of(opened) == [Rung.R1]
    assert f"has {threads} threads" in opened.findings[0].why[0]


def test_a_task_that_is_submitted_after_the_later_one_of_the_first_is_behind_it() -> None:
    """So the pool has begun what the first one waits for before the second one begins."""
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool:
        submitted = threading.Event()

        def outer() -> int:
            inner = pool.submit(one)
            submitted.set()
            return inner.result()

        def follower() -> int:
            return pool.submit(one).result()

        first = pool.submit(outer)
        submitted.wait()
        wait_until(pool.submit(follower).done)
        wait_until(first.done)

    assert rungs_of(opened) == [Rung.R1, Rung.R1]
