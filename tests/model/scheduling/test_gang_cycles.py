"""Gangs over whole cycles: what the steps of placeholders, members and time make together."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.harness import Harness, a_partition

from licorne.model.resources.resource import EMPTY
from licorne.model.values.messages import NodeAction, TerminationType

HUNDRED = a_resource(memory=100)
TWENTY = a_resource(memory=20)
THIRTY = a_resource(memory=30)
REPLACED = TerminationType.PLACEHOLDER_REPLACED
TIMEOUT = TerminationType.TIMEOUT
ENDS = [kind for kind in TerminationType if kind is not TerminationType.SCHEDULING_FAILED_ON_RM]
"""How an allocation may end; what could not be started waits again."""


def a_gang(*placeholders: str, announced: int = 0, room: int = 100, style: str = "Soft") -> Harness:
    """Return a gang whose placeholders of ten have been tried; more may be announced, and the room short."""
    h = Harness()
    h.nodes("one", capacity=a_resource(memory=room))
    h.submit(
        placeholder_ask=a_resource(memory=announced or 10 * len(placeholders)),
        style=style,
        timeout_seconds=60,
    )
    h.ask_and_run(*placeholders, task_group_name="g", placeholder=True)
    h.forget()
    return h


def group(h: Harness) -> tuple[int, int, int]:
    """Return how many placeholders the group has had, how many were replaced, how many ended unused."""
    counts = h.application()._core.task_groups.by_name["g"]
    return counts.count, counts.replaced, counts.timed_out


# --------------------------------------------------------------------------- who waits for a placeholder


def test_a_member_waits_for_placeholders_that_are_not_placed_yet() -> None:
    """There is room for it, but its place is the placeholder's."""
    h = a_gang("p1", room=5)
    h.ask("m", resource=a_resource(memory=5), task_group_name="g")

    assert 0 == h.run_until_idle()
    h.nodes("two", capacity=HUNDRED)
    h.run_until_idle()
    h.confirm()
    assert {"p1": "two", "m": "two"} == h.placements


def test_a_member_waits_for_placeholders_that_are_on_their_way_out() -> None:
    """Only their end makes it an ask like any other."""
    h = a_gang("p1", room=40)
    h.ask_and_run("m", resource=TWENTY, task_group_name="g")
    assert ([("p1", TIMEOUT)], {}) == (h.releases, h.placements)

    h.settle()

    assert {"m": "one"} == h.placements


def test_the_rm_taking_back_a_placeholder_that_waits_changes_no_count() -> None:
    """Members still wait for it, until the timeout; that is what was recorded."""
    h = a_gang("p1", "p2", room=10)
    h.release("p2")
    h.ask_and_run("m1", "m2", task_group_name="g")
    h.settle()

    assert ({"m1": "one"}, (2, 1, 0)) == (h.placements, group(h))


@pytest.mark.parametrize("resource", [TEN, a_resource(memory=10, gpu=1)], ids=["same", "another type"])
def test_a_member_that_needs_a_type_its_placeholder_has_not_is_larger(resource: object) -> None:
    """What the placeholder does not name it has none of."""
    h = a_gang("p1")
    assert isinstance(resource, type(TEN))
    h.ask_and_run("m", resource=resource, task_group_name="g")

    assert [("p1", REPLACED if resource == TEN else TIMEOUT)] == h.releases


def test_asks_of_no_group_do_not_wait() -> None:
    """They are placed beside the gang."""
    h = a_gang("p1", announced=20)
    h.ask("m", task_group_name="other")
    h.ask_and_run("n")

    assert {"m": "one", "n": "one"} == h.placements


# --------------------------------------------------------------------------------------- the timeout


def test_recovered_placeholders_start_the_timeout() -> None:
    """They are placeholders like any other, and they may be replaced."""
    h = a_partition("one", capacity=HUNDRED, placeholder_ask=TWENTY, timeout_seconds=60)
    h.ask("p1", node_id="one", task_group_name="g", placeholder=True)
    h.advance(59)
    assert [] == h.releases
    h.advance(2)

    assert ([("p1", TIMEOUT)], "Resuming") == (h.releases, h.states()[-1])


