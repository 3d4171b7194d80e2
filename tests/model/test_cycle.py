"""The scheduling cycle: which ask is placed where, and which are passed over."""

from __future__ import annotations

import pytest
from builders import START_NS, FakePredicates, a_resource
from harness import Harness

from licorne.model.cycle import CycleOutcome
from licorne.model.messages import AllocationPlaced, NodeAction
from licorne.model.object_state import ObjectState

FIVE = a_resource(memory=5)
HUNDRED = a_resource(memory=100)
NOTHING = CycleOutcome.NOTHING
PREPARED = CycleOutcome.PREPARED
RESULT = CycleOutcome.RESULT


def a_partition(
    *node_ids: str,
    queues: str = "- name: leaf",
    root: str = "",
    partition: str = "",
    predicates: FakePredicates | None = None,
    reservations_on: bool = True,
) -> Harness:
    """Return a partition with nodes of ten and the application `app`.

    A large node that is cordoned has room enough for every queue: what stands in the way are nodes.
    """
    h = Harness(
        queues, root=root, partition=partition, predicates=predicates, reservations_on=reservations_on
    )
    h.nodes("spare", capacity=a_resource(memory=100_000, gpu=100), action=NodeAction.CREATE_DRAIN)
    if node_ids:
        h.nodes(*node_ids)
    return h


def with_asks(*keys: str, nodes: tuple[str, ...] = ("one",)) -> Harness:
    h = a_partition(*nodes)
    h.submit()
    h.ask(*keys)
    return h


def log_of(h: Harness, key: str) -> dict[str, list[int]]:
    record = h.application().ask_record(key)
    assert record is not None
    return record.log or {}


# --------------------------------------------------------------------------------------- one result


def test_a_cycle_places_one_ask() -> None:
    """And says so; when nothing is left to do it says that."""
    h = with_asks("a", "b", nodes=("one", "two"))

    outcomes = [h.cycle() for _ in range(3)]

    assert ([RESULT, RESULT, NOTHING], {"a": "one", "b": "two"}) == (outcomes, h.placements)


def test_nothing_is_done_without_nodes() -> None:
    """A partition that has nothing does not even look."""
    h = Harness()
    h.submit()
    h.ask("a")

    assert NOTHING is h.cycle()
    assert {} == log_of(h, "a")


def test_nothing_is_done_while_nothing_waits() -> None:
    """Neither for an application without asks nor for one whose asks are all placed."""
    h = with_asks()

    assert NOTHING is h.cycle()


def test_a_stopped_partition_places_nothing() -> None:
    """Whatever waits."""
    h = with_asks("a")
    h.state.state = ObjectState.STOPPED

    assert NOTHING is h.cycle()


def test_room_that_is_given_back_is_used() -> None:
    """The ask that found none before is placed now."""
    h = with_asks("a", "b")
    h.settle()

    h.release("a")

    assert RESULT is h.cycle()
    assert {"a": "one", "b": "one"} == h.placements


# ---------------------------------------------------------------------------- queues and applications


def test_queues_are_served_by_their_share() -> None:
    """In turn, when they use the same."""
    h = a_partition("one", queues="- name: a\n- name: b")
    h.update_node("one", NodeAction.UPDATE, HUNDRED)
    for name in "ab":
        h.submit(name, f"root.{name}")
        h.ask(f"{name}1", f"{name}2", application_id=name)

    h.settle()

    assert ["a1", "b1", "a2", "b2"] == list(h.placements)


def test_the_next_queue_is_served_where_the_first_has_nothing_to_place() -> None:
    """An ask without room does not bar other queues."""
    h = a_partition("one", queues="- name: a\n- name: b")
    h.submit("a", "root.a")
    h.ask("big", application_id="a", resource=HUNDRED, priority=9)
    h.submit("b", "root.b")
    h.ask("small", application_id="b")

    assert RESULT is h.cycle()
    assert {"small": "one"} == h.placements


def test_a_queue_passes_over_what_its_maximum_bars() -> None:
    """The next ask is tried, and the log of the first says why."""
    h = a_partition("one", queues="- name: leaf\n  resources: {max: {memory: 7}}")
    h.submit()
    h.ask("big", priority=1)
    h.ask("small", resource=FIVE)

    h.settle()

    assert {"small": "one"} == h.placements
    assert {"Not enough queue quota": [START_NS]} == {
        text: entry[1:] for text, entry in log_of(h, "big").items() if "queue quota" in text
    }


