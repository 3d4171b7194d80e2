"""Possible victims, and the orders in which they go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import SECOND_NS, START_NS, TEN, a_resource
from support.model.preemption_scenes import TWO_QUEUES, Scene, a_victim

from licorne.model.preemption.victims import (
    Need,
    Reluctance,
    Victim,
    described,
    given_back,
    needed_only,
    queue_order,
    quota_order,
    required_node_order,
    victims_of,
)
from licorne.model.resources.resource import EMPTY, add, fits
from licorne.model.values.allocation import Allocation

HOUR = 3600 * SECOND_NS


def memory(*quantities: int) -> list[Victim]:
    return [
        a_victim(f"v{number}", resource=a_resource(memory=quantity))
        for number, quantity in enumerate(quantities)
    ]


def backwards(victims: list[Victim]) -> list[Victim]:
    """Return the victims in the opposite order: what a sort is to undo."""
    return victims[::-1]


def keys(victims: list[Victim] | tuple[Victim, ...]) -> list[str]:
    return [victim.key for victim in victims]


def test_a_victim_shows_its_allocation() -> None:
    """Key, size and leaf come from the allocation and the entry."""
    victim = a_victim("v")

    assert ("v", TEN, "root.b") == (victim.key, victim.resource, victim.queue.path)


def test_an_originator_is_more_reluctant_than_one_that_opted_out() -> None:
    """An originator goes last whether or not it opted out too."""
    kinds = [
        a_victim(willing=True).reluctance,
        a_victim(willing=False).reluctance,
        a_victim(willing=True, originator=True).reluctance,
        a_victim(willing=False, originator=True).reluctance,
    ]

    assert [Reluctance.WILLING, Reluctance.OPTED_OUT, Reluctance.ORIGINATOR, Reluctance.ORIGINATOR] == kinds


def test_what_is_on_its_way_out_or_bound_to_its_node_is_not_free() -> None:
    """Nothing goes twice, and a daemon set does not go for another."""
    free = a_victim()
    others = [
        free._replace(preempted=True),
        free._replace(released=True),
        a_victim(required_node="node"),
    ]

    assert free.is_free
    assert not any(victim.is_free for victim in others)


def test_the_victims_of_an_application_are_its_free_allocations() -> None:
    """What is preempted, released or bound to a node is left out."""
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=100))
    scene.runs("free", "preempted", "released")
    scene.runs("bound", required_node="n1")
    scene.application("root.b").allocations.mark_preempted("preempted")
    scene.application("root.b").allocations.mark_released("released")

    assert ["free"] == keys(list(victims_of(scene.entry("root.b"))))


def test_victims_give_back_their_sum() -> None:
    """The total is over all types."""
    victims = [a_victim(resource=a_resource(memory=1)), a_victim(resource=a_resource(memory=2, vcore=3))]

    assert a_resource(memory=3, vcore=3) == given_back(victims)
    assert EMPTY == given_back([])


def test_a_victim_that_the_others_make_needless_is_spared() -> None:
    """The large one alone is enough; the small one before it was chosen without need."""
    victims = memory(2, 10)

    assert ["v1"] == keys(needed_only(victims, Need(EMPTY, TEN)))


def test_the_last_of_the_order_is_spared_first() -> None:
    """Of two that could stand for each other the one goes that comes first."""
    assert ["v0"] == keys(needed_only(memory(10, 10), Need(EMPTY, TEN)))


def test_a_victim_stays_needed_while_any_need_is_left() -> None:
    """A node's room comes from what runs there, a queue's from anywhere."""
    here, elsewhere, spare = memory(10, 10, 10)
    away = elsewhere._replace(allocation=Allocation(elsewhere.allocation.ask, "other", START_NS))
    on_node = Need(EMPTY, TEN, "node")
    anywhere = Need(EMPTY, a_resource(memory=20))

    assert ["v0", "v1"] == keys(needed_only([here, away, spare], on_node, anywhere))
    assert ["v1"] == keys(needed_only([away, here], anywhere._replace(wanted=TEN)))
    assert ["v0"] == keys(needed_only([away, here], on_node, anywhere._replace(wanted=TEN)))


@settings(max_examples=100)
@given(quantities=st.lists(st.integers(0, 9), max_size=8), given_quantity=st.integers(0, 9))
def test_needed_victims_are_enough_and_none_can_be_spared(quantities: list[int], given_quantity: int) -> None:
    """Where all are enough the needed ones are, and without any of them they are not."""
    victims = memory(*quantities)
    have = a_resource(memory=given_quantity)
    wanted = a_resource(memory=given_quantity + sum(quantities) // 2)
    needed = needed_only(victims, Need(have, wanted))

    assert fits(add(have, given_back(needed)), wanted)
    for victim in needed:
        others = [other for other in needed if other is not victim]
        assert not fits(add(have, given_back(others)), wanted)


def _quota_order(victim: Victim) -> tuple[object, ...]:
    return quota_order(victim, TEN, a_resource(memory=100))


ORDERS: dict[str, tuple[Callable[[Victim], Any], list[Victim]]] = {
    "on a required node: reluctance, priority, age, size": (
        required_node_order,
        [
            a_victim("low", priority=-1, age_ns=5),
            a_victim("small", resource=a_resource(memory=1)),
            a_victim("large"),
            a_victim("old", age_ns=1),
            a_victim("important", priority=1),
            a_victim("opted-out", willing=False, priority=-9),
            a_victim("originator", originator=True, priority=-9),
        ],
    ),
    # An opt-out weighs more than being an originator; priority and size mean nothing.
    "for a queue: the willing, no originator, the youngest": (
        queue_order,
        [
            a_victim("young", priority=5),
            a_victim("old", age_ns=1, resource=a_resource(memory=1)),
            a_victim("originator", originator=True),
            a_victim("opted-out", willing=False),
            a_victim("both", willing=False, originator=True),
        ],
    ),
    # The recorded core begins with originators and those that opted out.
    "for a quota: the willing": (
        _quota_order,
        [
            a_victim("willing", priority=9, age_ns=9 * HOUR),
            a_victim("opted-out", willing=False),
            a_victim("originator", originator=True),
        ],
    ),
    # Who gives back the wanted types, the least important, this hour's, the smallest.
    "for a quota among the willing: types, priority, hour, share": (
        _quota_order,
        [
            a_victim("low", priority=-1),
            a_victim("small", resource=a_resource(memory=1)),
            a_victim("large", age_ns=-1),
            a_victim("last-hour", resource=a_resource(memory=1), age_ns=HOUR),
            a_victim("important", priority=1),
            a_victim("half", resource=a_resource(memory=1, vcore=1), priority=-9),
        ],
    ),
    # All orders are total, so that the same state gives the same victims.
    **{
        f"keys decide what is otherwise equal: {name}": (order, [a_victim("a"), a_victim("b")])
        for name, order in (("node", required_node_order), ("queue", queue_order), ("quota", _quota_order))
    },
}


@pytest.mark.parametrize(("order", "ordered"), ORDERS.values(), ids=ORDERS)
def test_the_order_of_victims_is(order: Callable[[Victim], Any], ordered: list[Victim]) -> None:
    """Each of what is named decides where those before it leave a tie."""
    assert keys(ordered) == keys(sorted(backwards(ordered), key=order))


def test_a_victim_is_described_by_what_the_orders_look_at() -> None:
    """The words say what speaks against it."""
    assert described(a_victim(priority=3)) == "priority 3, it allows preemption"
    assert "opted out" in described(a_victim(willing=False))
    assert "originator" in described(a_victim(originator=True))
