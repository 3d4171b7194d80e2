"""The first pass of a cycle: asks that have a reservation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.harness import Harness, a_roomy_partition

from licorne.model.queues.application_entry import ApplicationEntry
from licorne.model.resources.resource import Resource
from licorne.model.scheduling import reserved_pass
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.scheduling.reserved_pass import RESERVATION_TIMEOUT_NS
from licorne.model.state.charges import user_headroom
from licorne.model.state.partition_state import PartitionState
from licorne.model.values.messages import NodeAction, TerminationType

FIVE = a_resource(memory=5)
RESULT = CycleOutcome.RESULT


def reserved(
    *waiting: str,
    nodes: Sequence[str] = ("one",),
    busy: Sequence[str] = ("busy",),
    busy_size: Resource = TEN,
    size: Resource = TEN,
    **settings: Any,
) -> Harness:
    """Return a partition whose nodes are full of `busy`, and reserved for asks, by default for `waits`."""
    waiting = waiting or ("waits",)
    h = a_roomy_partition(*nodes, **settings)
    h.submit()
    h.ask_and_run(*busy, resource=busy_size)
    h.ask(*waiting, resource=size)
    h.wait(3)
    assert list(waiting) == [key for node in nodes for key in h.node(node).reservations]
    h.forget()
    return h


def test_a_reserved_ask_waits_until_its_node_has_room() -> None:
    """It keeps its reservation, which is gone once it is placed."""
    h = reserved()
    assert CycleOutcome.NOTHING is h.cycle()
    assert ("waits",) == h.node("one").reservations
    h.release("busy")

    assert RESULT is h.cycle()
    assert ({"waits": "one"}, (), 0) == (h.placements, h.node("one").reservations, h.state.reservations)


def test_an_application_may_start_with_a_reserved_ask() -> None:
    """It is Accepted, and nothing keeps it from running."""
    h = a_roomy_partition("one")
    h.submit("other")
    h.ask("used", application_id="other", node_id="one", resource=FIVE)
    h.submit()
    h.ask("a")
    h.wait(3)
    h.release("used", application_id="other")

    assert RESULT is h.cycle()
    assert ["Accepted", "Running"] == h.states()


def test_reserved_asks_go_before_all_others() -> None:
    """Also before those of higher priority."""
    h = reserved()
    h.ask("urgent", priority=9)
    h.release("busy")

    h.cycle()

    assert ["waits"] == list(h.placements)


def test_a_reserved_ask_takes_room_on_another_node() -> None:
    """Whichever has room first; its own node is free again."""
    h = reserved()
    h.nodes("two")

    assert RESULT is h.cycle()
    assert ({"waits": "two"}, ()) == (h.placements, h.node("one").reservations)


@pytest.mark.parametrize("why", ["cordoned", "small", "reserved"])
def test_other_nodes_must_be_usable(why: str) -> None:
    """Not those that are cordoned, too small, or reserved for another ask."""
    h = reserved()
    h.ask("second")
    h.nodes("two", capacity=FIVE if why == "small" else TEN)
    if why == "cordoned":
        h.update_node("two", NodeAction.DRAIN_NODE)
    elif why == "reserved":
        h.ask("blocker", node_id="two")
        h.advance(3)
        h.cycle()
        h.forget()
        assert ("second",) == h.node("two").reservations

    h.run_until_idle()

    assert {} == {key: node for key, node in h.placements.items() if key == "waits"}
    assert ("waits",) == h.node("one").reservations


def test_the_predicates_are_asked_for_the_reserved_node() -> None:
    """Where they refuse it, the other nodes are tried."""
    predicates = FakePredicates()
    h = reserved(predicates=predicates)
    predicates.refused["waits", "one"] = "not here"
    h.release("busy")
    predicates.asked.clear()

    h.cycle()
    denied = dict(h.placements)
    h.nodes("two")
    h.cycle()

    assert ("waits", "one", True) == predicates.asked[0]
    assert ({}, {"waits": "two"}) == (denied, h.placements)


def reserved_beside_a_spare(required_node: str = "") -> Harness:
    """Return a partition with a reservation; a large node that is cordoned has room for all."""
    h = Harness("- name: leaf")
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.nodes("one")
    h.submit()
    h.ask("busy", node_id="one")
    h.ask("waits", required_node=required_node, priority=-1)
    h.wait(3)
    assert ("waits",) == h.node("one").reservations
    return h


def without_room_in_the_cluster(required_node: str = "") -> Harness:
    """Return the same when all nodes together have no room for the ask any more."""
    h = reserved_beside_a_spare(required_node)
    h.update_node("spare", NodeAction.DECOMISSION)
    return h


def test_a_reservation_ends_after_an_hour_without_room_in_the_cluster() -> None:
    """Not before, and nothing else has to happen for it."""
    h = without_room_in_the_cluster()
    made_ns = h.clock.now_ns()
    h.partition.work(5)
    due_ns = h.partition.next_retry_ns()
    h.wait(3600)
    before = h.node("one").reservations
    h.advance(milliseconds=1)
    h.run_until_idle()

    assert (3600 * 10**9, made_ns + RESERVATION_TIMEOUT_NS + 1) == (RESERVATION_TIMEOUT_NS, due_ns)
    assert (("waits",), (), 0) == (before, h.node("one").reservations, h.state.reservations)


def test_a_reservation_of_a_required_node_does_not_end() -> None:
    """The ask can run nowhere else."""
    h = without_room_in_the_cluster("one")
    h.wait(24 * 3600)

    assert ("waits",) == h.node("one").reservations


@pytest.mark.parametrize("required_node", ["", "one"])
@pytest.mark.parametrize("by", ["the maximum of its queue", "the limit of its user"])
def test_a_forbidden_ask_leaves_its_node_to_others_until_it_is_allowed(by: str, required_node: str) -> None:
    """A node would be empty for hours; the ask reserves it anew when the maximum or limit has room again."""
    free = "- name: leaf"
    barred = {
        "the maximum of its queue": "- {name: leaf, resources: {max: {memory: 15}}}",
        "the limit of its user": (
            "- {name: leaf, limits: [{limit: bob, users: [bob], maxresources: {memory: 15}}]}"
        ),
    }[by]
    h = reserved_beside_a_spare(required_node)
    h.reload(barred)
    h.run_until_idle()
    assert () == h.node("one").reservations
    h.reload(free)
    h.run_until_idle()

    assert ("waits",) == h.node("one").reservations


def test_a_partition_at_rest_asks_again_for_a_reserved_node_that_the_rm_refused() -> None:
    """After a second: the RM says nothing when it has changed its mind."""
    predicates = FakePredicates()
    h = reserved(predicates=predicates)
    predicates.refused["waits", "one"] = "not yet"
    h.release("busy")
    h.partition.work(5)
    due_ns = h.partition.next_retry_ns()

    predicates.refused.clear()
    h.advance(1)
    h.partition.work(5)

    assert (due_ns, {"waits": "one"}) == (h.clock.now_ns(), h.placements)


def test_a_reserved_ask_is_not_placed_on_its_node_while_that_is_cordoned() -> None:
    """It keeps the reservation, takes room elsewhere, or waits until the node is opened again."""
    h = reserved()
    h.update_node("one", NodeAction.DRAIN_NODE)
    h.release("busy")
    held = (h.run_until_idle(), h.node("one").reservations)

    h.update_node("one", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.run_until_idle()

    assert ((0, ("waits",)), {"waits": "one"}) == (held, h.placements)


def test_reserved_nodes_are_tried_before_any_other_node() -> None:
    """Of one application: the second ask on its own node goes before the first one elsewhere."""
    h = reserved("a", "b", nodes=("one", "two"), busy=("busy-1", "busy-2"))
    reserved_for = {name: h.node(name).reservations for name in ("one", "two")}
    h.nodes("three")
    h.release("busy-2")

    h.cycle()
    first = dict(h.placements)
    h.run_until_idle()

    assert {"one": ("a",), "two": ("b",)} == reserved_for
    assert ({"b": "two"}, "three") == (first, h.placements["a"])


def test_a_back_off_does_not_bar_reserved_asks() -> None:
    """It is for the search of nodes; a reserved ask has one."""
    backoff = "{application.unschedasks.backoff: '1', application.unschedasks.backoff.delay: 10m}"
    h = reserved(queues=f"- name: leaf\n  properties: {backoff}")
    h.ask_and_run("next", "last", resource=FIVE)
    backs_off = h.entry().backoff_until_ns
    h.release("busy")
    h.run_until_idle()

    assert backs_off is not None
    assert {"waits": "one"} == h.placements


def test_a_reserved_ask_beyond_its_users_quota_waits() -> None:
    """It is placed when the quota allows it again, though its node has had room before."""
    h = reserved()
    h.nodes("two")
    limits = "limits: [{limit: bob, users: [bob], maxresources: {memory: 10}}]"
    h.reload("- name: leaf", root=limits)

    held = h.run_until_idle()
    h.release("busy")
    h.run_until_idle()

    assert (0, ["waits"]) == (held, list(h.placements))


def test_an_application_that_may_not_start_is_passed_over() -> None:
    """The user runs the maximum of applications: the reservation waits."""
    h = a_roomy_partition("one")
    h.submit("running")
    h.ask_and_run("busy", application_id="running")
    h.submit("accepted")
    h.ask("waits", application_id="accepted")
    h.wait(3)
    h.ask("more", application_id="running")
    h.reload("- name: leaf", root="limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    h.release("busy", application_id="running")

    h.run_until_idle()

    assert ("waits",) == h.node("one").reservations
    assert "waits" not in h.placements


def test_an_ask_with_a_required_node_goes_nowhere_else() -> None:
    """It waits for its node, and runs there though it is cordoned."""
    h = a_roomy_partition("one")
    h.submit()
    h.ask_and_run("busy")
    h.ask_and_run("daemon", required_node="one")
    h.nodes("two")
    h.run_until_idle()
    elsewhere = h.placements.get("daemon")

    h.update_node("one", NodeAction.DRAIN_NODE)
    h.release("busy")
    h.run_until_idle()

    assert (None, "one") == (elsewhere, h.placements.get("daemon"))


def test_an_ask_whose_required_node_is_refused_goes_nowhere_else() -> None:
    """The RM may agree later; there is room on another node all the time."""
    predicates = FakePredicates(refused={("daemon", "one"): "not yet"})
    h = a_roomy_partition("one", "two", predicates=predicates)
    h.submit()
    h.ask_and_run("daemon", required_node="one")
    h.run_until_idle()

    assert ({}, ("daemon",)) == (h.placements, h.node("one").reservations)


@pytest.mark.parametrize("how", ["ask", "application", "node", "all"])
def test_a_reservation_goes_with_what_it_is_for(how: str) -> None:
    """The ask, its application, or the node: nothing is left of it."""
    h = reserved()

    match how:
        case "ask":
            h.release("waits")
        case "application":
            h.withdraw()
        case "node":
            h.update_node("one", NodeAction.DECOMISSION)
        case _:
            h.release("")

    assert 0 == h.state.reservations
    if how != "node":
        assert () == h.node("one").reservations


def test_an_ask_that_the_rm_places_itself_lets_its_reservation_go() -> None:
    """Wherever it is placed."""
    h = reserved()
    h.nodes("two")

    h.ask("waits", node_id="two")

    assert ({"waits": "two"}, 0) == (h.placements, h.state.reservations)


def test_one_reserved_ask_is_placed_with_each_cycle() -> None:
    """The others keep their turn."""
    h = reserved("a", "b", nodes=("one", "two"), busy=("busy-1", "busy-2"))
    h.release("busy-1", "busy-2", termination=TerminationType.STOPPED_BY_RM)

    assert RESULT is h.cycle()
    assert 1 == len(h.placements)
    assert RESULT is h.cycle()
    assert {"a", "b"} == set(h.placements)


def reserved_by_many(count: int) -> Harness:
    """Return a partition with as many applications as nodes, each with an ask that reserves a node."""
    h = a_roomy_partition(*(f"node-{number:02}" for number in range(count)))
    for number in range(count):
        h.submit(f"app-{number:02}")
        h.ask(f"busy-{number:02}", application_id=f"app-{number:02}")
    h.run_until_idle()
    for number in range(count):
        h.ask(f"waits-{number:02}", application_id=f"app-{number:02}")
    h.wait(3)
    assert count == h.state.reservations
    h.forget()
    return h


def applications_tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that each application is noted in whose reserved asks are tried from now on."""
    tried: list[str] = []

    def noted(state: PartitionState, entry: ApplicationEntry) -> Resource | None:
        tried.append(entry.application_id)
        return user_headroom(state, entry)

    monkeypatch.setattr(reserved_pass, "user_headroom", noted)
    return tried


