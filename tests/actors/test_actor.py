"""Pooled actors: their life, their hooks, their failures."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

import pytest
from pykka import ActorDeadError, ActorRegistry
from pykka._envelope import Envelope

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError, DispatcherError
from licorne.actors.runtime.future import PooledFuture
from licorne.actors.runtime.reference import Failure, Invocation

if TYPE_CHECKING:
    from loguru import Record

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose


class Diary(PooledActor):
    """Writes down what happens to it."""

    def __init__(self, entries: list[str]) -> None:
        super().__init__()
        self.entries = entries

    def on_start(self) -> None:
        self.entries.append("start")

    def on_stop(self) -> None:
        self.entries.append("stop")

    def on_failure(
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002 - Pykka's signature
        exception_value: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002 - Pykka's signature
    ) -> None:
        self.entries.append(f"failure {exception_value!r}")

    def write(self, entry: str) -> str:
        self.entries.append(entry)
        return entry

    def fail(self) -> str:
        raise KeyError("diary")


class Sturdy(Diary):
    """Goes on after a failure."""

    survives_failures: ClassVar[bool] = True


Reported = tuple[Dispatcher, list[Failure]]


def test_a_life_goes_from_start_over_messages_to_stop(stepped: Dispatcher) -> None:
    """`on_start` comes first, `on_stop` after the last message."""
    entries: list[str] = []
    ref = stepped.start(Diary, entries)

    ref.send(Diary.write, "told")
    ref.call(Diary.write, "asked")
    ref.stop()

    assert ["start", "told", "asked", "stop"] == entries


def test_on_start_comes_before_control_messages_sent_while_the_actor_was_made(stepped: Dispatcher) -> None:
    """Nothing overtakes the start."""

    class Hasty(Diary):
        def __init__(self, entries: list[str]) -> None:
            super().__init__(entries)
            self.actor_ref.tell("urgent", control=True)

        def on_receive(self, message: object) -> None:
            self.entries.append(str(message))

    entries: list[str] = []
    stepped.start(Hasty, entries)

    stepped.run_pending()

    assert ["start", "urgent"] == entries


def test_an_actor_without_on_start_begins_without_a_turn(stepped: Dispatcher) -> None:
    """Thousands of actors are started without waking a worker."""
    ref = stepped.start(PooledActor)

    assert (0, True) == (stepped.run_pending(), ref.is_alive())


def test_an_actor_that_asks_itself_while_it_is_made_gets_an_error(stepped: Dispatcher) -> None:
    """Who makes an actor owns it until it is started."""

    class Impatient(Diary):
        def __init__(self) -> None:
            super().__init__([])
            self.actor_ref.call(Diary.write, "too early")

    with pytest.raises(AskCycleError):
        stepped.start(Impatient)


def test_a_failed_start_stops_the_actor_and_is_reported(failures: Reported) -> None:
    """As with Pykka, without `on_failure`; what was sent is answered."""

    class Stillborn(Diary):
        survives_failures: ClassVar[bool] = True

        def on_start(self) -> None:
            raise KeyError("start")

    dispatcher, reported = failures
    entries: list[str] = []
    ref = dispatcher.start(Stillborn, entries)

    with pytest.raises(ActorDeadError):
        ref.call(Diary.write, "asked")

    assert ([], (), False) == (entries, dispatcher.actors(), ref.is_alive())
    assert [(ref, None, False)] == [(f.ref, f.message, f.survived) for f in reported]


def test_a_failure_in_a_message_by_tell_stops_the_actor(failures: Reported) -> None:
    """Pykka's contract: `on_failure`, no `on_stop`; the rest of the mail is answered."""
    dispatcher, reported = failures
    entries: list[str] = []
    ref = dispatcher.start(Diary, entries)
    ref.send(Diary.fail)
    left = ref.ask("left", block=False)

    dispatcher.run_pending()

    assert ["start", "failure KeyError('diary')"] == entries
    with pytest.raises(ActorDeadError):
        left.get()
    assert [(ref, "KeyError('diary')", False)] == [(f.ref, repr(f.error), f.survived) for f in reported]


def test_a_sturdy_actor_goes_on_after_a_failure(failures: Reported) -> None:
    """`on_failure` and the embedder hear of it; the next message is handled."""
    dispatcher, reported = failures
    entries: list[str] = []
    ref = dispatcher.start(Sturdy, entries)
    ref.send(Diary.fail)
    ref.send(Diary.write, "next")

    dispatcher.run_pending()

    assert ["start", "failure KeyError('diary')", "next"] == entries
    assert [(Diary.fail, True)] == [(f.message.method, f.survived) for f in reported if f.message]  # type: ignore[attr-defined]  # an `Invocation`


def test_a_sturdy_actor_survives_a_failing_on_failure(failures: Reported) -> None:
    """Both errors are reported."""

    class Clumsy(Sturdy):
        def on_failure(self, *_: object) -> None:
            raise ValueError("on_failure")

    dispatcher, reported = failures
    ref = dispatcher.start(Clumsy, [])
    ref.send(Diary.fail)

    dispatcher.run_pending()

    assert [KeyError, ValueError] == [type(failure.error) for failure in reported]
    assert "alive" == ref.call(Diary.write, "alive")


