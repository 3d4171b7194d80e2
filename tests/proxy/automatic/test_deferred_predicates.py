"""An RM that answers its predicates later, on schedulers that run by themselves."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import pytest
from support.proxy.deferring import DeferringListener, KnowingListener
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    keys,
    node_request,
    release_request,
)
from support.proxy.running_scheduler import begin, in_threads
from support.proxy.threads_stress import node_end
from support.waiting import WAIT_SECONDS, let_time_pass, wait_until

from licorne import LicorneError, RequestError, Scheduler
from licorne.model.predicates.node_checks import QUESTIONS_MAX
from licorne.model.values.messages import PredicateQuestion


def requests_of(scheduler: Scheduler) -> dict[str, dict[str, int]]:
    """Return the asks that wait, with the texts in their logs and how often each was noted."""
    snapshot: Any = scheduler.snapshot()
    return {
        ask["allocationKey"]: {entry["message"]: entry["count"] for entry in ask.get("allocationLog", [])}
        for applications in snapshot["applications"].values()
        for application in applications
        for ask in application.get("requests", [])
    }


def test_many_questions_are_open_before_the_first_is_answered(scheduler: Scheduler) -> None:
    """An RM that waits for all of them gets all of them."""
    rm = DeferringListener()
    begin(scheduler, rm)
    scheduler.update_allocation(ask_request(*keys(100)))
    rm.wait_for_questions(100)
    assert [] == rm.all("placed ")
    rm.answer()
    rm.wait_for_count("placed ", 100)

    assert keys(100) == rm.all("placed ")


def test_more_asks_than_may_be_asked_about_at_once_are_all_placed(scheduler: Scheduler) -> None:
    """Those of several applications as well."""
    rm = DeferringListener()
    begin(scheduler, rm)
    scheduler.update_application(application_request("other"))
    count = QUESTIONS_MAX + 50
    scheduler.update_allocation(ask_request(*keys(count)))
    scheduler.update_allocation(ask_request(*keys(count, "other"), application="other"))

    def all_placed() -> bool:
        rm.answer()
        return len(rm.all("placed ")) == 2 * count

    wait_until(all_placed)
    assert {*keys(count), *keys(count, "other")} == set(rm.all("placed "))


class SlowListener(Listener):
    """One that answers each batch on a thread, 0.2 s after the last, and refuses the asks of `app`."""

    def __init__(self) -> None:
        super().__init__()
        self._batches: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._think, daemon=True).start()

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]) -> None:
        """Queue the batch."""
        refused = {
            position: dict.fromkeys(question.node_ids, "no")
            if question.allocation_key.startswith("app")
            else {}
            for position, question in enumerate(questions)
        }
        self._batches.put(lambda: answer(refused))

    def ask_preemption_predicates(self, questions: Sequence[Any], answer: Callable[[Any], None]) -> None:
        """Agree to nothing."""
        answer(dict.fromkeys(range(len(questions))))

    def _think(self) -> None:
        while True:
            batch = self._batches.get()
            let_time_pass(0.2)
            batch()


def test_refused_asks_do_not_keep_those_behind_them_from_being_placed(scheduler: Scheduler) -> None:
    """There are more of them than the RM is asked about in the second for which an answer is used."""
    rm = SlowListener()
    begin(scheduler, rm)
    scheduler.update_application(application_request("other"))
    scheduler.update_allocation(ask_request(*(f"app-{number}" for number in range(750))))
    scheduler.update_allocation(ask_request(*keys(5, "other"), application="other"))
    rm.wait_for_count("placed ", 5)

    assert keys(5, "other") == rm.all("placed ")


def test_a_partition_goes_on_while_it_waits_for_an_answer(scheduler: Scheduler) -> None:
    """Requests are carried out, and asks that are answered are placed."""
    rm = DeferringListener()
    begin(scheduler, rm)
    scheduler.update_allocation(ask_request("slow"))
    rm.wait_for_questions(1)
    scheduler.update_allocation(ask_request("quick"))
    rm.wait_for_questions(2)
    rm.answer("quick")
    rm.wait_for("placed quick")
    assert {"slow": {}} == requests_of(scheduler)
    rm.answer()
    rm.wait_for("placed slow")


def test_answers_inside_the_call_that_asks_are_used(scheduler: Scheduler) -> None:
    """An RM may know at once."""
    rm = KnowingListener()
    begin(scheduler, rm)
    scheduler.update_allocation(ask_request(*keys(300)))
    rm.wait_for_count("placed ", 300)


def test_an_rm_that_refuses_every_node_is_asked_again_later(scheduler: Scheduler) -> None:
    """Also when something changes."""
    rm = DeferringListener()
    begin(scheduler, rm)
    rm.refused["ask", "node-default"] = "no licence"
    scheduler.update_allocation(ask_request("ask"))
    rm.wait_for_questions(1)
    rm.answer()
    wait_until(lambda: requests_of(scheduler)["ask"])
    assert {"no licence"} == set(requests_of(scheduler)["ask"])
    rm.refused.clear()
    scheduler.update_allocation(ask_request("other"))
    rm.wait_for_questions(2)
    rm.answer()
    rm.wait_for("placed ask")


@pytest.mark.parametrize("engine", ["actors", "threads"])
def test_an_rm_that_does_not_answer_counts_as_refusing(engine: Any) -> None:
    """What it says later is dropped."""
    rm = DeferringListener()
    with Scheduler(engine=engine, predicate_timeout_seconds=0.01) as scheduler:
        begin(scheduler, rm)
        scheduler.update_allocation(ask_request("ask"))
        rm.wait_for_questions(1)
        noted = wait_until(lambda: requests_of(scheduler)["ask"])
        rm.answer()
        assert [] == rm.all("placed ")

    assert {"the resource manager gave no answer within 0.01 s"} == set(noted)


def test_an_ask_that_ends_while_it_is_pending_is_not_placed(scheduler: Scheduler) -> None:
    """The answer finds nothing."""
    rm = DeferringListener()
    begin(scheduler, rm)
    scheduler.update_allocation(ask_request("gone", "stays"))
    rm.wait_for_questions(2)
    scheduler.update_allocation(release_request("gone"))
    assert {"stays": {}} == requests_of(scheduler)
    rm.answer()
    rm.wait_for("placed stays")

    assert ["stays"] == rm.all("placed ")


def test_an_rm_that_registers_again_is_asked_anew(scheduler: Scheduler) -> None:
    """What the one before says is dropped."""
    before, after = DeferringListener(), DeferringListener()
    begin(scheduler, before)
    scheduler.update_allocation(ask_request("ask"))
    before.wait_for_questions(1)
    begin(scheduler, after)
    scheduler.update_allocation(ask_request("ask"))
    after.wait_for_questions(1)
    before.answer()
    assert {"ask": {}} == requests_of(scheduler)
    after.answer()
    after.wait_for("placed ask")

    assert [] == before.all("placed ")


def test_a_call_that_fails_is_the_answer() -> None:
    """Its text is the reason, and the program gets the error."""

    class Failing(DeferringListener):
        def ask_predicates(self, questions: object, answer: object) -> None:
            del questions, answer
            raise ValueError("not now")

    failures: list[str] = []
    noted = threading.Event()

    def note(failure: Any) -> None:
        failures.append(failure.callback)
        noted.set()

    with Scheduler(on_error=note) as scheduler:
        begin(scheduler, Failing())
        scheduler.update_allocation(ask_request("ask"))
        assert noted.wait(WAIT_SECONDS)
        assert {"ValueError: not now"} == set(wait_until(lambda: requests_of(scheduler)["ask"]))

    assert {"ask_predicates"} == set(failures)


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (None, "the answers None are not a mapping"),
        ({1: {}}, "an answer is to question 1: the questions are 0 to 0"),
        ({"0": {}}, "an answer is to question '0'"),
        ({0: "n1"}, "the answer 'n1' is not a mapping"),
        ({0: {"n1": 5}}, "the refusal of node 'n1', 5, is not in texts"),
    ],
)
def test_what_is_no_answer_is_refused(answers: Any, text: str) -> None:
    """By name, and nothing is taken; the question stays open."""
    given: list[Callable[[Any], None]] = []

    class Keeping(DeferringListener):
        def ask_predicates(self, questions: object, answer: Callable[[Any], None]) -> None:
            del questions
            given.append(answer)

    rm = Keeping()
    with Scheduler(engine="direct", predicate_timeout_seconds=0.001) as scheduler:
        scheduler.register("rm", rm, configuration=ONE)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("ask"))
        assert 0 == scheduler.schedule(1)
        with pytest.raises(RequestError, match=text):
            given[0](answers)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_the_time_for_an_answer_is_above_zero(seconds: float) -> None:
    """An RM without any time could not answer."""
    with pytest.raises(LicorneError, match=f"predicate_timeout_seconds={seconds}"):
        Scheduler(predicate_timeout_seconds=seconds)


def test_a_callback_needs_both_methods() -> None:
    """The error names the one that is missing."""

    class Half(Listener):
        def ask_predicates(self, questions: object, answer: object) -> None:
            raise AssertionError(f"registered, and asked {questions}, {answer}")

    with (
        Scheduler(engine="direct") as scheduler,
        pytest.raises(RequestError, match="has no method ask_preemption_predicates"),
    ):
        scheduler.register("rm", Half(), configuration=ONE)


def test_a_call_inside_the_question_that_would_wait_is_refused(scheduler: Scheduler) -> None:
    """The partition is in the middle of its turn."""
    refused: list[str] = []

    class Asking(DeferringListener):
        def ask_predicates(
            self, questions: Sequence[PredicateQuestion], answer: Callable[[Any], None]
        ) -> None:
            try:
                scheduler.snapshot()
            except RequestError as error:
                refused.append(str(error))
            answer({position: {} for position in range(len(questions))})

    rm = Asking()
    begin(scheduler, rm)
    scheduler.update_allocation(ask_request("ask"))
    rm.wait_for("placed ask")

    assert ["inside a predicate is refused" in text for text in refused] == [True]


def test_random_traffic_with_answers_in_any_order(scheduler: Scheduler) -> None:
    """Asks, nodes and answers come from several threads; at the end everything is placed once."""
    rm = DeferringListener()
    rng = random.Random(12)  # noqa: S311 - dice, no secret
    begin(scheduler, rm)
    rm.refused.update({(key, "node-default"): "no" for key in keys(60) if rng.random() < 0.3})
    done = threading.Event()

    def answer() -> None:
        dice = random.Random(13)  # noqa: S311 - likewise
        while not done.is_set():
            chosen = dice.sample(keys(60), 20)
            rm.answer(*chosen)

    def talk() -> None:
        for start in range(0, 60, 5):
            scheduler.update_allocation(ask_request(*keys(60)[start : start + 5]))
            scheduler.update_node(node_request(f"extra-{start % 15}", memory=50))
            if start % 20 == 0:
                scheduler.update_node(node_end("extra-0", ""))
        rm.wait_for_count("placed ", 60)
        done.set()

    in_threads(answer, talk)

    assert len(set(rm.all("placed "))) == len(rm.all("placed "))
