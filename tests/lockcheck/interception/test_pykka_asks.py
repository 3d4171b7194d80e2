"""Asks of plain Pykka actors are checked together with locks, before anybody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

import pykka
import pytest
from support.lockcheck import lock_corpus
from support.lockcheck.deadlocked import found, run_all
from support.lockcheck.lock_corpus import RECORD, hold
from support.lockcheck.pykka_clerks import Clerk, Ref, clerks
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import Kind, Lock, LockOrderError, Order, Rung, session
from licorne.lockcheck.checking.policy import FindingAction

RAISE_ALL: Final[Mapping[Rung, FindingAction]] = {Rung.RB: "raise"}
LEVELS: Final = pytest.mark.parametrize("level", ["order", "full"])


def asks(clerk: Ref) -> None:
    clerk.ask("a word")


def asks_and_gets(clerk: Ref) -> None:
    clerk.ask("a word", block=False).get()


def asks_for_a_while(clerk: Ref) -> None:
    clerk.ask("a word", timeout=WAIT_SECONDS)


def calls_by_proxy(clerk: Ref) -> None:
    clerk.proxy().do(int).get()


def reads_by_proxy(clerk: Ref) -> None:
    clerk.proxy().count.get()


def writes_by_proxy(clerk: Ref) -> None:
    clerk.proxy().count = 7


def gets_all(clerk: Ref) -> None:
    pykka.get_all([clerk.ask("a word", block=False)])


def gets_what_is_made_of_it(clerk: Ref) -> None:
    clerk.ask("a word", block=False).map(str).get()


def points(clerk: Ref) -> None:
    clerk.stop()


@LEVELS
@pytest.mark.parametrize(
    "waits",
    [
        asks,
        asks_and_gets,
        asks_for_a_while,
        calls_by_proxy,
        reads_by_proxy,
        writes_by_proxy,
        gets_all,
        gets_what_is_made_of_it,
        points,
    ],
    ids=lambda f: f.__name__,
)
def test_to_wait_for_an_actor_under_a_lock_is_blocking(waits: Callable[[Ref], None], level: str) -> None:
    """In whatever way; it is reported before it waits, at the place in the program."""
    with session(level=level, on=RAISE_ALL) as opened, clerks() as (clerk,):
        message = r"ask Clerk #\d+ may block while books #\d+ is held"
        with pytest.raises(LockOrderError, match=message), Lock("books"):
            waits(clerk)

    assert [(Rung.RB, Kind.BLOCKING)] == found(opened, *Rung)
    assert waits.__name__ == opened.findings[0].edges[0].want_stack[0].function


def test_an_ask_under_a_lock_is_answered_and_fails_nothing() -> None:
    """It may be slow, but it breaks nothing that was declared."""
    with session() as opened, clerks() as (clerk,), Lock("books"):
        assert "a word" == clerk.ask("a word")

    assert [(Rung.RB, Kind.BLOCKING)] == found(opened, *Rung)
    assert () == opened.failures


def test_what_is_refused_is_not_sent() -> None:
    """Where asking and waiting are one, and the session raises for blocking calls."""
    with session(on=RAISE_ALL), clerks() as (clerk,):
        with pytest.raises(LockOrderError), Lock("books"):
            clerk.ask("refused")
        assert 0 == clerk.proxy().count.get()


def test_who_tells_waits_for_nobody() -> None:
    """Neither does who asks and gets the answer later, or once more, or never."""
    with session() as opened, clerks(2) as (clerk, other), Lock("books"):
        clerk.tell("a word")
        clerk.proxy().do.defer(int)
        clerk.proxy().do(int)
        later = clerk.ask("a word", block=False)
        other.stop(block=False)
    assert "a word" == later.get()

    assert [] == found(opened, *Rung)


def test_an_answer_is_waited_for_once() -> None:
    """Whoever gets it again waits for nobody, whatever is held."""
    with session() as opened, clerks() as (clerk,):
        future = clerk.ask("a word", block=False)
        assert "a word" == future.get()
        with Lock("books"):
            assert "a word" == future.get()

    assert [] == found(opened, *Rung)


def test_a_declared_order_says_what_may_be_asked_under_a_lock() -> None:
    """An actor is called after its class there."""
    with session(Order("books < Clerk < desk"), on=RECORD) as opened, clerks() as (clerk,):
        kinds = []
        for name in ("books", "desk"):
            with Lock(name):
                clerk.ask("a word")
            kinds.append([kind for _, kind in found(opened, Rung.R0)])

    assert [[], [Kind.ORDER]] == kinds


# -------------------------------------------------------------------------- found without happening


def lock_ask_lock() -> None:
    """Ask a clerk under a lock; it wants the same lock when somebody else asks it to."""
    lock = Lock("books")
    with clerks() as (clerk,):
        with lock:
            clerk.ask("a word")
        clerk.ask(lambda: hold(lock))


def starts_with_a_lock() -> None:
    """The same, but it wants the lock when it starts."""
    lock = Lock("books")
    clerk = Clerk.start(lambda: hold(lock))
    clerk.ask("a word")
    with lock:
        clerk.ask("a word")
    clerk.stop()


def ask_each_other() -> None:
    """Two clerks ask each other, never at once."""
    with clerks(2) as (one, two):
        one.ask(lambda: two.ask("a word"))
        two.ask(lambda: one.proxy().do(int).get())


def ask_in_a_ring() -> None:
    """Three clerks ask each the next one, never at once."""
    with clerks(3) as ring:
        for asker, asked in pairwise([*ring, ring[0]]):
            asker.ask(lambda asked=asked: asked.ask("a word"))


@pytest.mark.parametrize(
    ("bug", "steps"),
    [(lock_ask_lock, 2), (starts_with_a_lock, 2), (ask_each_other, 2), (ask_in_a_ring, 3)],
)
def test_what_could_deadlock_is_found_without_happening(bug: Callable[[], None], steps: int) -> None:
    """Over locks and asks alike."""
    with session(on=RECORD) as opened:
        bug()

    assert [(Rung.R2, Kind.CYCLE)] == found(opened, Rung.R2, Rung.R3, Rung.R5)
    (finding,) = [one for one in opened.findings if one.rung is Rung.R2]
    assert steps == len(finding.edges)
    assert {edge.want_stack[0].file for edge in finding.edges} <= {__file__, lock_corpus.__file__}


def one_actor_does_both() -> None:
    """Its messages come one after the other."""
    books, desk = Lock("books"), Lock("desk")
    with clerks() as (clerk,):
        clerk.ask(lambda: hold(books, desk))
        clerk.ask(lambda: hold(desk, books))


def before_and_after_it_lived() -> None:
    """What was done before it was started came before all it did, and that before its end."""
    books, desk = Lock("books"), Lock("desk")
    hold(books, desk)
    with clerks() as (clerk,):
        clerk.ask(lambda: hold(desk, books))
    hold(books, desk)


def many_at_once() -> None:
    """Four threads ask two clerks, who both ask a third one."""
    with clerks(3) as (one, two, three):

        def ask_all() -> None:
            for _ in range(20):
                for clerk in (one, two):
                    assert "a word" == clerk.ask(lambda: three.ask("a word"))

        run_all(**dict.fromkeys("abcd", ask_all))


@pytest.mark.parametrize("safe", [one_actor_does_both, before_and_after_it_lived, many_at_once])
def test_what_actors_may_do_is_not_reported(safe: Callable[[], None]) -> None:
    """At most a cycle is reported at R1, with the reason."""
    with session(on=RECORD) as opened:
        safe()

    assert [] == found(opened, Rung.R0, Rung.R2, Rung.R3, Rung.R5), opened.report_text()


def test_who_gets_the_last_answer_at_once_comes_after_all_that_the_actor_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also while the actor, which has just given it, has not gone on."""
    gives, got = pykka.ThreadingFuture.set, threading.Event()

    def gives_and_lingers(self: pykka.ThreadingFuture[object], value: object = None) -> None:
        gives(self, value)
        assert value == "a word" or got.wait(WAIT_SECONDS)

    def takes_both() -> str:
        hold(desk, books)
        return "a word"

    monkeypatch.setattr(pykka.ThreadingFuture, "set", gives_and_lingers)
    with session(on=RECORD) as opened:
        books, desk = Lock("books"), Lock("desk")
        clerk = Clerk.start()
        clerk.ask(takes_both)
        clerk.stop()
        got.set()
        hold(books, desk)

    assert [] == found(opened, Rung.R0, Rung.R2)


def an_answer_comes(clerk: Ref, takes: Callable[[], None]) -> None:
    """An actor that goes on may do again what it did before."""
    clerk.ask(takes)


def an_answer_comes_late(clerk: Ref, takes: Callable[[], None]) -> None:
    """That it is seen when the actor has stopped is chance."""
    stopped = threading.Event()

    def stop() -> None:
        clerk.stop()
        stopped.set()

    answer = clerk.ask(takes, block=False)
    threading.Thread(target=stop).start()
    assert stopped.wait(WAIT_SECONDS)
    answer.get()


@pytest.mark.parametrize("comes", [an_answer_comes, an_answer_comes_late])
def test_an_answer_orders_nothing_but_the_last_one(comes: Callable[[Ref, Callable[[], None]], None]) -> None:
    """What the actor did may be done by it at the same time as what follows."""
    with session(on=RECORD) as opened, clerks() as (clerk,):
        books, desk = Lock("books"), Lock("desk")
        comes(clerk, lambda: hold(desk, books))
        hold(books, desk)

    assert [(Rung.R2, Kind.CYCLE)] == found(opened, Rung.R2)
