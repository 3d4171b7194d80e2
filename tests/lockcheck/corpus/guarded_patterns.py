"""Patterns in which a path closes, but something guards it: R1 says what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from support.lockcheck.lock_corpus import Cluster, Safe, hold, nest, nests

from licorne.lockcheck import (
    Lock,
    RWLock,
    fresh,
    publish,
    unit,
)


def both_ways(*gates: str) -> Callable[[Cluster], None]:
    """Return a run in which two executions take two locks in both orders, each under some gates."""
    return nests(
        " -> ".join([*gates, "application[W]", "node[W]"]), " -> ".join([*gates, "node[W]", "application[W]"])
    )


gate_in_two_modes = nests("root[R] -> application[W] -> node[W]", "root[W] -> node[W] -> application[W]")
"""Hold a gate for reading here and for writing there."""

one_execution_does_both = nests("only: application[W] -> node[W]", "only: node[W] -> application[W]")
"""Take two locks in both orders, never at once."""


def in_thread(run: Callable[[], None]) -> None:
    """Run something in a thread, and wait for its end."""
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def joined_before_the_other_starts(c: Cluster) -> None:
    """TSan #488: two threads, one after the other."""
    in_thread(lambda: hold(c.application.write(), c.node.write()))
    in_thread(lambda: hold(c.node.write(), c.application.write()))


def before_the_thread_starts(c: Cluster) -> None:
    """Set things up in one order, then start the thread that has the other one."""
    hold(c.application.write(), c.node.write())
    in_thread(lambda: hold(c.node.write(), c.application.write()))


def after_the_thread_has_ended(c: Cluster) -> None:
    """Tear things down in one order, after the thread that had the other one."""
    in_thread(lambda: hold(c.node.write(), c.application.write()))
    hold(c.application.write(), c.node.write())


def grandchild_before_its_grandparent_goes_on(c: Cluster) -> None:
    """The order of ends goes through several threads."""

    def child() -> None:
        in_thread(lambda: hold(c.node.write(), c.application.write()))

    in_thread(child)
    hold(c.application.write(), c.node.write())


def result_of_a_future_comes_first(c: Cluster) -> None:
    """What a task did comes before what follows its result."""
    with ThreadPoolExecutor(2) as pool:
        pool.submit(hold, c.node.write(), c.application.write()).result()
        hold(c.application.write(), c.node.write())


def handed_in_after(c: Cluster) -> None:
    """What was done before a task was handed in comes before the task."""
    with ThreadPoolExecutor(2) as pool:
        hold(c.application.write(), c.node.write())
        pool.submit(hold, c.node.write(), c.application.write()).result()


def pool_of_one(c: Cluster) -> None:
    """The tasks of a pool with one worker never run at once."""
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(hold, c.application.write(), c.node.write())
        second = pool.submit(hold, c.node.write(), c.application.write())
        first.result()
        second.result()


def wanted_while_fresh(c: Cluster) -> None:
    """TSan #1163: a new application is locked by its maker before anybody knows it."""
    with unit("maker"):
        application = RWLock("application", key="new")
        fresh(application)
        hold(c.node.write(), application.write())
        publish(application)
    nest("scheduler", application.write(), c.node.write())


def held_while_fresh(c: Cluster) -> None:
    """Hold a lock that nobody can want yet."""
    with unit("maker"):
        application = RWLock("application", key="new")
        fresh(application)
        hold(application.write(), c.node.write())
        publish(application)
    nest("scheduler", c.node.write(), application.write())


def tries_backwards(c: Cluster) -> None:
    """Who only tries against the order waits for nobody."""
    nest("one", c.application.write(), c.node.write())
    with unit("two"), c.node.write():
        assert c.application.acquire_write(0)
        c.application.release_write()


def waits_backwards_for_a_while(c: Cluster) -> None:
    """Who waits for a limited time gives way by itself."""
    nest("one", c.application.write(), c.node.write())
    with unit("two"), c.node.write():
        assert c.application.acquire_write(1)
        c.application.release_write()


