"""The wait-for graph, from hand-made waits."""

from __future__ import annotations

from threading import get_ident

import pytest

from licorne.actors.runtime.errors import AskCycleError
from licorne.actors.runtime.waiting import Wait, WaitGraph

ME = get_ident()


class Answer:
    """A future that says what the test wants it to."""

    def __init__(self, name: str, answerer: int | None, *, done: bool = False) -> None:
        self.name = name
        self.thread = answerer
        self.is_done = done
        self.withdrawn_with: Exception | None = None

    def __str__(self) -> str:
        return self.name

    def done(self) -> bool:
        return self.is_done

    def answerer(self) -> int | None:
        return self.thread

    def rule(self) -> None:
        """Nothing looks at asks."""

    def withdraw(self, error: Exception) -> None:
        self.withdrawn_with = error


def a_wait(answer: Answer, thread: int = ME, *, withdraws: bool = False) -> Wait:
    wait = Wait(answer, withdraws=withdraws)
    wait.thread = thread
    return wait


def test_waiting_for_a_running_thread_is_no_cycle() -> None:
    """A thread that waits for nothing goes on and answers."""
    graph = WaitGraph()

    graph.add(a_wait(Answer("node", 1)))

    assert {ME} == set(graph._waits)


def test_waiting_for_an_actor_that_no_thread_runs_is_no_cycle() -> None:
    """Another thread will run it."""
    graph = WaitGraph()
    graph.add(a_wait(Answer("mine", ME), thread=1))

    graph.add(a_wait(Answer("free", None)))

    assert {1, ME} == set(graph._waits)


def test_waiting_for_oneself_is_a_cycle() -> None:
    """An actor that asks itself would wait for ever."""
    graph = WaitGraph()

    with pytest.raises(AskCycleError, match="node -> node"):
        graph.add(a_wait(Answer("node", ME)))

    assert {} == graph._waits


def test_a_cycle_through_other_threads_names_all_in_it() -> None:
    """Three actors, three threads, the third ask closes the ring."""
    graph = WaitGraph()
    graph.add(a_wait(Answer("second", 2), thread=1))
    graph.add(a_wait(Answer("third", ME), thread=2))

    with pytest.raises(AskCycleError, match="first -> second -> third -> first"):
        graph.add(a_wait(Answer("first", 1)))


def test_a_chain_that_ends_in_an_answer_is_no_cycle() -> None:
    """A thread whose answer is there has only not woken up yet."""
    graph = WaitGraph()
    graph.add(a_wait(Answer("mine", ME, done=True), thread=1))

    graph.add(a_wait(Answer("theirs", 1)))

    assert {1, ME} == set(graph._waits)


def test_an_answer_that_is_there_already_is_no_cycle() -> None:
    """Between the look at the future and the wait it was answered."""
    graph = WaitGraph()

    graph.add(a_wait(Answer("mine", ME, done=True)))

    assert {ME} == set(graph._waits)


def test_a_wait_that_was_removed_is_no_link() -> None:
    """A thread that woke up waits no longer."""
    graph = WaitGraph()
    wait = a_wait(Answer("mine", ME), thread=1)
    graph.add(wait)
    graph.remove(wait)

    graph.add(a_wait(Answer("theirs", 1)))

    assert {ME} == set(graph._waits)


@pytest.mark.parametrize("withdraws", [True, False])
def test_only_an_ask_of_its_own_is_withdrawn(*, withdraws: bool) -> None:
    """Who waits for a future that others hold as well leaves the message where it is."""
    graph = WaitGraph()
    answer = Answer("node", ME)

    with pytest.raises(AskCycleError) as caught:
        graph.add(a_wait(answer, withdraws=withdraws))

    assert (caught.value if withdraws else None) is answer.withdrawn_with


def test_a_sleeper_wakes_although_it_was_woken_before_it_slept() -> None:
    """A wake-up between the registration and the sleep is not lost."""
    wait = a_wait(Answer("node", None))
    wait.wake()

    assert wait.sleep()


def test_a_sleep_ends_at_its_deadline() -> None:
    """It is not woken, and returns so."""
    assert not a_wait(Answer("node", None)).sleep(0.001)
