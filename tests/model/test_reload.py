"""A reload while applications run: what holds from then on, and what stays as it was."""

from __future__ import annotations

from support.model.builders import TEN, a_resource
from support.model.harness import Harness

from licorne.model.values.messages import TerminationType

FIVE = a_resource(memory=5)
NO_RULE = (
    "failed to place application late: application rejected: no placement rule matched "
    "(provided: queue root.b is draining; recovery: the application is not forced)"
)


def working(queues: str = "- name: a\n- name: b", queue_name: str = "root.b") -> Harness:
    """Return a partition with two nodes, and an application with one ask that is placed."""
    h = Harness(queues)
    h.nodes("one", "two")
    h.submit(queue_name=queue_name)
    h.ask("x", resource=FIVE)
    h.run_until_idle()
    assert {"x"} == h.placements.keys()
    return h


def placed(h: Harness) -> set[str]:
    h.run_until_idle()
    return {*h.placements}


# --------------------------------------------------------------------------------------------- queues


def test_a_queue_that_left_the_configuration_goes_on_with_what_it_has() -> None:
    """Its applications may still ask; others are turned away."""
    h = working()

    h.reload("- name: a")
    h.ask("y", resource=FIVE)
    refused = h.submit("late", "root.b")

    assert {"x", "y"} == placed(h)
    assert refused is not None
    assert NO_RULE == refused.reason


def test_a_queue_that_comes_back_takes_applications_again() -> None:
    """It was never away for those that were in it."""
    h = working()
    h.reload("- name: a")

    h.reload("- name: a\n- name: b")

    assert h.submit("late", "root.b") is None
    assert {"app", "late"} == h.queue("root.b").entries.by_id.keys()


def test_applications_wait_in_a_queue_that_holds_queues_now() -> None:
    """As recorded. What is placed runs on and can be released; as a leaf again the queue goes on."""
    h = working()

    h.reload("- name: a\n- name: b\n  queues: [{name: c}]")
    h.ask("y", "z", resource=FIVE)
    meanwhile = placed(h)
    h.release("x")
    h.reload("- name: a\n- name: b")

    assert ({"x"}, {"x", "y", "z"}) == (meanwhile, placed(h))
    assert {"y", "z"} == {entry.allocation.ask.allocation_key for entry in h.application().allocations.all()}


def test_applications_wait_below_a_queue_that_holds_applications_now() -> None:
    """Their queues drain; the queue above takes applications itself."""
    h = working("- name: a\n- name: b\n  queues: [{name: c}]", "root.b.c")

    h.reload("- name: a\n- name: b")
    h.ask("y", resource=FIVE)
    h.submit("late", "root.b")
    h.ask("z", application_id="late", resource=FIVE)
    meanwhile = placed(h)
    h.withdraw()
    h.advance(10)

    assert {"x", "z"} == meanwhile
    assert h.state.tree.find("root.b.c") is None


def test_a_dynamic_queue_keeps_what_its_namespace_has_set() -> None:
    """No configuration speaks of it."""
    rules = "placementrules: [{name: tag, value: namespace, create: true}]"
    h = Harness("- name: a", partition=rules)
    h.submit(tags={"namespace": "dev", "namespace.resourcequota": '{"resources":{"memory":{"value":7}}}'})

    h.reload("- name: b", partition=rules)

    assert a_resource(memory=7) == h.queue("root.dev").maximum


# ------------------------------------------------------------------------------------------- settings


def test_rules_place_the_applications_that_come_after_them() -> None:
    """Those that are there stay where they are."""
    h = working()

    h.reload("- name: a\n- name: b", partition="placementrules: [{name: fixed, value: a}]")
    h.submit("late", "root.b")

    assert {"app"} == h.queue("root.b").entries.by_id.keys()
    assert {"late"} == h.queue("root.a").entries.by_id.keys()


