"""Dispatchers: what they know, how they end, that they share nothing."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

import pytest
from pykka import ActorDeadError, Timeout
from support.programs import run_python

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError, DispatcherError
from licorne.actors.runtime.future import PooledFuture
from licorne.actors.runtime.reference import AnyRef, DeadLetter, Failure, Invocation, PooledRef
from licorne.model.errors import LicorneError

if TYPE_CHECKING:
    from loguru import Record

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose


class Plain(PooledActor):
    """Does what its messages say."""

    def __init__(self, ended: list[int] | None = None, number: int = 0) -> None:
        super().__init__()
        self.ended = [] if ended is None else ended
        self.number = number

    def on_stop(self) -> None:
        self.ended.append(self.number)


def test_it_knows_its_living_actors_in_the_order_of_their_start(stepped: Dispatcher) -> None:
    """Stopped ones are forgotten."""
    first, second, third = (stepped.start(Plain) for _ in range(3))

    second.stop()

    assert (first, third) == stepped.actors()


@pytest.mark.parametrize("workers", [0, 2])
def test_shutdown_stops_the_last_started_first_after_its_messages(workers: int) -> None:
    """Nothing that was sent is lost, and dependants end before what they depend on."""
    ended: list[int] = []
    dispatcher = Dispatcher(workers=workers)
    refs = [dispatcher.start(Plain, ended, number) for number in range(3)]
    refs[0].send(lambda plain: plain.ended.append(100))

    dispatcher.shutdown()

    assert [2, 1, 0] == [number for number in ended if number < 100]
    assert (4, ()) == (len(ended), dispatcher.actors())


class Upper(Plain):
    """Asks a lower one when a message says so."""

    rank = 1


class Lower(Plain):
    """Is asked."""

    rank = 2


@pytest.mark.parametrize("workers", [0, 2])
def test_who_asks_ends_before_whom_it_asks(workers: int) -> None:
    """In any order of starts: so no actor finds another one stopped in the middle of its work."""
    ended: list[int] = []
    dispatcher = Dispatcher(workers=workers)
    upper = dispatcher.start(Upper, ended, 1)
    lower = dispatcher.start(Lower, ended, 2)
    upper.send(lambda actor: actor.ended.append(lower.call(lambda other: 100 + other.number)))

    dispatcher.shutdown()

    assert [102, 1, 2] == ended


def test_what_an_actor_starts_on_its_way_out_ends_as_well() -> None:
    """Its last message is carried out as every other one."""
    ended: list[int] = []
    dispatcher = Dispatcher(workers=0)
    upper = dispatcher.start(Upper, ended, 1)
    upper.send(lambda actor: dispatcher.start(Lower, actor.ended, 2))

    dispatcher.shutdown()

    assert ([1, 2], ()) == (ended, dispatcher.actors())


def test_shutdown_leaves_no_thread() -> None:
    """All workers have ended when it returns."""
    with Dispatcher(workers=3, name="ending") as dispatcher:
        dispatcher.start(Plain)

    assert [] == [thread for thread in threading.enumerate() if thread.name.startswith("ending")]


def test_after_shutdown_all_is_refused_and_a_second_one_does_no_harm() -> None:
    """Actors are dead, new ones are not started."""
    dispatcher = Dispatcher(workers=1, name="gone")
    ref = dispatcher.start(Plain)
    dispatcher.shutdown()
    dispatcher.shutdown()

    with pytest.raises(ActorDeadError):
        ref.tell("anything")
    with pytest.raises(DispatcherError, match="gone is shut down and starts no Plain"):
        dispatcher.start(Plain)


def test_what_was_sent_to_an_actor_that_is_not_started_is_answered() -> None:
    """Its reference may have got out of `__init__` before the start was refused."""
    answers: list[PooledFuture[object]] = []

    class Open(PooledActor):
        def __init__(self) -> None:
            super().__init__()
            answers.append(self.actor_ref.ask("early", block=False))

    dispatcher = Dispatcher(workers=0)
    dispatcher.shutdown()

    with pytest.raises(DispatcherError):
        dispatcher.start(Open)

    with pytest.raises(ActorDeadError):
        answers[0].get()


def test_an_actor_cannot_wait_for_the_shutdown_of_its_own_dispatcher(pooled: Dispatcher) -> None:
    """It would wait for itself; nothing has been stopped."""
    ref = pooled.start(Plain)

    with pytest.raises(DispatcherError, match=r"Plain .* cannot wait for the shutdown of its own pooled"):
        ref.call(lambda _plain: pooled.shutdown())

    assert ref.is_alive()


def test_a_shutdown_with_a_deadline_gives_up_on_a_stuck_actor() -> None:
    """It raises; what is stuck can end later."""
    inside, go_on = threading.Event(), threading.Event()

    def stick(_plain: Plain) -> None:
        inside.set()
        go_on.wait()

    dispatcher = Dispatcher(workers=1)
    ref = dispatcher.start(Plain)
    ref.send(stick)
    inside.wait()

    with pytest.raises(Timeout):
        dispatcher.shutdown(timeout_seconds=0.001)

    go_on.set()
    dispatcher.shutdown(timeout_seconds=60)
    assert not ref.is_alive()


def test_two_dispatchers_know_nothing_of_each_other() -> None:
    """Two schedulers run side by side, and one ends alone."""
    with Dispatcher(workers=1, name="left") as left, Dispatcher(workers=1, name="right") as right:
        mine, theirs = left.start(Plain), right.start(Plain)
        left.shutdown()

        assert ((), (theirs,)) == (left.actors(), right.actors())
        assert 0 == theirs.call(lambda plain: plain.number)
        assert not mine.is_alive()


def test_an_actor_may_ask_one_of_another_dispatcher() -> None:
    """A reference works from everywhere."""
    with Dispatcher(workers=1) as left, Dispatcher(workers=1) as right:
        theirs = right.start(Plain, None, 7)

        assert 7 == left.start(Plain).call(lambda _mine: theirs.call(lambda plain: plain.number))


def test_a_cycle_through_two_dispatchers_raises() -> None:
    """The wait-for graph is one for the process."""

    class Ring(PooledActor):
        def __init__(self) -> None:
            super().__init__()
            self.next: PooledRef[Ring] | None = None

        def ask_on(self) -> None:
            assert self.next is not None
            self.next.call(Ring.ask_on)

    def link(ring: Ring, following: PooledRef[Ring]) -> None:
        ring.next = following

    with Dispatcher(workers=1) as left, Dispatcher(workers=1) as right:
        mine, theirs = left.start(Ring), right.start(Ring)
        mine.call(link, theirs)
        theirs.call(link, mine)

        with pytest.raises(AskCycleError):
            mine.call(Ring.ask_on)


@pytest.mark.parametrize(
    "numbers", [{"workers": -1}, {"workers": 3, "max_workers": 2}, {"workers": 1, "budget": 0}]
)
def test_impossible_numbers_are_refused(numbers: dict[str, int]) -> None:
    """The error is one of ours and names the number."""
    with pytest.raises(LicorneError, match=rf"{numbers.get('workers')}|budget=0"):
        Dispatcher(**numbers)  # type: ignore[arg-type]  # mypy does not see that only numbers are given


def test_broken_hooks_break_no_actor(records: list[Record]) -> None:
    """What a hook raises is logged."""

    def fail(_news: DeadLetter | Failure) -> None:
        raise KeyError("hook")

    class Sturdy(PooledActor):
        survives_failures: ClassVar[bool] = True

    def die(_sturdy: Sturdy) -> None:
        raise ValueError

    with Dispatcher(workers=0, name="hooked", on_dead_letter=fail, on_failure=fail) as dispatcher:
        ref = dispatcher.start(Sturdy)
        ref.send(die)
        dispatcher.run_pending()
        ref.stop(block=False)
        ref.tell("dead")
        dispatcher.run_pending()

    hooks = [record["message"] for record in records if "a hook failed" in record["message"]]
    assert 2 == len(hooks)


def test_a_handler_that_blocks_on_something_else_can_say_so() -> None:
    """With the only worker blocked, another message is handled all the same."""
    with Dispatcher(workers=1) as dispatcher:
        opened = threading.Event()
        waiting, opening = dispatcher.start(Plain), dispatcher.start(Plain)

        def wait(plain: Plain) -> bool:
            with plain.dispatcher.blocking():
                return opened.wait(60)

        def open_it(_plain: Plain) -> None:
            opened.set()

        answer = waiting.ask(Invocation(wait, (), {}), block=False)
        opening.send(open_it)

        assert answer.get(timeout=60)


def test_a_worker_that_waits_with_a_deadline_gets_a_stand_in() -> None:
    """Nested asks with deadlines on a pool of one worker are all answered."""

    class Deep(PooledActor):
        def __init__(self, below: AnyRef | None) -> None:
            super().__init__()
            self.below = below

        def down(self) -> int:
            if self.below is None:
                return 0
            answer: int = self.below.ask(Invocation(Deep.down, (), {}), timeout=60)
            return 1 + answer

    with Dispatcher(workers=1) as dispatcher:
        ref = dispatcher.start(Deep, None)
        for _ in range(5):
            ref = dispatcher.start(Deep, ref)

        assert 5 == ref.ask(Invocation(Deep.down, (), {}), timeout=60)


def test_importing_the_runtime_starts_nothing() -> None:
    """Threads begin with a dispatcher, and there is none by default."""
    modules = "licorne.actors.runtime.dispatcher, licorne.actors.runtime.actor"
    program = f"import threading, {modules}; print(threading.active_count())"
    done = run_python("-c", program)

    assert (0, "1\n") == (done.returncode, done.stdout)
