"""Cycles of a partition whose RM answers its predicates later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.model.builders import FakeChannel, FakePredicates, a_resource, an_ask
from support.model.harness import a_roomy_partition
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.explanation.explain import explain
from licorne.model.predicates.deferred_checks import NODES_PER_STEP
from licorne.model.predicates.node_checks import QUESTIONS_MAX, Pending
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.allocation import PREDICATE_CLASS_TAG
from licorne.model.values.messages import (
    NoAnswer,
    NodeAction,
    NodesAnswer,
    PredicateQuestion,
    PreemptionQuestion,
)

NOTHING, RESULT, PREPARED = CycleOutcome.NOTHING, CycleOutcome.RESULT, CycleOutcome.PREPARED
NO_ANSWER = "the resource manager gave no answer within 2 s"


class Deferred:
    """A partition with an application, and its RM, which refuses some nodes to some asks."""

    def __init__(self, *nodes: str, refused: Sequence[tuple[str, str]] = (), memory: int = 10) -> None:
        self.rm = FakePredicates(refused={pair: f"no {pair[1]}" for pair in refused})
        self.channel = FakeChannel(self.rm)
        self.h = a_roomy_partition(question_channel=self.channel)
        self.h.nodes(*nodes, capacity=a_resource(memory=memory))
        self.h.submit()

    def settle(self) -> None:
        """Answer everything, and run cycles, until nothing more happens."""
        self.h.run_until_idle()
        while self.channel.answer():
            self.h.run_until_idle()

    def log_of(self, key: str) -> dict[str, int]:
        """Return the texts in the log of an ask, with their counts."""
        return {text: count for text, (count, _) in (self.h.ask_record(key).log or {}).items()}


def nodes_asked(scene: Deferred, number: int = -1) -> list[tuple[str, tuple[str, ...]]]:
    """Return the asks and nodes of the questions of a batch."""
    questions = [each.question for each in scene.channel.batches[number]]
    return [(each.allocation_key, each.node_ids) for each in questions if isinstance(each, PredicateQuestion)]


# ------------------------------------------------------------------------------- passing over, overtaking


def test_a_cycle_asks_about_many_asks_in_one_batch_and_waits_for_none() -> None:
    """Each question is about all nodes that the search may come to."""
    scene = Deferred("n1", "n2", memory=100)
    scene.h.ask("a", "b", "c")

    assert NOTHING is scene.h.cycle()
    assert [[("a", ("n1", "n2")), ("b", ("n1", "n2")), ("c", ("n1", "n2"))]] == [nodes_asked(scene)]
    assert NOTHING is scene.h.cycle()
    assert 1 == len(scene.channel.batches)


def test_each_is_placed_where_answers_at_once_would_have_it() -> None:
    """In the order of the nodes at the time of the placement."""
    scene = Deferred("n1", "n2", "n3", refused=[("a", "n1"), ("c", "n2")])
    scene.h.ask("a", "b", "c")
    scene.settle()

    assert {"a": "n2", "b": "n1", "c": "n3"} == scene.h.placements
    assert 1 == len(scene.channel.batches)


def test_an_ask_that_is_answered_goes_before_one_that_is_not() -> None:
    """And the one that is overtaken is neither refused nor counted as attempted."""
    scene = Deferred("n1")
    scene.h.ask("a", "b")
    scene.h.cycle()
    scene.channel.answer_for("b")

    assert RESULT is scene.h.cycle()
    assert {"b": "n1"} == scene.h.placements
    assert {} == scene.log_of("a")
    assert not scene.h.ask_record("a").attempted


def test_an_ask_that_is_pending_does_not_back_off_and_reserves_nothing() -> None:
    """However old it is."""
    scene = Deferred("n1", "n2")
    scene.h.reload("- {name: leaf, properties: {application.unschedasks.backoff: '1'}}")
    scene.h.ask("a", "b", created_at_seconds=1)

    assert [NOTHING, NOTHING] == [scene.h.cycle(), scene.h.cycle()]
    assert 0 == scene.h.state.reservations
    assert scene.h.entry().backoff_until_ns is None


def test_so_many_questions_are_open_at_most() -> None:
    """Then the walk ends; the others are asked about when answers have come."""
    scene = Deferred("n1", memory=1000)
    scene.h.ask(*[f"a{number}" for number in range(QUESTIONS_MAX + 5)], resource=a_resource(memory=1))
    scene.h.cycle()
    assert QUESTIONS_MAX == len(scene.channel.open)
    scene.h.submit("later")
    scene.h.ask("b", application_id="later", resource=a_resource(memory=1))
    scene.h.cycle()
    assert QUESTIONS_MAX == len(scene.channel.open)

    scene.settle()
    assert QUESTIONS_MAX + 6 == len(scene.h.placements)


def test_nothing_is_placed_while_as_many_questions_are_open_as_may_be() -> None:
    """Not even an ask that needs no question, as the answers about its class are known."""
    scene = Deferred("n1", memory=1000)
    known: dict[str, Any] = {"resource": a_resource(memory=1), "tags": {PREDICATE_CLASS_TAG: "known"}}
    scene.h.ask("early", **known)
    scene.settle()
    scene.h.ask(*[f"a{number}" for number in range(QUESTIONS_MAX)], resource=a_resource(memory=1))
    scene.h.cycle()
    scene.h.ask("urgent", priority=10, **known)

    assert NOTHING is scene.h.cycle()
    scene.channel.answer()
    assert RESULT is scene.h.cycle()
    assert ["early", "urgent"] == [*scene.h.placements]


def test_a_question_is_about_more_nodes_the_more_are_refused() -> None:
    """The first one is about few; an ask that is refused everywhere is asked about in few rounds."""
    names = [f"n{number:03}" for number in range(400)]
    scene = Deferred(*names, refused=[("a", name) for name in names])
    scene.h.ask("a")
    scene.settle()
    first, second, third = [nodes_asked(scene, number) for number in range(3)]
    asked = [len(node_ids) for ((_, node_ids),) in (first, second, third)]

    assert [NODES_PER_STEP, 264 // NODES_PER_STEP * NODES_PER_STEP] == asked[:2]
    assert 400 == sum(asked)
    assert 400 == sum(scene.log_of("a").values())


# ---------------------------------------------------------------------------------- what is not answered


def test_without_an_answer_in_time_the_ask_counts_as_refused() -> None:
    """It is in the log and in the explanation, and tried again a second later; a late answer is dropped."""
    scene = Deferred("n1")
    scene.h.ask("a")
    scene.h.cycle()
    assert scene.h.clock.now_ns() + 2_000_000_000 == scene.h.partition.next_retry_ns()
    scene.h.advance(milliseconds=1_999)
    assert NOTHING is scene.h.cycle()
    assert {} == scene.log_of("a")
    scene.h.advance(milliseconds=1)
    scene.h.cycle()

    assert {NO_ANSWER: 1} == scene.log_of("a")
    explained = scene.h.partition.read(explain, "app")
    assert explained is not None
    assert [NO_ANSWER] == [blocker.detail for ask in explained.asks for blocker in ask.blockers]
    scene.channel.answer()
    scene.h.run_until_idle()
    assert {} == scene.h.placements
    scene.h.advance(1)
    scene.settle()
    assert {"a": "n1"} == scene.h.placements


def test_an_rm_that_says_that_no_answer_will_come_ends_the_wait() -> None:
    """As a connection does that is lost."""
    scene = Deferred("n1")
    scene.h.ask("a")
    scene.h.cycle()
    (question,) = scene.channel.open
    scene.channel.add(NoAnswer(question.number))
    scene.h.cycle()

    assert {NO_ANSWER: 1} == scene.log_of("a")


def test_an_answer_is_used_for_a_second() -> None:
    """Then the RM is asked again."""
    scene = Deferred("n1", "n2", refused=[("a", "n1"), ("a", "n2")])
    scene.h.ask("a", "b")
    scene.h.cycle()
    scene.channel.answer_for("a")
    scene.h.cycle()
    scene.h.cycle()
    assert ["a", "b"] == scene.channel.asked
    scene.h.advance(1)
    scene.h.cycle()

    assert ["a", "b", "a"] == scene.channel.asked


def test_a_partition_that_has_come_to_rest_asks_anew() -> None:
    """The RM may think otherwise by then, as one may that answers at once."""
    scene = Deferred("n1", refused=[("a", "n1")])
    scene.h.ask("a")
    scene.settle()
    scene.rm.refused.clear()
    scene.settle()

    assert {"a": "n1"} == scene.h.placements


# ------------------------------------------------------------------------------- what changes meanwhile


def test_an_ask_that_ends_while_it_is_pending_is_not_placed() -> None:
    """Nor another one of its name by the answer that was meant for it."""
    scene = Deferred("n1", refused=[("a", "n1")])
    scene.h.ask("a")
    scene.h.cycle()
    (first,) = scene.channel.open
    scene.h.release("a")
    scene.h.ask("a")
    scene.h.cycle()
    scene.channel.add(NodesAnswer(first.number, {}))
    assert NOTHING is scene.h.cycle()
    scene.settle()

    assert {} == scene.h.placements
    assert {"no n1": 1} == scene.log_of("a")


def test_an_ask_that_is_changed_is_asked_about_anew() -> None:
    """What was answered before is dropped, too."""
    scene = Deferred("n1")
    scene.h.ask("a", "b")
    scene.h.cycle()
    scene.channel.answer_for("a")
    scene.h.ask("a", resource=a_resource(memory=5))
    scene.h.cycle()

    assert ["a", "b", "a"] == scene.channel.asked


def test_the_parts_of_an_ask_that_is_changed_are_asked_about_anew() -> None:
    """Each of them, whether the answer has come or not, and not those of other asks."""
    scene = Deferred("n1")
    scene.h.ask("a", "b", allocations=2)
    scene.h.cycle()
    scene.channel.answer_for("a", "a#allocation-2")
    scene.h.ask("a", resource=a_resource(memory=5), allocations=2)
    scene.h.cycle()

    assert ["a", "a#allocation-2", "b", "b#allocation-2", "a", "a#allocation-2"] == scene.channel.asked


def test_a_node_that_comes_anew_is_asked_about_anew() -> None:
    """Whether the answer about the one before has come or not."""
    scene = Deferred("n1", "n2")
    scene.h.ask("a", "b")
    scene.h.cycle()
    scene.channel.answer_for("a")
    scene.h.update_node("n1", NodeAction.DECOMISSION)
    scene.h.nodes("n1")
    scene.h.cycle()

    assert ["a", "b", "a", "b"] == scene.channel.asked


def test_a_node_that_goes_while_it_is_asked_about_is_not_used() -> None:
    """The next one is, without another question."""
    scene = Deferred("n1", "n2")
    scene.h.ask("a")
    scene.h.cycle()
    scene.h.update_node("n1", NodeAction.DECOMISSION)
    scene.settle()

    assert ({"a": "n2"}, ["a"]) == (scene.h.placements, scene.channel.asked)


def test_a_node_that_was_not_asked_about_is_asked_about_when_it_goes_first() -> None:
    """So that an ask is never placed on a worse node than answers at once would give it."""
    scene = Deferred("n2")
    scene.h.ask("a")
    scene.h.cycle()
    scene.h.nodes("n1")
    scene.channel.answer()
    assert NOTHING is scene.h.cycle()
    assert [("a", ("n1",))] == nodes_asked(scene)
    scene.settle()

    assert {"a": "n1"} == scene.h.placements


# -------------------------------------------------------------------- required nodes, reservations, swaps


def test_an_ask_for_one_node_is_asked_about_that_one() -> None:
    """It is not reserved while the answer is pending."""
    scene = Deferred("n1", "n2")
    scene.h.ask("a", required_node="n2")
    assert NOTHING is scene.h.cycle()
    assert ([("a", ("n2",))], 0) == (nodes_asked(scene), scene.h.state.reservations)
    scene.settle()

    assert {"a": "n2"} == scene.h.placements


def test_an_ask_for_one_node_leaves_the_reservation_of_another_until_its_answer_has_come() -> None:
    """It takes precedence with the answer; before it, what is between the two would get the node."""
    scene = Deferred("n1")
    scene.h.ask("first", resource=a_resource(memory=6))
    scene.settle()
    scene.h.ask("old")
    scene.h.advance(3)
    scene.settle()
    scene.h.ask("daemon", required_node="n1", resource=a_resource(memory=1))
    scene.h.cycle()
    assert [("daemon", ("n1",))] == nodes_asked(scene)
    assert ("old",) == scene.h.node("n1").reservations
    scene.channel.answer()

    assert RESULT is scene.h.cycle()
    assert {"first": "n1", "daemon": "n1"} == scene.h.placements
    assert () == scene.h.node("n1").reservations


@pytest.mark.parametrize("unreservable", [True, False])
def test_a_node_is_reserved_when_the_rm_agrees(*, unreservable: bool) -> None:
    """The question is one of its own."""
    scene = Deferred("n1")
    if unreservable:
        scene.rm.unreservable["old", "n1"] = "not here"
    scene.h.ask("first", resource=a_resource(memory=6))
    scene.settle()
    scene.h.ask("old")
    scene.h.advance(3)
    assert NOTHING is scene.h.cycle()
    (question,) = [each.question for each in scene.channel.open]
    assert PredicateQuestion("old", ("n1",), allocate=False) == question
    assert 0 == scene.h.state.reservations
    scene.channel.answer()

    assert (NOTHING if unreservable else PREPARED) is scene.h.cycle()
    assert (not unreservable) is bool(scene.h.state.reservations)


def test_a_reserved_ask_waits_for_the_answer_about_its_node_before_it_goes_elsewhere() -> None:
    """And goes elsewhere when that one is refused."""
    scene = Deferred("n1", refused=[("old", "n1")])
    scene.h.ask("first")
    scene.settle()
    scene.h.ask("old")
    scene.h.advance(3)
    scene.settle()
    assert 1 == scene.h.state.reservations
    scene.h.release("first")
    scene.h.nodes("n2")
    assert NOTHING is scene.h.cycle()
    assert [("old", ("n1",))] == nodes_asked(scene)
    scene.settle()

    assert "n2" == scene.h.placements["old"]
    assert 0 == scene.h.state.reservations


def test_a_member_is_asked_about_the_nodes_of_its_placeholders_at_once() -> None:
    """It takes the first that is allowed."""
    scene = Deferred("n1", "n2", "n3")
    scene.h.ask("p1", "p2", "p3", task_group_name="g", placeholder=True)
    scene.settle()
    scene.rm.unreservable["m", scene.h.placements["p1"]] = "not here"
    scene.h.ask("m", task_group_name="g")
    scene.h.cycle()
    assert [("m", ("n1", "n2", "n3"))] == nodes_asked(scene)
    scene.settle()

    assert ["p2"] == [key for key, _ in scene.h.releases]


def test_a_member_goes_elsewhere_only_when_all_is_answered() -> None:
    """To the first node that the RM allows."""
    scene = Deferred("n1")
    scene.h.ask("p1", task_group_name="g", placeholder=True)
    scene.settle()
    scene.rm.unreservable["m", "n1"] = "not here"
    scene.rm.refused["m", "n2"] = "nor here"
    scene.h.nodes("n2", "n3")
    scene.h.ask("m", task_group_name="g")
    assert [NOTHING, NOTHING] == [scene.h.cycle(), scene.h.cycle()]
    scene.settle()

    assert ["m"] == [entry.allocation_key for entry in scene.h.node("n3").allocations]


# ------------------------------------------------------------------------------------------- preemption


def a_full_queue(channel: FakeChannel, nodes: int) -> Scene:
    """Return two queues: `root.b` uses all nodes, and an ask in `root.a` may preempt."""
    scene = Scene(TWO_QUEUES, question_channel=channel, reservations_on=False)
    for number in range(nodes):
        scene.nodes(f"n{number:02}", capacity=a_resource(memory=10))
        scene.runs(f"v{number:02}", node=f"n{number:02}")
    scene.asks("a")
    scene.advance(60)
    return scene


def test_the_rm_is_asked_about_victims_on_many_nodes_at_once() -> None:
    """Nothing is preempted, and nothing noted, before it has answered."""
    channel = FakeChannel()
    scene = a_full_queue(channel, 30)
    assert NOTHING is scene.cycle()
    assert 10 == len(channel.open)
    assert all(isinstance(each.question, PreemptionQuestion) for each in channel.open)
    assert NOTHING is scene.cycle()
    assert 1 == len(channel.batches)
    assert [] == scene.preempted

    channel.answer()
    assert PREPARED is scene.cycle()
    assert 1 == len(scene.preempted)


def test_an_rm_that_refuses_all_victims_is_asked_in_few_rounds() -> None:
    """Each round is about more nodes than it has refused; then the attempt has failed."""
    channel = FakeChannel()
    channel.predicates.preemption_index = lambda *_: None  # type: ignore[method-assign]
    scene = a_full_queue(channel, 60)
    rounds = 0
    scene.cycle()
    while channel.answer():
        rounds += 1
        scene.cycle()

    assert [10, 20, 30] == [len(batch) for batch in channel.batches]
    assert 3 == rounds
    assert scene.ask_record("a", "root.a").preemption_checked_ns == scene.clock.now_ns()


# ------------------------------------------------------------------------------------ what is noted


def test_a_leaf_that_is_visited_again_for_an_answer_notes_once() -> None:
    """What else it refuses is in the logs as often as with answers at once."""
    scene = Deferred("n1", memory=100)
    scene.h.reload("- {name: leaf, resources: {max: {memory: 50}}}")
    scene.h.ask("large", resource=a_resource(memory=60), priority=5)
    scene.h.ask("a")
    for _ in range(3):
        scene.h.cycle()
    assert {} == scene.log_of("large")
    scene.settle()

    assert {"Not enough queue quota": 2} == scene.log_of("large")


def test_a_pass_over_reserved_asks_that_is_repeated_for_an_answer_notes_once() -> None:
    """What the RM refused to others in it."""
    scene = Deferred("n1", "n2", refused=[("old-1", "n1")])
    scene.h.ask("first-1", "first-2")
    scene.settle()
    scene.h.ask("old-1", "old-2")
    scene.h.advance(3)
    scene.settle()
    assert 2 == scene.h.state.reservations
    scene.h.release("first-1", "first-2")
    scene.h.cycle()
    scene.channel.answer_for("old-1")
    assert [NOTHING, NOTHING] == [scene.h.cycle(), scene.h.cycle()]
    assert {} == scene.log_of("old-1")
    scene.channel.answer()
    assert RESULT is scene.h.cycle()

    assert {"no n1": 1} == scene.log_of("old-1")


def test_a_failed_attempt_to_preempt_is_noted_although_its_leaf_is_visited_again() -> None:
    """The attempt is not repeated, so that its text would be lost."""
    channel = FakeChannel()
    scene = Scene(TWO_QUEUES, question_channel=channel, reservations_on=False)
    scene.nodes("n1", capacity=a_resource(memory=30))
    scene.runs("v", resource=a_resource(memory=25))
    scene.asks("large", resource=a_resource(memory=40), priority=5)
    scene.asks("small", resource=a_resource(memory=1), may_preempt=False)
    scene.advance(60)
    scene.cycle()
    assert ["small"] == [each.question.allocation_key for each in channel.open]

    assert "Preemption does not help" in scene.waits_with("large")


# ------------------------------------------------------------------------------------------ what is kept


def test_an_answer_goes_with_its_ask() -> None:
    """Whether that is placed, withdrawn, or replaces a placeholder."""
    scene = Deferred("n1", memory=100)
    scene.h.ask("p", task_group_name="g", placeholder=True)
    scene.settle()
    scene.h.ask("placed", "pending")
    scene.h.ask("large", resource=a_resource(memory=100), priority=-1)
    scene.h.ask("m", task_group_name="g")
    scene.h.cycle()
    scene.channel.answer(lambda each: each.question.allocation_key != "pending")
    assert [RESULT, RESULT] == [scene.h.cycle(), scene.h.cycle()]
    checks = scene.h.state.node_checks
    assert checks is not None

    def known(key: str, *, allocate: bool = True) -> bool:
        return checks.refuse(an_ask(key), "n1", allocate=allocate) is not Pending.PENDING

    assert [False, False] == [known("placed"), known("m", allocate=False)]
    scene.h.ask("withdrawn", resource=a_resource(memory=1))
    scene.h.cycle()
    scene.channel.answer_for("withdrawn")
    checks.begin(scene.h.clock.now_ns())
    assert known("withdrawn")
    scene.h.release("withdrawn")
    assert not known("withdrawn")
