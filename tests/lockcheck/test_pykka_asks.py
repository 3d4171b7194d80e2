"""Asks of plain Pykka actors: judged with locks, before they wait; refused where they close a circle."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import pykka
import pytest
from deadlocked import LEAVE_ALONE, WAIT_SECONDS_MAX, checked, deadlocks, run_all
from lock_corpus import RECORD

from licorne.lockcheck import DeadlockError, Kind, Lock, LockOrderError, Order, Rung, session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from licorne.lockcheck.factories import ExclusiveLock
    from licorne.lockcheck.holding import Unit
    from licorne.lockcheck.sessions import Session

LEVELS: Final = pytest.mark.parametrize("level", ["order", "full"])


class Clerk(pykka.ThreadingActor):
    """Counts what it is asked, and does what it is given."""

    use_daemon_thread = True

    def __init__(self, starts: Callable[[], object] = int) -> None:
        super().__init__()
        self.count = 0
        self._starts = starts

    def on_start(self) -> None:
        self._starts()

    def on_receive(self, message: object) -> object:
        self.count += 1
        return message() if callable(message) else message

    def do(self, work: Callable[[], object]) -> object:
        return work()


Ref = pykka.ActorRef[Clerk]


@contextmanager
def clerks(number: int = 1) -> Iterator[Sequence[Ref]]:
    """Have so many clerks, until the body ends."""
    refs = [Clerk.start() for _ in range(number)]
    try:
        yield refs
    finally:
        for ref in refs:
            ref.stop(timeout=WAIT_SECONDS_MAX)


def take(*locks: ExclusiveLock) -> None:
    """Take locks, each under the ones before."""
    if locks:
        with locks[0]:
            take(*locks[1:])


def found(opened: Session, *rungs: Rung) -> list[tuple[Rung, Kind]]:
    """Return what was found on some rungs."""
    assert [] == opened.faults
    return [(one.rung, one.kind) for one in opened.findings if one.rung in rungs]


# ------------------------------------------------------------------------------------- under a lock


def asks(clerk: Ref) -> None:
    clerk.ask("a word")


def asks_and_gets(clerk: Ref) -> None:
    clerk.ask("a word", block=False).get()


def asks_for_a_while(clerk: Ref) -> None:
    clerk.ask("a word", timeout=WAIT_SECONDS_MAX)


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


def stops(clerk: Ref) -> None:
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
        stops,
    ],
    ids=lambda f: f.__name__,
)
def test_to_wait_for_an_actor_under_a_lock_is_blocking(waits: Callable[[Ref], None], level: str) -> None:
    """In whatever way; it is reported before it waits, at the place in the program."""
    with session(level=level) as opened, clerks() as (clerk,):
        told = r"ask Clerk #\d+ may block while books #\d+ is held"
        with pytest.raises(LockOrderError, match=told), Lock("books"):
            waits(clerk)

    assert [(Rung.R0, Kind.BLOCKING)] == found(opened, *Rung)
    assert waits.__name__ == opened.findings[0].edges[0].want_stack[0].function


def test_what_is_refused_is_not_sent() -> None:
    """Where asking and waiting are one."""
    with session(), clerks() as (clerk,):
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
        clerk.ask(lambda: take(lock))


def starts_with_a_lock() -> None:
    """The same, but it wants the lock when it starts."""
    lock = Lock("books")
    clerk = Clerk.start(lambda: take(lock))
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
def test_what_could_wait_in_a_circle_is_found_without_happening(bug: Callable[[], None], steps: int) -> None:
    """Over locks and asks alike."""
    with session(on=RECORD) as opened:
        bug()

    assert [(Rung.R2, Kind.CYCLE)] == found(opened, Rung.R2, Rung.R3, Rung.R5)
    (finding,) = [one for one in opened.findings if one.rung is Rung.R2]
    assert steps == len(finding.edges)
    assert all(edge.want_stack[0].file == __file__ for edge in finding.edges)


def one_actor_does_both() -> None:
    """Its messages come one after the other."""
    books, desk = Lock("books"), Lock("desk")
    with clerks() as (clerk,):
        clerk.ask(lambda: take(books, desk))
        clerk.ask(lambda: take(desk, books))


def before_and_after_it_lived() -> None:
    """What was done before it was started came before all it did, and that before its end."""
    books, desk = Lock("books"), Lock("desk")
    take(books, desk)
    with clerks() as (clerk,):
        clerk.ask(lambda: take(desk, books))
    take(books, desk)


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
    """A closed path is explained at the most."""
    with session(on=RECORD) as opened:
        safe()

    assert [] == found(opened, Rung.R0, Rung.R2, Rung.R3, Rung.R5), opened.report_text()


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
    assert stopped.wait(WAIT_SECONDS_MAX)
    answer.get()


@pytest.mark.parametrize("comes", [an_answer_comes, an_answer_comes_late])
def test_an_answer_orders_nothing_but_the_last_one(comes: Callable[[Ref, Callable[[], None]], None]) -> None:
    """What the actor did may be done by it at the same time as what follows."""
    with session(on=RECORD) as opened, clerks() as (clerk,):
        books, desk = Lock("books"), Lock("desk")
        comes(clerk, lambda: take(desk, books))
        take(books, desk)

    assert [(Rung.R2, Kind.CYCLE)] == found(opened, Rung.R2)


# ------------------------------------------------------------------------------------ real deadlocks


def oldest(units: Sequence[Unit]) -> Unit:
    """Choose the unit that began first."""
    return min(units, key=lambda unit: unit.serial)


def asks_by_proxy(clerk: Ref, work: Callable[[], object]) -> object:
    return clerk.proxy().do(work).get()


def asks_at_once(clerk: Ref, work: Callable[[], object]) -> object:
    return clerk.ask(work)


@LEVELS
@pytest.mark.parametrize("ask", [asks_at_once, asks_by_proxy], ids=lambda f: f.__name__)
@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_who_would_close_a_circle_of_asks_gets_the_error(
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


def test_the_ask_that_would_close_a_circle_is_not_sent() -> None:
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
            both.wait(WAIT_SECONDS_MAX)
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
            take(lock)
            return "took it"

        with clerks() as (clerk,):
            with lock:
                took = clerk.ask(takes, block=False)
                assert begun.wait(WAIT_SECONDS_MAX)
                with pytest.raises(DeadlockError):
                    clerk.ask("a word")
            assert "took it" == took.get()

    assert [] == opened.faults
    (finding,) = deadlocks(opened)
    asker, actor = sorted(finding.edges, key=lambda edge: "Clerk" in edge.unit)
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
        thread.join(WAIT_SECONDS_MAX)

    assert 1 == len(gave_way)
    assert 1 == len(deadlocks(opened))


class Door(queue.Queue[Any]):
    """An inbox that tells when something has come."""

    def __init__(self) -> None:
        super().__init__()
        self.rung = threading.Event()

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - as in queue
        super().put(item, block, timeout)
        self.rung.set()


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

        def looks_late() -> object:
            door.rung.clear()
            answer = clerk.ask("a word", block=False)
            clerk.tell(lambda: porter.ask("another"))
            assert door.rung.wait(WAIT_SECONDS_MAX)
            return answer.get()

        assert "a word" == porter.ask(looks_late)
        porter.stop()

    assert [] == deadlocks(opened)


def test_a_wait_with_a_limit_ends_by_itself() -> None:
    """An actor that asks itself for a while is no deadlock, but a mistake."""
    with checked() as opened, clerks() as (clerk,), pytest.raises(pykka.Timeout):
        clerk.ask(lambda: clerk.ask("a word", timeout=0.01))

    assert [(Rung.R0, Kind.RECURSION)] == found(opened, *Rung)


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
        busy = clerk.ask(lambda: go_on.wait(WAIT_SECONDS_MAX), block=False)
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
