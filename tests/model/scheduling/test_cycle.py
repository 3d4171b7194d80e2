"""The scheduling cycle: which ask is placed where, and which are passed over."""

from __future__ import annotations

import pytest
from support.model.attributes import attributes_of
from support.model.builders import START_NS, TEN, FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.applications.ask_walk import AskWalk, Candidate, FailedTry
from licorne.model.applications.asks import ApplicationAsks
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.messages import AllocationPlaced, NodeAction
from licorne.model.values.object_state import ObjectState

FIVE = a_resource(memory=5)
HUNDRED = a_resource(memory=100)
NOTHING = CycleOutcome.NOTHING
RESULT = CycleOutcome.RESULT


def a_partition(
    *node_ids: str,
    queues: str = "- name: leaf",
    root: str = "",
    partition: str = "",
    predicates: FakePredicates | None = None,
    reservations_on: bool = True,
) -> Harness:
    """Return a partition with nodes of ten.

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
    record = h.application().asks.record(key)
    assert record is not None
    return record.log or {}


# --------------------------------------------------------------------------------------- one result


def test_a_cycle_places_one_ask() -> None:
    """And says so; when nothing is left to do it says that."""
    h = with_asks("a", "b", nodes=("one", "two"))

    outcomes = [h.cycle() for _ in range(3)]

    assert ([RESULT, RESULT, NOTHING], {"a": "one", "b": "two"}) == (outcomes, h.placements)


def test_a_cycle_serves_reserved_asks_then_members_of_gangs_then_the_rest() -> None:
    """Whatever the priorities say."""
    h = Harness("- name: leaf\n- name: other")
    h.nodes("spare", capacity=a_resource(memory=1000), action=NodeAction.CREATE_DRAIN)
    h.nodes("one", "two")
    h.submit("gang", placeholder_ask=TEN)
    h.ask("holder", application_id="gang", task_group_name="g", placeholder=True)
    h.submit("first", "root.other")
    h.ask("busy", application_id="first")
    h.run_until_idle()
    h.ask("waits", application_id="first")
    h.advance(3)
    h.run_until_idle()
    h.ask("member", application_id="gang", task_group_name="g", priority=1)
    h.ask("rest", application_id="first", priority=9)
    h.nodes("three", "four")
    h.forget()

    said = []
    for _ in range(3):
        assert RESULT is h.cycle()
        said.append([*h.placements, *[key for key, _ in h.releases]])

    assert [["waits"], ["waits", "holder"], ["waits", "rest", "holder"]] == said


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
    h.run_until_idle()

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

    h.run_until_idle()

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

    h.run_until_idle()

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

    assert (1, 1) == (h.run_until_idle(), len(h.placements))


def test_a_users_limit_passes_over_what_it_bars() -> None:
    """Only that user's asks wait."""
    h = a_partition("one", "two", root="limits: [{limit: bob, users: [bob], maxresources: {memory: 7}}]")
    h.submit()
    h.submit("eves", user="eve")
    h.ask("bobs")
    h.ask("eves", application_id="eves")

    h.run_until_idle()

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

    h.run_until_idle()

    assert ["old1", "old2", "young1", "young2"] == list(h.placements)


def test_so_many_applications_run_at_most() -> None:
    """The next one starts when one of them is done; those that run go on."""
    h = a_partition("one", "two", queues="- name: leaf\n  maxapplications: 1")
    for name in ("first", "second"):
        h.submit(name)
        h.ask(name, application_id=name)
    h.run_until_idle()
    h.ask("more", application_id="first")
    h.run_until_idle()
    before = list(h.placements)

    h.release("first", "more", application_id="first")
    h.run_until_idle()

    assert (["first", "more"], ["first", "more", "second"]) == (before, list(h.placements))


def test_what_runs_goes_on_where_fewer_may_run_now() -> None:
    """Both applications place new asks; a third one waits."""
    h = a_partition("one", "two")
    for name in ("first", "second", "third"):
        h.submit(name)
    for name in ("first", "second"):
        h.ask(name, application_id=name, resource=FIVE)
    h.run_until_idle()
    h.reload("- name: leaf\n  maxapplications: 1")
    for name in ("first", "second", "third"):
        h.ask(f"more-{name}", application_id=name, resource=FIVE)
    h.run_until_idle()

    assert ["first", "more-first", "more-second", "second"] == sorted(h.placements)


