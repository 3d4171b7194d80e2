"""Steps of several partitions at once: what comes of them comes in order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from support.waiting import WAIT_SECONDS

from licorne.actors.locks.guards import DeferredActions
from licorne.actors.locks.threads_engine import SteppingThreads
from licorne.model.errors import LicorneError
from licorne.model.partition import Partition

DEFERRED = DeferredActions()


@pytest.fixture
def threads() -> Iterator[SteppingThreads]:
    """Give two threads."""
    threads = SteppingThreads(2, DEFERRED)
    yield threads
    threads.close()


def partitions(count: int) -> list[Partition]:
    """Return what stands for partitions: the steps of these tests ask nothing of them."""
    return [object.__new__(Partition) for _ in range(count)]


def one_after_the_other(
    some: list[Partition], first: int, act: Callable[[int], int]
) -> Callable[[Partition], int]:
    """Make a step in which one partition acts before any other one does."""
    done = threading.Event()

    def step(partition: Partition) -> int:
        number = next(index for index, each in enumerate(some) if each is partition)
        if number != first:
            assert done.wait(WAIT_SECONDS)
        try:
            return act(number)
        finally:
            done.set()

    return step


def test_what_is_kept_happens_in_the_order_of_the_partitions(threads: SteppingThreads) -> None:
    """On the thread that steps, and not before the last one has made its step."""
    some, said, heard = partitions(2), [], []

    def act(number: int) -> int:
        DEFERRED.defer(lambda: heard.append((number, threading.current_thread())))
        said.append(number)
        assert [] == heard
        return 10 + number

    results = threads.run(some, one_after_the_other(some, 1, act))

    assert [1, 0] == said
    assert [10, 11] == results
    assert [(0, threading.current_thread()), (1, threading.current_thread())] == heard


def test_the_first_failure_is_raised_when_all_have_made_their_steps(threads: SteppingThreads) -> None:
    """The first in order, also where another one failed earlier; what was kept happens all the same."""
    some, heard = partitions(2), []

    def act(number: int) -> int:
        DEFERRED.defer(lambda: heard.append(number))
        raise ValueError(f"step {number}")

    with pytest.raises(ValueError, match="step 0"):
        threads.run(some, one_after_the_other(some, 1, act))

    assert [0, 1] == heard


def test_a_step_inside_a_step_is_refused(threads: SteppingThreads) -> None:
    """It would wait for a thread that waits for it."""
    some = partitions(2)

    with pytest.raises(LicorneError, match="a step from inside a predicate is refused"):
        threads.run(some, lambda _: sum(threads.run(some, lambda _: 0)))
