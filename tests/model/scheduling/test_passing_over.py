"""Asks about which another cycle is asking the RM are passed over: nothing is noted, nothing rests."""

from __future__ import annotations

from support.model.harness import FakePredicates, Harness, a_partition, a_resource, a_roomy_partition

from licorne.model.scheduling.cycle import CycleOutcome


def a_scene(queues: str = "- name: leaf", *, nodes: int = 1) -> Harness:
    """Return a partition whose RM agrees to all, in which only nodes bar an ask, and an application."""
    names = [f"n{number}" for number in range(nodes)]
    h = a_roomy_partition(*names, queues=queues, predicates=FakePredicates())
    h.submit()
    return h


def log_of(h: Harness, key: str) -> dict[str, list[int]] | None:
    return h.ask_record(key).log


def test_the_next_ask_of_its_shape_is_placed() -> None:
    """And the one that was passed over later, as if nothing had been."""
    h = a_scene(nodes=2)
    h.ask("a", "b")
    h.keys_of_others = {"a"}
    assert 1 == h.run_until_idle()
    assert {"b": "n0"} == h.placements
    assert log_of(h, "a") is None

    h.keys_of_others = ()
    assert 1 == h.run_until_idle()
    assert {"b": "n0", "a": "n1"} == h.placements


def test_the_order_of_the_others_is_kept() -> None:
    """Also where the next one of its shape goes after one of another shape."""
    h = a_scene(nodes=3)
    h.ask("a", priority=5)
    h.ask("first", priority=5, resource=a_resource(memory=3))
    h.ask("second", priority=5)
    h.keys_of_others = {"a"}
    h.run_until_idle()

    assert ["first", "second"] == list(h.placements)


def test_a_leaf_in_which_an_ask_was_passed_over_does_not_rest() -> None:
    """Who judges it comes back with an answer, and nothing else may have changed by then."""
    h = a_scene()
    h.ask("a")
    h.keys_of_others = {"a"}
    assert CycleOutcome.NOTHING is h.cycle()
    assert h.queue().entries.skip_until is None
    assert () == h.application().asks.refusals()

    h.keys_of_others = ()
    assert CycleOutcome.RESULT is h.cycle()


def test_passing_over_is_no_miss_for_a_back_off() -> None:
    """It is the second ask without a node that has the application pause, if another one waits behind it."""
    h = a_scene("- {name: leaf, properties: {application.unschedasks.backoff: '2'}}")
    h.ask("a", "b", "c", resource=a_resource(memory=90))
    h.keys_of_others = {"b"}
    h.run_until_idle()
    assert h.entry().backoff_until_ns is None

    h.keys_of_others = ()
    h.run_until_idle()
    assert h.entry().backoff_until_ns is not None


def test_a_reserved_ask_is_passed_over() -> None:
    """And tried in the next cycle, although nothing has changed."""
    h = a_scene()
    h.ask_and_run("old")
    h.ask("a")
    h.wait(3)
    assert h.node("n0").reservations
    h.keys_of_others = {"a"}
    h.release("old")
    assert CycleOutcome.NOTHING is h.cycle()

    h.keys_of_others = ()
    assert CycleOutcome.RESULT is h.cycle()
    assert {"old": "n0", "a": "n0"} == h.placements


def test_a_member_of_a_gang_is_passed_over() -> None:
    """Another one takes the place of the placeholder meanwhile."""
    h = a_partition("n", predicates=FakePredicates(), placeholder_ask=a_resource(memory=10))
    h.ask_and_run("placeholder", task_group_name="tasks", placeholder=True)
    h.ask("a", "b", task_group_name="tasks")
    h.keys_of_others = {"a"}
    h.run_until_idle()
    h.confirm()

    assert {"placeholder": "n", "b": "n"} == h.placements


def test_a_cycle_without_result_counts_no_refusals_while_others_ask() -> None:
    """Who still judges sees the same asks again, and counts them."""
    h = a_scene("- {name: leaf, resources: {max: {memory: 20}}}")
    h.ask("a")
    h.ask("large", resource=a_resource(memory=30))
    h.keys_of_others = {"a"}
    assert CycleOutcome.NOTHING is h.cycle()
    assert log_of(h, "large") is None

    h.keys_of_others = ()
    h.run_until_idle()
    assert log_of(h, "large") is not None
