"""Asks that fit every quota and find no room: what is reported to an autoscaler."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.harness import Asked, Harness, a_partition

from licorne.model.applications.asks import ApplicationAsks
from licorne.model.values.allocation import Ask
from licorne.model.values.messages import NodeAction, SchedulingStateChanged

FIVE = a_resource(memory=5)
SIX = a_resource(memory=6)


def full(queues: str = "- name: leaf", *, root: str = "") -> Harness:
    """Return a partition whose only node is too small for anything."""
    h = Harness(queues, root=root, reservations_on=False)
    h.nodes("node", capacity=a_resource(memory=1))
    return h


def reported(h: Harness) -> list[str]:
    """Look for outstanding asks; return those that are reported to the RM, in order."""
    h.forget()
    h.partition.inspect_outstanding()
    h.validate()
    return [entry.allocation_key for entry in h.heard(SchedulingStateChanged)]


def test_asks_that_were_tried_without_result_are_reported() -> None:
    """With the words of the interface, in the order of scheduling."""
    h = full()
    h.submit()
    h.ask("low")
    h.ask_and_run("high", priority=1)

    assert ["high", "low"] == reported(h)
    (first, _) = h.heard(SchedulingStateChanged)
    assert ("app", "high", "request is waiting for cluster resources become available") == (
        first.application_id,
        first.allocation_key,
        first.reason,
    )


def test_the_rm_gets_one_message() -> None:
    """Also when the ask is tried again later."""
    h = full()
    h.submit()
    h.ask_and_run("a")
    first = reported(h)
    h.nodes("other", capacity=a_resource(memory=1))
    h.run_until_idle()

    assert (["a"], []) == (first, reported(h))


@dataclass(frozen=True)
class Outstanding:
    """Asks that are tried, and those of them that are reported, in order."""

    asked: list[Asked]
    reported: list[str]
    queues: str = "- name: leaf"
    root: str = ""


LIMITED = "limits: [{limit: bob, users: [bob], maxresources: {memory: 10}}]"
BOTH_OF_SIX = [Asked("one", "one", resource=SIX), Asked("two", "two", resource=SIX)]
OUTSTANDING = {
    # More nodes would help.
    "the size of the cluster is no limit": Outstanding(
        [Asked("a", resource=a_resource(memory=10**6))], ["a"]
    ),
    "not those beyond the maximum of the queue, and the next one if it fits": Outstanding(
        [Asked("a b c", resource=FIVE), Asked("small", resource=a_resource(memory=2))],
        ["a", "b", "small"],
        "- {name: leaf, resources: {max: {memory: 12}}}",
    ),
    "what is reported leaves less for other applications of the queue": Outstanding(
        BOTH_OF_SIX, ["one"], "- {name: leaf, resources: {max: {memory: 10}}}"
    ),
    "not those beyond the limit of the user, and those of others": Outstanding(
        [Asked("b1 b2", "bobs", resource=SIX), Asked("e1 e2", "eves", user="eve", resource=SIX)],
        ["b1", "e1", "e2"],
        root=LIMITED,
    ),
    # Though together they could not have it. Kept, see the decisions.
    "each application of a user sees all of the room of the user": Outstanding(
        BOTH_OF_SIX, ["one", "two"], root=LIMITED
    ),
    # Though only one of the asks could run. Kept, see the decisions.
    "each leaf sees all of the room of its parent": Outstanding(
        [Asked("a", "a", "root.p.a"), Asked("b", "b", "root.p.b")],
        ["a", "b"],
        "- {name: p, resources: {max: {memory: 10}}, queues: [{name: a}, {name: b}]}",
    ),
    # However many others there are, it can run on that node alone.
    "not those that require a node": Outstanding([Asked("daemon", required_node="node")], []),
    "first those of the queue that is served first": Outstanding(
        [Asked("a", "a", "root.a"), Asked("b", "b", "root.b")],
        ["b", "a"],
        "- name: a\n- {name: b, properties: {priority.offset: '5'}}",
    ),
}


@pytest.mark.parametrize("case", OUTSTANDING.values(), ids=OUTSTANDING)
def test_asks_that_more_nodes_would_help_are_reported(case: Outstanding) -> None:
    """Those that fit every quota, in the order of scheduling."""
    h = full(case.queues, root=case.root)
    h.have(case.asked)
    h.run_until_idle()

    assert case.reported == reported(h)


def test_asks_that_were_never_tried_are_not_reported() -> None:
    """Before the first cycle it is not known that they find no room."""
    h = full()
    h.submit()
    h.ask("a")

    assert [] == reported(h)


def test_asks_that_are_placed_or_gone_are_not_reported() -> None:
    """Only what waits is outstanding."""
    h = full()
    h.nodes("large")
    h.submit()
    h.ask("placed")
    h.ask_and_run("gone", "waits")
    h.release("gone")

    assert ["waits"] == reported(h)


def test_what_was_reported_leaves_more_for_other_applications_the_next_time() -> None:
    """An ask that waits still takes its part of its own application's room alone. Kept, see the decisions."""
    h = full("- name: leaf\n  resources: {max: {memory: 10}}")
    h.have(BOTH_OF_SIX)
    h.run_until_idle()
    first = reported(h)
    h.ask_and_run("more", application_id="one", resource=SIX)

    assert (["one"], ["two"]) == (first, reported(h))


def test_an_ask_that_the_rm_refused_everywhere_is_reported() -> None:
    """Other nodes may be to its liking."""
    h = a_partition(
        "node", predicates=FakePredicates(refused={("a", "node"): "taint"}), reservations_on=False
    )
    h.ask_and_run("a")

    assert ["a"] == reported(h)


def looked_at(waiting: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many applications are looked at again when one more comes."""
    h = full()
    for number in range(waiting):
        h.submit(f"w{number}")
        h.ask(f"w{number}", application_id=f"w{number}")
    h.run_until_idle()
    reported(h)
    seen: list[str] = []
    outstanding = ApplicationAsks.outstanding

    def noted(self: ApplicationAsks) -> tuple[tuple[Ask, bool], ...]:
        found = outstanding(self)
        seen.extend(ask.allocation_key for ask, _ in found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(ApplicationAsks, "outstanding", noted)
        h.submit("late")
        h.ask_and_run("late", application_id="late")
        assert ["late"] == reported(h)
    return len(seen)


def test_what_has_been_reported_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in asks: those that wait and were reported are not asked for."""
    assert looked_at(5, monkeypatch) == looked_at(30, monkeypatch) == 1


def test_members_that_wait_for_a_placeholder_are_not_reported() -> None:
    """The placeholders are."""
    h = full()
    h.submit(placeholder_ask=TEN)
    h.ask("p", task_group_name="g", placeholder=True)
    h.ask_and_run("m", task_group_name="g")

    assert ["p"] == reported(h)


def test_a_partition_looks_by_itself_a_second_after_it_came_to_rest() -> None:
    """While nothing waits it does not."""
    h = Harness(reservations_on=False)
    h.nodes("large", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.partition.work(10)
    idle = h.clock.next_due_ns()
    h.submit()
    h.ask("a")
    h.partition.work(10)

    h.advance(milliseconds=999)
    before = len(h.heard(SchedulingStateChanged))
    h.advance(milliseconds=1)

    assert (None, 0, 1) == (idle, before, len(h.heard(SchedulingStateChanged)))