readers_both_ways = nests("application[R] -> node[R]", "node[R] -> application[R]")
"""Readers in both orders, and nobody who ever writes."""


def readers_both_ways_where_readers_go_first(_: Cluster) -> None:
    """Lkrg #47: where readers pass waiting writers, writers do no harm."""
    a, b = RWLock("a", policy="reader"), RWLock("b", policy="reader")
    nest("one", a.read(), b.read())
    nest("two", b.read(), a.read())
    nest("writer", a.write())
    nest("writer", b.write())


the_writer_is_one_of_the_readers = nests(
    "one: application[R] -> node[R]", "two: node[R] -> application[R]", "two: application[W]", "one: node[W]"
)
"""One execution reads in one order, the other one writes and reads: no third one stands between."""


def others_of_the_class(_: Cluster) -> None:
    """Zfs #8984: the classes nest both ways, but never the same instances."""
    pools, files = [Lock("pool") for _ in range(2)], [Lock("file") for _ in range(2)]
    nest("one", pools[0], files[0])
    nest("two", files[1], pools[1])


def same_class_in_one_order(_: Cluster) -> None:
    """Two of a class nest, always in the same order, without a rule."""
    one, two = Lock("account"), Lock("account")
    nest("a", one, two)
    nest("b", one, two)


def sequence_of_phases(c: Cluster) -> None:
    """Workers of one phase have ended before those of the next begin."""
    for guards in ((c.application.write(), c.node.write()), (c.node.write(), c.application.write())):
        workers = [threading.Thread(target=hold, args=guards) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def three_locks_under_one_gate(c: Cluster) -> None:
    """A ring of three, each step under the same gate."""
    ring = [Lock(f"ring-{number}") for number in range(3)]
    for number in range(3):
        nest(f"unit-{number}", c.root.write(), ring[number], ring[(number + 1) % 3])


def a_gate_each_pair_shares(_: Cluster) -> None:
    """A ring of three without one common gate: two of them share one, and that is enough."""
    ring, gate = [Lock(f"ring-{number}") for number in range(3)], Lock("gate")
    nest("one", gate, ring[0], ring[1])
    nest("two", gate, ring[1], ring[2])
    nest("three", ring[2], ring[0])


def a_waiter_at_the_table(_: Cluster) -> None:
    """Five philosophers, each of whom asks a waiter before the forks are taken."""
    waiter, forks = Lock("waiter"), [Lock(f"fork-{number}") for number in range(5)]
    for number in range(5):
        nest(f"philosopher-{number}", waiter, forks[number], forks[(number + 1) % 5])


def one_of_a_ring(attempt: float) -> Callable[[Cluster], None]:
    """Return a run in which four executions make a ring of locks, and the last one does not wait for ever."""

    def run(_: Cluster) -> None:
        ring = [RWLock(f"ring-{number}") for number in range(4)]
        for number in range(3):
            nest(f"unit-{number}", ring[number].write(), ring[number + 1].write())
        with unit("unit-3"), ring[3].write():
            assert ring[0].acquire_write(attempt)
            ring[0].release_write()

    return run


def both_or_none(_: Cluster) -> None:
    """Wait for one lock and try the other one; release both and begin with the other one where that fails."""
    first, second = Lock("first"), Lock("second")
    for who, held, tried in (("one", first, second), ("two", second, first)):
        with unit(who), held:
            assert tried.acquire(blocking=False)
            tried.release()


one_scheduler_preempts = nests(
    "scheduler: application[W] -> other[R]", "scheduler: other[W] -> application[R]"
)
"""Each application looks for victims in the other one, but one execution schedules them all."""


def tasks_of_one_thread(_: Cluster) -> None:
    """Two tasks of one thread hold a lock each, for one file: the one is not the other's recursion."""
    first, second = (Lock("file", key="a.lock") for _ in range(2))
    first.acquire()
    second.acquire()
    first.release()
    second.release()


def shards(_: Cluster) -> None:
    """Each execution has a pair of its own, and takes it in an order of its own."""
    pairs = [(Lock("index"), Lock("journal")) for _ in range(3)]
    for number, (index, journal) in enumerate(pairs):
        nest(f"unit-{number}", *((index, journal) if number % 2 else (journal, index)))


def results_in_a_chain(c: Cluster) -> None:
    """Each task waits for the result of the one before."""
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(hold, c.node.write(), c.application.write())

        def second() -> None:
            first.result()
            hold(c.application.write(), c.node.write())

        pool.submit(second).result()


def writers_are_gone_before_readers_meet(c: Cluster) -> None:
    """Readers in both orders; what ever wrote has ended before the second of them begins."""
    in_thread(lambda: hold(c.application.write()))
    in_thread(lambda: hold(c.node.write()))
    nest("one", c.application.read(), c.node.read())
    nest("two", c.node.read(), c.application.read())


parent_is_the_gate = nests("root[W] -> child[W] -> sibling[W]", "root[W] -> sibling[W] -> child[W]")
"""Applications move between two queues, always under their parent."""

GUARDED: Final[Sequence[Safe]] = [
    Safe("a gate", both_ways("root[W]"), "guarded by queue root, held in both"),
    Safe("two gates", both_ways("cluster[R]", "root[W]"), "guarded by queue root"),
    Safe("a re-entrant gate", both_ways("monitor", "monitor"), "guarded by monitor"),
    Safe("a gate held for reading and for writing", gate_in_two_modes, "guarded by queue root"),
    Safe("one execution does both", one_execution_does_both, "one execution does both: only"),
    Safe("one thread after the other", joined_before_the_other_starts, "one after the other, in every run", sources=("TSan#488",)),
    Safe("before the thread starts", before_the_thread_starts, "one after the other"),
    Safe("after the thread has ended", after_the_thread_has_ended, "one after the other"),
    Safe("after the thread of a thread", grandchild_before_its_grandparent_goes_on, "one after the other"),
    Safe("after the result of a future", result_of_a_future_comes_first, "one after the other"),
    Safe("before the task was handed in", handed_in_after, "one after the other"),
    Safe("a pool of one worker", pool_of_one, "one execution does both"),
    Safe("phases", sequence_of_phases, "one after the other"),
    Safe("wanted while fresh", wanted_while_fresh, "known to maker alone when it was taken", sources=("TSan#1163",)),
    Safe("held while fresh", held_while_fresh, "known to maker alone while it was held"),
    Safe("tried backwards", tries_backwards, "only tries"),
    Safe("waited for a while backwards", waits_backwards_for_a_while, "for a limited time"),
    Safe("readers both ways", readers_both_ways, "only readers meet"),
    Safe("readers that go first both ways", readers_both_ways_where_readers_go_first, "only readers meet", sources=("lkrg#47",)),
    Safe("the writer is one of the readers", the_writer_is_one_of_the_readers, "one execution does both"),
    Safe("others of the class", others_of_the_class, "no instances close it", sources=("zfs#8984",)),
    Safe("one order within a class", same_class_in_one_order, "no two locks of the class"),
    Safe("a ring under one gate", three_locks_under_one_gate, "guarded by queue root"),
    Safe("a ring two of which share a gate", a_gate_each_pair_shares, "guarded by gate"),
    Safe("a waiter at the table", a_waiter_at_the_table, "guarded by waiter"),
    Safe("one of a ring only tries", one_of_a_ring(0), "unit-3 only tries"),
    Safe("one of a ring waits for a while", one_of_a_ring(1), "for a limited time"),
    Safe("both or none", both_or_none, "only tries"),
    Safe("one scheduler preempts", one_scheduler_preempts, "one execution does both: scheduler", sources=("yunikorn#877",)),
    Safe("tasks of one thread", tasks_of_one_thread, "no two locks of the class were taken in both orders", sources=("filelock#675",)),
    Safe("shards", shards, "no instances close it"),
    Safe("results in a chain", results_in_a_chain, "one after the other"),
    Safe("writers are gone before readers meet", writers_are_gone_before_readers_meet, "one after the other"),
    Safe("the parent is the gate", parent_is_the_gate, "guarded by queue root"),
]  # fmt: skip
