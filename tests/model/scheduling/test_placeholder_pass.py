"""The second pass of a cycle: members of a gang take the places of their placeholders."""

from __future__ import annotations

from typing import Any

import pytest
from support.model.builders import SECOND_NS, START_NS, TEN, FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.resources.resource import EMPTY
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.messages import AllocationPlaced, AllocationsReleased, NodeAction, TerminationType

FIVE = a_resource(memory=5)
TWENTY = a_resource(memory=20)
REPLACED = TerminationType.PLACEHOLDER_REPLACED
TIMEOUT = TerminationType.TIMEOUT
RESULT = CycleOutcome.RESULT


def a_gang(
    *placeholders: str,
    nodes: tuple[str, ...] = ("one",),
    predicates: FakePredicates | None = None,
    queues: str = "- name: leaf",
) -> Harness:
    """Return a partition with nodes of twenty whose placeholders, of ten each, are all placed."""
    h = Harness(queues, predicates=predicates)
    h.nodes(nodes[0], capacity=TWENTY)
    h.submit(placeholder_ask=a_resource(memory=10 * len(placeholders)))
    h.ask_and_run(*placeholders, task_group_name="g", placeholder=True)
    assert set(placeholders) == set(h.placements)
    if nodes[1:]:
        h.nodes(*nodes[1:], capacity=TWENTY)
    h.forget()
    return h


def a_swap(*placeholders: str, **settings: Any) -> Harness:
    """Return such a partition in which a cycle has tried the member `m`."""
    h = a_gang(*placeholders, **settings)
    h.ask("m", task_group_name="g")
    h.cycle()
    return h


def texts(h: Harness) -> list[str]:
    return [release.message for entry in h.heard(AllocationsReleased) for release in entry.releases]


# ------------------------------------------------------------------------------------------- in place


def test_a_member_replaces_a_placeholder_in_place() -> None:
    """The RM is asked to end the placeholder; nothing is placed before it confirms that."""
    h = a_gang("p1", "p2")
    h.ask("m", task_group_name="g")

    assert RESULT is h.cycle()

    assert ([("p1", REPLACED)], ["replacing allocationKey: m"]) == (h.releases, texts(h))
    assert ({}, EMPTY, TWENTY) == (h.placements, h.queue().pending, h.queue().allocated)
    assert ["p1", "p2"] == [entry.allocation_key for entry in h.node("one").allocations]


def test_a_confirmed_member_is_announced_where_the_placeholder_was() -> None:
    """Bound at the time of the confirmation, with the age of the placeholder; no other count changes."""
    h = a_gang("p1", "p2")
    h.advance(5)
    h.ask("m", task_group_name="g")
    h.cycle()
    h.advance(2)
    h.forget()

    h.confirm()

    (placed,) = h.heard(AllocationPlaced)
    allocation = placed.allocation
    assert ("m", "one") == (allocation.allocation_key, allocation.node_id)
    assert START_NS + 7 * SECOND_NS == allocation.bound_at_ns
    assert START_NS == allocation.placeholder_created_at_ns
    assert [] == h.releases
    assert (2, 1, TWENTY, TWENTY) == (
        h.state.placed.allocations,
        h.state.placed.placeholders,
        h.queue().allocated,
        h.user_usage(),
    )
    assert {"m", "p2"} == {entry.allocation_key for entry in h.node("one").allocations}


def test_a_smaller_member_gives_the_difference_back() -> None:
    """To the node, the queues and the user, when the swap is confirmed."""
    h = a_gang("p1", "p2")
    h.ask("m", task_group_name="g", resource=a_resource(memory=3))
    h.cycle()
    before = (h.queue().allocated, h.node("one").available)

    h.confirm()

    expected = a_resource(memory=13)
    assert (TWENTY, EMPTY) == before
    assert {expected} == {level.allocated for level in h.queue().above}
    assert (expected, a_resource(memory=7)) == (h.user_usage(), h.node("one").available)


