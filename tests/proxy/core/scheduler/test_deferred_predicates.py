"""The questions of a partition to an RM that answers later, and the wait of a stepped scheduler for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from support.proxy.deferring import DeferringListener
from support.proxy.manager_requests import ONE, TWO, application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS

from licorne import Scheduler
from licorne.model.values.messages import (
    NoAnswer,
    NodesAnswer,
    NumberedQuestion,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.core.scheduler.managers.callbacks import CallbackThreads
from licorne.proxy.core.scheduler.managers.predicates import AnswerWait, CallbackQuestions, DeferredCalls
from licorne.proxy.si.older_generation import Generation

ENGINES: tuple[EngineName, ...] = ("direct", "actors", "threads")
NODES = [
    NumberedQuestion(5, PredicateQuestion("a", ("n1", "n2"), allocate=True)),
    NumberedQuestion(7, PredicateQuestion("b", ("n1", "n2"), allocate=True)),
]
VICTIMS = NumberedQuestion(6, PreemptionQuestion("c", "n1", ("v1", "v2"), 0))


class Keeping:
    """Keeps what it is asked with, to be answered by the test."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Any], None]] = []
        self.asked: list[Sequence[object]] = []

    def ask_predicates(self, questions: Sequence[object], answer: Callable[[Any], None]) -> None:
        self.asked.append(questions)
        self.answers.append(answer)

    ask_preemption_predicates = ask_predicates


class Channel:
    """A channel to an RM that keeps what it is asked; it counts how often the partition is woken."""

    def __init__(self, answer_wait: AnswerWait | None = None) -> None:
        self.rm = Keeping()
        self.wakes = 0
        self.failures: list[str] = []
        calls = DeferredCalls(
            *(self.rm, nullcontext, CallbackThreads(), lambda name, _: self.failures.append(name)),
            Generation(),
        )
        self.questions = CallbackQuestions("[rm]default", calls, self._wake, answer_wait)

    def _wake(self) -> None:
        self.wakes += 1


@pytest.fixture
def channel() -> Channel:
    """Give a channel that wakes its partition."""
    return Channel()


def test_each_kind_of_question_is_one_batch(channel: Channel) -> None:
    """Answers carry the numbers of the questions, and may come in pieces."""
    channel.questions.ask([NODES[0], VICTIMS, NODES[1]])
    assert [[each.question for each in NODES], [VICTIMS.question]] == channel.rm.asked
    nodes, victims = channel.rm.answers
    victims({0: 1})
    nodes({1: {"n1": "no"}})
    nodes({0: None})

    assert [VictimsAnswer(6, 1), NodesAnswer(7, {"n1": "no"}), NoAnswer(5)] == channel.questions.take()
    assert () == channel.questions.take()


def test_the_partition_is_woken_once_however_many_answers_come(channel: Channel) -> None:
    """And once more for what comes after it has taken them."""
    channel.questions.ask(NODES)
    (answer,) = channel.rm.answers
    answer({0: {}})
    answer({1: {}})
    assert 1 == channel.wakes
    channel.questions.take()
    channel.questions.ask(NODES)
    channel.rm.answers[1]({0: {}})

    assert 2 == channel.wakes


def test_the_first_answer_to_a_question_counts(channel: Channel) -> None:
    """A second one neither changes anything nor wakes."""
    channel.questions.ask(NODES)
    (answer,) = channel.rm.answers
    answer({0: {}})
    channel.questions.take()
    answer({0: {"n1": "no"}})

    assert () == channel.questions.take()
    assert 1 == channel.wakes


def test_what_the_rm_changes_later_changes_no_answer(channel: Channel) -> None:
    """Questions may share a mapping; a reason that is empty gets a text."""
    channel.questions.ask(NODES)
    shared = {"n1": ""}
    channel.rm.answers[0]({0: shared, 1: shared})
    shared["n2"] = "later"
    first, second = channel.questions.take()

    assert isinstance(first, NodesAnswer)
    assert isinstance(second, NodesAnswer)
    assert {"n1": "the resource manager gave no reason"} == first.refused
    assert first.refused is second.refused


def test_a_part_that_is_no_answer_spoils_the_others_of_its_call(channel: Channel) -> None:
    """Nothing is taken, and the questions stay open."""
    channel.questions.ask(NODES)
    (answer,) = channel.rm.answers
    with pytest.raises(Exception, match="question 2: the questions are 0 to 1"):
        answer({0: {}, 2: {}})
    assert () == channel.questions.take()
    answer({0: {}})

    assert [NodesAnswer(5, {})] == channel.questions.take()


