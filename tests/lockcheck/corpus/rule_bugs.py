"""Bugs of classes REC, LEAK, MODE and BLK, walks under a lock, and broken contracts: all at R0, from one path."""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest
from support.lockcheck.collected import collected_under
from support.lockcheck.lock_corpus import Bug, Cluster, Guard, hold, nest

from licorne.lockcheck import (
    Condition,
    Kind,
    Lock,
    LockUsageError,
    Rung,
    assert_held,
    blocking,
    excludes,
    leaf,
    no_locks,
    note_write,
    requires,
    unit,
)


def again(first: Callable[[Cluster], Guard], second: Callable[[Cluster], Guard]) -> Callable[[Cluster], None]:
    """Return a run in which one execution takes the same lock twice."""
    return lambda c: nest("scheduler", first(c), second(c))


def under(guard: Callable[[Cluster], Guard], act: Callable[[], object]) -> Callable[[Cluster], None]:
    """Return a run in which something is done while a lock is held."""

    def run(c: Cluster) -> None:
        with unit("scheduler"), guard(c):
            act()

    return run


def writes(guard: Callable[[Cluster], Guard], what: str, lock: str) -> Callable[[Cluster], None]:
    """Return a run in which something is written while a lock is held."""

    def run(c: Cluster) -> None:
        with unit("scheduler"), guard(c):
            note_write(getattr(c, lock), what)

    return run


def writes_after(guard: Callable[[Cluster], Guard], what: str, lock: str) -> Callable[[Cluster], None]:
    """Return a run in which something is written when its lock was released."""

    def run(c: Cluster) -> None:
        with unit("scheduler"):
            hold(guard(c))
            note_write(getattr(c, lock), what)

    return run


def leaks(act: Callable[[Cluster], object]) -> Callable[[Cluster], None]:
    """Return a run in which an execution ends while it holds a lock."""

    def run(c: Cluster) -> None:
        with unit("scheduler"):
            act(c)

    return run


def in_turn(*acts: Callable[[], object]) -> None:
    """Do some things one after the other."""
    for act in acts:
        act()


def releases(act: Callable[[Cluster], object]) -> Callable[[Cluster], None]:
    """Return a run in which a lock refuses a release."""

    def run(c: Cluster) -> None:
        with unit("scheduler"), pytest.raises((LockUsageError, RuntimeError)):
            act(c)

    return run


def waits_with_another_lock(c: Cluster) -> None:
    """Wait for a condition while another lock is held."""
    condition = Condition(name="changed")
    with unit("scheduler"), c.application.write(), condition:
        condition.wait(timeout=0.001)


def takes_what_may_be_gone(_: Cluster) -> None:
    """Go on after a notification without a look at what it was about."""
    changed = Condition(name="changed")
    items = [1]

    def notifies() -> None:
        with changed:
            changed.notify()

    with changed:
        notifier = threading.Thread(target=notifies)
        notifier.start()  # it gets the lock when the wait releases it
        changed.wait()
        items.pop()
    notifier.join()


def waits_in_a_block_of_a_block(_: Cluster) -> None:
    """Let an inner block wait, which takes the lock away from the outer one."""
    changed = Condition(name="changed")
    with unit("scheduler"), changed, changed:
        changed.wait(timeout=0.001)


def joins_a_thread(c: Cluster) -> None:
    """Join a thread that still runs while a lock is held."""
    go_on = threading.Event()
    helper = threading.Thread(target=go_on.wait)
    helper.start()
    with c.partition.write():
        helper.join(timeout=0.001)
    go_on.set()
    helper.join()


def visits_all(outer: Callable[[Cluster], Guard], name: str) -> Callable[[Cluster], None]:
    """Return a run in which members of a class are taken one by one while a lock is held."""

    def run(c: Cluster) -> None:
        members = [Lock(name, key=number) for number in range(4)]
        with outer(c):
            for member in members:
                hold(member)

    return run


class Books:
    """Something that its lock guards."""

    def __init__(self, cluster: Cluster) -> None:
        self.lock = cluster.application
        self.entries = 0


def calls(
    contract: Callable[[Callable[[Books], None]], Callable[[Books], None]], *held: str
) -> Callable[[Cluster], None]:
    """Return a run in which a function with a contract is called while some locks are held."""

    def run(c: Cluster) -> None:
        @contract
        def count(books: Books) -> None:
            with c.events.write():
                books.entries += 1

        with unit("scheduler"):
            guards = [getattr(c, name).read() for name in held]
            for guard in guards:
                guard.__enter__()
            count(Books(c))
            for guard in reversed(guards):
                guard.__exit__(None, None, None)

    return run