def test_a_recovered_placeholder_is_replaced_like_any_other() -> None:
    """Its member is placed where it was."""
    h = a_partition("one", "two", capacity=HUNDRED, placeholder_ask=TEN)
    h.ask("p1", node_id="two", task_group_name="g", placeholder=True)
    h.ask_and_run("m", task_group_name="g")
    h.confirm()

    assert ("two", (1, 1, 0)) == (h.placements["m"], group(h))


def test_the_timeout_begins_anew_with_the_next_placeholder() -> None:
    """When the last one is gone the time is off."""
    h = a_gang("p1", "p2", announced=30, room=10)
    h.advance(50)
    h.release("p1")
    h.run_until_idle()
    h.advance(50)
    assert [("p1", TerminationType.STOPPED_BY_RM)] == h.releases
    h.advance(11)

    assert ("p2", TIMEOUT) == h.releases[-1]


def test_a_placeholder_for_a_gang_that_resumes_is_rejected() -> None:
    """It would never time out, and the application would stay Resuming as long as it ran."""
    h = a_gang("p1", announced=20)
    h.advance(61)

    (rejection,) = h.ask("p9", task_group_name="g", placeholder=True)

    assert "application app is Resuming: placeholder p9 comes too late" == rejection.reason
    h.settle()
    assert "Accepted" == h.states()[-1]


def test_a_gang_that_resumes_places_what_is_asked_for_next() -> None:
    """Once the last placeholder is confirmed it is Accepted, and its members wait for no placeholder."""
    h = a_gang("p1", announced=20)
    h.advance(61)
    h.ask("m", task_group_name="g")
    assert "Resuming" == h.states()[-1]
    h.settle()

    assert (["Resuming", "Accepted", "Running"], {"m": "one"}) == (h.states(), h.placements)


@pytest.mark.parametrize("termination", [REPLACED, TIMEOUT])
def test_a_swap_of_a_soft_gang_outlives_the_timeout(termination: TerminationType) -> None:
    """The member is not lost: it takes the place, or it waits again if the placeholder ends otherwise."""
    h = a_gang("p1", "p2", announced=30)
    h.ask("m", task_group_name="g")
    h.cycle()
    h.advance(61)
    assert [("p1", REPLACED), ("p2", TIMEOUT)] == h.releases
    assert h.application().asks.knows("m")

    h.release("p1", termination=termination)
    h.release("p2", termination=TIMEOUT)
    h.run_until_idle()

    assert ({"m": "one"}, TEN) == (h.placements, h.queue().allocated)


def test_a_swap_of_a_hard_gang_ends_with_it() -> None:
    """The member is reported to the RM as those that wait."""
    h = a_gang("p1", announced=30, style="Hard")
    h.ask("m", "n", task_group_name="g")
    h.cycle()
    h.advance(61)

    assert [("p1", REPLACED), ("m", TIMEOUT), ("n", TIMEOUT)] == h.releases
    h.release("p1", termination=REPLACED)
    assert (["Failing", "Failed"], EMPTY) == (h.states(), h.queue().allocated)
    assert {} == h.placements


# ----------------------------------------------------------------------------------- ends of every kind


@pytest.mark.parametrize("termination", ENDS)
def test_a_placeholder_may_end_in_any_way(termination: TerminationType) -> None:
    """What it used is free, once, and a member no longer waits for it."""
    h = a_gang("p1", "p2")
    h.release("p1", termination=termination)
    h.release("p1", termination=termination)
    replaced = int(termination is REPLACED)

    assert ((2, replaced, 1 - replaced), TEN, TEN) == (group(h), h.queue().allocated, h.user_usage())
    assert (1, 1) == (h.state.placed.placeholders, h.state.placed.allocations)


@pytest.mark.parametrize("termination", ENDS)
def test_a_placeholder_in_a_swap_may_end_in_any_way(termination: TerminationType) -> None:
    """Its member takes the place, or waits for the next one: it is placed once whatever happens."""
    h = a_gang("p1", "p2")
    h.ask("m", task_group_name="g")
    h.cycle()
    h.release("p1", termination=termination)
    h.run_until_idle()
    h.confirm()

    taken = "p1" if termination is REPLACED else "p2"
    assert {"m": "one"} == h.placements
    assert ("p1" == taken) == ("p2" in [entry.allocation_key for entry in h.node("one").allocations])
    assert {True: (2, 1, 0), False: (2, 1, 1)}[taken == "p1"] == group(h)