@pytest.mark.parametrize("index", [-1, "0", 1.0, True])
def test_an_index_that_is_none_is_refused(channel: Channel, index: Any) -> None:
    """By its value."""
    channel.questions.ask([VICTIMS])

    with pytest.raises(Exception, match=f"the answer {index!r} is neither the index of a victim nor None"):
        channel.rm.answers[0]({0: index})


def test_after_its_end_a_partition_gets_no_answers(channel: Channel) -> None:
    """And is not woken."""
    channel.questions.ask(NODES)
    channel.questions.close()
    channel.rm.answers[0]({0: {}})

    assert (0, ()) == (channel.wakes, channel.questions.take())


def test_answers_are_kept_back_until_all_have_come() -> None:
    """And are given out in the order of the questions; the partition is not woken."""
    wait = AnswerWait(10)
    channel = Channel(wait)
    channel.questions.ask(NODES)
    (answer,) = channel.rm.answers
    answer({1: {}})
    assert () == channel.questions.take()
    thread = threading.Thread(target=answer, args=({0: {}},))
    thread.start()
    assert {"[rm]default"} == wait.wait()
    thread.join()

    assert [5, 7] == [each.number for each in channel.questions.take()]
    assert (set(), 0) == (wait.wait(), channel.wakes)


def test_a_wait_ends_in_time_and_when_the_partition_does() -> None:
    """What is open then has no answer; later ones are dropped."""
    wait = AnswerWait(0.001)
    channel, other = Channel(wait), Channel(wait)
    channel.questions.ask(NODES)
    other.questions.ask(NODES)
    other.questions.close()
    wait.wait()
    channel.rm.answers[0]({0: {}})
    assert set() == wait.wait()

    assert [NoAnswer(5), NoAnswer(7)] == channel.questions.take()
    assert () == other.questions.take()


# ------------------------------------------------------------------------------------- whole schedulers


def begun(engine: EngineName, rm: DeferringListener, **settings: Any) -> Scheduler:
    """Return a stepped scheduler with a node, an application and an ask in each of two partitions."""
    scheduler = Scheduler(engine=engine, stepped=True, **settings)
    scheduler.register("rm", rm, configuration=TWO)
    for name in ("default", "second"):
        scheduler.update_node(node_request(f"node-{name}", partition=name))
        scheduler.update_application(application_request(f"app-{name}", partition=name))
        scheduler.update_allocation(ask_request(f"ask-{name}", application=f"app-{name}", partition=name))
    return scheduler


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("threads", [1, 2])
def test_one_cycle_of_each_partition_waits_for_its_answers(engine: EngineName, threads: int) -> None:
    """A step is whole: another thread answers when both partitions have asked."""
    rm = DeferringListener()
    settings: dict[str, Any] = {"threads": threads} if engine == "threads" else {}

    def answer() -> None:
        rm.wait_for_questions(2)
        rm.answer()

    thread = threading.Thread(target=answer)
    thread.start()
    with begun(engine, rm, **settings) as scheduler:
        assert 1 == scheduler.schedule(1)
        scheduler.deliver()
        scheduler.validate()
    thread.join()

    assert {"ask-default", "ask-second"} == set(rm.all("placed "))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_ends_when_the_rm_does_not_answer(engine: EngineName) -> None:
    """The virtual clock stands; the asks have the reason in their logs."""
    rm = DeferringListener()
    with begun(engine, rm, predicate_timeout_seconds=0.001) as scheduler:
        before_ns = scheduler.now_ns()
        assert 0 == scheduler.run_until_idle()
        assert before_ns == scheduler.now_ns()
        explained = [scheduler.explain(f"app-{name}") for name in ("default", "second")]
        rm.answer()
        scheduler.advance_to(before_ns + 1)

    reason = "the resource manager gave no answer within 0.001 s"
    assert [reason] * 2 == [
        blocker.detail for each in explained for ask in each.asks for blocker in ask.blockers
    ]
    assert [] == rm.all("placed ")


def test_a_stopped_scheduler_waits_for_no_answer() -> None:
    """A step on another thread goes on at once."""
    rm = DeferringListener()
    scheduler = Scheduler(engine="direct", predicate_timeout_seconds=600)
    scheduler.register("rm", rm, configuration=ONE)
    scheduler.update_node(node_request("node"))
    scheduler.update_application(application_request("app"))
    scheduler.update_allocation(ask_request("ask"))
    thread = threading.Thread(target=scheduler.run_until_idle)
    thread.start()
    rm.wait_for_questions(1)
    scheduler.stop()
    thread.join(WAIT_SECONDS)

    assert not thread.is_alive()
