"""References: inline asks, typed calls, tells, what an asker gets."""

from __future__ import annotations

import threading

import pytest
from pykka import ActorDeadError, Timeout
from pykka.messages import ProxyCall, ProxyGetAttr

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError
from licorne.actors.runtime.future import PooledFuture
from licorne.actors.runtime.reference import DeadLetter, Invocation, PooledRef, method_table

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose


class Account(PooledActor):
    """Adds, fails, and remembers who ran it."""

    def __init__(self) -> None:
        super().__init__()
        self.balance = 0
        self.threads: list[threading.Thread] = []

    def add(self, amount: int, *, times: int = 1) -> int:
        self.threads.append(threading.current_thread())
        self.balance += amount * times
        return self.balance

    def fail(self) -> int:
        raise KeyError("account")

    def last_thread(self) -> threading.Thread:
        return self.threads[-1]


class DoubleAccount(Account):
    """Overrides a method."""

    def add(self, amount: int, *, times: int = 1) -> int:
        return super().add(2 * amount, times=times)


def test_an_uncontended_call_runs_on_the_calling_thread(pooled: Dispatcher) -> None:
    """No queue, no other thread."""
    ref = pooled.start(Account)

    assert 6 == ref.call(Account.add, 3, times=2)

    assert threading.current_thread() is ref.call(Account.last_thread)


def test_an_ask_of_a_pykka_message_runs_inline_as_well(pooled: Dispatcher) -> None:
    """The inline path is not the privilege of typed calls."""
    ref = pooled.start(Account)

    assert 3 == ref.ask(ProxyCall(("add",), (3,), {}))

    assert threading.current_thread() is ref.call(Account.last_thread)
    assert 3 == ref.ask(ProxyGetAttr(("balance",)))


def test_a_call_means_the_override(pooled: Dispatcher) -> None:
    """`ref.call(Base.method)` is `actor.method()`, not `Base.method(actor)`, inline and queued."""
    ref: PooledRef[DoubleAccount] = pooled.start(DoubleAccount)

    assert 2 == ref.call(Account.add, 1)
    ref.send(Account.add, 1)
    assert 4 == ref.call(lambda account: account.balance)


def test_a_call_takes_any_function_of_the_actor(pooled: Dispatcher) -> None:
    """What is no method of the class is run as it is."""

    def spend(account: Account, amount: int) -> int:
        return account.add(-amount)

    assert -4 == pooled.start(Account).call(spend, 4)


def test_the_method_table_holds_overrides_and_inherited_methods_only() -> None:
    """Attributes that are no plain methods are not in it."""
    table = method_table(DoubleAccount)

    assert DoubleAccount.add is table[Account.add]
    assert Account.fail is table[Account.fail]
    assert Account not in table


def test_a_call_to_an_actor_with_messages_comes_after_them(stepped: Dispatcher) -> None:
    """An ask does not overtake an earlier tell of the same sender."""
    ref = stepped.start(Account)
    ref.send(Account.add, 1)

    assert 3 == ref.call(Account.add, 2)


def test_a_send_returns_before_it_is_handled(stepped: Dispatcher) -> None:
    """A tell waits for nothing."""
    ref = stepped.start(Account)

    ref.send(Account.add, 5, times=2)

    handled = stepped.run_pending()
    assert (1, 10) == (handled, ref.call(lambda account: account.balance))


def test_an_exception_reaches_the_asker_and_the_actor_goes_on(pooled: Dispatcher) -> None:
    """Inline, queued and through a proxy."""
    ref = pooled.start(Account)

    with pytest.raises(KeyError, match="account"):
        ref.call(Account.fail)
    with pytest.raises(KeyError, match="account"):
        ref.ask(ProxyCall(("fail",), (), {}))
    with pytest.raises(KeyError, match="account"):
        ref.proxy().fail().get()

    assert 1 == ref.call(Account.add, 1)


def test_an_exception_of_a_queued_call_reaches_the_asker(stepped: Dispatcher) -> None:
    """The path through the mailbox ends like the inline one."""
    ref = stepped.start(Account)
    ref.send(Account.add, 1)

    with pytest.raises(KeyError, match="account"):
        ref.call(Account.fail)


def test_an_ask_with_a_deadline_is_handled_by_another_thread(pooled: Dispatcher) -> None:
    """A handler cannot be interrupted, so the asker must not be the one that runs it."""
    ref = pooled.start(Account)

    assert 1 == ref.ask(ProxyCall(("add",), (1,), {}), timeout=60)

    assert threading.current_thread() is not ref.call(Account.last_thread)


def test_an_ask_whose_deadline_passes_is_still_handled(stepped: Dispatcher) -> None:
    """Only the wait ends."""
    ref = stepped.start(Account)

    with pytest.raises(Timeout):
        ref.ask(ProxyCall(("add",), (1,), {}), timeout=0)

    stepped.run_pending()
    assert 1 == ref.call(lambda account: account.balance)


