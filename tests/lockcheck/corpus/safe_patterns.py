"""Patterns that look like a bug and close no path: nothing is found at all."""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pytest
from guarded_patterns import GUARDED
from support.lockcheck.collected import collected_under
from support.lockcheck.forked import had_by_another, in_child
from support.lockcheck.lock_corpus import Cluster, Safe, hold, nest

from licorne.lockcheck import (
    Condition,
    Lock,
    Order,
    RWLock,
    assert_held,
    blocking,
    fresh,
    key,
    lock_all,
    note_write,
    tree,
    try_only,
    unit,
)


def fresh_against_the_order(c: Cluster) -> None:
    """A new child may take its place although its maker holds what comes after it."""
    child = RWLock("queue", key="root.new")
    fresh(child)
    nest_here = (c.application.write(), child.write())
    hold(*nest_here)


def monitor_again(c: Cluster) -> None:
    """A re-entrant lock is taken again, with another lock in between."""
    nest("one", c.monitor, c.mutex, c.monitor)
    nest("two", c.monitor, c.mutex)


def deep_tree(_: Cluster) -> None:
    """Forty queues below each other, taken from above."""
    paths = [".".join(["root", *map(str, range(depth))]) for depth in range(40)]
    nest("one", *(RWLock("queue", key=path).write() for path in paths))


def by_key(_: Cluster) -> None:
    """Nodes by name, from two executions."""
    nodes = [RWLock("node", key=number) for number in range(5)]
    nest("one", *(node.write() for node in nodes))
    nest("two", *(node.write() for node in nodes[1:]))


def all_at_once(_: Cluster) -> None:
    """Whatever order they are asked for in, `lock_all` takes them in one."""
    one, two, three = (Lock("account", key=number) for number in range(3))
    for name, locks in (("a", (one, two, three)), ("b", (three, one, two)), ("c", (two, three, one))):
        with unit(name), lock_all(*locks):
            pass


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
    """Waiting releases the lock."""
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
    """The lock is released before."""
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


def what_only_looks(c: Cluster) -> None:
    """Calls with the limit zero, or below: none of them waits."""
    changed = Condition(name="changed")
    one, other = socket.socketpair()
    with c.partition.write(), one, other:
        with changed:
            changed.wait(0)
            assert not changed.wait_for(lambda: False, timeout=0)
        assert not threading.Event().wait(0)
        assert not threading.Event().wait(-1)
        with pytest.raises(queue.Empty):
            queue.Queue[int]().get(timeout=0)
        time.sleep(0)
        one.setblocking(False)
        with pytest.raises(BlockingIOError):
            one.recv(1)


def held_at_the_fork(c: Cluster) -> None:
    """No other thread can have it then."""
    with had_by_another(c.monitor), c.monitor:
        in_child(lambda: hold(c.monitor))


def plain_order(c: Cluster) -> None:
    """Everybody goes down."""
    for who in ("one", "two", "three"):
        nest(who, c.cluster.read(), c.partition.write(), c.application.write(), c.node.write())


def the_lower_fork_first(_: Cluster) -> None:
    """Five philosophers, each of whom takes the fork with the lower number first."""
    forks = [Lock("fork", key=number) for number in range(5)]
    for number in range(5):
        left, right = sorted((number, (number + 1) % 5))
        nest(f"philosopher-{number}", forks[left], forks[right])


UNCLOSED: Final[Sequence[Safe]] = [
    Safe("fresh against the order", fresh_against_the_order, "", Order("queue < application", same={"queue": tree()})),
    Safe("a monitor again", monitor_again),
    Safe("a deep tree", deep_tree, "", Order("queue", same={"queue": tree()})),
    Safe("by key", by_key, "", Order("node", same={"node": key()})),
    Safe("all at once", all_at_once, "", Order("account", same={"account": key()})),
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
    Safe("what only looks", what_only_looks),
    Safe("a server that is collected under a lock joins a thread that takes none", lambda c: collected_under(c.monitor)),
    Safe("a thread that forks has the lock that its child takes", held_at_the_fork),
    Safe("everybody goes down", plain_order),
    Safe("the lower fork first", the_lower_fork_first, "", Order("fork", same={"fork": key()})),
]  # fmt: skip

SAFE: Final[Sequence[Safe]] = [*GUARDED, *UNCLOSED]