def test_a_larger_member_cancels_the_placeholders_of_its_group() -> None:
    """They are of no use for it; those of another group stay."""
    h = a_gang("p1", "p2")
    h.ask("big", task_group_name="g", resource=a_resource(memory=5, gpu=1))

    outcome = h.cycle()

    assert RESULT is not outcome
    assert [("p1", TIMEOUT), ("p2", TIMEOUT)] == h.releases
    assert {"cancel placeholder: resource incompatible"} == set(texts(h))
    assert FIVE.get("memory") == h.queue().pending.get("memory")


def test_a_cancelled_placeholder_is_asked_for_once() -> None:
    """Until the RM confirms it nothing more happens; then the member is placed as any other ask."""
    h = a_gang("p1", "p2")
    h.ask_and_run("big", task_group_name="g", resource=a_resource(memory=15))
    asked = len(h.releases)

    h.run_until_idle()
    again = len(h.releases)
    h.settle()

    assert (2, 2, {"big": "one"}) == (asked, again, h.placements)


def test_one_swap_begins_with_each_cycle() -> None:
    """Members in the order of their asks, placeholders in the order they were placed."""
    h = a_gang("p1", "p2")
    h.ask("low", task_group_name="g")
    h.ask("high", task_group_name="g", priority=1)

    outcomes = [h.cycle() for _ in range(3)]

    assert [RESULT, RESULT, CycleOutcome.NOTHING] == outcomes
    assert ["replacing allocationKey: high", "replacing allocationKey: low"] == texts(h)
    assert [("p1", REPLACED), ("p2", REPLACED)] == h.releases


def test_swaps_go_before_ordinary_asks() -> None:
    """Also before those of higher priority in other applications."""
    h = a_gang("p1")
    h.submit("other")
    h.ask("urgent", application_id="other", priority=9)
    h.ask("m", task_group_name="g")

    h.cycle()

    assert ([("p1", REPLACED)], {}) == (h.releases, h.placements)


def test_members_beyond_the_placeholders_are_placed_as_any_other_ask() -> None:
    """Once all placeholders have been replaced."""
    h = a_gang("p1")
    h.ask_and_run("m1", "m2", task_group_name="g")
    waiting = dict(h.placements)

    h.settle()

    assert ({}, {"m1": "one", "m2": "one"}) == (waiting, h.placements)


def test_a_swap_asks_no_quota() -> None:
    """The placeholder is within it already: a user at the limit may swap."""
    h = a_gang("p1")
    h.reload("- name: leaf", root="limits: [{limit: bob, users: [bob], maxresources: {memory: 1}}]")
    h.ask("m", task_group_name="g")

    h.run_until_idle()
    h.confirm()

    assert {"m": "one"} == h.placements


# ----------------------------------------------------------------------------------------- elsewhere


def refused_in_place() -> FakePredicates:
    """Return predicates that refuse the member on node one."""
    why = {("m", "one"): "not here"}
    return FakePredicates(refused=dict(why), unreservable=dict(why))


def test_the_predicates_are_asked_without_allocating_in_place() -> None:
    """The room is there: it is the placeholder's."""
    predicates = FakePredicates()
    h = a_gang("p1", predicates=predicates)
    predicates.asked.clear()
    h.ask("m", task_group_name="g")

    h.cycle()

    assert [("m", "one", False)] == predicates.asked


def test_a_member_that_is_refused_in_place_goes_elsewhere() -> None:
    """The other node holds its room until the placeholder has ended; the queue counts one of them."""
    predicates = refused_in_place()
    h = a_gang("p1", "p2", nodes=("one", "two"), predicates=predicates)
    h.ask("m", task_group_name="g")

    assert RESULT is h.cycle()
    during = (h.node("one").allocated, h.node("two").allocated, h.queue().allocated, h.user_usage())
    h.confirm()

    assert (TWENTY, TEN, TWENTY, TWENTY) == during
    assert ("m", "two", True) in predicates.asked
    assert {"m": "two"} == h.placements
    after = (h.node("one").allocated, h.node("two").allocated, h.queue().allocated)
    assert (TEN, TEN, TWENTY) == after


