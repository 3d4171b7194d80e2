"""What is nothing new costs no stack, no node and no latch; and of what is gone nothing stays."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import pytest
from support.lockcheck.lock_corpus import RECORD, hold
from support.waiting import WAIT_SECONDS

from licorne.actors.runtime.checked_asks import CheckedAsks
from licorne.lockcheck import Kind, Level, Lock, Order, RLock, RWLock, adopt, held, session, tree
from licorne.lockcheck.holding.chains import SWEEP_MIN, LockIdentity, TrieNode
from licorne.lockcheck.holding.runtime import LATCH, local
from licorne.lockcheck.sessions.session import Session

ORDER = Order("partition < queue < application < node < clerk")
LEVELS = pytest.mark.parametrize("level", [Level.ORDER, Level.FULL])


class CountedLatch:
    """The latch, and how often it is taken."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def __enter__(self) -> bool:
        self.counts["LATCH"] += 1
        return LATCH.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        LATCH.release()


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the modules of the checker take the latch, make a node, check an ask, or capture a stack."""
    counts: Counter[str] = Counter()

    def counted(name: str, work: Callable[..., object]) -> Callable[..., object]:
        def count(*given: object, **named: object) -> object:
            counts[name] += 1
            return work(*given, **named)

        return count

    for name, module in list(sys.modules.items()):
        if name.startswith(("licorne.lockcheck", "licorne.actors.runtime")):
            for used in {"LATCH", "TrieNode", "asks", "capture"} & vars(module).keys():
                there = getattr(module, used)
                fake = CountedLatch(counts) if used == "LATCH" else counted(used, there)
                monkeypatch.setattr(module, used, fake)
    return counts


def ask(answerer: CheckedAsks) -> None:
    """Ask as a runtime of actors does for the program."""
    answerer.asked()
    answerer.enter()
    answerer.leave()


class Program:
    """Every way to take and release a lock, nested, and an ask under all."""

    def __init__(self) -> None:
        self.partition = RWLock("partition")
        self.queue, self.application, self.node = RWLock("queue"), RLock("application"), Lock("node")
        self.clerk = CheckedAsks("clerk")

    def run(self) -> None:
        """Take and release all."""
        with self.partition.read(), self.queue.write(), self.application, self.application, self.node:
            ask(self.clerk)
        self.partition.acquire_write()
        self.application.acquire(blocking=False)
        self.node.acquire(timeout=WAIT_SECONDS)
        self.node.release()
        self.application.release()
        self.partition.release_write()


@LEVELS
def test_what_is_nothing_new_takes_no_latch_makes_no_node_and_captures_no_stack(
    level: Level, counts: Counter[str]
) -> None:
    """Also what only tries, what waits for a time, and what is asked."""
    with session(ORDER, level=level):
        program = Program()
        for _ in range(3):
            program.run()
        assert counts["TrieNode"] > 0
        assert counts["asks"] > 0
        assert counts["LATCH"] > 0
        assert (level is Level.FULL) == (counts["capture"] > 0)
        counts.clear()
        for _ in range(256):
            program.run()

    assert {} == {name: count for name, count in counts.items() if name != "LATCH"}
    assert counts["LATCH"] <= 8  # where the session ends


def test_checking_the_order_of_what_is_nothing_new_allocates_nothing_that_stays() -> None:
    """However often it is done."""
    with session(ORDER, level="order"):
        program = Program()
        for _ in range(3):
            program.run()
        before = sys.getallocatedblocks()
        for _ in range(500):
            program.run()
        assert sys.getallocatedblocks() - before < 50


def remembered() -> int:
    """Return how many nodes and identities of locks there are."""
    gc.collect()
    return sum(type(thing) in {TrieNode, LockIdentity} for thing in gc.get_objects())


@pytest.mark.parametrize(
    ("level", "count"),
    [
        *((Level.ORDER, 100_000), (Level.FULL, 10_000)),
        pytest.param(
            Level.ORDER, 1_000_000, marks=pytest.mark.soak
        ),  # as many as a scheduler makes in months
        pytest.param(Level.FULL, 1_000_000, marks=pytest.mark.soak),
    ],
)
def test_of_locks_that_are_gone_little_is_remembered(level: Level, count: int) -> None:
    """Neither the locks, nor what was known of them, but for what is forgotten a little later."""
    before = remembered()
    with session(level=level, on=RECORD) as opened:
        outer = Lock("outer")
        gone = []
        for number in range(count):
            inner = Lock("inner", key=number)
            hold(outer, inner)
            gone.append(weakref.ref(inner))
        del inner
        assert [] == [reference for reference in gone if reference() is not None]
        del gone
        assert remembered() - before < 4 * SWEEP_MIN
        assert len(opened.graph) < 1100


def test_more_locks_than_are_swept_at_once_are_all_remembered_while_they_live() -> None:
    """They are checked once each."""
    with session(level="order"):
        outer, locks = Lock("outer"), [Lock("inner", key=number) for number in range(2 * SWEEP_MIN)]
        for _ in range(2):
            for lock in locks:
                hold(outer, lock)
        nodes = remembered()
        for lock in locks:
            hold(outer, lock)
        assert nodes == remembered()


def nested(level: Level, order: Order | None, keys: Iterable[object]) -> Session:
    """Hold many locks of a class at once, twice; return the session."""
    with session(order, level=level, on=RECORD) as opened:
        locks = [RLock("queue", key=key) for key in keys]
        for _ in range(2):
            for lock in locks:
                lock.acquire()
            assert len(locks) == len(held())
            for lock in reversed(locks):
                lock.release()
    return opened


@pytest.mark.parametrize(("level", "depth"), [(Level.ORDER, 1000), (Level.FULL, 200)])
def test_locks_of_a_tree_nest_deeply_and_each_is_held_against_all_above(level: Level, depth: int) -> None:
    """One that is below all but the last is found."""
    paths = [".".join(["a"] * at) for at in range(1, depth + 1)]
    opened = nested(level, Order("queue", same={"queue": tree()}), [*paths, f"{paths[-2]}.b"])

    assert [] == opened.faults
    assert [(Kind.SAME_CLASS, 2)] == [(finding.kind, finding.count) for finding in opened.failures]


@pytest.mark.soak
@pytest.mark.parametrize(("level", "depth"), [(Level.ORDER, 10_000), (Level.FULL, 1000)])
def test_locks_nest_very_deeply(level: Level, depth: int) -> None:
    """No limit is built in; the time grows with the square of the depth."""
    opened = nested(level, None, range(depth))

    assert ([], ()) == (opened.faults, opened.failures)


@LEVELS
def test_a_lock_may_be_taken_again_ten_thousand_times(level: Level) -> None:
    """And is free when it was released as often."""
    with session(level=level) as opened:
        lock = RLock("any")
        for _ in range(10_000):
            lock.acquire()
        for _ in range(10_000):
            lock.release()
        assert local.execution.node.acquisition is None

    assert ([], ()) == (opened.faults, opened.findings)


def test_tasks_that_do_nothing_new_are_not_checked_anew() -> None:
    """Whoever gets a result learns of nothing that it does not know, after so many of them."""
    with session(on=RECORD) as opened, adopt(), ThreadPoolExecutor(1) as pool:
        counts = []
        for _ in range(5):
            for _ in range(80):
                pool.submit(int).result()
            counts.append(opened.watch.acquisitions)

    assert counts[0] > 0
    assert counts[-1] == counts[-2]