def test_an_actor_that_asks_itself_gets_an_error_and_the_message_is_withdrawn(stepped: Dispatcher) -> None:
    """The ask raises at once instead of hanging, and leaves nothing to do."""

    def ask_oneself(account: Account) -> int:
        return account.actor_ref.call(Account.add, 1)

    ref = stepped.start(Account)

    with pytest.raises(AskCycleError, match=r"Account .* -> Account"):
        ref.call(ask_oneself)

    stepped.run_pending()
    assert 0 == ref.call(lambda account: account.balance)


def test_a_future_whose_get_would_close_a_cycle_is_answered_later(stepped: Dispatcher) -> None:
    """Its message was sent before, so it stays sent; only the wait is refused."""
    answers: list[PooledFuture[int]] = []

    def wait_for_oneself(account: Account) -> int:
        answers.append(account.actor_ref.proxy().add(1))
        return answers[0].get()

    ref = stepped.start(Account)

    with pytest.raises(AskCycleError):
        ref.call(wait_for_oneself)

    assert 1 == answers[0].get()


def test_what_is_sent_to_a_dead_actor_is_refused(stepped: Dispatcher) -> None:
    """A tell raises, an ask is answered with the same error, as Pykka has it."""
    ref = stepped.start(Account)
    ref.stop()

    with pytest.raises(ActorDeadError, match=f"{ref.actor_urn}.* not found"):
        ref.send(Account.add, 1)
    with pytest.raises(ActorDeadError, match="not found"):
        ref.call(Account.add, 1)
    with pytest.raises(ActorDeadError, match="not found"):
        ref.ask("anything", block=False).get()


def test_a_stop_tells_whether_the_actor_was_alive(stepped: Dispatcher) -> None:
    """Once `True`, then `False`; blocking, as a future, and with a deadline."""
    first, second, third = (stepped.start(Account) for _ in range(3))
    later = second.stop(block=False)
    stepped.run_pending()

    assert [True, False] == [first.stop(), first.stop()]
    assert [True, False] == [later.get(), second.stop(block=False).get()]
    with pytest.raises(Timeout):
        third.stop(timeout=0)


def test_a_stop_comes_after_what_was_sent_before(stepped: Dispatcher) -> None:
    """Messages before the request are handled, those after it are dead letters."""
    handled: list[int] = []
    ref = stepped.start(Account)
    ref.send(lambda _account: handled.append(1))

    ref.stop()

    assert [1] == handled


def test_an_invocation_is_an_ordinary_message(stepped: Dispatcher) -> None:
    """What `send` sends can be sent by hand, with Pykka's verbs."""
    ref = stepped.start(Account)

    assert 2 == ref.ask(Invocation(Account.add, (1,), {"times": 2}))


def test_a_second_call_waits_for_the_first_on_another_thread(pooled: Dispatcher) -> None:
    """Two threads that call at once are served one after the other."""
    inside, go_on = threading.Event(), threading.Event()
    ref = pooled.start(Account)

    def hold(account: Account) -> int:
        inside.set()
        go_on.wait()
        return account.balance

    balances: list[int] = []
    holder = threading.Thread(target=lambda: balances.append(ref.call(hold)))
    holder.start()
    inside.wait()
    caller = threading.Thread(target=lambda: balances.append(ref.call(Account.add, 1)))
    caller.start()
    go_on.set()

    holder.join()
    caller.join()
    assert [0, 1] == sorted(balances)


def test_references_that_stay_are_distinct(stepped: Dispatcher) -> None:
    """A reference is its own key."""
    first, second = stepped.start(Account), stepped.start(Account)

    assert {first: 1, second: 2}[first.call(lambda account: account.actor_ref)] == 1


def test_a_refused_tell_is_a_dead_letter_as_well(dead_letters: tuple[Dispatcher, list[DeadLetter]]) -> None:
    """The sender gets the error, the embedder the message."""
    dispatcher, letters = dead_letters
    ref = dispatcher.start(Account)
    ref.stop()

    with pytest.raises(ActorDeadError):
        ref.tell("too late")

    assert [(ref, "too late")] == [(letter.ref, letter.message) for letter in letters]


def test_a_tell_that_was_accepted_and_never_handled_is_a_dead_letter(
    dead_letters: tuple[Dispatcher, list[DeadLetter]],
) -> None:
    """Nothing that was taken disappears without a word."""
    dispatcher, letters = dead_letters
    ref = dispatcher.start(Account)
    ref.stop(block=False)
    ref.tell("after the stop")

    dispatcher.run_pending()

    assert [(ref, "after the stop")] == [(letter.ref, letter.message) for letter in letters]


def test_to_stop_an_actor_once_more_is_no_dead_letter(
    dead_letters: tuple[Dispatcher, list[DeadLetter]],
) -> None:
    """Nothing is lost with it."""
    dispatcher, letters = dead_letters
    ref = dispatcher.start(Account)

    def stop_twice(account: Account) -> None:
        account.stop()
        account.stop()

    ref.call(stop_twice)
    dispatcher.run_pending()

    assert ([], False) == (letters, ref.is_alive())
