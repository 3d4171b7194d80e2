"""Gangs that are placed whole: in one result, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import pytest
from support.model.builders import FakePredicates, a_resource, memory
from support.model.harness import Harness

from licorne.model.explanation.explain import explain
from licorne.model.nodes.gang_room import MayRun, plan_on
from licorne.model.nodes.order import NodeOrder
from licorne.model.nodes.topology import Domains
from licorne.model.resources.resource import Resource
from licorne.model.scheduling import gang_pass
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import AllocationPlaced, NodeAction, TerminationType
from licorne.proxy.core.explanation.text import what_blocks

WHOLE = "- {name: leaf, properties: {gang.placing: whole}}"


def keys(name: str, count: int) -> list[str]:
    """Return the keys of the asks of an application."""
    return [f"{name}{number}" for number in range(1, count + 1)]


def a_cluster(*capacities: int, **settings: Any) -> Harness:
    """Return a partition with nodes `n1`, `n2` and so on."""
    h = Harness(**settings)
    for number, capacity in enumerate(capacities, 1):
        h.nodes(f"n{number}", capacity=a_resource(memory=capacity))
    return h


def announce(h: Harness, name: str, sizes: list[int], **options: Any) -> None:
    """Submit an application with a placeholder of each size, and ask for the placeholders."""
    total = a_resource(memory=sum(sizes))
    assert h.submit(name, placeholder_ask=total, **options) is None
    for key, size in zip(keys(name, len(sizes)), sizes, strict=True):
        h.ask(key, application_id=name, resource=memory(size), placeholder=True, task_group_name=f"of {size}")


def ask_for_members(h: Harness, name: str, sizes: list[int], tags: Mapping[str, str] | None = None) -> None:
    """Submit an application of as many members as there are sizes, without placeholders."""
    assert h.submit(name, tags={"gangSize": str(len(sizes)), **(tags or {})}) is None
    for key, size in zip(keys(name, len(sizes)), sizes, strict=True):
        h.ask(key, application_id=name, resource=memory(size))


def refusals(h: Harness, name: str) -> list[RefusalReason]:
    """Return why the last visit refused an application."""
    return [refusal.reason for refusal in h.application(name).asks.refusals()]


class Row(NamedTuple):
    """What nodes have, what the members of gangs ask for, and the keys that are placed by how many cycles."""

    nodes: list[int]
    gangs: dict[str, list[int]]
    placed: list[str]
    cycles: int


CASES: dict[str, Row] = {
    "two gangs of six in ten": Row([10], {"a": [1] * 6, "b": [1] * 6}, keys("a", 6), 1),
    "six members on three nodes": Row([4, 4, 4], {"a": [2] * 6}, keys("a", 6), 1),
    "seven members on three nodes": Row([4, 4, 4], {"a": [2] * 7}, [], 0),
    "a launcher and workers without room together": Row([16, 16], {"a": [1, 8, 8, 8, 8]}, [], 0),
    "a launcher and workers": Row([16, 16, 1], {"a": [1, 8, 8, 8, 8]}, keys("a", 5), 1),
    "four sizes": Row([5, 5], {"a": [4, 3, 2, 1]}, keys("a", 4), 1),
    "two gangs of two groups of two": Row([6], {"a": [1, 1, 2, 2], "b": [1, 1, 2, 2]}, keys("a", 4), 1),
    "two gangs with room for both": Row(
        [10, 10], {"a": [2] * 5, "b": [2] * 5}, keys("a", 5) + keys("b", 5), 2
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_announced_placeholders_are_placed_all_in_one_result(case: Row) -> None:
    """A gang has all of its placeholders or none; what it cannot use stays free for others."""
    h = a_cluster(*case.nodes, queues=WHOLE)
    for name, sizes in case.gangs.items():
        announce(h, name, sizes)

    cycles = h.run_until_idle()

    assert (case.placed, case.cycles) == (sorted(h.placements), cycles)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_members_without_placeholders_are_placed_all_in_one_result(case: Row) -> None:
    """A gang that names its size needs no placeholders, and no property of its queue."""
    h = a_cluster(*case.nodes)
    for name, sizes in case.gangs.items():
        ask_for_members(h, name, sizes)

    cycles = h.run_until_idle()

    assert (case.placed, case.cycles) == (sorted(h.placements), cycles)


def test_a_single_ask_gets_the_room_that_a_waiting_gang_does_not_hold() -> None:
    """Placed step by step the second gang holds four, and the single ask waits."""
    placed = {}
    for placing in ("whole", "stepwise"):
        h = a_cluster(10, queues="- {name: leaf, properties: {gang.placing: " + placing + "}}")
        announce(h, "a", [1] * 6)
        announce(h, "b", [1] * 6)
        h.submit("c")
        h.ask_and_run("c1", application_id="c", resource=memory(4))
        placed[placing] = sorted(h.placements)

    assert {"whole": [*keys("a", 6), "c1"], "stepwise": keys("a", 6) + keys("b", 4)} == placed


def test_the_tag_of_an_application_counts_before_the_property_of_its_queue() -> None:
    """Each application may choose."""
    h = a_cluster(5, queues=WHOLE)
    announce(h, "a", [2] * 3, tags={"gangPlacing": "stepwise"})
    h.run_until_idle()

    assert ["a1", "a2"] == sorted(h.placements)


def test_nothing_is_placed_before_all_members_wait() -> None:
    """The last ask lets all of them be placed; what comes later is an ask like any other."""
    h = a_cluster(10)
    h.submit("a", tags={"gangSize": "3"})
    before = h.ask_and_run("a1", "a2", application_id="a", resource=memory(1))
    reasons = refusals(h, "a")
    h.ask_and_run("a3", application_id="a", resource=memory(1))
    h.ask_and_run("a4", application_id="a", resource=memory(1))

    assert (0, [RefusalReason.GANG_INCOMPLETE], keys("a", 4)) == (before, reasons, sorted(h.placements))


def test_members_replace_placeholders_that_were_placed_whole() -> None:
    """After the one result the gang is like any other."""
    h = a_cluster(4, queues=WHOLE)
    announce(h, "a", [2, 2])
    h.ask("m1", application_id="a", resource=memory(2), task_group_name="of 2")
    h.run_until_idle()
    h.settle()

    assert ("m1", ["Accepted", "Running"]) == (list(h.placements)[-1], h.states("a"))


def test_a_gang_over_the_maximum_of_its_queue_is_charged_for_nothing() -> None:
    """Six do not fit in what another one has left of seven, and stepwise four would be held."""
    h = a_cluster(20, queues="- {name: leaf, resources: {max: {memory: 7}}}")
    h.submit("o")
    h.ask_and_run("o1", application_id="o", resource=memory(2))
    ask_for_members(h, "a", [2] * 3)
    h.run_until_idle()

    assert [RefusalReason.QUEUE_QUOTA] == refusals(h, "a")
    assert (memory(2), ["o1"]) == (h.queue().allocated, [*h.placements])


def test_a_gang_over_the_limit_of_its_user_waits_until_the_limit_has_room() -> None:
    """The end of other work of the user makes room for all of it."""
    h = a_cluster(20, queues="- {name: leaf, limits: [{limit: '', users: [bob], maxresources: {memory: 7}}]}")
    h.submit("o")
    h.ask_and_run("o1", application_id="o", resource=memory(2))
    ask_for_members(h, "a", [2] * 3)
    h.run_until_idle()
    reasons = refusals(h, "a")
    h.release("o1", application_id="o")
    h.run_until_idle()

    assert ([RefusalReason.USER_QUOTA], keys("a", 3)) == (reasons, sorted(set(h.placements) - {"o1"}))


def test_a_waiting_gang_is_placed_when_a_node_gains_room() -> None:
    """A node that comes wakes it, and so does an allocation that ends."""
    h = a_cluster(4)
    h.submit("o")
    h.ask_and_run("o1", application_id="o", resource=memory(2))
    ask_for_members(h, "a", [2] * 4)
    h.run_until_idle()
    h.nodes("n2", capacity=memory(4))
    after_node = h.run_until_idle()
    h.release("o1", application_id="o")
    h.run_until_idle()

    assert (0, keys("a", 4)) == (after_node, sorted(set(h.placements) - {"o1"}))


def test_a_backlog_of_equal_gangs_costs_one_search_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stops one stops all of its sizes; what is placed meanwhile wakes none."""
    h = a_cluster(3, 3, 3)
    for name in "abcdef":
        ask_for_members(h, name, [2] * 4)
    searches: list[int] = []

    def counted(
        nodes: NodeOrder,
        sizes: list[Resource],
        may_run: MayRun | None,
        left: Mapping[str, Resource],
        *,
        own: Collection[str],
        domains: Domains | None,
    ) -> tuple[str, ...] | None:
        searches.append(len(sizes))
        return plan_on(nodes, sizes, may_run, left, own=own, domains=domains)

    monkeypatch.setattr(gang_pass, "plan_on", counted)

    h.run_until_idle()
    h.submit("o")
    h.ask_and_run("o1", application_id="o", resource=memory(1))
    first = len(searches)
    h.release("o1", application_id="o")
    h.run_until_idle()

    assert (1, 2) == (first, len(searches))


