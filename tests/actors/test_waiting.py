"""The wait-for graph, from hand-made waits."""

from __future__ import annotations

from threading import get_ident

import pytest

from licorne.actors.runtime.errors import AskCycleError
from licorne.actors.runtime.waiting import OpenWait, WaitGraph

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


def a_wait(answer: Answer, thread: int = ME, *, withdraws: bool = False) -> OpenWait:
    wait = OpenWait(answer, withdraws=withdraws)
    wait.thread = thread
    return wait


@pytest.mark.parametrize(
    ("earlier", "answer"),
    [
        pytest.param(None, Answer("node", 1), id="a thread that waits for nothing goes on and answers"),
        pytest.param(Answer("mine", ME), Answer("free", None), id="another thread will run a free actor"),
        pytest.param(
            Answer("mine", ME, done=True),
            Answer("theirs", 1),
            id="a thread whose answer is there has only not woken up yet",
        ),
        pytest.param(None, Answer("mine", ME, done=True), id="the answer was given just before the wait"),
    ],
)
def test_a_wait_that_somebody_ends_is_no_cycle(earlier: Answer | None, answer: Answer) -> None:
    """The earlier wait is that of another thread."""
    graph = WaitGraph()
    others = [] if earlier is None else [a_wait(earlier, thread=1)]
    for wait in (*others, a_wait(answer)):
        graph.add(wait)

    assert {ME, *(wait.thread for wait in others)} == set(graph._waits)


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
