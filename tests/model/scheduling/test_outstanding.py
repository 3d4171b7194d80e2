"""Asks that fit every quota and find no room: what is reported to an autoscaler."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.harness import Harness

from licorne.model.applications.asks import ApplicationAsks
from licorne.model.values.allocation import Ask
from licorne.model.values.messages import NodeAction, SchedulingStateChanged

FIVE = a_resource(memory=5)


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
    h.ask("high", priority=1)
    h.run_until_idle()

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
    h.ask("a")
    h.run_until_idle()
    first = reported(h)
    h.nodes("other", capacity=a_resource(memory=1))
    h.run_until_idle()

    assert (["a"], []) == (first, reported(h))


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
    h.ask("gone", "waits")
    h.run_until_idle()
    h.release("gone")

    assert ["waits"] == reported(h)


def test_the_size_of_the_cluster_is_no_limit() -> None:
    """More nodes would help, so they are reported to the RM."""
    h = full()
    h.submit()
    h.ask("a", resource=a_resource(memory=1_000_000))
    h.run_until_idle()

    assert ["a"] == reported(h)


def test_asks_beyond_the_queues_maximum_are_not_reported() -> None:
    """No node would help them. Those that are reported take their part of what is left."""
    h = full("- name: leaf\n  resources: {max: {memory: 12}}")
    h.submit()
    h.ask("a", "b", resource=FIVE)
    h.ask("c", resource=FIVE)
    h.ask("small", resource=a_resource(memory=2))
    h.run_until_idle()

    assert ["a", "b", "small"] == reported(h)


def test_asks_that_are_reported_leave_less_for_other_applications() -> None:
    """What the queue has left is shared by all that wait in it."""
    h = full("- name: leaf\n  resources: {max: {memory: 10}}")
    for name in ("one", "two"):
        h.submit(name)
        h.ask(name, application_id=name, resource=a_resource(memory=6))
    h.run_until_idle()

    assert ["one"] == reported(h)


def test_asks_beyond_the_users_limit_are_not_reported() -> None:
    """The limit is the user's; others are reported."""
    h = full(root="limits: [{limit: bob, users: [bob], maxresources: {memory: 7}}]")
    h.submit("bobs")
    h.submit("eves", user="eve")
    h.ask("b1", "b2", application_id="bobs", resource=FIVE)
    h.ask("e1", "e2", application_id="eves", resource=FIVE)
    h.run_until_idle()

    assert ["b1", "e1", "e2"] == reported(h)


def test_what_was_reported_leaves_more_for_other_applications_the_next_time() -> None:
    """An ask that waits still takes its part of its own application's room alone. Kept, see the decisions."""
    h = full("- name: leaf\n  resources: {max: {memory: 10}}")
    for name in ("one", "two"):
        h.submit(name)
        h.ask(name, application_id=name, resource=a_resource(memory=6))
    h.run_until_idle()
    first = reported(h)
    h.ask("more", application_id="one", resource=a_resource(memory=6))
    h.run_until_idle()

    assert (["one"], ["two"]) == (first, reported(h))


def test_each_application_of_a_user_sees_all_of_the_users_room() -> None:
    """Though together they could not have it. Kept, see the decisions."""
    h = full(root="limits: [{limit: bob, users: [bob], maxresources: {memory: 10}}]")
    for name in ("one", "two"):
        h.submit(name)
        h.ask(name, application_id=name)
    h.run_until_idle()

    assert ["one", "two"] == reported(h)


def test_each_leaf_sees_all_of_the_room_of_its_parent() -> None:
    """Though only one of the asks could run. Kept, see the decisions."""
    h = full("- name: p\n  resources: {max: {memory: 10}}\n  queues: [{name: a}, {name: b}]")
    for name in "ab":
        h.submit(name, f"root.p.{name}")
        h.ask(name, application_id=name)
    h.run_until_idle()

    assert ["a", "b"] == reported(h)


def test_an_ask_that_the_rm_refused_everywhere_is_reported() -> None:
    """Other nodes may be to its liking."""
    h = Harness(predicates=FakePredicates(refused={("a", "node"): "taint"}), reservations_on=False)
    h.nodes("node")
    h.submit()
    h.ask("a")
    h.run_until_idle()

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
        h.ask("late", application_id="late")
        h.run_until_idle()
        assert ["late"] == reported(h)
    return len(seen)


def test_what_has_been_reported_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in asks: those that wait and were reported are not asked for."""
    assert looked_at(5, monkeypatch) == looked_at(30, monkeypatch) == 1


def test_asks_with_a_required_node_are_not_reported() -> None:
    """They can run on that node alone, however many others there are."""
    h = full()
    h.submit()
    h.ask("daemon", required_node="node")
    h.run_until_idle()

    assert [] == reported(h)


def test_members_that_wait_for_a_placeholder_are_not_reported() -> None:
    """The placeholders are."""
    h = full()
    h.submit(placeholder_ask=TEN)
    h.ask("p", task_group_name="g", placeholder=True)
    h.ask("m", task_group_name="g")
    h.run_until_idle()

    assert ["p"] == reported(h)


def test_queues_are_looked_at_in_their_order() -> None:
    """Those that go first are reported first."""
    h = full("- name: a\n- name: b\n  properties: {priority.offset: '5'}")
    for name in "ab":
        h.submit(name, f"root.{name}")
        h.ask(name, application_id=name)
    h.run_until_idle()

    assert ["b", "a"] == reported(h)


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
