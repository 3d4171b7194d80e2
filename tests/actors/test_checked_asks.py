"""Asks as lockcheck hears of them: in one graph with locks, by rank, and in real deadlocks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import ClassVar

import pytest
from support.lockcheck.deadlocked import LEAVE_ALONE, deadlocks, found
from support.lockcheck.lock_corpus import RECORD
from support.programs import run_python
from support.waiting import WAIT_SECONDS, wait_until

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.reference import AnyRef, PooledRef
from licorne.lockcheck import DeadlockError, Kind, Lock, LockOrderError, Order, Rung, session, unit
from licorne.lockcheck.locks.factories import ExclusiveLock


class Clerk(PooledActor):
    """Does what a message says, and goes on after an error."""

    survives_failures: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.answers = 0

    def answer(self) -> int:
        self.answers += 1
        return self.answers

    def take(self, lock: ExclusiveLock, begun: threading.Event | None = None) -> None:
        if begun is not None:
            begun.set()
        with lock:
            pass

    def take_both(self, first: ExclusiveLock, second: ExclusiveLock) -> None:
        with first, second:
            pass

    def take_one_by_one(self, first: ExclusiveLock, second: ExclusiveLock, met: threading.Barrier) -> None:
        with first:
            met.wait(WAIT_SECONDS)
            with second:
                pass

    def ask(self, *others: AnyRef) -> None:
        for other in others:
            other.call(Clerk.answer)

    def do(self, work: Callable[[], object]) -> object:
        return work()

    def sleep(self) -> None:
        time.sleep(0.0001)

    def tell(self, other: AnyRef) -> None:
        other.send(Clerk.answer)


class Above(Clerk):
    """One that may ask those below."""

    rank: ClassVar[int | None] = 1


class Below(Clerk):
    """One that others ask."""

    rank: ClassVar[int | None] = 2


def lock_ask_lock(stepped: Dispatcher) -> None:
    """Ask a clerk under a lock; a message has it take the same lock."""
    clerk, lock = stepped.start(Clerk), Lock("books")
    with unit("asker"), lock:
        clerk.call(Clerk.answer)
    clerk.send(Clerk.take, lock)
    stepped.run_pending()


def asks_both_ways(stepped: Dispatcher) -> None:
    """Two clerks ask each other, never at once."""
    one, two = stepped.start(Clerk), stepped.start(Clerk)
    with unit("first"):
        one.call(Clerk.ask, two)
    with unit("second"):
        two.call(Clerk.ask, one)


def locks_of_an_asked_clerk(stepped: Dispatcher) -> None:
    """A clerk takes a lock for an asker that holds another one; a thread takes both in the other order."""
    clerk, books, desk = stepped.start(Clerk), Lock("books"), Lock("desk")
    with unit("asker"), books:
        clerk.call(Clerk.take, desk)
    with unit("other"), desk, books:
        pass


@pytest.mark.parametrize(
    "bug", [lock_ask_lock, asks_both_ways, locks_of_an_asked_clerk], ids=lambda f: f.__name__
)
def test_a_possible_deadlock_is_found_without_happening(bug: Callable[[Dispatcher], None]) -> None:
    """On one thread that never waits."""
    with session(on=RECORD) as opened, Dispatcher(workers=0) as stepped:
        bug(stepped)

    assert [(Rung.R2, Kind.CYCLE)] == found(opened, Rung.R2, Rung.R5)


def test_a_closed_path_over_asks_names_actors_and_where_they_were_asked() -> None:
    """The runtime's own frames are no places of the program."""
    with session(on=RECORD) as opened, Dispatcher(workers=0) as stepped:
        asks_both_ways(stepped)

    (finding,) = [one for one in opened.findings if one.rung is Rung.R2]
    assert "Clerk[W] -> Clerk[W]" in {edge.class_edge for edge in finding.edges}
    assert {"Clerk.ask"} == {edge.want_stack[0].function for edge in finding.edges}
    assert {"asks_both_ways"} == {edge.hold_stack[0].function for edge in finding.edges}


def one_actor_does_both(pooled: Dispatcher) -> None:
    """Its messages come one after the other, on whichever thread."""
    clerk, books, desk = pooled.start(Clerk), Lock("books"), Lock("desk")
    clerk.send(Clerk.take_both, books, desk)
    clerk.send(Clerk.take_both, desk, books)
    clerk.stop()


def asks_one_by_one(pooled: Dispatcher) -> None:
    """To ask many, and to sleep, delays only threads that wait for this actor."""
    above, clerks = pooled.start(Above), [pooled.start(Below) for _ in range(5)]
    above.call(Clerk.ask, *clerks)
    above.call(Clerk.sleep)


def tells_upwards(pooled: Dispatcher) -> None:
    """A tell does not wait."""
    above, below = pooled.start(Above), pooled.start(Below)
    above.call(Clerk.ask, below)
    below.call(Clerk.tell, above)
    above.stop()


def before_the_actor_was_made(pooled: Dispatcher) -> None:
    """Who makes an actor has done what came before it."""
    books, desk = Lock("books"), Lock("desk")
    with books, desk:
        pass
    clerk = pooled.start(Clerk)
    clerk.send(Clerk.take_both, desk, books)
    clerk.stop()


@pytest.mark.parametrize(
    "safe",
    [one_actor_does_both, asks_one_by_one, tells_upwards, before_the_actor_was_made],
    ids=lambda f: f.__name__,
)
def test_what_actors_may_do_is_not_reported(safe: Callable[[Dispatcher], None]) -> None:
    """A cycle is explained at the most."""
    with session(on=RECORD) as opened, Dispatcher(workers=2) as pooled:
        safe(pooled)

    assert [] == found(opened, Rung.R0, Rung.R2, Rung.R5), opened.report_text()