def test_an_asked_failure_is_the_askers_affair(failures: Reported) -> None:
    """It is answered, not reported, and no actor stops."""
    dispatcher, reported = failures
    entries: list[str] = []
    ref = dispatcher.start(Diary, entries)

    with pytest.raises(KeyError):
        ref.call(Diary.fail)

    assert ([], True) == (reported, ref.is_alive())


def test_a_failing_on_stop_is_reported_and_the_actor_is_stopped(failures: Reported) -> None:
    """The one that asked for the stop gets its answer."""

    class Stubborn(Diary):
        def on_stop(self) -> None:
            raise KeyError("stop")

    dispatcher, reported = failures
    ref = dispatcher.start(Stubborn, [])

    assert ref.stop()

    assert (1, False) == (len(reported), ref.is_alive())


@pytest.mark.parametrize("how", ["call", "ask", "mail"])
def test_a_system_exit_reaches_the_asker_and_stops_all_actors_of_the_dispatcher(
    how: str, failures: Reported, stepped: Dispatcher
) -> None:
    """Pykka's rule, bounded: another dispatcher's actors go on."""

    def leave(_: Diary) -> None:
        raise SystemExit(3)

    dispatcher, reported = failures
    entries: list[str] = []
    ref, neighbour = (dispatcher.start(Diary, entries) for _ in range(2))
    stranger = stepped.start(Diary, [])
    dispatcher.run_pending()
    if how == "mail":
        ref.send(Diary.write, "first")

    with pytest.raises(SystemExit, match="3"):
        ref.call(leave) if how == "call" else ref.ask(Invocation(leave, (), {}))

    dispatcher.run_pending()
    assert [False, False, True] == [each.is_alive() for each in (ref, neighbour, stranger)]
    assert 2 == entries.count("stop")
    assert [SystemExit] == [type(failure.error) for failure in reported]


def test_a_system_exit_in_a_message_by_tell_stops_all_actors_as_well(failures: Reported) -> None:
    """There is no caller to raise it in."""

    def leave(_: Diary) -> None:
        raise SystemExit

    dispatcher, _ = failures
    refs = [dispatcher.start(Diary, []) for _ in range(3)]
    refs[1].send(leave)

    dispatcher.run_pending()

    assert () == dispatcher.actors()


def test_actors_stay_out_of_pykkas_registry_unless_their_class_wants_it(stepped: Dispatcher) -> None:
    """The registry is one for the process; what stops all in it would stop every scheduler."""

    class Known(PooledActor):
        in_pykka_registry: ClassVar[bool] = True

    known, unknown = stepped.start(Known), stepped.start(PooledActor)

    assert [True, False] == [ref in ActorRegistry.get_all() for ref in (known, unknown)]
    known.stop()
    assert known not in ActorRegistry.get_all()


def test_a_bound_class_starts_on_its_dispatcher(stepped: Dispatcher) -> None:
    """Pykka's way to start, for a class made per scheduler."""

    class Bound(Diary):
        bound_dispatcher: ClassVar[Dispatcher | None] = stepped

    ref = Bound.start([])

    assert (ref,) == stepped.actors()
    assert stepped is ref.call(lambda diary: diary.dispatcher)


def test_an_unbound_class_cannot_start_by_itself() -> None:
    """There is no dispatcher by default; the error says what to do."""
    with pytest.raises(DispatcherError, match=r"Diary has no bound_dispatcher: use Dispatcher\.start"):
        Diary.start([])


def test_an_answer_given_by_someone_else_is_kept(stepped: Dispatcher) -> None:
    """Who answers for an actor wins, and the actor goes on."""
    ref = stepped.start(Diary, [])
    answered = PooledFuture[object]()
    answered.set("elsewhere")
    ref.actor_inbox.put(Envelope("question", reply_to=answered))
    ref.actor_inbox.put(Envelope(Invocation(Diary.fail, (), {}), reply_to=answered))

    stepped.run_pending()

    assert ("elsewhere", True) == (answered.get(), ref.is_alive())


def test_a_failure_is_logged_with_its_message(stepped: Dispatcher, records: list[Record]) -> None:
    """The text is Pykka's; what was being handled and where is bound to the record."""
    ref = stepped.start(Diary, [])
    ref.send(Diary.fail)

    stepped.run_pending()

    (record,) = (record for record in records if record["level"].name == "ERROR")
    assert f"Unhandled exception in {ref}:" == record["message"]
    assert ("stepped", Diary.fail) == (record["extra"]["dispatcher"], record["extra"]["received"].method)
    assert record["exception"] is not None


def test_a_returned_exception_is_logged(stepped: Dispatcher, records: list[Record]) -> None:
    """An asker may swallow it, the log does not."""
    ref = stepped.start(Diary, [])

    with pytest.raises(KeyError):
        ref.call(Diary.fail)

    messages = [record["message"] for record in records if record["level"].name == "INFO"]
    assert [f"Exception returned from {ref} to caller:"] == messages
