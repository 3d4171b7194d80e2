"""Asks and allocations, which are values."""

from __future__ import annotations

from support.model.attributes import attributes_of
from support.model.builders import FIVE, START_NS, TEN, an_allocation, an_ask

from licorne.model.values.allocation import UNKNOWN_INSTANCE_TYPE, Allocation, Ask


def a_full_ask() -> Ask:
    """Return an ask in which nothing is as by default."""
    return Ask(
        allocation_key="key",
        application_id="app",
        resource=TEN,
        created_at_ns=START_NS + 1,
        priority=3,
        tags={"a": "b"},
        task_group_name="group",
        placeholder=True,
        originator=True,
        allow_preempt_self=True,
        allow_preempt_other=True,
        required_node="node",
    )


def parts_of(ask: Ask) -> dict[str, object]:
    """Return all that an ask says."""
    return attributes_of(ask)


def test_an_ask_may_not_preempt_and_be_preempted_unless_that_is_said() -> None:
    """Without a preemption policy both permissions are missing."""
    ask = an_ask()

    assert (False, False) == (ask.allow_preempt_self, ask.allow_preempt_other)


def test_a_resized_ask_differs_in_its_size_alone() -> None:
    """Everything but the resource is taken over, and the original stays as it was."""
    ask = a_full_ask()

    resized = ask.resized(FIVE)

    assert parts_of(ask) | {"resource": FIVE} == parts_of(resized)
    assert TEN == ask.resource


def test_an_allocation_answers_for_its_ask() -> None:
    """Key and resource of an allocation are those of its ask."""
    allocation = an_allocation(ask=a_full_ask())

    assert ("key", TEN) == (allocation.allocation_key, allocation.resource)


def test_an_allocation_is_on_a_machine_of_unknown_type_unless_that_is_said() -> None:
    """Without the attribute of the node the type is `UNKNOWN`."""
    assert "UNKNOWN" == UNKNOWN_INSTANCE_TYPE
    assert "UNKNOWN" == Allocation(an_ask(), "node", START_NS).instance_type


def test_a_resized_allocation_differs_in_its_size_alone() -> None:
    """Node, time, instance type and the age of the placeholder are taken over."""
    allocation = Allocation(an_ask(), "node", START_NS + 5, "m5", START_NS + 2)

    resized = allocation.resized(FIVE)

    expected = (FIVE, "node", START_NS + 5, "m5", START_NS + 2)
    assert expected == (
        resized.resource,
        resized.node_id,
        resized.bound_at_ns,
        resized.instance_type,
        resized.placeholder_created_at_ns,
    )
    assert TEN == allocation.resource


def test_texts_name_key_application_and_node() -> None:
    """What is printed says which ask or allocation it is."""
    assert "Ask(ask of app, Resource({'memory': 10}))" == repr(an_ask())
    assert "Allocation(ask of app on node)" == repr(an_allocation())


def test_an_allocation_takes_the_place_of_a_placeholder() -> None:
    """It is bound when the end of the placeholder is confirmed, and remembers when that was asked for."""
    placeholder = Allocation(an_ask("ph", created_at_ns=START_NS - 7, placeholder=True), "node", START_NS)
    real = Allocation(an_ask("real"), "other", START_NS, "m5")

    placed = real.in_place_of(placeholder, START_NS + 9)

    expected = ("real", "other", START_NS + 9, "m5", START_NS - 7)
    assert expected == (
        placed.allocation_key,
        placed.node_id,
        placed.bound_at_ns,
        placed.instance_type,
        placed.placeholder_created_at_ns,
    )
