"""Asks of plain Pykka actors that would wait for ever: refused, or broken if they happen."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

import pykka
import pytest
from support.lockcheck.deadlocked import LEAVE_ALONE, checked, deadlocks, found, run_all
from support.lockcheck.lock_corpus import hold
from support.lockcheck.pykka_clerks import Clerk, Ref, clerks
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS, wait_until

from licorne.lockcheck import DeadlockError, Kind, Lock, Rung, session
from licorne.lockcheck.checking import waiting
from licorne.lockcheck.holding.chains import Execution, ExecutionWait
from licorne.lockcheck.holding.runtime import local, runtime
from licorne.lockcheck.locks.factories import ExclusiveLock

LEVELS: Final = pytest.mark.parametrize("level", ["order", "full"])


def oldest(executions: Sequence[Execution]) -> Execution:
    """Choose the execution that began first."""
    return min(executions, key=lambda execution: execution.serial)


def asks_by_proxy(clerk: Ref, work: Callable[[], object]) -> object:
    """Ask, and then wait; where threads run at once, what is asked may else go on before the wait begins."""
    asker, over = local.execution, threading.Event()

    def when_awaited() -> object:
        wait_until(lambda: over.is_set() or (asker.wait is not None and not asker.check_due))
        return work()

    try:
        return clerk.proxy().do(when_awaited).get()
    finally:
        over.set()


def asks_at_once(clerk: Ref, work: Callable[[], object]) -> object:
    return clerk.ask(work)


@LEVELS
@pytest.mark.parametrize("ask", [asks_at_once, asks_by_proxy], ids=lambda f: f.__name__)
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_the_ask_that_completes_a_deadlock_of_asks_gets_the_error(
    number: int, ask: Callable[[Ref, Callable[[], object]], object], level: str
) -> None:
    """Each clerk asks the next one, the last one the first: it alone fails, whoever is chosen elsewhere."""
    gave_way: list[int] = []
    with session(level=level, on=LEAVE_ALONE, victim=oldest) as opened, clerks(number) as ring:

        def turn(at: int) -> object:
            if at > number:
                return "never answered"
            try:
                return ask(ring[at % number], lambda: turn(at + 1))
            except DeadlockError:
                gave_way.append(at)
                return "gave way"

        assert "gave way" == turn(0)

    assert [] == opened.faults
    assert [number] == gave_way
    (finding,) = deadlocks(opened)
    assert number == len(finding.edges)
    assert all(edge.want_stack[0].function == ask.__name__ for edge in finding.edges)


def test_the_wait_that_completes_a_deadlock_gets_the_error_also_where_another_one_checks_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that wait look all 20 ms, so also in the moment before it looks itself."""
    gave_way: list[str] = []
    with session(on=LEAVE_ALONE, victim=oldest) as opened, clerks(2) as (one, two):
        plain = waiting._may_close

        def after_others(execution: Execution, wait: ExecutionWait) -> bool:
            for other in runtime.all_executions():
                if other is not execution and other.wait is not None:
                    waiting._break_deadlock(opened.watch, other, oldest)
            return plain(execution, wait)

        monkeypatch.setattr(waiting, "_may_close", after_others)

        def closes() -> object:
            try:
                return one.ask("a word")
            except DeadlockError:
                gave_way.append("who closes it")
                return "gave way"

        assert "gave way" == one.ask(lambda: two.ask(closes))

    assert [] == opened.faults
    assert ["who closes it"] == gave_way


def test_the_ask_that_would_complete_a_deadlock_is_not_sent() -> None:
    """So nobody handles it later."""
    with checked() as opened, clerks() as (clerk,):
        with pytest.raises(DeadlockError):
            clerk.ask(lambda: clerk.ask("never sent"))
        assert 1 == clerk.proxy().count.get()

    assert 1 == len(deadlocks(opened))


def test_of_two_that_ask_each_other_at_the_same_time_one_gets_the_error() -> None:
    """Whoever comes second."""
    both = threading.Barrier(2)
    with checked() as opened, clerks(2) as (one, two):

        def meets(other: Ref) -> object:
            both.wait(WAIT_SECONDS)
            try:
                return other.ask("a word")
            except DeadlockError:
                return "gave way"

        futures = [one.ask(lambda: meets(two), block=False), two.ask(lambda: meets(one), block=False)]
        answers = [future.get() for future in futures]

    assert ["a word", "gave way"] == sorted(map(str, answers))
    assert 1 == len(deadlocks(opened))


@LEVELS
def test_a_lock_and_an_ask_that_wait_for_each_other_are_broken(level: str) -> None:
    """The asker holds what the actor wants; here the asker gives way, whoever came last."""
    begun = threading.Event()
    with session(level=level, on=LEAVE_ALONE, victim=oldest) as opened:
        lock = Lock("books")

        def takes() -> str:
            begun.set()
            hold(lock)
            return "took it"

        with clerks() as (clerk,):
            with lock:
                took = clerk.ask(takes, block=False)
                assert begun.wait(WAIT_SECONDS)
                with pytest.raises(DeadlockError):
                    clerk.ask("a word")
            assert "took it" == took.get()

    assert [] == opened.faults
    (finding,) = deadlocks(opened)
    asker, actor = sorted(finding.edges, key=lambda edge: "Clerk" in edge.execution)
    assert "the answer of Clerk" in asker.wanted
    assert "books" in actor.wanted


