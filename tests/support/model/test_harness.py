"""The harness is a fake RM with a clock; it finds what it is there to find."""

from __future__ import annotations

import pytest
from support.model.builders import START_NS, TEN, FakePredicates, a_resource, an_allocation
from support.model.harness import Harness

from licorne.model.values.messages import AllocationPlaced, TerminationType


def a_busy_harness() -> Harness:
    h = Harness()
    h.nodes("one")
    h.submit()
    h.ask("a")
    h.run_until_idle()
    return h


def test_the_harness_remembers_the_messages() -> None:
    """In order, by kind, and until it is cleared."""
    h = a_busy_harness()

    assert ({"a": "one"}, ["Accepted", "Running"]) == (h.placements, h.states())

    h.forget()

    assert ({}, []) == (h.placements, h.states())


def test_the_harness_finds_a_key_that_is_placed_twice() -> None:
    """Unless it has ended in between."""
    h = a_busy_harness()
    allocation = h.heard(AllocationPlaced)[0].allocation

    with pytest.raises(AssertionError, match="placed twice"):
        h._hear(AllocationPlaced(allocation))

    h.release("a")
    h._hear(AllocationPlaced(allocation))


def test_the_harness_validates_every_step() -> None:
    """What is lost is found with the next one."""
    h = a_busy_harness()
    entry = h.state.nodes.get("one")
    assert entry is not None
    entry.node.add(an_allocation("stray", "one"))

    with pytest.raises(AssertionError):
        h.advance(1)


def test_the_harness_confirms_what_was_asked_for_once() -> None:
    """Each release in its own words."""
    h = Harness()
    h.nodes("one")
    h.submit(placeholder_ask=a_resource(memory=20), timeout_seconds=5)
    h.ask("p", task_group_name="g", placeholder=True)
    h.run_until_idle()
    h.advance(5)

    assert [("p", TerminationType.TIMEOUT)] == h.releases
    assert [1, 0] == [h.confirm(), h.confirm()]
    assert "Accepted" == h.states()[-1]


def test_time_passes_when_the_test_says_so() -> None:
    """Not before."""
    h = Harness()
    before = h.clock.now_ns()

    h.advance(2, milliseconds=5)

    assert (START_NS, START_NS + 2_005_000_000) == (before, h.clock.now_ns())


def test_fake_predicates_refuse_what_the_test_sets() -> None:
    """For an allocation and for a reservation apart, and they remember the questions."""
    predicates = FakePredicates(refused={("a", "n"): "taint"}, unreservable={("a", "m"): "zone"})

    answers = [predicates.refuse("a", node, allocate=allocate) for node in "nm" for allocate in (True, False)]

    assert ["taint", None, None, "zone"] == answers
    assert [("a", "n", True), ("a", "n", False), ("a", "m", True), ("a", "m", False)] == predicates.asked


def test_a_node_has_ten_unless_a_test_says_otherwise() -> None:
    """And so does an ask want ten."""
    h = a_busy_harness()

    assert (TEN, TEN) == (h.node("one").capacity, h.node("one").allocated)