def test_the_maximum_of_a_queue_above_bars_as_well() -> None:
    """Of two leaves in one parent only one gets its ask placed."""
    queues = "- name: p\n  resources: {max: {memory: 15}}\n  queues:\n  - name: a\n  - name: b"
    h = a_partition("one", "two", queues=queues)
    for name in "ab":
        h.submit(name, f"root.p.{name}")
        h.ask(name, application_id=name)

    assert (1, 1) == (h.settle(), len(h.placements))


def test_a_users_limit_passes_over_what_it_bars() -> None:
    """Only that user's asks wait."""
    h = a_partition("one", "two", root="limits: [{limit: bob, users: [bob], maxresources: {memory: 7}}]")
    h.submit()
    h.submit("eves", user="eve")
    h.ask("bobs")
    h.ask("eves", application_id="eves")

    h.settle()

    assert {"eves": "one"} == h.placements
    assert ["Not enough user quota"] == list(log_of(h, "bobs"))


def test_applications_are_served_first_come_first_served() -> None:
    """The older one has all its asks placed before the younger one."""
    h = a_partition("one")
    h.update_node("one", NodeAction.UPDATE, HUNDRED)
    for name in ("old", "young"):
        h.submit(name)
        h.advance(milliseconds=10)
    for name in ("young", "old"):
        h.ask(f"{name}1", f"{name}2", application_id=name)

    h.settle()

    assert ["old1", "old2", "young1", "young2"] == list(h.placements)


def test_so_many_applications_run_at_most() -> None:
    """The next one starts when one of them is done; those that run go on."""
    h = a_partition("one", "two", queues="- name: leaf\n  maxapplications: 1")
    for name in ("first", "second"):
        h.submit(name)
        h.ask(name, application_id=name)
    h.settle()
    h.ask("more", application_id="first")
    h.settle()
    before = list(h.placements)

    h.release("first", "more", application_id="first")
    h.settle()

    assert (["first", "more"], ["first", "more", "second"]) == (before, list(h.placements))


def test_a_gang_counts_as_running_from_its_first_placeholder() -> None:
    """Though it is Accepted: no other application starts."""
    h = a_partition("one", "two", queues="- name: leaf\n  maxapplications: 1")
    h.submit("gang", placeholder_ask=a_resource(memory=30))
    h.ask("p1", application_id="gang", task_group_name="g", placeholder=True)
    h.settle()
    h.submit("other")
    h.ask("o", application_id="other", priority=5)
    h.ask("p2", application_id="gang", task_group_name="g", placeholder=True)

    h.settle()

    assert ({"p1": "one", "p2": "two"}, ["Accepted"]) == (h.placements, h.states("gang"))
    assert ["gang"] == list(h.queue().accepted_allocating)