def released_by_another(c: Cluster) -> None:
    """Take a lock in one execution and release it in another one."""
    with unit("one"):
        c.mutex.__enter__()
    with unit("other"):
        c.mutex.release()  # type: ignore[attr-defined] # a lock has it, a guard need not


def condition_without_its_lock(act: Callable[[threading.Condition], object]) -> Callable[[Cluster], None]:
    """Return a run in which a condition is used without its lock."""

    def run(_: Cluster) -> None:
        with unit("scheduler"), pytest.raises(RuntimeError):
            act(Condition(name="changed"))

    return run


def unserved_future() -> None:
    """Wait a moment for a future that nobody serves."""
    with pytest.raises(TimeoutError):
        Future().result(timeout=0.001)


def empty_queue() -> None:
    """Wait a moment for an item that nobody puts."""
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=0.001)


def full_queue() -> None:
    """Wait a moment for room that nobody makes."""
    limited: queue.Queue[int] = queue.Queue(maxsize=1)
    limited.put_nowait(1)
    with pytest.raises(queue.Full):
        limited.put(2, timeout=0.001)


def connect_nowhere() -> None:
    """Try to connect to a port that nobody can listen on."""
    with socket.socket() as door, pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
        door.connect(("127.0.0.1", 0))


def ask(kind: str) -> Callable[[], object]:
    """Return something that blocks, as its author says."""

    def act() -> None:
        with blocking(kind):
            pass

    return act


def callback_that_wants_no_lock() -> None:
    """Enter code that wants no lock held."""
    with no_locks("callback of the RM"):
        pass


def second_connection(c: Cluster) -> None:
    """Take a connection of a pool while another one is in use, and put both back."""
    pool: queue.Queue[object] = queue.LifoQueue()
    for _ in range(2):
        pool.put(Books(c))
    first, second = pool.get(), pool.get()
    for connection in (second, first):
        pool.put(connection)


def recursion_of_a_mutex(c: Cluster) -> None:
    """Take a plain lock twice; the second time only for a moment, since nothing would ever end it."""
    with unit("scheduler"), c.mutex:
        c.mutex.acquire(timeout=0.001)  # type: ignore[attr-defined] # a lock has it, a guard need not


RECURSIONS = [
    Bug("the partition's queues are looked up by a holder", again(lambda c: c.partition.read(), lambda c: c.partition.read()), Kind.RECURSION, ("19.1 REC",)),
    Bug("the partition's queues are looked up under its write lock", again(lambda c: c.partition.write(), lambda c: c.partition.read()), Kind.RECURSION, ("19.1 REC",)),
    Bug("pending resources are read by a getter under the queue's lock", again(lambda c: c.child.write(), lambda c: c.child.read()), Kind.RECURSION, ("19.4 REC", "core#54")),
    Bug("the queue's facts ask for its path", again(lambda c: c.child.read(), lambda c: c.child.read()), Kind.RECURSION, ("19.19 REC",)),
    Bug("a deferred lock where an unlock was meant", again(lambda c: c.application.read(), lambda c: c.application.read()), Kind.RECURSION, ("19.23 REC",)),
    Bug("a child that is made under its parent's lock asks the parent", again(lambda c: c.root.write(), lambda c: c.root.read()), Kind.RECURSION, ("19.9 REC",)),
    Bug("an actor asks itself and waits: its turn is a lock that it holds", again(lambda c: c.proxy.write(), lambda c: c.proxy.write()), Kind.RECURSION, ("pykka#48",)),
    Bug("the cluster removes a partition, which removes itself from the cluster", again(lambda c: c.cluster.write(), lambda c: c.cluster.write()), Kind.RECURSION, ("19.37 REC",)),
    Bug("the RM calls back into the proxy from a callback", again(lambda c: c.proxy.read(), lambda c: c.proxy.read()), Kind.RECURSION, ("19.42 REC",)),
    Bug("the queue's facts ask for its headroom", again(lambda c: c.parent.read(), lambda c: c.parent.read()), Kind.RECURSION, ("19.43 REC",)),
    Bug("a removed queue tells an event whether it is managed", again(lambda c: c.sibling.read(), lambda c: c.sibling.read()), Kind.RECURSION, ("19.46 REC",)),
    Bug("a node's event asks for its capacity", again(lambda c: c.node.write(), lambda c: c.node.read()), Kind.RECURSION, ("19.47 REC",)),
    Bug("the preemptor visits the application that preempts", again(lambda c: c.application.write(), lambda c: c.application.read()), Kind.RECURSION, ("19.51 REC",)),
    Bug("an application cancels its own reservation", again(lambda c: c.application.write(), lambda c: c.application.write()), Kind.RECURSION, ("19.55 REC",)),
    Bug("the REST path locks what it holds", again(lambda c: c.cluster.read(), lambda c: c.cluster.read()), Kind.RECURSION, ("core#299",)),
    Bug("an application is locked twice", again(lambda c: c.other.write(), lambda c: c.other.write()), Kind.RECURSION, ("core#347",)),
    Bug("removing a queue makes an event of it", again(lambda c: c.root.write(), lambda c: c.root.read()), Kind.RECURSION, ("core#841",)),
    Bug("the preemptor takes its application again, with another lock in between", lambda c: nest("scheduler", c.other.write(), c.node.read(), c.other.write()), Kind.RECURSION, ("core#948",)),
    Bug("a read lock is taken twice", again(lambda c: c.placement.read(), lambda c: c.placement.read()), Kind.RECURSION, ("k8shim#697",)),
    Bug("read, write of another thread, read", again(lambda c: c.nodes.read(), lambda c: c.nodes.read()), Kind.RECURSION, ("parking_lot#212",)),
    Bug("a state machine's callback fires an event of the same machine", again(lambda c: c.events.write(), lambda c: c.events.write()), Kind.RECURSION),
    Bug("a plain lock taken by a method and by the method it calls", recursion_of_a_mutex, Kind.RECURSION),
    Bug("a reader wants to write what it has read", again(lambda c: c.partition.read(), lambda c: c.partition.write()), Kind.UPGRADE),
    Bug("a reader wants to write, with another lock in between", lambda c: nest("scheduler", c.parent.read(), c.node.write(), c.parent.write()), Kind.UPGRADE),
]  # fmt: skip


