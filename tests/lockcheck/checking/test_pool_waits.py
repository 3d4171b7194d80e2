"""A pool whose tasks wait for later tasks of it is found, whether or not it came to a standstill."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import pytest

from licorne.lockcheck import Lock, Rung, Session, session

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

WAITS: Final[dict[str, Callable[[Future[int]], object]]] = {
    "result": lambda future: future.result(),
    "exception": lambda future: future.exception(),
    "wait": lambda future: concurrent.futures.wait([future]),
    "as_completed": lambda future: list(concurrent.futures.as_completed([future])),
}


def finish(is_over: Callable[[], bool]) -> None:
    """Wait until something is over, in a way that orders nothing."""
    while not is_over():
        threading.Event().wait(0.001)


def one() -> int:
    """Return 1; a task that waits for nothing."""
    return 1


def rungs_of(opened: Session) -> list[Rung]:
    """Return the rungs of the findings about pools."""
    return [finding.rung for finding in opened.findings if "a pool waits for itself" in finding.text]


def test_as_many_tasks_as_threads_that_wait_for_later_ones_are_unguarded() -> None:
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool:

        def outer() -> int:
            return pool.submit(one).result()

        finish(pool.submit(outer).done)
        finish(pool.submit(outer).done)

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
            finish(inner.done)
            return WAITS[way](inner)

        finish(pool.submit(outer).done)
        finish(pool.submit(outer).done)

    assert rungs_of(opened) == [Rung.R2]
    assert "of disk waits for" in opened.findings[0].text


def test_a_wait_with_a_limit_ends() -> None:
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool:

        def outer() -> int:
            return pool.submit(one).result(timeout=60)

        finish(pool.submit(outer).done)
        finish(pool.submit(outer).done)

    assert rungs_of(opened) == []


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

        finish(pool.submit(outer).done)
        finish(pool.submit(outer).done)

    assert rungs_of(opened) == []


@pytest.mark.parametrize("threads", [2, 3])
def test_fewer_such_tasks_than_threads_are_only_a_cycle(threads: int) -> None:
    """Of two that come one after the other in every run, one counts."""
    with session(level="full") as opened, ThreadPoolExecutor(threads) as pool:

        def outer() -> int:
            return pool.submit(one).result()

        if threads == 2:
            pool.submit(outer).result()
            pool.submit(outer).result()
        else:
            finish(pool.submit(outer).done)
            finish(pool.submit(outer).done)

    assert rungs_of(opened) == [Rung.R1]
    assert f"has {threads} threads" in opened.findings[0].why[0]


def test_a_lock_that_all_of_them_hold_guards_the_pool() -> None:
    with session(level="full") as opened, ThreadPoolExecutor(2) as pool:
        gate = Lock("gate")

        def outer() -> int:
            with gate:
                return pool.submit(one).result()

        finish(pool.submit(outer).done)
        finish(pool.submit(outer).done)

    assert rungs_of(opened) == [Rung.R1]


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
        finish(pool.submit(follower).done)
        finish(first.done)

    assert rungs_of(opened) == [Rung.R1, Rung.R1]
