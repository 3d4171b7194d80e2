"""Patterns that look like a deadlock and are none: nothing at R0, nothing at R2 or above, and R1 says why."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from lock_corpus import Cluster, Safe, hold, look, nest

from licorne.lockcheck import (
    Condition,
    Lock,
    Order,
    RLock,
    Rung,
    RWLock,
    assert_held,
    blocking,
    fresh,
    key,
    lock_all,
    note_write,
    publish,
    session,
    tree,
    try_only,
    unit,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lock_corpus import Guard


def both_ways(*gates: Callable[[Cluster], Guard]) -> Callable[[Cluster], None]:
    """Return a run in which two units take two locks in both orders, each under some gates."""

    def run(c: Cluster) -> None:
        nest("one", *(gate(c) for gate in gates), c.application.write(), c.node.write())
        nest("two", *(gate(c) for gate in gates), c.node.write(), c.application.write())

    return run


def gate_in_two_modes(c: Cluster) -> None:
    """Hold a gate for reading here and for writing there."""
    nest("one", c.root.read(), c.application.write(), c.node.write())
    nest("two", c.root.write(), c.node.write(), c.application.write())


def one_unit_does_both(c: Cluster) -> None:
    """Take two locks in both orders, never at once."""
    nest("only", c.application.write(), c.node.write())
    nest("only", c.node.write(), c.application.write())


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


def fresh_against_the_order(c: Cluster) -> None:
    """A new child may take its place although its maker holds what comes after it."""
    child = RWLock("queue", key="root.new")
    fresh(child)
    nest_here = (c.application.write(), child.write())
    hold(*nest_here)


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


def readers_both_ways(c: Cluster) -> None:
    """Readers in both orders, and nobody who ever writes."""
    nest("one", c.application.read(), c.node.read())
    nest("two", c.node.read(), c.application.read())


def readers_both_ways_where_readers_go_first(_: Cluster) -> None:
    """Lkrg #47: where readers pass waiting writers, writers do no harm."""
    a, b = RWLock("a", policy="reader"), RWLock("b", policy="reader")
    nest("one", a.read(), b.read())
    nest("two", b.read(), a.read())
    nest("writer", a.write())
    nest("writer", b.write())


def the_writer_is_one_of_the_readers(c: Cluster) -> None:
    """One unit reads in one order, the other one writes and reads: no third one stands between."""
    nest("one", c.application.read(), c.node.read())
    nest("two", c.node.read(), c.application.read())
    nest("two", c.application.write())
    nest("one", c.node.write())


def monitor_again(c: Cluster) -> None:
    """A re-entrant lock is taken again, with another lock in between."""
    nest("one", c.monitor, c.mutex, c.monitor)
    nest("two", c.monitor, c.mutex)


def deep_tree(_: Cluster) -> None:
    """A thousand queues below each other, taken from above."""
    paths = [".".join(["root", *map(str, range(depth))]) for depth in range(40)]
    nest("one", *(RWLock("queue", key=path).write() for path in paths))


def by_key(_: Cluster) -> None:
    """Nodes by name, from two units."""
    nodes = [RWLock("node", key=number) for number in range(5)]
    nest("one", *(node.write() for node in nodes))
    nest("two", *(node.write() for node in nodes[1:]))


def all_at_once(_: Cluster) -> None:
    """Whatever order they are asked for in, `lock_all` takes them in one."""
    one, two, three = (Lock("account", key=number) for number in range(3))
    for name, locks in (("a", (one, two, three)), ("b", (three, one, two)), ("c", (two, three, one))):
        with unit(name), lock_all(*locks):
            pass


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


def hand_over_hand(_: Cluster) -> None:
    """A list is walked with two locks at a time, released out of turn."""
    links = [Lock("link", key=number) for number in range(5)]
    with unit("walker"):
        links[0].acquire()
        for before, after in pairwise(links):
            after.acquire()
            before.release()
        links[-1].release()


def condition_with_its_own_lock(_: Cluster) -> None:
    """Waiting lets go of the lock."""
    condition = Condition(name="changed")
    with unit("waiter"), condition:
        condition.wait(timeout=0.001)
        condition.notify_all()


def copied_then_visited(c: Cluster) -> None:
    """The members are copied under the lock, and visited without it."""
    with unit("scheduler"):
        with c.root.read():
            members = [c.application, c.other, c.node, c.node_2]
        for member in members:
            hold(member.read())


def two_members_under_a_lock(c: Cluster) -> None:
    """Two are no walk."""
    with unit("scheduler"), c.root.read():
        hold(c.application.read())
        hold(c.other.read())


def one_member_at_a_time(c: Cluster) -> None:
    """Many members under the same lock, one a hold."""
    members = [RWLock("application", key=number) for number in range(6)]
    with unit("scheduler"):
        for member in members:
            hold(c.partition.read(), member.read())


def allowed_exception(c: Cluster) -> None:
    """An exception that is declared together with the ban of its opposite."""
    nest("scheduler", c.application.write(), c.partition.read())
    nest("rm", c.partition.write())


def second_one_only_tried(_: Cluster) -> None:
    """A second lock of the class is tried, as its rule demands."""
    one, two = Lock("account"), Lock("account")
    with unit("a"), one:
        assert two.acquire(blocking=False)
        two.release()


def written_under_the_write_lock(c: Cluster) -> None:
    """The lock is held as it has to be."""
    with unit("scheduler"), c.application.write():
        note_write(c.application, "requests")
        assert_held(c.application, "R")