LEAKS = [
    Bug("an early return without unlock", leaks(lambda c: c.child.read().__enter__()), Kind.LEAK, ("19.7 LEAK",)),
    Bug("the lock that was meant to be released is never", leaks(lambda c: c.application.read().__enter__()), Kind.LEAK, ("19.23 LEAK",)),
    Bug("a plain lock is left behind by an error", leaks(lambda c: c.mutex.__enter__()), Kind.LEAK),
    Bug("a deferred unlock runs twice", releases(lambda c: in_turn(c.parent.write().__enter__, c.parent.release_write, c.parent.release_write)), Kind.WRONG_RELEASE),
    Bug("a write lock is released as a read lock", releases(lambda c: in_turn(c.root.write().__enter__, c.root.release_read)), Kind.WRONG_RELEASE),
    Bug("a read lock is released as a write lock", releases(lambda c: in_turn(c.root.read().__enter__, c.root.release_write)), Kind.WRONG_RELEASE),
    Bug("a lock that nobody holds is released", releases(lambda c: c.mutex.release()), Kind.WRONG_RELEASE),  # type: ignore[attr-defined]
    Bug("a lock is released by who does not hold it", released_by_another, Kind.WRONG_RELEASE),
]  # fmt: skip

MODES = [
    Bug("a partition is deleted from the map under the read lock", writes(lambda c: c.cluster.read(), "partitions", "cluster"), Kind.READ_WRITE, ("19.21 MODE",)),
    Bug("trackers are deleted under the read lock", writes(lambda c: c.placement.read(), "trackers", "placement"), Kind.READ_WRITE, ("19.35 MODE",)),
    Bug("a tracker is unlinked under the read lock", writes(lambda c: c.child.read(), "trackers", "child"), Kind.READ_WRITE, ("19.39 MODE",)),
    Bug("requests are sorted under the read lock", writes(lambda c: c.application.read(), "requests", "application"), Kind.READ_WRITE, ("19.26 MODE",)),
    Bug("the timer of preemption is set under the read lock", writes(lambda c: c.root.read(), "timer", "root"), Kind.READ_WRITE, ("19.58 MODE",)),
    Bug("a handler lets go of its lock at once, and writes afterwards", writes_after(lambda c: c.cluster.write(), "partitions", "cluster"), Kind.UNGUARDED_WRITE, ("19.2 LEAK",)),
    Bug("a child is added without the parent's lock", writes(lambda c: c.child.write(), "children", "parent"), Kind.UNGUARDED_WRITE),
]  # fmt: skip