@pytest.mark.parametrize("away", ["one", "two"])
def test_a_node_that_goes_during_a_swap_between_nodes_loses_no_member(away: str) -> None:
    """The placeholder's node: the member is placed at once. The member's: it waits, and goes elsewhere."""
    h = a_swap_between_nodes()
    h.update_node(away, NodeAction.DECOMISSION)
    if away == "one":
        assert {"m": "two"} == h.placements
    else:
        assert ({}, TEN) == (h.placements, h.queue().pending)
        h.nodes("three", capacity=HUNDRED)
        h.settle()
        assert {"m": "three"} == h.placements
    assert (TEN, 0) == (h.queue().allocated, h.state.placed.placeholders)


def a_swap_between_nodes() -> Harness:
    """Return a gang of one whose member is to run on node two, because it is refused on node one."""
    why = {("m", "one"): "not here"}
    predicates = FakePredicates(refused=dict(why), unreservable=dict(why))
    h = a_partition("one", capacity=TEN, predicates=predicates, placeholder_ask=TEN)
    h.ask_and_run("p1", task_group_name="g", placeholder=True)
    h.nodes("two", capacity=HUNDRED)
    h.ask("m", task_group_name="g")
    h.cycle()
    h.forget()
    return h


def test_a_placeholder_that_is_a_victim_takes_no_part_in_swaps() -> None:
    """Its end gives room that another ask has already."""
    h = a_gang("p1", "p2")
    assert h.application().allocations.mark_preempted("p1")
    h.ask("m", task_group_name="g")
    h.cycle()

    assert [("p2", REPLACED)] == h.releases


def test_every_release_at_the_end_of_a_gang_ends_it_once() -> None:
    """The RM releases everything: placeholders, members, and what waits."""
    h = a_gang("p1", "p2", "p3")
    h.ask_and_run("m", task_group_name="g")
    h.confirm()
    h.ask("n", task_group_name="g")
    h.cycle()
    h.release("")

    assert (EMPTY, EMPTY, EMPTY) == (h.queue().allocated, h.queue().pending, h.user_usage())
    assert (0, 0) == (h.state.placed.allocations, h.state.placed.placeholders)
    assert {"m"} == set(h.placements)


@pytest.mark.parametrize("termination", ENDS)
def test_after_a_release_of_everything_no_member_waits_for_what_was_placed(
    termination: TerminationType,
) -> None:
    """The placeholders have timed out, those that were replaced before have not: a later member is placed."""
    h = a_gang("p1", "p2", "p3")
    h.ask_and_run("m", task_group_name="g")
    h.confirm()
    h.release("", termination=termination)
    assert (3, 1, 2) == group(h)

    h.ask_and_run("later", task_group_name="g")
    assert {"m": "one", "later": "one"} == h.placements
    assert "Running" == h.states()[-1]


def test_a_member_waits_again_whose_swap_ends_with_the_release_of_all_allocations() -> None:
    """With TIMEOUT the asks are kept: one that was to take a place is placed as one that waits."""
    h = a_swap_between_nodes()
    h.release("", termination=TIMEOUT)
    assert ((1, 0, 1), TEN) == (group(h), h.queue().pending)

    h.run_until_idle()
    assert ({"m": "two"}, TEN) == (h.placements, h.queue().allocated)


@pytest.mark.parametrize(("style", "state"), [("Soft", "Accepted"), ("Hard", "Failed")])
def test_a_release_of_everything_confirms_the_end_of_every_placeholder(style: str, state: str) -> None:
    """A gang that has timed out comes to its end as if each of them was confirmed by itself."""
    h = a_gang("p1", "p2", announced=30, style=style)
    h.advance(61)
    h.release("", termination=TIMEOUT)

    assert state == h.states()[-1]
    assert (EMPTY, 0) == (h.queue().allocated, h.state.placed.placeholders)
    if style == "Soft":
        h.ask_and_run("m", task_group_name="g")
        assert {"m": "one"} == h.placements