def blocking_without_locks(c: Cluster) -> None:
    """The lock is let go of before."""
    with unit("scheduler"):
        hold(c.partition.write())
        with blocking("ask"):
            pass


def what_does_not_block(c: Cluster) -> None:
    """A queue that has an item to give and room to take, an event that is set, a join without waiting."""
    items: queue.Queue[int] = queue.Queue()
    done = threading.Event()
    done.set()
    with c.partition.write():
        items.put(1)
        assert 1 == items.get(block=False)
        assert done.wait()


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


def plain_order(c: Cluster) -> None:
    """Everybody goes down."""
    for who in ("one", "two", "three"):
        nest(who, c.cluster.read(), c.partition.write(), c.application.write(), c.node.write())


SAFE = [
    Safe("a gate", both_ways(lambda c: c.root.write()), "guarded by queue root, held in both"),
    Safe("two gates", both_ways(lambda c: c.cluster.read(), lambda c: c.root.write()), "guarded by queue root"),
    Safe("a re-entrant gate", both_ways(lambda c: c.monitor, lambda c: c.monitor), "guarded by monitor"),
    Safe("a gate held for reading and for writing", gate_in_two_modes, "guarded by queue root"),
    Safe("one unit does both", one_unit_does_both, "one unit does both: only"),
    Safe("one thread after the other", joined_before_the_other_starts, "one after the other, in every run"),
    Safe("before the thread starts", before_the_thread_starts, "one after the other"),
    Safe("after the thread has ended", after_the_thread_has_ended, "one after the other"),
    Safe("after the thread of a thread", grandchild_before_its_grandparent_goes_on, "one after the other"),
    Safe("after the result of a future", result_of_a_future_comes_first, "one after the other"),
    Safe("before the task was handed in", handed_in_after, "one after the other"),
    Safe("a pool of one worker", pool_of_one, "one unit does both"),
    Safe("phases", sequence_of_phases, "one after the other"),
    Safe("wanted while fresh", wanted_while_fresh, "known to maker alone when it was taken"),
    Safe("held while fresh", held_while_fresh, "known to maker alone while it was held"),
    Safe("fresh against the order", fresh_against_the_order, "", Order("queue < application", same={"queue": tree()})),
    Safe("tried backwards", tries_backwards, "only tries"),
    Safe("waited for a while backwards", waits_backwards_for_a_while, "for a limited time"),
    Safe("readers both ways", readers_both_ways, "only readers meet"),
    Safe("readers that go first both ways", readers_both_ways_where_readers_go_first, "only readers meet"),
    Safe("the writer is one of the readers", the_writer_is_one_of_the_readers, "one unit does both"),
    Safe("a monitor again", monitor_again),
    Safe("a deep tree", deep_tree, "", Order("queue", same={"queue": tree()})),
    Safe("by key", by_key, "", Order("node", same={"node": key()})),
    Safe("all at once", all_at_once, "", Order("account", same={"account": key()})),
    Safe("others of the class", others_of_the_class, "no instances close it"),
    Safe("one order within a class", same_class_in_one_order, "no two locks of the class"),
    Safe("hand over hand", hand_over_hand, "", Order("link", same={"link": key()})),
    Safe("a condition with its own lock", condition_with_its_own_lock),
    Safe("copied, then visited", copied_then_visited),
    Safe("two members under a lock", two_members_under_a_lock),
    Safe("one member at a time", one_member_at_a_time),
    Safe(
        "an allowed exception", allowed_exception, "",
        Order("partition < application", allow=["application[W] -> partition[R]"], forbid=["partition -> application"]),
    ),
    Safe("the second one only tried", second_one_only_tried, "", Order("account", same={"account": try_only()})),
    Safe("written under the write lock", written_under_the_write_lock),
    Safe("blocking without locks", blocking_without_locks),
    Safe("what does not block", what_does_not_block),
    Safe("a ring under one gate", three_locks_under_one_gate, "guarded by queue root"),
    Safe("a ring two of which share a gate", a_gate_each_pair_shares, "guarded by gate"),
    Safe("everybody goes down", plain_order),
]  # fmt: skip


@pytest.mark.parametrize("case", SAFE, ids=lambda case: case.name)
def test_a_safe_pattern_is_not_reported_and_is_explained(case: Safe) -> None:
    """Nothing at R0 or from R2 on; where a path closes, the R1 says why it is safe."""
    _, findings = look(case.run, case.order)

    assert [] == [str(finding) for finding in findings if finding.rung is not Rung.R1]
    reasons = [reason for finding in findings for reason in finding.why]
    if case.explained:
        assert [reason for reason in reasons if case.explained in reason], reasons
    else:
        assert [] == reasons


def test_a_session_may_allow_a_class_to_block() -> None:
    """The lock of the RM's link is held while the RM is called: that is what it is for."""
    with session(blocking={"link": ["callback"]}) as opened, RLock("link"), blocking("callback"):
        pass

    assert () == opened.findings


def test_a_guarded_path_is_found_again_at_r2_when_somebody_takes_it_without_the_gate() -> None:
    """The finding moves up the ladder."""

    def run(c: Cluster) -> None:
        both_ways(lambda c: c.root.write())(c)
        nest("three", c.node.write(), c.application.write())

    _, findings = look(run, None)

    assert [Rung.R2] == [finding.rung for finding in findings]
