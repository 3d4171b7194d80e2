"""Allocations that the RM could not start: their asks wait again, and avoid the node for a while."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.builders import TEN, FakeChannel, FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.predicates.avoided_nodes import AVOIDANCE_NS, AvoidedNodes
from licorne.model.resources.resource import EMPTY
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import TerminationType

FAILED: Final = TerminationType.SCHEDULING_FAILED_ON_RM
FIVE: Final = a_resource(memory=5)
SECONDS: Final = AVOIDANCE_NS // 1_000_000_000
REFUSAL: Final = "the resource manager could not start it on one a short time ago"


def placed(*nodes: str, predicates: FakePredicates | None = None, required_node: str = "") -> Harness:
    """Return a partition with one ask, `a`, placed on the node `one`."""
    h = Harness(predicates=predicates)
    h.nodes("one")
    h.submit()
    h.ask("a", created_at_seconds=100, priority=7, required_node=required_node)
    h.run_until_idle()
    if nodes:
        h.nodes(*nodes)
    assert "one" == h.placements["a"]
    return h


@pytest.mark.parametrize(
    "predicates",
    [pytest.param(None, id="without predicates"), pytest.param(FakePredicates(), id="with them")],
)
def test_the_ask_is_placed_on_another_node(predicates: FakePredicates | None) -> None:
    """The RM is told of the new place only: it knows that the old one has failed."""
    h = placed("two", predicates=predicates)
    h.forget()

    h.release("a", termination=FAILED)
    assert (TEN, EMPTY, EMPTY) == (h.queue().pending, h.queue().allocated, h.node("one").allocated)
    h.run_until_idle()

    assert ({"a": "two"}, [], []) == (h.placements, h.releases, h.states())
    assert (EMPTY, TEN, TEN) == (h.queue().pending, h.queue().allocated, h.user_usage())


def test_the_ask_keeps_its_age_and_its_priority() -> None:
    """It goes before one that came in the meantime, and after one that is more important."""
    h = placed()
    h.ask("later", created_at_seconds=101, priority=7)
    h.ask("urgent", created_at_seconds=102, priority=8)
    h.release("a", termination=FAILED)

    waiting = [record.ask.allocation_key for record in h.application().asks.waiting()]

    assert ["urgent", "a", "later"] == waiting


def test_others_take_the_node_at_once() -> None:
    """Only the ask that failed there avoids it."""
    h = placed()
    h.ask("other", created_at_seconds=101)

    h.release("a", termination=FAILED)
    h.run_until_idle()

    assert {"a": "one", "other": "one"} == h.placements
    assert TEN == h.queue().pending


@pytest.mark.parametrize(
    "required_node", [pytest.param("", id="any node"), pytest.param("one", id="its node")]
)
def test_the_node_is_tried_again_after_a_while(required_node: str) -> None:
    """Where no other one can take the ask; until then it says why it waits."""
    h = placed(required_node=required_node)
    h.release("a", termination=FAILED)
    h.forget()

    h.advance(SECONDS - 1)
    h.run_until_idle()
    (refusal,) = h.application().asks.refusals()
    assert {} == h.placements
    assert (RefusalReason.PREDICATES, REFUSAL) == (refusal.reason, refusal.detail)

    h.advance(2)
    h.run_until_idle()
    assert {"a": "one"} == h.placements


def test_the_checks_are_as_before_once_no_ask_avoids_a_node() -> None:
    """So that a failed start costs nothing for ever."""
    h = placed("two")
    h.release("a", termination=FAILED)
    assert isinstance(h.state.node_checks, AvoidedNodes)

    h.run_until_idle()
    h.ask("b")
    h.run_until_idle()

    assert h.state.node_checks is None
    assert {"a": "two", "b": "one"} == h.placements


def test_an_ask_that_comes_again_avoids_nothing() -> None:
    """The RM has changed its mind: what is submitted anew is a new ask."""
    h = placed()
    h.release("a", termination=FAILED)
    h.release("a")
    h.forget()

    h.ask("a")
    h.run_until_idle()

    assert {"a": "one"} == h.placements


def test_an_application_does_not_end_with_its_only_allocation() -> None:
    """It has an ask that waits."""
    h = placed()

    h.release("a", termination=FAILED)
    h.advance(SECONDS - 1)

    assert "Completing" not in h.states()


def test_all_of_an_application_can_have_failed() -> None:
    """With the empty key, as for other releases."""
    h = Harness()
    h.nodes("one", "two")
    h.submit()
    h.ask("a", "b", resource=FIVE)
    h.run_until_idle()

    h.release("", termination=FAILED)

    assert (TEN, EMPTY) == (h.queue().pending, h.queue().allocated)


def test_a_placeholder_waits_again_and_is_not_counted_as_ended() -> None:
    """Its gang needs it as before."""
    h = Harness("- {name: leaf, properties: {application.sort.policy: fifo}}")
    h.nodes("one", "two")
    h.submit(placeholder_ask=FIVE, timeout_seconds=60)
    h.ask("p", resource=FIVE, placeholder=True, task_group_name="tasks")
    h.run_until_idle()

    h.release("p", termination=FAILED)
    h.run_until_idle()

    (group,) = h.application().report().task_groups
    assert (1, 1, 0, 0) == (group.placeholders, group.placed, group.replaced, group.ended)
    assert {"p": "two"} == h.placements


def test_an_allocation_that_is_ending_ends() -> None:
    """The scheduler has asked for its end: that it never started is a confirmation."""
    h = Harness("- {name: leaf, properties: {application.sort.policy: fifo}}")
    h.nodes("one")
    h.submit(placeholder_ask=FIVE, timeout_seconds=60)
    h.ask("p", resource=FIVE, placeholder=True, task_group_name="tasks")
    h.run_until_idle()
    h.advance(60)
    assert [("p", TerminationType.TIMEOUT)] == h.releases

    h.release("p", termination=FAILED)

    assert (EMPTY, EMPTY) == (h.queue().pending, h.queue().allocated)


def test_a_node_that_comes_again_is_taken() -> None:
    """It is another machine of the same name."""
    h = placed()
    h.release("a", termination=FAILED)
    h.forget()

    h.nodes("one")
    h.run_until_idle()

    assert {"a": "one"} == h.placements


@pytest.mark.parametrize("key", ["unknown", "waits"])
def test_what_does_not_run_cannot_have_failed(key: str) -> None:
    """An unknown key has ended already, and an ask that waits goes on waiting: the RM may say it twice."""
    h = placed()
    h.ask("waits")

    h.release(key, termination=FAILED)

    assert {"a": "one"} == h.placements
    assert (TEN, True) == (h.queue().pending, h.application().asks.knows("waits"))


def test_predicates_that_answer_later_are_asked_about_other_nodes() -> None:
    """The answers about the ask from before are dropped."""
    channel = FakeChannel()
    h = Harness(question_channel=channel)
    h.nodes("one", "two")
    h.submit()
    h.ask("a")
    h.cycle()
    channel.answer()
    h.run_until_idle()
    (first,) = h.placements.values()

    h.release("a", termination=FAILED)
    h.cycle()
    channel.answer()
    h.run_until_idle()

    assert {"one", "two"} == {first, h.placements["a"]}
