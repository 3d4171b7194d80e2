"""Threads under control: a seed decides who runs, no time is waited for, and no deadlock hangs."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from licorne.proxy.fuzz.world.thread_control import ControlError, PriorityPicker, RandomPicker, ThreadControl

PICKERS = pytest.mark.parametrize("kind", [RandomPicker, PriorityPicker])


def a_control(
    seed: int = 1,
    kind: type[RandomPicker | PriorityPicker] = RandomPicker,
    *,
    points_max: int = 100_000,
    errors: list[BaseException] | None = None,
) -> ThreadControl:
    """Return a control that switches at one point of five."""
    heard: list[BaseException] = [] if errors is None else errors
    picker = kind(random.Random(seed), 0.2)  # noqa: S311 - it plays, and keeps no secret
    return ThreadControl(picker, points_max=points_max, on_error=heard.append)


def in_threads(*works: Callable[[], object]) -> None:
    """Run functions on threads of their own, and wait for all."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def turns(seed: int, kind: type[RandomPicker | PriorityPicker]) -> tuple[str, int]:
    """Return in which order three threads take a lock, and the trace of the run."""
    order: list[str] = []

    def main() -> None:
        lock = threading.Lock()

        def work(name: str) -> None:
            for _ in range(20):
                with lock:
                    order.append(name)

        in_threads(*[lambda name=name: work(name) for name in "abc"])

    control = a_control(seed, kind)
    control.run(main)
    return "".join(order), control.trace


@PICKERS
def test_a_seed_decides_the_order(kind: type[RandomPicker | PriorityPicker]) -> None:
    """The same one each time, and many different ones."""
    runs = [turns(seed, kind) for seed in range(20)]

    assert runs == [turns(seed, kind) for seed in range(20)]
    assert len({order for order, _ in runs}) > 10
    assert len({trace for _, trace in runs}) > 10


def test_a_lost_update_is_found() -> None:
    """Two threads read, and write what they have read: some seed lets both read first."""

    def total(seed: int) -> int:
        counted = [0]

        def main() -> None:
            lock = threading.Lock()

            def add() -> None:
                before = counted[0]
                with lock:
                    counted[0] = before + 1

            in_threads(add, add)

        a_control(seed).run(main)
        return counted[0]

    assert {1, 2} == {total(seed) for seed in range(50)}


def test_no_time_is_waited_for() -> None:
    """Deadlines come as soon as no thread can go on, in their order."""
    woken: list[str] = []

    def main() -> tuple[float, bool]:
        began = time.monotonic()

        def sleep(name: str, seconds: float) -> None:
            time.sleep(seconds)
            woken.append(name)

        in_threads(lambda: sleep("late", 3_600), lambda: sleep("soon", 60))
        return time.monotonic() - began, threading.Event().wait(5)

    elapsed, was_set = a_control().run(main)

    assert ["soon", "late"] == woken
    assert 3_600 <= elapsed < 3_601
    assert not was_set


def test_what_the_standard_library_builds_on_locks_works() -> None:
    """Conditions, queues with a bound and without, executors."""

    def main() -> tuple[list[int], int, bool]:
        bounded: queue.Queue[int] = queue.Queue(2)
        taken: list[int] = []

        def fill() -> None:
            for number in range(10):
                bounded.put(number)

        in_threads(fill, lambda: taken.extend(bounded.get() for _ in range(10)))
        with ThreadPoolExecutor(3) as pool:
            total = sum(pool.map(lambda number: number * number, range(10)))
        simple: queue.SimpleQueue[int] = queue.SimpleQueue()
        with pytest.raises(queue.Empty):
            simple.get(timeout=1)
        lock = threading.RLock()
        with lock, lock:
            return taken, total, lock.acquire(timeout=1)

    assert (list(range(10)), 285, True) == a_control().run(main)


def test_a_deadlock_is_an_error_that_says_where_each_thread_is() -> None:
    """It does not hang."""

    def main() -> None:
        one, other = threading.Lock(), threading.Lock()

        def take(first: threading.Lock, second: threading.Lock) -> None:
            with first:
                time.sleep(1)
                with second:
                    pass

        in_threads(lambda: take(one, other), lambda: take(other, one))

    with pytest.raises(ControlError, match=r"(?s)no thread can go on.*in take.*in take"):
        a_control().run(main)


def test_threads_that_come_to_no_end_are_an_error() -> None:
    """So is one that runs alone."""

    def main() -> None:
        lock = threading.Lock()
        while True:
            with lock:
                pass

    with pytest.raises(ControlError, match="come to no end in 1000 points"):
        a_control(points_max=1_000).run(main)


def test_errors_of_threads_are_reported_and_that_of_the_first_is_raised() -> None:
    """Threads that are left at the end come to their ends."""
    errors: list[BaseException] = []
    ended: list[str] = []

    def wait() -> None:
        try:
            threading.Event().wait()
        finally:
            ended.append("waited")

    def fail() -> None:
        raise KeyError("in a thread")

    def main() -> None:
        threading.Thread(target=wait, daemon=True).start()
        in_threads(fail)
        raise ValueError("at last")

    with pytest.raises(ValueError, match="at last"):
        a_control(errors=errors).run(main)

    assert ["'in a thread'"] == [str(error) for error in errors]
    assert ["waited"] == ended


def test_everything_is_as_before_when_a_run_has_ended() -> None:
    """The standard parts are in their places, and no thread is left."""
    before = (
        threading.Lock,
        threading.RLock,
        queue.SimpleQueue,
        time.time,
        time.sleep,
        threading.Thread.join,
    )
    count = threading.active_count()
    a_control().run(lambda: in_threads(lambda: time.sleep(1)))

    after = (threading.Lock, threading.RLock, queue.SimpleQueue, time.time, time.sleep, threading.Thread.join)
    assert before == after
    assert count == threading.active_count()
