"""Mailboxes: order, bound, ownership, what is left at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import pytest
from pykka import ActorDeadError
from pykka._envelope import Envelope
from pykka.messages import _ActorStop

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import MailboxFullError
from licorne.actors.runtime.future import PooledFuture
from licorne.actors.runtime.reference import AnyRef, PooledRef
from licorne.actors.runtime.waiting import OpenWait


class Recorder(PooledActor):
    """Keeps what it receives."""

    mailbox_capacity: ClassVar[int | None] = 2

    def __init__(self) -> None:
        super().__init__()
        self.received: list[object] = []

    def on_receive(self, message: object) -> object:
        self.received.append(message)
        return message


def received(ref: PooledRef[Recorder]) -> list[object]:
    return ref.call(lambda recorder: recorder.received)


def occupied(ref: AnyRef) -> AnyRef:
    """Own the actor, as a thread does that runs a long message."""
    assert ref.actor_inbox.claim()
    return ref


def free(ref: AnyRef) -> None:
    ref.actor_inbox._release()


@pytest.fixture
def full(stepped: Dispatcher) -> PooledRef[Recorder]:
    """Give an actor whose mailbox has no room for a third message."""
    ref = stepped.start(Recorder)
    ref.tell(1)
    ref.tell(2)
    return ref


def test_messages_are_handled_in_the_order_they_were_sent(
    stepped: Dispatcher, full: PooledRef[Recorder]
) -> None:
    """Of one sender and, under one lock, of all."""
    stepped.run_pending()

    assert [1, 2] == received(full)


def test_control_messages_overtake_others_but_not_each_other(stepped: Dispatcher) -> None:
    """Two urgent messages come first, in their order."""
    ref = stepped.start(Recorder)
    ref.tell("normal")
    ref.tell("urgent 1", control=True)
    answer = ref.ask("urgent 2", block=False, control=True)

    stepped.run_pending()

    assert ["urgent 1", "urgent 2", "normal"] == received(ref)
    assert "urgent 2" == answer.get()


def test_a_tell_beyond_the_capacity_raises_in_the_sender(
    stepped: Dispatcher, full: PooledRef[Recorder]
) -> None:
    """The message is not queued, and those before it stay."""
    with pytest.raises(MailboxFullError, match=r"Recorder .* holds 2 messages"):
        full.tell(3)

    stepped.run_pending()
    assert [1, 2] == received(full)


def test_an_ask_beyond_the_capacity_is_answered_with_the_error(full: PooledRef[Recorder]) -> None:
    """Whether it blocks or not, its asker hears of it."""
    with pytest.raises(MailboxFullError):
        full.ask(3)
    with pytest.raises(MailboxFullError):
        full.ask(4, block=False).get()


def test_control_messages_and_stops_have_room_in_a_full_mailbox(full: PooledRef[Recorder]) -> None:
    """What manages an actor must reach it when it is flooded."""
    full.tell("urgent", control=True)

    assert full.stop(block=False).get()


def test_control_messages_take_no_room_from_others(stepped: Dispatcher) -> None:
    """The bound counts normal messages."""
    ref = stepped.start(Recorder)
    for number in range(5):
        ref.tell(number, control=True)

    ref.tell("first")
    ref.tell("second")

    stepped.run_pending()
    assert [*range(5), "first", "second"] == received(ref)


def test_a_mailbox_has_room_again_after_it_was_drained(stepped: Dispatcher) -> None:
    """The bound is on what waits."""
    ref = stepped.start(Recorder)
    for number in range(6):
        ref.tell(number)
        if number % 2:
            stepped.run_pending()

    assert [*range(6)] == received(ref)


def test_an_actor_in_use_cannot_be_entered_or_claimed(stepped: Dispatcher) -> None:
    """There is one owner."""
    ref = occupied(stepped.start(Recorder))

    assert (None, False) == (ref.actor_inbox.enter(), ref.actor_inbox.claim())

    free(ref)


def test_an_actor_with_messages_is_not_entered_but_can_be_claimed(stepped: Dispatcher) -> None:
    """An inline ask must not overtake what was sent before it."""
    ref = stepped.start(Recorder)
    ref.tell(1)

    assert (None, True) == (ref.actor_inbox.enter(), ref.actor_inbox.claim())

    free(ref)


def test_messages_for_an_actor_in_use_wait_until_it_is_given_up(stepped: Dispatcher) -> None:
    """Nothing is in the run queue while there is an owner; then it is, once."""
    ref = occupied(stepped.start(Recorder))
    ref.tell(1)
    ref.tell(2)
    turns_before = stepped.run_pending()

    free(ref)

    assert (0, 1) == (turns_before, stepped.run_pending())
    assert [1, 2] == received(ref)


def test_messages_that_came_during_an_inline_ask_are_left_to_others(stepped: Dispatcher) -> None:
    """The asker returns with its answer; a stranger's message must not hold it up."""
    ref = stepped.start(Recorder)

    def tell_meanwhile(recorder: Recorder) -> list[object]:
        recorder.actor_ref.tell("later")
        return list(recorder.received)

    assert [] == ref.call(tell_meanwhile)
    assert (1, ["later"]) == (stepped.run_pending(), received(ref))


