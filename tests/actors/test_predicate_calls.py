"""Questions to an RM whose predicates answer at once, asked by threads that hold no lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.model.builders import FakePredicates

from licorne.actors.locks.guarded_partition import SLOW_NS, PredicateCalls
from licorne.model.values.messages import (
    NodesAnswer,
    NumberedQuestion,
    PredicateAnswer,
    PredicateQuestion,
    PreemptionQuestion,
    VictimsAnswer,
)


class Scene:
    """The calls to an RM, and a clock that each call moves on."""

    def __init__(self, **refused: str) -> None:
        self.now_ns = 0
        self.takes_ns = 0
        self.during: Callable[[], None] = lambda: None
        self.helpers = 0
        self.rm = FakePredicates(refused={("a", node_id): reason for node_id, reason in refused.items()})
        self.calls = PredicateCalls(self, 4, lambda: self.now_ns)

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        self.now_ns += self.takes_ns
        self.during()
        return self.rm.refuse(allocation_key, node_id, allocate=allocate)

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        return self.rm.preemption_index(allocation_key, node_id, victim_keys, start_index)

    def ask(self, *node_ids: str, number: int = 1) -> None:
        """Ask whether `a` may run on nodes."""
        question = PredicateQuestion("a", node_ids, allocate=True)
        self.calls.ask([NumberedQuestion(number, question)])

    def call(self) -> bool:
        """Ask the RM the next question, and count the threads that are called for help."""

        def help_is_called() -> None:
            self.helpers += 1

        return self.calls.call_next(help_is_called)


ANSWERS: dict[str, tuple[dict[str, str], NodesAnswer]] = {
    "the first is allowed": ({}, NodesAnswer(1, {}, 1)),
    "the second is allowed": ({"n1": "no"}, NodesAnswer(1, {"n1": "no"}, 2)),
    "none is allowed": ({"n1": "no", "n2": "not"}, NodesAnswer(1, {"n1": "no", "n2": "not"})),
}


@pytest.mark.parametrize("case", ANSWERS.values(), ids=ANSWERS)
def test_nodes_are_asked_about_until_one_is_allowed(case: tuple[dict[str, str], PredicateAnswer]) -> None:
    """The answer says about how many of them it is."""
    refused, answer = case
    scene = Scene(**refused)
    scene.ask("n1", "n2")

    assert scene.call()
    assert [answer] == scene.calls.take()
    assert not scene.calls.take()


def test_victims_are_asked_about() -> None:
    """As they are in the question."""
    scene = Scene()
    scene.calls.ask([NumberedQuestion(7, PreemptionQuestion("a", "n1", ("v1", "v2"), 1))])

    assert scene.call()
    assert [VictimsAnswer(7, scene.rm.preemption_index("a", "n1", ("v1", "v2"), 1))] == scene.calls.take()


def test_each_question_is_asked_once() -> None:
    """By the thread that comes first."""
    scene = Scene()
    scene.ask("n1")

    assert [True, False] == [scene.call(), scene.call()]


@pytest.mark.parametrize(("takes_ns", "helpers"), [(0, 0), (SLOW_NS, 0), (SLOW_NS + 1, 1)])
def test_help_is_called_after_a_slow_call(takes_ns: int, helpers: int) -> None:
    """If there are more questions than one."""
    scene = Scene()
    for number in range(4):
        scene.ask("n1", number=number)
    scene.takes_ns = takes_ns
    scene.call()
    scene.helpers = 0  # The first call of all may be slow.
    scene.call()
    assert helpers == scene.helpers

    scene.call()
    scene.helpers = 0
    scene.call()
    assert 0 == scene.helpers


def test_a_call_is_slow_when_it_has_not_returned_for_a_while() -> None:
    """Although the one before was quick; then each thread may make one."""
    scene = Scene()
    seen = []
    scene.during = lambda: seen.append((scene.calls.is_slow, scene.calls.open_max()))
    for takes_ns in (0, SLOW_NS, SLOW_NS + 1):
        scene.takes_ns = takes_ns
        scene.ask("n1")
        scene.call()

    assert [(True, 4), (False, 1), (True, 4)] == seen
    assert not scene.calls.is_slow


def test_more_questions_may_be_open_the_more_are_refused_in_a_row() -> None:
    """So that thousands of asks that the RM refuses take few cycles; after another answer it is one again."""
    scene = Scene(n1="no")
    seen = []
    for node_id in (*["n1"] * 8, "n2"):
        scene.ask(node_id)
        scene.call()
        seen.append(scene.calls.open_max())

    assert [2, 4, 8, 16, 32, 64, 128, 128, 1] == seen
