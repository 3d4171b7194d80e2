"""What cycles of one partition know of each other while the manager judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from support.model.builders import FakePredicates

from licorne.actors.locks.predicate_cache import SLOW_NS, CycleAnswers, CycleInvalidatedError, PredicateCache
from licorne.model.scheduling.cycle import CycleOutcome

T = TypeVar("T")
RESULT, NOTHING = CycleOutcome.RESULT, CycleOutcome.NOTHING


class Lock:
    """Releases nothing, and lets the test do what other threads do meanwhile."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], None] | None = None
        self.calls = 0

    def without_lock(self, question: Callable[[], T]) -> tuple[T, bool]:
        answer = question()
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return answer, meanwhile is not None

    def call_for_help(self) -> None:
        self.calls += 1


class Scene:
    """An RM that is asked by cycles which the test writes."""

    def __init__(self) -> None:
        self.rm = FakePredicates()
        self.lock = Lock()
        self.now_ns = 0
        self.takes_ns = 0
        self.predicate_cache = PredicateCache(self.rm, self._clock_ns)

    def _clock_ns(self) -> int:
        self.now_ns += self.takes_ns
        return self.now_ns

    def run(
        self, *questions: str, answers: CycleAnswers | None = None, outcome: CycleOutcome = NOTHING
    ) -> None:
        """Run a cycle that asks about asks on the node."""

        def cycle() -> CycleOutcome:
            for key in questions:
                self.predicate_cache.refuse(key, "n", allocate=True)
            return outcome

        self.predicate_cache.run(self.lock, answers or CycleAnswers(), cycle)

    def break_off(self, *questions: str, meanwhile: Callable[[], None] = lambda: None) -> CycleAnswers:
        """Run a cycle of which the last question is broken off; return its answers."""
        answers = CycleAnswers()

        def cycle() -> CycleOutcome:
            for key in questions[:-1]:
                self.predicate_cache.refuse(key, "n", allocate=True)
            self.lock.meanwhile = meanwhile
            self.predicate_cache.refuse(questions[-1], "n", allocate=True)
            raise AssertionError("the world has moved")

        with pytest.raises(CycleInvalidatedError):
            self.predicate_cache.run(self.lock, answers, cycle)
        return answers

    def asked(self) -> list[str]:
        """Return the keys that the RM has been asked about since the last time."""
        keys = [key for key, _, _ in self.rm.asked]
        self.rm.asked.clear()
        return keys


@pytest.fixture
def scene() -> Scene:
    """Give a scene of its own."""
    return Scene()


def test_what_was_answered_is_at_hand_when_a_cycle_begins_anew(scene: Scene) -> None:
    """But not to the next cycle, nor where a cycle asks the same twice by itself: `direct` asks as well."""
    answers = scene.break_off("a", "b")
    scene.run("a", "b", "c", "c", answers=answers)
    scene.run("a")

    assert ["a", "b", "c", "c", "a"] == scene.asked()


def test_asks_of_a_cycle_under_way_are_skipped_by_the_others(scene: Scene) -> None:
    """Those that it has asked about before as well; its own it sees itself."""
    seen: list[set[str]] = []

    def look() -> CycleOutcome:
        seen.append(set(scene.predicate_cache.keys_of_others()))
        return RESULT

    answers = scene.break_off("a", "b")
    scene.predicate_cache.run(scene.lock, CycleAnswers(), look)
    scene.predicate_cache.run(scene.lock, answers, look)
    scene.predicate_cache.run(scene.lock, CycleAnswers(), look)

    assert [{"a", "b"}, set(), set()] == seen


def test_a_cycle_without_result_leaves_its_answers_to_those_under_way(scene: Scene) -> None:
    """So that the last one of them knows all, and no question is asked twice."""
    first = scene.break_off("a")
    scene.run("b")
    assert {"a", "b"} == first.keys
    scene.run("a", "b", answers=first)

    assert ["a", "b"] == scene.asked()


def test_a_cycle_with_a_result_leaves_nothing(scene: Scene) -> None:
    """What it was refused is asked for again by the next one, as on `direct`."""
    first = scene.break_off("a")
    scene.run("b", outcome=RESULT)
    scene.run("a", "b", answers=first)

    assert ["a", "b", "b"] == scene.asked()


def test_a_cycle_that_fails_is_under_way_no_longer(scene: Scene) -> None:
    """Its asks are everybody's again."""

    def cycle() -> CycleOutcome:
        scene.predicate_cache.refuse("a", "n", allocate=True)
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        scene.predicate_cache.run(scene.lock, CycleAnswers(), cycle)

    scene.run("b", outcome=RESULT)
    assert set() == set(scene.predicate_cache.keys_of_others())
    assert scene.predicate_cache.needs_cycle()


@pytest.mark.parametrize(("keys", "node_ids"), [({"a"}, set()), (set(), {"n"})])
def test_what_has_come_anew_is_asked_about_anew(keys: set[str], node_ids: set[str], scene: Scene) -> None:
    """Whether the answer was there already or on its way."""
    on_its_way = scene.break_off("a", meanwhile=lambda: scene.predicate_cache.forget(keys, node_ids))
    scene.run("a", answers=on_its_way, outcome=RESULT)
    there = scene.break_off("a")
    scene.predicate_cache.forget(keys, node_ids)
    scene.run("a", answers=there)

    assert ["a", "a", "a", "a"] == scene.asked()


def test_parts_of_an_ask_that_has_come_anew_are_asked_about_anew(scene: Scene) -> None:
    """A request has the key of the ask, a question that of a part."""
    there = scene.break_off("a#allocation-2")
    scene.predicate_cache.forget({"a"}, set())
    scene.run("a#allocation-2", answers=there)

    assert ["a#allocation-2"] * 2 == scene.asked()


def test_help_is_called_for_until_answers_come_quickly(scene: Scene) -> None:
    """To change threads costs more than a quick answer; who finds another one at it leaves it to that."""
    scene.run("a", "b")
    assert 1 == scene.lock.calls
    scene.takes_ns = SLOW_NS + 1
    scene.run("a", "b", "c")
    assert 3 == scene.lock.calls

    scene.takes_ns = 0
    scene.run("a")
    first = scene.break_off("a")
    assert not scene.predicate_cache.needs_cycle()
    first.asked_ns = scene.now_ns - SLOW_NS - 1
    assert scene.predicate_cache.wants_help()
    assert scene.predicate_cache.needs_cycle()


def test_a_quick_answer_beside_one_that_is_out_counts_as_slow(scene: Scene) -> None:
    """The other one was asked before, and still waits."""
    scene.run("quick")
    first = scene.break_off("slow")
    first.asked_ns = scene.now_ns
    assert not scene.predicate_cache.is_slow
    scene.run("quick", outcome=RESULT)

    assert scene.predicate_cache.is_slow
