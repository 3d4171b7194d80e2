"""The scheduling cycle: which ask is placed where, and which are passed over."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from support.model.attributes import attributes_of
from support.model.builders import START_NS, TEN, FakePredicates, a_resource
from support.model.harness import Asked, Harness, a_roomy_partition

from licorne.model.applications.ask_walk import AskWalk, Candidate, FailedTry
from licorne.model.applications.asks import ApplicationAsks
from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.messages import AllocationPlaced, NodeAction
from licorne.model.values.states import ObjectState

FIVE = a_resource(memory=5)
HUNDRED = a_resource(memory=100)
NOTHING = CycleOutcome.NOTHING
RESULT = CycleOutcome.RESULT


def with_asks(*keys: str, nodes: tuple[str, ...] = ("one",)) -> Harness:
    h = a_roomy_partition(*nodes)
    h.submit()
    h.ask(*keys)
    return h


def notes_on(h: Harness, key: str) -> dict[str, int]:
    """Return the texts that were noted on an ask of any application, and when."""
    (record,) = [
        record
        for entry in h.state.entries.values()
        if (record := h.application(entry.application_id).asks.record(key)) is not None
    ]
    return {text: time_ns for text, (_, time_ns) in (record.log or {}).items()}


def log_of(h: Harness, key: str) -> dict[str, tuple[int, int]]:
    return h.ask_record(key).log or {}


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
    h.ask_and_run("busy", application_id="first")
    h.ask("waits", application_id="first")
    h.wait(3)
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
    """Nor in a partition that is stopped, whatever waits in it."""
    h = with_asks()
    assert NOTHING is h.cycle()
    h.ask("a")
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
    h = a_roomy_partition("one", queues="- name: a\n- name: b")
    h.update_node("one", NodeAction.UPDATE, HUNDRED)
    for name in "ab":
        h.submit(name, f"root.{name}")
        h.ask(f"{name}1", f"{name}2", application_id=name)

    h.run_until_idle()

    assert ["a1", "b1", "a2", "b2"] == list(h.placements)


@dataclass(frozen=True)
class Placing:
    """Asks, where they are placed, and when what is noted on those that wait."""

    asked: list[Asked]
    placements: dict[str, str]
    noted: dict[str, dict[str, int]] = field(default_factory=dict)
    queues: str = "- name: leaf"
    root: str = ""
    partition: str = ""


USERS = [Asked("b1", "b1"), Asked("b2", "b2"), Asked("e1", "e1", user="eve")]
PLACINGS = {
    "the next queue is served where the first has an ask without room": Placing(
        [Asked("big", "a", "root.a", resource=HUNDRED, priority=9), Asked("small", "b", "root.b")],
        {"small": "one"},
        queues="- name: a\n- name: b",
    ),
    "a queue passes over what its maximum bars": Placing(
        [Asked("big", priority=1), Asked("small", resource=FIVE)],
        {"small": "one"},
        {"big": {"Not enough queue quota": START_NS}},
        queues="- {name: leaf, resources: {max: {memory: 7}}}",
    ),
    "the maximum of a queue above two leaves bars the second": Placing(
        [Asked("a", "a", "root.p.a"), Asked("b", "b", "root.p.b")],
        {"a": "one"},
        queues="- {name: p, resources: {max: {memory: 15}}, queues: [{name: a}, {name: b}]}",
    ),
    "the limit of a user bars the asks of that user only": Placing(
        [Asked("b1", "b1"), Asked("e1", "e1", user="eve")],
        {"e1": "one"},
        {"b1": {"Not enough user quota": START_NS}},
        root="limits: [{limit: bob, users: [bob], maxresources: {memory: 7}}]",
    ),
    "a user runs so many applications at most, and others are not concerned": Placing(
        USERS,
        {"b1": "one", "e1": "two"},
        root="limits: [{limit: bob, users: [bob], maxapplications: 1}]",
    ),
    "fair spreads over nodes": Placing(
        [Asked("x y", resource=FIVE)], {"x": "one", "y": "two"}, partition="nodesortpolicy: {type: fair}"
    ),
    "binpacking fills a node": Placing(
        [Asked("x y", resource=FIVE)],
        {"x": "one", "y": "one"},
        partition="nodesortpolicy: {type: binpacking}",
    ),
}


@pytest.mark.parametrize("case", PLACINGS.values(), ids=PLACINGS)
def test_asks_are_placed(case: Placing) -> None:
    """What is barred does not bar others."""
    h = a_roomy_partition("one", "two", queues=case.queues, root=case.root, partition=case.partition)
    h.have(case.asked)
    h.run_until_idle()

    assert list(case.placements.items()) == list(h.placements.items())
    assert case.noted == {key: notes_on(h, key) for key in case.noted}


def test_applications_are_served_first_come_first_served() -> None:
    """The older one has all its asks placed before the younger one."""
    h = a_roomy_partition("one")
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
    h = a_roomy_partition("one", "two", queues="- name: leaf\n  maxapplications: 1")
    for name in ("first", "second"):
        h.submit(name)
        h.ask(name, application_id=name)
    h.run_until_idle()
    h.ask_and_run("more", application_id="first")
    before = list(h.placements)

    h.release("first", "more", application_id="first")
    h.run_until_idle()

    assert (["first", "more"], ["first", "more", "second"]) == (before, list(h.placements))


def test_what_runs_goes_on_where_fewer_may_run_now() -> None:
    """Both applications place new asks; a third one waits."""
    h = a_roomy_partition("one", "two")
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
    h = a_roomy_partition("one", "two", queues="- name: leaf\n  maxapplications: 1")
    h.submit("gang", placeholder_ask=a_resource(memory=30))
    h.ask_and_run("p1", application_id="gang", task_group_name="g", placeholder=True)
    h.submit("other")
    h.ask("o", application_id="other", priority=5)
    h.ask("p2", application_id="gang", task_group_name="g", placeholder=True)

    h.run_until_idle()

    assert ({"p1": "one", "p2": "two"}, ["Accepted"]) == (h.placements, h.states("gang"))
    assert ["gang"] == list(h.queue().accepted_allocating)


# --------------------------------------------------------------------------------------------- nodes


def test_cordoned_and_small_nodes_are_passed_over() -> None:
    """And come into use when that changes."""
    h = a_roomy_partition("small", "cordoned")
    h.update_node("small", NodeAction.UPDATE, FIVE)
    h.update_node("cordoned", NodeAction.DRAIN_NODE)
    h.submit()
    h.ask_and_run("a")
    before = dict(h.placements)

    h.update_node("cordoned", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.run_until_idle()

    assert ({}, {"a": "cordoned"}) == (before, h.placements)


def test_the_predicates_refuse_one_node() -> None:
    """The next one in the order is asked, and no further one than that."""
    predicates = FakePredicates(refused={("a", "n1"): "taint"})
    h = a_roomy_partition("n1", "n2", "n3", predicates=predicates)
    h.submit()
    h.ask("a")

    h.cycle()

    assert {"a": "n2"} == h.placements
    assert [("a", "n1", True), ("a", "n2", True)] == predicates.asked


def test_the_predicates_are_asked_of_nodes_with_room_alone() -> None:
    """Full, small and cordoned nodes are no question."""
    predicates = FakePredicates()
    h = a_roomy_partition("full", "free", predicates=predicates)
    h.submit()
    h.ask("e", node_id="full")
    h.ask("a")

    h.cycle()

    assert [("a", "free", True)] == predicates.asked


def test_an_ask_that_is_refused_everywhere_does_not_bar_the_next() -> None:
    """Each reason is counted, by text."""
    predicates = FakePredicates(refused={("a", "one"): "taint", ("a", "two"): "zone"})
    h = a_roomy_partition("one", "two", predicates=predicates)
    h.submit()
    h.ask("a", "b")

    h.cycle()
    h.cycle()

    assert {"b": "one"} == h.placements
    assert {"taint": 1, "zone": 2} == {text: entry[0] for text, entry in log_of(h, "a").items()}


def test_what_the_predicates_refused_is_tried_again() -> None:
    """They may change their mind without a word."""
    predicates = FakePredicates(refused={("a", "one"): "taint"})
    h = a_roomy_partition("one", predicates=predicates)
    h.submit()
    h.ask_and_run("a")

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
    h = a_roomy_partition("one", predicates=FakePredicates({("a", "one"): "no", ("b", "one"): "no"}))
    h.submit()
    h.ask("a", "b", "c")
    h.ask_and_run("d", required_node="missing")

    assert {"c": "one"} == h.placements
    assert len(questions) > 3


def fields_of(walk: AskWalk) -> dict[str, object]:
    fields = attributes_of(walk)
    return {name: list(value) if isinstance(value, list) else value for name, value in fields.items()}