def test_an_ask_upwards_breaks_the_rule_of_ranks() -> None:
    """It is reported before it is made, whether or not anybody waits."""
    with session() as opened, Dispatcher(workers=0) as stepped:
        above, below = stepped.start(Above), stepped.start(Below)
        with pytest.raises(LockOrderError, match=r"Above #\d+ of rank 1 is asked by Below #\d+ of rank 2"):
            below.call(Clerk.ask, above)
        assert 1 == above.call(Clerk.answer)

    assert [(Rung.R0, Kind.ORDER)] == found(opened, *Rung)


def test_a_declared_order_says_what_may_be_asked_under_a_lock() -> None:
    """What it allows does not block, what it forbids is against it, and what it does not know may block."""
    with session(Order("books < Clerk < desk"), on=RECORD) as opened, Dispatcher(workers=0) as stepped:
        clerk = stepped.start(Clerk)
        kinds = []
        for name in ("books", "desk", "door"):
            with Lock(name):
                clerk.call(Clerk.answer)
            kinds.append([kind for _, kind in found(opened, Rung.R0)])

    assert [[], [Kind.ORDER], [Kind.ORDER, Kind.BLOCKING]] == kinds


@pytest.mark.parametrize("level", ["order", "full"])
def test_an_ask_under_a_lock_is_reported_for_each_place(level: str) -> None:
    """Also where places make no difference to what is in order."""

    def one() -> None:
        clerk.call(Clerk.answer)

    def another() -> None:
        clerk.call(Clerk.answer)

    with session(level=level, on=RECORD) as opened, Dispatcher(workers=0) as stepped:
        clerk, lock = stepped.start(Clerk), Lock("books")
        for ask in (one, another):
            with lock:
                ask()

    blocking = [finding for finding in opened.findings if finding.kind is Kind.BLOCKING]
    places = [finding.edges[0].want_stack[0].function for finding in blocking]
    assert ["one", "another"] == [place.rpartition(".")[2] for place in places]
    assert [] == opened.faults


def cycle_of_asks(dispatcher: Dispatcher) -> tuple[PooledRef[Clerk], type[BaseException] | int]:
    """Ask a busy clerk under the lock that it wants; return it, and what the asker got."""
    clerk, lock, begun = dispatcher.start(Clerk), Lock("books"), threading.Event()
    with lock:
        clerk.send(Clerk.take, lock, begun)
        assert begun.wait(WAIT_SECONDS)
        try:
            return clerk, clerk.call(Clerk.answer)
        except DeadlockError:
            return clerk, DeadlockError


@pytest.mark.parametrize("level", ["order", "full"])
@pytest.mark.parametrize("policy", [min, max])
def test_a_lock_and_an_ask_that_wait_for_each_other_are_broken(
    level: str, policy: Callable[..., object]
) -> None:
    """The actor gets the error where it wants the lock, or the asker, and then its message is withdrawn."""

    def victim(units: object) -> object:
        return policy(units, key=lambda one: one.serial)

    with session(level=level, on=LEAVE_ALONE, victim=victim) as opened, Dispatcher(workers=1) as pooled:  # type: ignore[arg-type] # as its like
        clerk, got = cycle_of_asks(pooled)
        answers = clerk.call(Clerk.answer)

    assert (DeadlockError, 1) == (got, answers) if policy is min else (1, 2) == (got, answers)
    (finding,) = deadlocks(opened)
    asker, actor = sorted(finding.edges, key=lambda edge: "Clerk" in edge.execution)
    assert "the answer of Clerk" in asker.wanted
    assert "books" in actor.wanted
    assert "suggestion: have MainThread release books" in opened.report_text()
    assert ("cycle_of_asks", "Clerk.take") == tuple(
        next(frame.function for frame in edge.want_stack if "tests" in frame.file) for edge in (asker, actor)
    )


@pytest.mark.parametrize("level", ["order", "full"])
def test_actors_on_workers_that_wait_for_each_others_locks_are_broken(level: str) -> None:
    """What they hold is theirs, and not that of the workers."""
    with session(level=level, on=LEAVE_ALONE) as opened, Dispatcher(workers=2) as pooled:
        books, desk, met = Lock("books"), Lock("desk"), threading.Barrier(3)
        for locks in ((books, desk), (desk, books)):
            pooled.start(Clerk).send(Clerk.take_one_by_one, *locks, met)
        met.wait(WAIT_SECONDS)

    (finding,) = deadlocks(opened)
    assert ["Clerk", "Clerk"] == [edge.execution.partition(" ")[0] for edge in finding.edges]


def test_it_is_found_within_100_milliseconds() -> None:
    """As for locks."""

    def work() -> float:
        with session(on=LEAVE_ALONE), Dispatcher(workers=1) as pooled:
            began = time.perf_counter()
            cycle_of_asks(pooled)
            return time.perf_counter() - began

    wait_until(lambda: work() < 0.1)


NOTHING_CHECKED = """
import sys
from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher

class Clerk(PooledActor):
    def answer(self):
        return 7

with Dispatcher(workers=1) as dispatcher:
    clerk = dispatcher.start(Clerk)
    assert 7 == clerk.call(Clerk.answer)
    assert clerk.actor_inbox.direction is None
loaded = [name for name in sys.modules if name.endswith((".checked_asks", ".answering", ".waiting"))]
assert ["licorne.actors.runtime.waiting"] == loaded, loaded
"""


def test_where_nothing_is_checked_nothing_of_it_is_there() -> None:
    """No rule at the mailboxes, and no module of it loaded."""
    run = run_python("-c", NOTHING_CHECKED)

    assert 0 == run.returncode, run.stderr