BLOCKS = [
    Bug("a handler waits for a second answer", under(lambda c: c.cluster.write(), lambda: threading.Event().wait(0.001)), Kind.BLOCKING, ("19.2 BLK",), rung=Rung.RB),
    Bug("an acknowledgement is awaited under the application's lock", under(lambda c: c.application.write(), lambda: threading.Event().wait(timeout=0.001)), Kind.BLOCKING, ("19.24 BLK",), rung=Rung.RB),
    Bug("the RM is called back under the proxy's lock", under(lambda c: c.proxy.read(), ask("callback")), Kind.BLOCKING, ("19.42 BLK", "core#837")),
    Bug("the scheduler's answer is awaited under the proxy's lock", under(lambda c: c.proxy.read(), unserved_future), Kind.BLOCKING, ("19.42 BLK",), rung=Rung.RB),
    Bug("an event is handled under the application's lock", under(lambda c: c.application.write(), ask("event handler")), Kind.BLOCKING, ("core#377",)),
    Bug("a partition asks an actor under its lock", under(lambda c: c.partition.write(), ask("ask")), Kind.BLOCKING, ("asks",)),
    Bug("an item is put where nobody takes any more", under(lambda c: c.events.read(), full_queue), Kind.BLOCKING, ("19.59 BLK",), rung=Rung.RB),
    Bug("a queue is emptied under a lock", under(lambda c: c.events.write(), empty_queue), Kind.BLOCKING, rung=Rung.RB),
    Bug("a thread sleeps under a lock", under(lambda c: c.node.write(), lambda: time.sleep(0.0001)), Kind.BLOCKING, rung=Rung.RB),
    Bug("a file is read under a lock", under(lambda c: c.cluster.read(), lambda: open(__file__, encoding="utf-8").close()), Kind.BLOCKING, rung=Rung.RB),  # noqa: PTH123
    Bug("a directory service is asked under the partition's lock", under(lambda c: c.partition.read(), connect_nowhere), Kind.BLOCKING, rung=Rung.RB),
    Bug("a name is looked up under a lock", under(lambda c: c.partition.read(), lambda: socket.getaddrinfo("127.0.0.1", 0)), Kind.BLOCKING, rung=Rung.RB),
    Bug("a program is run under a lock", under(lambda c: c.partition.write(), lambda: subprocess.run([sys.executable, "-S", "-c", ""], check=True)), Kind.BLOCKING, rung=Rung.RB),
    Bug("a thread is joined under a lock", joins_a_thread, Kind.BLOCKING, rung=Rung.RB),
    Bug("a server that is collected under a lock joins a thread that takes another one", lambda c: collected_under(c.monitor, last=lambda: hold(c.other.read())), Kind.BLOCKING, rung=Rung.RB),
    Bug("a condition is awaited while another lock is held", waits_with_another_lock, Kind.BLOCKING, rung=Rung.RB),
    Bug("a callback runs that wants no lock", under(lambda c: c.root.read(), callback_that_wants_no_lock), Kind.CONTRACT, ("callbacks",)),
    Bug("a consumer takes an item after a notification without looking", takes_what_may_be_gone, Kind.CONDITION),
    Bug("a method waits that is called with the lock held", waits_in_a_block_of_a_block, Kind.CONDITION),
    Bug("a condition is notified without its lock", condition_without_its_lock(lambda condition: condition.notify()), Kind.CONDITION),
    Bug("a condition is awaited without its lock", condition_without_its_lock(lambda condition: condition.wait(0.001)), Kind.CONDITION),
]  # fmt: skip

WALKS = [
    Bug("all applications are compared under the queue's lock", visits_all(lambda c: c.child.read(), "application"), Kind.ITERATION, ("core#94",), rung=Rung.RB),
    Bug("the use of all nodes is added up under the partition's lock", visits_all(lambda c: c.partition.read(), "node"), Kind.ITERATION, ("19.14 ORD",), rung=Rung.RB),
]  # fmt: skip

CONTRACTS = [
    Bug("a method needs its lock and is called without", calls(requires("lock", "R")), Kind.CONTRACT),
    Bug("a method writes and is called under the read lock", calls(requires("lock", "W"), "application"), Kind.CONTRACT),
    Bug("a function must not run under the partition's lock", calls(excludes("partition"), "partition"), Kind.CONTRACT),
    Bug("a function must not run under any lock", calls(excludes(), "node"), Kind.CONTRACT),
    Bug("a leaf takes a lock", calls(leaf, "application"), Kind.CONTRACT),
    Bug("a helper asserts that its caller holds the lock", under(lambda c: c.node.read(), lambda: assert_held(Cluster().partition, "R")), Kind.CONTRACT),
]  # fmt: skip

OTHERS = [
    Bug("a request that is tried again takes a second connection of its pool", second_connection, Kind.RECURSION, rung=Rung.R1),
]  # fmt: skip

RULE_BUGS = [*RECURSIONS, *LEAKS, *MODES, *BLOCKS, *WALKS, *CONTRACTS, *OTHERS]