@pytest.mark.parametrize(("budget", "turns"), [(1, 2), (2, 1)])
def test_a_turn_ends_at_the_budget_and_the_rest_has_another(budget: int, turns: int) -> None:
    """One busy actor does not keep a worker from the others."""
    with Dispatcher(workers=0, budget=budget) as dispatcher:
        ref = dispatcher.start(Recorder)
        ref.tell(1)
        ref.tell(2)

        assert turns == dispatcher.run_pending()
        assert [1, 2] == received(ref)


def test_what_is_left_when_an_actor_stops_is_answered(stepped: Dispatcher) -> None:
    """Asks get `ActorDeadError`, other requests to stop get their answer."""
    ref = stepped.start(Recorder)
    stopped = ref.stop(block=False)
    too_late = ref.ask("too late", block=False)
    stopped_too = ref.stop(block=False)

    stepped.run_pending()

    assert (True, True) == (stopped.get(), stopped_too.get())
    with pytest.raises(ActorDeadError, match="stopped before handling the message"):
        too_late.get()


def test_a_stop_is_answered_after_everything_else(stepped: Dispatcher) -> None:
    """Who has waited for a stop finds all messages accounted for."""
    ref = stepped.start(Recorder)
    stopped = ref.ask(_ActorStop(), block=False)
    too_late = ref.ask("too late", block=False)
    order: list[str] = []
    for name, future in (("stop", stopped), ("too late", too_late)):
        future._waits = [_Noting(partial(order.append, name))]

    stepped.run_pending()

    assert ["too late", "stop"] == order


class _Noting(OpenWait):
    """A wait that notes its wake-up."""

    def __init__(self, note: Callable[[], None]) -> None:
        super().__init__(PooledFuture[object](), withdraws=False)
        self.note = note

    def wake(self) -> None:
        self.note()


def test_a_stopped_actor_is_released_although_references_stay(stepped: Dispatcher) -> None:
    """Who keeps a reference keeps a mailbox, not the actor's state."""
    ref = stepped.start(Recorder)

    ref.stop()

    assert ref._actor_weakref() is None


def test_pykkas_own_way_to_send_works_and_refuses_as_pykka_does(stepped: Dispatcher) -> None:
    """A mailbox is a Pykka inbox."""
    ref = stepped.start(Recorder)
    answer = PooledFuture[object]()
    ref.actor_inbox.put(Envelope("hello", reply_to=answer))
    stepped.run_pending()
    ref.stop()
    refused = PooledFuture[object]()

    ref.actor_inbox.put(Envelope("too late", reply_to=refused))
    with pytest.raises(ActorDeadError):
        ref.actor_inbox.put(Envelope("too late"))

    assert "hello" == answer.get()
    with pytest.raises(ActorDeadError):
        refused.get()


def test_a_woken_waiter_that_leaves_wakes_the_next(stepped: Dispatcher) -> None:
    """A wake-up for mail is not lost on a thread that has its answer from elsewhere."""
    ref = occupied(stepped.start(Recorder))
    inbox = ref.actor_inbox
    first, second = (OpenWait(PooledFuture[object](), withdraws=False) for _ in range(2))
    assert inbox.register(first)
    assert inbox.register(second)
    ref.tell("mail")
    free(ref)

    inbox.unregister(first)

    assert (True, True) == (first.sleep(0), second.sleep(0))


def test_waiting_for_an_actor_that_is_free_is_declined(stepped: Dispatcher) -> None:
    """Its owner has just left; the waiter can run it itself."""
    ref = stepped.start(Recorder)

    assert not ref.actor_inbox.register(OpenWait(PooledFuture[object](), withdraws=False))
