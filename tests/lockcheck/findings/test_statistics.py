"""How often locks are taken, and how long is waited for them."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable
from random import Random

from support.lockcheck.lock_corpus import RECORD
from support.lockcheck.lock_reports import spread_of
from support.waiting import EXPIRING_SECONDS

from licorne.lockcheck import Condition, Lock, RWLock, session
from licorne.lockcheck.findings.statistics import PENDING_MAX, Spread, Usage, limit_of, together
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.reports.writing import usage_table


def test_a_percentile_is_at_most_an_eighth_too_large() -> None:
    """And never more than the longest time."""
    for time in [*range(1, 3000), 10**9 + 7]:
        assert time <= limit_of(time) <= time * 9 / 8
    spread = spread_of(range(1, 1001))

    assert (1000, 500_500, 1000) == (spread.count, spread.total, spread.max)
    assert 500 <= spread.percentile(50) <= 563
    assert 990 <= spread.percentile(99) <= 1000
    assert 0 == Spread().percentile(99)


def test_two_spreads_together_are_that_of_all_times() -> None:
    """Steps are the same everywhere."""
    assert spread_of([1, 5, 90, 5, 700]) == together(spread_of([1, 5]), spread_of([90, 5, 700]))


def test_every_time_is_counted_in_its_own_step_whatever_their_order() -> None:
    """Times are sorted many at once; one at a time gives the same."""
    chance = Random(4)  # noqa: S311 - a seed to repeat
    times = [chance.choice((chance.randrange(20), chance.randrange(10**6))) for _ in range(3000)]

    assert tuple(sorted(Counter(map(limit_of, times)).items())) == spread_of(times).buckets


def test_every_acquisition_is_counted_at_its_place_by_class_and_mode() -> None:
    """However it is taken more often than times wait to be sorted, and locks of one class together."""
    with session(on=RECORD) as opened:
        locks, shared = [Lock("plain") for _ in range(2)], RWLock("shared")
        for at in range(PENDING_MAX + 10):
            with locks[at % 2]:
                pass
        locks[0].acquire()
        locks[0].release()
        with shared.read():
            pass
        with shared.write():
            pass
        shared.acquire_read()
        shared.release_read()
    usages = opened.summary().usages

    counts = sorted((usage.lock, usage.mode, usage.hold.count) for usage in usages)
    assert [
        ("plain", "W", 1), ("plain", "W", PENDING_MAX + 10), *[("shared", "R", 1)] * 2, ("shared", "W", 1)
    ] == counts  # fmt: skip
    assert all(0 < usage.hold.percentile(50) <= usage.hold.max for usage in usages)
    assert not any(usage.wait.count for usage in usages)


def usages_begin(usages: Iterable[Usage]) -> int:
    """Return the first line on which a lock was taken."""
    return min(int(usage.site.rpartition(":")[2]) for usage in usages)


def test_a_lock_that_is_taken_without_with_is_counted_where_it_is_taken() -> None:
    """Not where it was taken before, whichever way; a condition is no place of its own."""
    with session(on=RECORD) as opened:
        lock, shared, changed = Lock("plain"), RWLock("shared"), Condition(name="changed")
        for _ in range(3):
            with lock, shared.read(), changed:
                pass
            lock.acquire()
            shared.acquire_read()
            shared.release_read()
            lock.release()
            with changed:
                changed.wait(timeout=EXPIRING_SECONDS)
    usages = opened.summary().usages

    assert [3] * 7 == [usage.hold.count for usage in usages]
    assert {__file__} == {usage.site.rpartition(":")[0] for usage in usages}
    lines = sorted(int(usage.site.rpartition(":")[2]) - usages_begin(usages) for usage in usages)
    assert [0, 0, 0, 2, 3, 6, 7] == lines


def test_a_wait_is_contention_at_the_place_that_waits() -> None:
    """Its time is that of the wait."""
    with session(on=RECORD) as opened:
        lock = Lock("plain")

        def waits() -> None:
            with lock:
                pass

        waiter = threading.Thread(target=waits)
        with lock:
            waiter.start()
            while not any(execution.wait for execution in runtime.all_executions()):
                pass
        waiter.join()
    waited = [usage for usage in opened.summary().usages if usage.wait.count]

    assert [(1, 1)] == [(usage.wait.count, usage.hold.count) for usage in waited]
    assert waited[0].wait.max > 0
    assert "plain[W]" in usage_table(waited)


def test_at_the_level_order_no_times_are_taken() -> None:
    """They would cost two looks at the clock."""
    with session(level="order", on=RECORD) as opened, Lock("plain"):
        pass

    assert () == opened.summary().usages
    assert isinstance(next(iter(runtime.all_executions())).node.holds, deque)


def test_times_are_sorted_after_a_while_also_where_locks_are_released_by_call() -> None:
    """No more of them wait than the bound says."""
    with session(on=RECORD) as opened:
        lock, shared = Lock("plain"), RWLock("shared")
        for _ in range(PENDING_MAX + 10):
            lock.acquire()
            lock.release()
            shared.acquire_read()
            shared.release_read()

    assert {9} == {len(tally.holds) for tally in opened.watch.tallies}
    assert {PENDING_MAX + 10} == {usage.hold.count for usage in opened.summary().usages}