def test_only_the_application_is_tried_whose_node_gained_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others have reservations."""
    h = reserved_by_many(20)
    place = h.node("node-07").reservations[0]
    tried = applications_tried(monkeypatch)

    h.release("busy-07", application_id="app-07")
    result = h.cycle()

    assert (RESULT, {place: "node-07"}) == (result, h.placements)
    assert [place.replace("waits", "app")] == tried


def test_a_new_reservation_has_no_other_reserved_ask_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """They lack room as before."""
    h = reserved_by_many(5)
    h.nodes("more")
    h.ask_and_run("fills", application_id="app-00")
    h.ask("late", application_id="app-01")
    tried = applications_tried(monkeypatch)

    h.wait(3)

    assert (6, []) == (h.state.reservations, tried)


def test_a_reserved_ask_that_becomes_smaller_is_tried_on_its_node_again() -> None:
    """No node has gained anything: the ask fits into what was too little before."""
    h = reserved(busy_size=FIVE)
    h.ask_and_run("waits", resource=FIVE)

    assert ({"waits": "one"}, 0) == (h.placements, h.state.reservations)


def test_a_reserved_ask_that_becomes_larger_waits_for_more_room() -> None:
    """What its node gains is too little for it now."""
    h = reserved(busy=("first", "second"), busy_size=FIVE, size=FIVE)
    h.ask("waits", resource=TEN)
    h.release("first")
    h.run_until_idle()
    early = dict(h.placements)
    h.release("second")
    h.run_until_idle()

    assert ({}, {"waits": "one"}) == (early, h.placements)


def test_a_node_that_becomes_larger_takes_the_ask_it_is_reserved_for() -> None:
    """Nothing on it has ended."""
    h = reserved()

    h.update_node("one", NodeAction.UPDATE, capacity=a_resource(memory=20))
    h.run_until_idle()

    assert {"waits": "one"} == h.placements


def test_several_asks_that_can_run_on_one_node_only_get_it_in_turn() -> None:
    """Each has a reservation of the same node, which gains room for one after the other."""
    h = a_roomy_partition("one")
    h.submit()
    h.ask_and_run("busy-1", "busy-2", resource=FIVE)
    h.ask_and_run("daemon-1", "daemon-2", required_node="one", resource=FIVE)
    held = h.node("one").reservations
    h.forget()

    h.release("busy-1")
    h.run_until_idle()
    first = list(h.placements)
    h.release("busy-2")
    h.run_until_idle()

    assert (("daemon-1", "daemon-2"), ["daemon-1"]) == (held, first)
    assert ["daemon-1", "daemon-2"] == list(h.placements)


def test_the_end_of_another_allocation_of_the_user_lets_a_reserved_ask_run() -> None:
    """Its own node had room before: only the user's limit has changed since."""
    h = reserved()
    h.nodes("two", "three")
    h.reload("- name: leaf", root="limits: [{limit: bob, users: [bob], maxresources: {memory: 20}}]")
    h.ask("other", node_id="two")
    h.ask("waits-too")
    h.release("busy")
    h.ask("third", node_id="three")
    held = h.run_until_idle()

    h.release("other")
    h.run_until_idle()

    assert (0, "one") == (held, h.placements["waits"])