def test_a_join_and_an_ask_that_wait_for_each_other_are_broken() -> None:
    """An actor waits for the end of a thread that asks it."""
    with checked() as opened, clerks() as (clerk,):
        gave_way: list[str] = []

        def joins() -> str:
            thread.start()
            try:
                thread.join()
            except DeadlockError:
                gave_way.append("actor")
            return "joined"

        def asks_it() -> None:
            try:
                clerk.ask("a word")
            except DeadlockError:
                gave_way.append("thread")

        thread = threading.Thread(target=asks_it, daemon=True)
        assert "joined" == clerk.ask(joins)
        thread.join(WAIT_SECONDS)

    assert 1 == len(gave_way)
    assert 1 == len(deadlocks(opened))


class Door(queue.Queue[Any]):
    """An inbox that tells when something has come."""

    def __init__(self) -> None:
        super().__init__()
        self.rung = threading.Event()

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as in queue
        rung = self.rung
        super().put(item, block, timeout)
        rung.set()


class Porter(Clerk):
    """A clerk who hears when somebody asks it."""

    @staticmethod
    def _create_actor_inbox() -> Door:
        return Door()


def test_who_has_an_answer_waits_for_nobody() -> None:
    """Also while the one that gave it waits for the one that has yet to look."""
    with checked() as opened, clerks() as (clerk,):
        porter = Porter.start()
        door = porter.actor_inbox
        assert isinstance(door, Door)

        def checks_late() -> object:
            door.rung = threading.Event()
            answer = clerk.ask("a word", block=False)
            clerk.tell(lambda: porter.ask("another"))
            assert door.rung.wait(WAIT_SECONDS)
            return answer.get()

        assert "a word" == porter.ask(checks_late)
        porter.stop()

    assert [] == deadlocks(opened)


def test_a_wait_with_a_limit_ends_by_itself() -> None:
    """An actor that asks itself for a while is no deadlock, but a mistake."""
    with checked() as opened, clerks() as (clerk,), pytest.raises(pykka.Timeout):
        clerk.ask(lambda: clerk.ask("a word", timeout=EXPIRING_SECONDS))

    assert [(Rung.R0, Kind.RECURSION)] == found(opened, *Rung)


@dataclass(frozen=True)
class RandomAsks:
    """What clerks ask each other, some of it under locks: the same for the same seed."""

    refs: Sequence[Ref]
    locks: Sequence[ExclusiveLock]
    """None where clerks ask later ones only, so that nobody can wait for ever."""

    def ask(self, random: Random, to: int, depth: int) -> int:
        """Ask a clerk, who asks others; return how many asks below were refused or given up."""
        seed = random.random()
        clerk, work = self.refs[to], lambda: self._turn(Random(seed), to, depth)  # noqa: S311 - reproducible
        lock = random.choice(self.locks) if self.locks and random.random() < 0.3 else nullcontext()
        try:
            with lock:
                asked: Any = clerk.ask(work) if random.random() < 0.5 else clerk.ask(work, block=False).get()
        except DeadlockError:
            return 1
        return int(asked)

    def _turn(self, random: Random, at: int, depth: int) -> int:
        others = range(0 if self.locks else at + 1, len(self.refs))
        if depth == 0 or not others:
            return 0
        return sum(self.ask(random, random.choice(others), depth - 1) for _ in range(random.randint(1, 2)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("number_of_locks", [0, 3])
def test_random_asks_come_to_an_end(seed: int, number_of_locks: int) -> None:
    """From four threads at once; where clerks ask later ones only no ask is refused."""
    given_up: list[int] = []
    with checked() as opened, clerks(5) as refs:
        asks = RandomAsks(refs, [Lock("books", key=number) for number in range(number_of_locks)])

        def root(name: str) -> None:
            random = Random(f"{seed} {name}")  # noqa: S311 - likewise
            given_up.extend(asks.ask(random, random.randrange(5), 3) for _ in range(5))

        assert [] == run_all(**{name: partial(root, name) for name in "abcd"})

    assert 20 == len(given_up)
    assert number_of_locks or (0, []) == (sum(given_up), deadlocks(opened))


def raises(error: Exception) -> object:
    """Raise an error."""
    raise error


@pytest.mark.parametrize("error", [ValueError("wrong"), pykka.Timeout("of its own")], ids=repr)
def test_an_answer_that_is_an_error_is_raised(error: Exception) -> None:
    """Also one that looks as if there were no answer yet."""
    with checked(), clerks() as (clerk,):
        with pytest.raises(type(error)) as raised:
            clerk.ask(lambda: raises(error))
        assert error is raised.value
        with pytest.raises(type(error)) as raised:
            clerk.proxy().do(lambda: raises(error)).get()
        assert error is raised.value


def test_a_stopped_actor_answers_as_ever() -> None:
    """Whether the ask came before or after it stopped."""
    with checked() as opened:
        clerk = Clerk.start()
        go_on = threading.Event()
        busy = clerk.ask(lambda: go_on.wait(WAIT_SECONDS), block=False)
        stopped, left = clerk.stop(block=False), clerk.ask("too late", block=False)
        go_on.set()

        assert busy.get()
        assert stopped.get()
        assert not clerk.stop()
        with pytest.raises(pykka.ActorDeadError):
            left.get()
        with pytest.raises(pykka.ActorDeadError):
            clerk.ask("too late")

    assert [] == found(opened, *Rung)
