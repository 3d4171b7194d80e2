"""Futures: promises, hooks, deadlines, and waiters that help."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Full

import pytest
from pykka import Timeout

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.errors import AskCycleError
from licorne.actors.runtime.future import PooledFuture

pytestmark = pytest.mark.lockcheck(off=True)  # these actors ask in all ways, also in cycles, on purpose


class Echo(PooledActor):
    """Returns what it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[int] = []

    def echo(self, value: int) -> int:
        self.threads.append(threading.get_ident())
        return value


def run_in_thread(part: object) -> threading.Thread:
    assert callable(part)
    thread = threading.Thread(target=part, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("waiters", "timeout", "answer"),
    [
        pytest.param(1, None, lambda promise: promise.set(7), id="a promise wakes its waiter"),
        pytest.param(3, None, lambda promise: promise.set(7), id="a promise wakes every waiter"),
        pytest.param(1, 60, lambda promise: promise.set(7), id="a waiter with a deadline is woken in time"),
        pytest.param(
            1,
            None,
            lambda future: future.set_get_hook(lambda _timeout: 7),
            id="a future may become a computed one after someone began to wait",
        ),
    ],
)
def test_waiters_get_the_answer(
    waiters: int, timeout: float | None, answer: Callable[[PooledFuture[int]], None]
) -> None:
    """A future without an actor can be answered by any thread."""
    future = PooledFuture[int]()
    values: list[int] = []
    threads = [run_in_thread(lambda: values.append(future.get(timeout=timeout))) for _ in range(waiters)]

    answer(future)

    for thread in threads:
        thread.join()
    assert [7] * waiters == values


def test_an_exception_is_raised_with_where_it_was_raised() -> None:
    """The traceback of an answer that is an exception leads to its origin."""
    promise = PooledFuture[int]()
    try:
        int("origin")
    except ValueError:
        promise.set_exception()

    with pytest.raises(ValueError, match="origin") as caught:
        promise.get()

    assert __file__ == str(caught.traceback[-1].path)


def test_an_exception_class_alone_is_raised_as_an_instance() -> None:
    """`set_exception` takes what `sys.exc_info` may hold."""
    promise = PooledFuture[int]()
    promise.set_exception((KeyError, None, None))

    with pytest.raises(KeyError):
        promise.get()


def test_a_second_answer_is_refused() -> None:
    """A future is answered once; the first answer stays."""
    promise = PooledFuture[int]()
    promise.set(1)

    with pytest.raises(Full):
        promise.set(2)
    with pytest.raises(Full):
        promise.set_exception((KeyError, KeyError(), None))

    assert 1 == promise.get()


def test_a_deadline_that_has_passed_raises_and_leaves_no_waiter_behind() -> None:
    """Many waits for one future that time out do not pile up in it."""
    promise = PooledFuture[int]()

    for timeout in (0, 0.001):
        with pytest.raises(Timeout, match=str(timeout)):
            promise.get(timeout=timeout)

    assert not promise._waits


def test_getting_runs_the_actor_on_the_waiting_thread(stepped: Dispatcher) -> None:
    """A thread that waits for an actor that no thread runs, runs it itself."""
    ref = stepped.start(Echo)
    first = ref.proxy().echo(1)
    second = ref.proxy().echo(2)

    assert (2, 1) == (second.get(), first.get())

    assert [threading.get_ident()] * 2 == ref.call(lambda echo: echo.threads)


def test_helping_ends_with_the_own_answer(stepped: Dispatcher) -> None:
    """What was sent after the awaited message is left to others."""
    ref = stepped.start(Echo)
    first = ref.proxy().echo(1)
    later = ref.ask("later", block=False)

    first.get()

    assert not later.done()


def test_a_failing_hook_is_run_again_by_the_next_getter() -> None:
    """As with Pykka, only a value is kept."""
    runs: list[float | None] = []
    future = PooledFuture[str]()

    def compute(timeout: float | None) -> str:
        runs.append(timeout)
        if len(runs) == 1:
            raise KeyError("first")
        return "second"

    future.set_get_hook(compute)

    with pytest.raises(KeyError):
        future.get()

    assert ["second", "second"] == [future.get(), future.get()]


def test_a_getter_takes_over_a_hook_that_failed_in_another_thread() -> None:
    """Who waits for another thread's computation does it itself when that one gives up."""
    entered, fail = threading.Event(), threading.Event()
    future = PooledFuture[str]()
    runs: list[str] = []

    def compute(_timeout: float | None) -> str:
        runs.append("run")
        if len(runs) > 1:
            return "second"
        entered.set()
        fail.wait()
        raise KeyError

    def fail_at_it() -> None:
        with pytest.raises(KeyError):
            future.get()

    future.set_get_hook(compute)
    first = run_in_thread(fail_at_it)
    entered.wait()
    values: list[str] = []
    second = run_in_thread(lambda: values.append(future.get()))
    fail.set()

    first.join()
    second.join()
    assert (["run", "run"], ["second"]) == (runs, values)


def test_a_hook_that_needs_its_own_future_raises() -> None:
    """A computation that waits for itself is the shortest cycle."""
    future = PooledFuture[int]()
    future.set_get_hook(lambda _timeout: future.get() + 1)

    with pytest.raises(AskCycleError, match="a promise -> a promise"):
        future.get()


def test_a_hook_gets_what_is_left_of_the_deadline() -> None:
    """The deadline covers the computation."""
    timeouts: list[float | None] = []
    future = PooledFuture[None]()
    future.set_get_hook(timeouts.append)

    future.get(timeout=60)

    assert [True] == [timeout is not None and 0 < timeout <= 60 for timeout in timeouts]