def test_nodes_that_may_not_be_used_have_no_room_for_a_gang() -> None:
    """A drained node counts again when it is used again."""
    h = a_cluster(4, 4)
    h.update_node("n2", NodeAction.DRAIN_NODE)
    ask_for_members(h, "a", [2] * 4)
    drained = h.run_until_idle()
    h.update_node("n2", NodeAction.DRAIN_TO_SCHEDULABLE)

    assert (0, 1) == (drained, h.run_until_idle())


# -------------------------------------------------------------------------------------------- commit


def test_a_node_that_refuses_one_member_undoes_all_and_the_next_plan_is_made() -> None:
    """The fourth of six nodes has less than was known: the same cycle places the gang without it."""
    h = a_cluster(2, 2, 2, 2, 2, 2, 2)
    h.submit("o")
    h.ask_and_run("o1", application_id="o", resource=memory(2), required_node="n4")
    full = h.state.nodes.get("n4")
    assert full is not None
    ask_for_members(h, "a", [2] * 6)
    h.state.nodes.give(full, a_resource(memory=2))  # What is known of it is wrong.

    outcome = h.cycle()

    nodes = {node for key, node in h.placements.items() if key != "o1"}
    assert (CycleOutcome.RESULT, {"n1", "n2", "n3", "n5", "n6", "n7"}) == (outcome, nodes)