def test_a_number_of_applications_holds_for_those_that_start_after_it() -> None:
    """At the root as well: the recorded core takes that number at registration alone."""
    h = working()
    h.submit("late", "root.a")
    h.ask("y", application_id="late", resource=FIVE)
    both = "- name: a\n  maxapplications: 1\n- name: b\n  maxapplications: 1"

    h.reload(both, root="maxapplications: 1")
    bounded = placed(h)
    h.reload(both, root="maxapplications: 2")

    assert ({"x"}, {"x", "y"}) == (bounded, placed(h))


def test_a_maximum_holds_from_the_next_allocation_on() -> None:
    """What is above it runs on; one that is taken away frees what waited for it."""
    h = working()
    h.ask("y", resource=FIVE)

    h.reload("- name: a\n- name: b\n  resources: {max: {memory: 3}}")
    bounded = placed(h)
    h.reload("- name: a\n- name: b")

    assert ({"x"}, {"x", "y"}) == (bounded, placed(h))


def test_a_new_offset_turns_queues_round() -> None:
    """The parent sees the priorities of its queues with the offsets of now."""
    h = Harness("- name: a\n- name: b")
    h.nodes("one")
    for name in ("a", "b"):
        h.submit(name, f"root.{name}")
        h.ask(f"{name}1", application_id=name, resource=TEN)

    h.reload("- name: a\n- name: b\n  properties: {priority.offset: '5'}")

    assert {"b1"} == placed(h)


def test_a_new_offset_reaches_the_queues_above_at_once() -> None:
    """Without waiting for the next ask; the order of queues at every level is that of now."""
    parents = "- name: p\n  queues: [{{name: a{}}}]\n- name: q\n  queues: [{{name: b}}]"
    h = Harness(parents.format(""))
    h.submit("app", "root.p.a")
    h.ask("x", priority=3)

    h.reload(parents.format(", properties: {priority.offset: '7'}"))

    assert [10, 10] == [h.queue(path).exposed_priority for path in ("root.p", "root")]


def test_more_run_than_a_lowered_number_allows_and_all_of_them_count() -> None:
    """The count is not cut at the maximum: as long as it is there, or above, no other one starts."""
    h = Harness("- name: a")
    h.nodes("one")
    for name in ("first", "second", "third"):
        h.submit(name, "root.a")
    for name in ("first", "second"):
        h.ask(name, application_id=name, resource=a_resource(memory=1))
    h.run_until_idle()

    h.reload("- {name: a, maxapplications: 1}")
    h.ask("third", application_id="third", resource=a_resource(memory=1))
    counts = [h.queue("root.a").running]
    for name in ("first", "second"):
        h.run_until_idle()
        assert "third" not in h.placements
        h.release(name, application_id=name)
        counts.append(h.queue("root.a").running)
    h.run_until_idle()

    assert ([2, 1, 0], True) == (counts, "third" in h.placements)


def test_gangs_are_admitted_by_the_sort_policy_of_now() -> None:
    """Those that are there go on."""
    h = Harness("- name: a")
    h.nodes("one")
    h.submit("gang", "root.a", placeholder_ask=FIVE)
    h.ask("ph", application_id="gang", resource=FIVE, placeholder=True, task_group_name="tg")

    h.reload("- name: a\n  properties: {application.sort.policy: fair}")
    refused = h.submit("late", "root.a", placeholder_ask=FIVE)

    assert {"ph"} == placed(h)
    assert refused is not None
    assert "unsupported sort type" in refused.reason


def test_what_was_to_end_before_a_reload_still_ends() -> None:
    """A placeholder that times out meanwhile is confirmed and gone."""
    h = Harness("- name: a")
    h.nodes("one")
    h.submit("gang", "root.a", placeholder_ask=TEN, timeout_seconds=5)
    h.ask("ph", application_id="gang", resource=FIVE, placeholder=True, task_group_name="tg")
    h.run_until_idle()
    h.advance(6)

    h.reload("- name: b")
    h.release("ph", application_id="gang", termination=TerminationType.TIMEOUT)
    h.withdraw("gang")
    h.advance(10)

    assert h.state.tree.find("root.a") is None