@pytest.mark.parametrize("why", ["cordoned", "full", "refused"])
def test_a_member_waits_where_no_other_node_takes_it(why: str) -> None:
    """Nothing is asked of the RM, and nothing has changed."""
    predicates = refused_in_place()
    h = a_gang("p1", "p2", nodes=("one", "two"), predicates=predicates)
    if why == "cordoned":
        h.update_node("two", NodeAction.DRAIN_NODE)
    elif why == "full":
        h.update_node("two", NodeAction.UPDATE, FIVE)
    else:
        predicates.refused["m", "two"] = "not there either"
    h.ask("m", task_group_name="g")

    outcome = h.cycle()

    assert (False, [], TEN) == (outcome is RESULT, h.releases, h.queue().pending)


def test_a_member_that_is_refused_in_place_gets_no_second_room_on_that_node() -> None:
    """Although the node has it, and the RM is not asked a second time whether it would allow that."""
    predicates = FakePredicates(unreservable={("m", "one"): "not here"})
    h = a_gang("p1", nodes=("one",), predicates=predicates)
    predicates.asked.clear()
    h.ask("m", task_group_name="g")

    outcome = h.cycle()

    assert (False, TEN) == (outcome is RESULT, h.node("one").allocated)
    assert [("m", "one", False)] == predicates.asked


# --------------------------------------------------------------------------- what happens in between


def test_a_confirmation_that_comes_twice_is_ignored() -> None:
    """The member is placed once."""
    h = a_swap("p1", "p2")
    h.confirm()

    h.release("p1", termination=REPLACED)

    assert ["m"] == [entry.allocation.allocation_key for entry in h.heard(AllocationPlaced)]
    assert (2, 1) == (h.state.placed.allocations, h.state.placed.placeholders)
    assert {"p2", "m"} == {entry.allocation.allocation_key for entry in h.application().allocations.all()}


def test_a_confirmation_without_a_swap_ends_the_placeholder() -> None:
    """After a restart of the scheduler, for example: the RM says that it is gone."""
    h = a_gang("p1", "p2")

    h.release("p1", termination=REPLACED)

    assert (1, TEN, []) == (h.state.placed.placeholders, h.queue().allocated, h.releases)


def test_a_member_removed_during_its_swap_is_placed_all_the_same() -> None:
    """The RM may end it afterwards as any other allocation."""
    h = a_swap("p1", "p2")

    h.release("m")
    h.confirm()
    placed = dict(h.placements)
    h.release("m")

    assert ({"m": "one"}, TEN) == (placed, h.queue().allocated)


@pytest.mark.parametrize("nodes", [("one",), ("one", "two")])
def test_a_placeholder_that_ends_otherwise_lets_its_member_wait_again(nodes: tuple[str, ...]) -> None:
    """Whatever was held for the member is free; it takes the next placeholder."""
    predicates = refused_in_place() if nodes[1:] else None
    h = a_swap("p1", "p2", nodes=nodes, predicates=predicates)

    h.release("p1", termination=TIMEOUT)
    waiting = h.queue().pending
    h.run_until_idle()
    h.confirm()

    assert TEN == waiting
    assert "m" in h.placements
    assert 0 == h.state.placed.placeholders


def test_an_application_that_is_taken_away_takes_its_swaps_along() -> None:
    """The nodes are free of the placeholder and of what was held for the member."""
    h = a_swap("p1", "p2", nodes=("one", "two"), predicates=refused_in_place())

    h.withdraw()

    assert (EMPTY, EMPTY) == (h.node("one").allocated, h.node("two").allocated)
    assert (EMPTY, EMPTY, 0, 0) == (
        h.queue().allocated,
        h.queue().pending,
        h.state.placed.allocations,
        h.state.placed.placeholders,
    )


def test_a_gang_of_one_runs_on() -> None:
    """The end of the only placeholder completes the application, the member runs it again."""
    h = a_swap("p1")

    h.confirm()

    assert ["Completing", "Running"] == h.states()
    assert 1 == h.queue().running