def test_nothing_is_left_of_a_plan_that_was_refused() -> None:
    """Queues, user and nodes are as before, also a node that got two members before another one refused."""
    h = a_cluster(4, 2, 1, 1)
    h.submit("o")
    h.ask_and_run("o1", application_id="o", resource=memory(2), required_node="n2")
    full = h.state.nodes.get("n2")
    assert full is not None
    before = (h.queue().allocated, h.user_usage(), h.node("n1").allocated, h.node("n2").allocated)
    ask_for_members(h, "a", [2] * 3)
    h.state.nodes.give(full, a_resource(memory=2))
    h.cycle()

    books = (h.queue().allocated, h.user_usage(), h.node("n1").allocated, h.node("n2").allocated)
    assert (before, [RefusalReason.GANG_ROOM]) == (books, refusals(h, "a"))


def test_an_application_that_declines_undoes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queues, user and nodes are as before, and the next cycle places the gang."""
    h = a_cluster(4, 4)
    ask_for_members(h, "a", [2] * 4)
    allocations = h.application("a").allocations
    with monkeypatch.context() as patch:
        patch.setattr(type(allocations), "try_place_all", lambda *_: None)
        h.cycle()
    books = (h.queue().allocated, h.user_usage(), h.node("n1").allocated, h.node("n2").allocated)
    h.cycle()

    assert ((a_resource(),) * 4, keys("a", 4)) == (books, sorted(h.placements))


# ---------------------------------------------------------------------------------------- predicates


def test_a_pair_that_the_rm_refuses_is_left_out_of_the_plan() -> None:
    """The member goes to the next node; every pair of the plan was asked about."""
    predicates = FakePredicates(refused={("a1", "n1"): "taint"})
    h = a_cluster(4, 4, predicates=predicates)
    ask_for_members(h, "a", [2] * 3)
    h.run_until_idle()

    assert "n2" == h.placements["a1"]
    assert {(key, node, True) for key, node in h.placements.items()} <= set(predicates.asked)


def test_a_gang_that_the_rm_refuses_everywhere_waits_for_it() -> None:
    """Nothing is placed; the refusal has the words of the RM, and the gang is tried again."""
    refused = {("a1", "n1"): "taint"}
    h = a_cluster(4, predicates=FakePredicates(refused=refused))
    ask_for_members(h, "a", [2] * 2)
    h.run_until_idle()
    refusal = h.application("a").asks.refusals()[0]
    before = h.placements
    refused.clear()
    h.run_until_idle()

    assert (RefusalReason.PREDICATES, "taint", {}) == (refusal.reason, refusal.detail, before)
    assert keys("a", 2) == sorted(h.placements)


def test_the_rm_is_not_asked_about_a_gang_that_has_no_room() -> None:
    """Room is looked for first."""
    predicates = FakePredicates()
    h = a_cluster(4, predicates=predicates)
    ask_for_members(h, "a", [2] * 3)
    h.run_until_idle()

    assert [] == predicates.asked


# ---------------------------------------------------------------------------------------------- waits


@pytest.mark.parametrize("style", ["Soft", "Hard"])
def test_a_gang_that_waits_for_too_long_becomes_stepwise_or_ends(style: str) -> None:
    """A soft gang is placed as far as there is room; a hard one fails, and its asks are released."""
    h = a_cluster(4, queues=WHOLE)
    announce(h, "a", [2] * 3, style=style, tags={"gangWait": "10m"})
    h.run_until_idle()
    h.advance(seconds=599)
    h.run_until_idle()
    before = h.placements
    h.advance(seconds=1)
    h.run_until_idle()

    released = [(key, TerminationType.TIMEOUT) for key in keys("a", 3)]
    expected = (["a1", "a2"], []) if style == "Soft" else ([], released)
    assert ({}, *expected) == (before, sorted(h.placements), h.releases)
    assert (["Accepted"] if style == "Soft" else ["Accepted", "Failing", "Failed"]) == h.states("a")


def explained(h: Harness) -> str:
    """Return why the application `a` waits, in the words of `explain`."""
    explanation = h.partition.read(explain, "a")
    assert explanation is not None
    return "; ".join(what_blocks(blocker, h.clock.now_ns()) for blocker in explanation.blockers)


TEXTS: dict[str, tuple[list[int], list[int], int, str]] = {
    "too few slots": (
        [4, 3, 3],
        [2] * 5,
        5,
        "application a: no room was found for all of the gang: memory 2: room for 4 of 5",
    ),
    "room for each size, not for both": (
        [15, 15, 5],
        [3, 8, 8, 8],
        4,
        (
            "application a: no room was found for all of the gang: memory 3: room for 11 of 1; "
            "memory 8: room for 2 of 3"
        ),
    ),
    "not all have been asked for": (
        [17],
        [1, 1],
        3,
        "application a: not all of the gang has been asked for: 2 of 3 asks wait",
    ),
}


@pytest.mark.parametrize(("nodes", "members", "size", "text"), TEXTS.values(), ids=TEXTS)
def test_an_explanation_says_how_many_of_each_size_have_room(
    nodes: list[int], members: list[int], size: int, text: str
) -> None:
    """The exact bound of each size alone."""
    h = a_cluster(*nodes)
    ask_for_members(h, "a", members, {"gangSize": str(size)})
    h.run_until_idle()

    assert text == explained(h)


def test_an_explanation_counts_the_room_on_the_node_that_a_member_needs() -> None:
    """Not that of others: the node may be gone."""
    h = a_cluster(4, 8)
    assert h.submit("a", tags={"gangSize": "3"}) is None
    for key, node_id in {"a1": "gone", "a2": "n1", "a3": ""}.items():
        h.ask(key, application_id="a", resource=memory(4), required_node=node_id)
    h.run_until_idle()

    kinds = (
        "memory 4 on gone, which it needs: room for 0 of 1",
        "memory 4 on n1, which it needs: room for 1 of 1",
        "memory 4: room for 3 of 1",
    )
    assert f"application a: no room was found for all of the gang: {'; '.join(kinds)}" == explained(h)


def test_an_explanation_names_task_groups_and_the_line_of_the_configuration() -> None:
    """There is room for each task group alone, and the gang is placed whole because of that line."""
    h = a_cluster(15, 17, 3, queues=WHOLE)
    announce(h, "a", [8, 8, 8, 5, 5])
    h.run_until_idle()
    explanation = h.partition.read(explain, "a")
    assert explanation is not None
    (blocker,) = explanation.blockers

    assert "of 8: room for 3 of 3; of 5: room for 6 of 2; not together" == blocker.detail
    assert blocker.position is not None


def test_a_gang_that_was_placed_in_time_waits_no_longer() -> None:
    """The time is over for gangs that wait alone."""
    h = a_cluster(4)
    ask_for_members(h, "a", [2] * 2, {"gangWait": "1m"})
    h.run_until_idle()
    h.advance(seconds=61)

    assert ([], keys("a", 2)) == (h.releases, sorted(h.placements))


def test_a_gang_that_waited_for_too_long_is_tried_where_its_first_ask_needs_a_node() -> None:
    """Nothing else about the application changes then: its leaf is not looked at but for that."""
    h = a_cluster(4)
    assert h.submit("a", tags={"gangSize": "2", "gangWait": "5s"}) is None
    h.ask("a1", application_id="a", resource=memory(2), required_node="n1")
    h.run_until_idle()
    h.advance(seconds=6)
    h.run_until_idle()

    assert ["a1"] == [*h.placements]


BAD: dict[str, tuple[dict[str, str], int, str]] = {
    "a placing that is none": (
        {"gangPlacing": "half"},
        0,
        "the tag gangPlacing of application app is 'half': it must be whole or stepwise",
    ),
    "a size of zero": (
        {"gangSize": "0"},
        0,
        "the tag gangSize of application app is '0': it must be a number from 1 to 1000000",
    ),
    "a wait that is no duration": (
        {"gangWait": "soon"},
        0,
        "the tag gangWait of application app is 'soon': it must be a duration above zero, as 30m is",
    ),
    "a size and stepwise": (
        {"gangSize": "2", "gangPlacing": "stepwise"},
        0,
        "the tags of application app contradict each other: gangSize is for gangs that are placed whole",
    ),
    "a size and placeholders": (
        {"gangSize": "2"},
        10,
        (
            "the tag gangSize of application app is for a gang without placeholders, and it announces "
            "map[memory:10] of them"
        ),
    ),
}


@pytest.mark.parametrize(("tags", "announced", "text"), BAD.values(), ids=BAD)
def test_tags_that_make_no_sense_are_refused(tags: dict[str, str], announced: int, text: str) -> None:
    """The reason names the tag and its value."""
    h = a_cluster(10)
    rejection = h.submit(tags=tags, placeholder_ask=a_resource(memory=announced) if announced else None)

    assert rejection is not None
    assert text == rejection.reason


def test_all_placements_of_a_gang_are_announced_after_its_state() -> None:
    """The RM hears of each member, in the order of the asks."""
    h = a_cluster(6)
    ask_for_members(h, "a", [2] * 3)
    h.forget()
    h.cycle()

    placed = [each.allocation.ask.allocation_key for each in h.heard(AllocationPlaced)]
    assert keys("a", 3) == placed