def test_a_gang_counts_as_running_from_its_first_placeholder() -> None:
    """Though it is Accepted: no other application starts."""
    h = a_partition("one", "two", queues="- name: leaf\n  maxapplications: 1")
    h.submit("gang", placeholder_ask=a_resource(memory=30))
    h.ask("p1", application_id="gang", task_group_name="g", placeholder=True)
    h.run_until_idle()
    h.submit("other")
    h.ask("o", application_id="other", priority=5)
    h.ask("p2", application_id="gang", task_group_name="g", placeholder=True)

    h.run_until_idle()

    assert ({"p1": "one", "p2": "two"}, ["Accepted"]) == (h.placements, h.states("gang"))
    assert ["gang"] == list(h.queue().accepted_allocating)


def test_a_user_runs_so_many_applications_at_most() -> None:
    """Other users are not concerned."""
    h = a_partition("one", "two", root="limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    for name, user in (("b1", "bob"), ("b2", "bob"), ("e1", "eve")):
        h.submit(name, user=user)
        h.ask(name, application_id=name)

    h.run_until_idle()

    assert ["b1", "e1"] == list(h.placements)


# --------------------------------------------------------------------------------------------- nodes


def test_cordoned_and_small_nodes_are_passed_over() -> None:
    """And come into use when that changes."""
    h = a_partition("small", "cordoned")
    h.update_node("small", NodeAction.UPDATE, FIVE)
    h.update_node("cordoned", NodeAction.DRAIN_NODE)
    h.submit()
    h.ask("a")
    h.run_until_idle()
    before = dict(h.placements)

    h.update_node("cordoned", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.run_until_idle()

    assert ({}, {"a": "cordoned"}) == (before, h.placements)


@pytest.mark.parametrize(("policy", "nodes"), [("fair", ["a", "b"]), ("binpacking", ["a", "a"])])
def test_the_policy_of_the_partition_orders_the_nodes(policy: str, nodes: list[str]) -> None:
    """Fair spreads, binpacking fills."""
    h = a_partition("a", "b", partition=f"nodesortpolicy: {{type: {policy}}}")
    h.submit()
    h.ask("x", "y", resource=FIVE)

    h.run_until_idle()

    assert nodes == list(h.placements.values())


def test_the_predicates_refuse_one_node() -> None:
    """The next one in the order is asked, and no further one than that."""
    predicates = FakePredicates(refused={("a", "n1"): "taint"})
    h = a_partition("n1", "n2", "n3", predicates=predicates)
    h.submit()
    h.ask("a")

    h.cycle()

    assert {"a": "n2"} == h.placements
    assert [("a", "n1", True), ("a", "n2", True)] == predicates.asked


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
    h.run_until_idle()

    predicates.refused.clear()

    assert RESULT is h.cycle()


def test_an_allocation_is_bound_at_the_time_of_the_cycle() -> None:
    """Not when the ask came."""
    h = with_asks("a")
    h.advance(1)

    h.cycle()

    (placed,) = h.heard(AllocationPlaced)
    assert START_NS + 10**9 == placed.allocation.bound_at_ns


# ------------------------------------------------------------------------------------------- the walk


def test_only_the_application_changes_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came of an ask is said with the next question: nothing else has two sides that write it."""
    left: dict[str, object] = {}
    questions = []
    plain = ApplicationAsks.next_candidate

    def watched(asks: ApplicationAsks, walk: AskWalk, failed: FailedTry | None = None) -> Candidate | None:
        if walk.current is not None:
            questions.append(walk.current)
            assert left == fields_of(walk)
        candidate = plain(asks, walk, failed)
        left.update(fields_of(walk))
        return candidate

    monkeypatch.setattr(ApplicationAsks, "next_candidate", watched)
    h = a_partition("one", predicates=FakePredicates({("a", "one"): "no", ("b", "one"): "no"}))
    h.submit()
    h.ask("a", "b", "c")
    h.ask("d", required_node="missing")
    h.run_until_idle()

    assert {"c": "one"} == h.placements
    assert len(questions) > 3


def fields_of(walk: AskWalk) -> dict[str, object]:
    fields = attributes_of(walk)
    return {name: list(value) if isinstance(value, list) else value for name, value in fields.items()}