def test_a_user_runs_so_many_applications_at_most() -> None:
    """Other users are not concerned."""
    h = a_partition("one", "two", root="limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    for name, user in (("b1", "bob"), ("b2", "bob"), ("e1", "eve")):
        h.submit(name, user=user)
        h.ask(name, application_id=name)

    h.settle()

    assert ["b1", "e1"] == list(h.placements)


# --------------------------------------------------------------------------------------------- nodes


def test_cordoned_and_small_nodes_are_passed_over() -> None:
    """And come into use when that changes."""
    h = a_partition("small", "cordoned")
    h.update_node("small", NodeAction.UPDATE, FIVE)
    h.update_node("cordoned", NodeAction.DRAIN_NODE)
    h.submit()
    h.ask("a")
    h.settle()
    before = dict(h.placements)

    h.update_node("cordoned", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.settle()

    assert ({}, {"a": "cordoned"}) == (before, h.placements)


@pytest.mark.parametrize(("policy", "nodes"), [("fair", ["a", "b"]), ("binpacking", ["a", "a"])])
def test_the_policy_of_the_partition_orders_the_nodes(policy: str, nodes: list[str]) -> None:
    """Fair spreads, binpacking fills."""
    h = a_partition("a", "b", partition=f"nodesortpolicy: {{type: {policy}}}")
    h.submit()
    h.ask("x", "y", resource=FIVE)

    h.settle()

    assert nodes == list(h.placements.values())


def test_the_predicates_refuse_one_node() -> None:
    """The next one in the order is asked, and no further one than that."""
    predicates = FakePredicates(refused={("a", "one"): "taint"})
    h = a_partition("one", "two", "three", predicates=predicates)
    h.submit()
    h.ask("a")

    h.cycle()

    assert {"a": "two"} == h.placements
    assert [("a", "one", True), ("a", "two", True)] == predicates.asked


def test_the_predicates_are_asked_of_nodes_with_room_alone() -> None:
    """Full, small and cordoned nodes are no question."""
    predicates = FakePredicates()
    h = a_partition("full", "free", predicates=predicates)
    h.submit()
    h.ask("e", node_id="full")
    h.ask("a")

    h.cycle()

    assert [("a", "free", True)] == predicates.asked


def test_an_ask_that_is_refused_everywhere_does_not_bar_the_next() -> None:
    """Each reason is counted, by text."""
    predicates = FakePredicates(refused={("a", "one"): "taint", ("a", "two"): "zone"})
    h = a_partition("one", "two", predicates=predicates)
    h.submit()
    h.ask("a", "b")

    h.cycle()
    h.cycle()

    assert {"b": "one"} == h.placements
    assert {"taint": 1, "zone": 2} == {text: entry[0] for text, entry in log_of(h, "a").items()}


def test_what_the_predicates_refused_is_tried_again() -> None:
    """They may change their mind without a word."""
    predicates = FakePredicates(refused={("a", "one"): "taint"})
    h = a_partition("one", predicates=predicates)
    h.submit()
    h.ask("a")
    h.settle()

    predicates.refused.clear()

    assert RESULT is h.cycle()


def test_an_allocation_is_bound_at_the_time_of_the_cycle() -> None:
    """Not when the ask came."""
    h = with_asks("a")
    h.advance(1)

    h.cycle()

    (placed,) = h.heard(AllocationPlaced)
    assert START_NS + 10**9 == placed.allocation.bound_at_ns


# ----------------------------------------------------------------------------------------- reservations


def waiting(*nodes: str, predicates: FakePredicates | None = None, reservations_on: bool = True) -> Harness:
    """Return a partition whose nodes are partly used, so that an ask of ten finds no room."""
    h = a_partition(*nodes, predicates=predicates, reservations_on=reservations_on)
    h.submit()
    for number, node_id in enumerate(nodes):
        h.ask(f"used-{number}", node_id=node_id, resource=a_resource(memory=3 + number))
    h.ask("a")
    h.settle()
    h.forget()
    return h


def reserved(h: Harness) -> dict[str, tuple[str, ...]]:
    """Return the reserved nodes with the keys of their asks."""
    nodes = [seat.node.facts() for seat in h.state.nodes.by_name()]
    return {node.node_id: node.reservations for node in nodes if node.reservations}


def test_a_node_is_reserved_after_two_seconds() -> None:
    """Not at two seconds, but behind them; the RM is not told."""
    h = waiting("one")
    h.advance(2)
    early = h.cycle()
    h.advance(milliseconds=1)

    assert (NOTHING, PREPARED) == (early, h.cycle())
    assert ({"one": ("a",)}, []) == (reserved(h), h.announcements)


def test_the_node_that_lacks_least_is_reserved() -> None:
    """Among those that are large enough."""
    h = waiting("three", "four", "five")
    h.nodes("small", capacity=a_resource(memory=9))
    h.advance(3)

    h.settle()

    assert {"three": ("a",)} == reserved(h)


def test_an_ask_has_one_reservation() -> None:
    """However long it waits; the second ask has the second node, the third none."""
    h = waiting("one", "two")
    h.ask("b", "c")
    h.advance(3)

    outcomes = [h.cycle() for _ in range(4)]

    assert ([PREPARED, PREPARED, NOTHING, NOTHING], {"one": ("a",), "two": ("b",)}) == (
        outcomes,
        reserved(h),
    )


def test_a_reserved_node_is_used_for_nobody_else() -> None:
    """Also for asks that would fit."""
    h = waiting("one")
    h.advance(3)
    h.settle()
    h.ask("small", resource=a_resource(memory=1), priority=9)

    assert NOTHING is h.cycle()
    assert {} == h.placements


def test_cordoned_nodes_are_not_reserved() -> None:
    """Nothing would be placed there."""
    h = waiting("one")
    h.update_node("one", NodeAction.DRAIN_NODE)
    h.advance(3)

    assert NOTHING is h.cycle()


def test_the_predicates_must_allow_a_reservation() -> None:
    """They are asked without allocating; where they refuse, the ask waits without a reservation."""
    predicates = FakePredicates(unreservable={("a", "one"): "taint"})
    h = waiting("one", predicates=predicates)
    predicates.asked.clear()
    h.advance(3)

    assert NOTHING is h.cycle()
    assert [("a", "one", False)] == predicates.asked


def test_reservations_can_be_switched_off() -> None:
    """Then asks just wait."""
    h = waiting("one", reservations_on=False)
    h.advance(30)

    assert NOTHING is h.cycle()
    assert {} == reserved(h)


# ---------------------------------------------------------------------------------------- the back-off

BACKOFF = """
- name: leaf
  properties: {application.unschedasks.backoff: "2", application.unschedasks.backoff.delay: 10s}
"""


def test_an_application_backs_off_after_so_many_asks_without_room() -> None:
    """Its further asks are not looked at; other applications go on."""
    h = a_partition("one", queues=BACKOFF, reservations_on=False)
    h.submit()
    h.ask("big-1", "big-2", resource=HUNDRED, priority=1)
    h.ask("small")
    h.submit("other")
    h.ask("other", application_id="other", resource=FIVE)

    h.settle()

    assert ["other"] == list(h.placements)


def test_an_application_comes_back_after_the_delay() -> None:
    """Not before it, whatever changes; then its asks are looked at anew."""
    h = a_partition("one", queues=BACKOFF, reservations_on=False)
    h.submit()
    h.ask("big-1", "big-2", resource=HUNDRED, priority=1)
    h.ask("small")
    h.settle()

    h.nodes("huge", capacity=a_resource(memory=1000))
    h.advance(9)
    held = h.settle()
    h.advance(1)

    assert (0, 3) == (held, h.settle())


# ------------------------------------------------------------------------------------ required nodes


def test_an_ask_goes_to_its_required_node() -> None:
    """Whatever the order of nodes, and though the node is cordoned."""
    h = a_partition("one", "two")
    h.update_node("two", NodeAction.DRAIN_NODE)
    h.submit()
    h.ask("daemon", required_node="two")

    h.cycle()

    assert {"daemon": "two"} == h.placements


def test_an_ask_waits_for_its_required_node_to_come() -> None:
    """The next ask is tried meanwhile."""
    h = a_partition("one")
    h.submit()
    h.ask("daemon", required_node="two", priority=1)
    h.ask("other")
    h.settle()
    before = dict(h.placements)

    h.nodes("two")
    h.settle()

    assert ({"other": "one"}, "two") == (before, h.placements.get("daemon"))


def test_a_required_node_without_room_is_reserved_at_once() -> None:
    """No two seconds, and no question to the predicates about that."""
    predicates = FakePredicates()
    h = a_partition("one", predicates=predicates)
    h.submit()
    h.ask("used", node_id="one")
    h.ask("daemon", required_node="one", resource=FIVE)
    predicates.asked.clear()

    assert PREPARED is h.cycle()
    assert ({"one": ("daemon",)}, []) == (reserved(h), [ask for ask in predicates.asked if not ask[2]])


def test_a_required_node_that_the_predicates_refuse_is_reserved() -> None:
    """The ask can run nowhere else, so it waits there."""
    h = a_partition("one", predicates=FakePredicates(refused={("daemon", "one"): "taint"}))
    h.submit()
    h.ask("daemon", required_node="one")

    h.settle()

    assert ({"one": ("daemon",)}, {}) == (reserved(h), h.placements)


def test_a_required_node_is_shared_by_those_that_require_it() -> None:
    """Each of them has its reservation there."""
    h = a_partition("one")
    h.submit()
    h.ask("used", node_id="one")
    h.ask("d1", "d2", required_node="one")

    h.settle()

    assert {"one": ("d1", "d2")} == reserved(h)


def test_an_ask_that_requires_a_node_drives_ordinary_reservations_away() -> None:
    """It takes the room that others have waited for."""
    h = waiting("one")
    h.advance(3)
    h.settle()
    before = reserved(h)
    h.ask("daemon", required_node="one", resource=a_resource(memory=1))

    h.cycle()

    assert ({"one": ("a",)}, {}, {"daemon": "one"}) == (before, reserved(h), h.placements)


def test_an_ask_beyond_the_quota_does_not_get_its_required_node() -> None:
    """Nor a reservation of it."""
    h = a_partition("one", queues="- name: leaf\n  resources: {max: {memory: 5}}")
    h.submit()
    h.ask("daemon", required_node="one")

    h.settle()

    assert ({}, {}) == (reserved(h), h.placements)
