"""Which node to reserve for an ask that no node has room for."""

from __future__ import annotations

import pytest
from support.model.builders import a_node_entry, a_resource

from licorne.model.nodes import order as node_order
from licorne.model.nodes.entry import NodeEntry
from licorne.model.nodes.node_orders import NODE_ORDERS
from licorne.model.nodes.order import NodeOrder, first_to_reserve
from licorne.model.resources.comparisons import fit_score
from licorne.model.resources.resource import Resource

EIGHT = a_resource(memory=8)


def an_order(*entries: NodeEntry) -> NodeOrder:
    order = NodeOrder(NODE_ORDERS["fair"], {})
    for entry in entries:
        order.add(entry)
    return order


def reserve_all(order: NodeOrder) -> list[str]:
    """Reserve one node after the other; return them."""
    chosen = []
    while (entry := first_to_reserve(order, EIGHT)) is not None:
        order.set_reserved(entry, reserved=True)
        chosen.append(entry.node_id)
    return chosen


def test_the_node_to_reserve_is_the_one_of_the_least_use_to_others() -> None:
    """What it has beyond what is asked counts; among equals the order decides."""
    size = a_resource(memory=10, vcore=10)
    order = an_order(
        a_node_entry("cores", capacity=size, available=a_resource(memory=7, vcore=9)),
        a_node_entry("later", capacity=size, available=a_resource(memory=5)),
        a_node_entry("sooner", capacity=size, available=a_resource(memory=6)),
    )

    assert ["cores", "sooner", "later"] == [entry.node_id for entry in order]
    assert ["sooner", "later", "cores"] == reserve_all(order)


def test_only_usable_nodes_that_are_large_enough_are_reserved() -> None:
    """The capacity counts, not what is free."""
    order = an_order(
        a_node_entry("full", available=a_resource(memory=0)),
        a_node_entry("small", capacity=a_resource(memory=4)),
        a_node_entry("cordoned", schedulable=False),
        a_node_entry("reserved"),
    )
    entry = order.get("reserved")
    assert entry is not None
    order.set_reserved(entry, reserved=True)

    assert ["full"] == reserve_all(order)


def test_a_node_may_be_reserved_again_once_it_is_free() -> None:
    """It takes its place among those that are left."""
    order = an_order(*(a_node_entry(f"n{number}") for number in range(3)))
    first = first_to_reserve(order, EIGHT)
    assert first is not None
    order.set_reserved(first, reserved=True)
    second = first_to_reserve(order, EIGHT)
    order.set_reserved(first, reserved=False)

    assert ("n0", "n1", ["n0", "n1", "n2"]) == (first.node_id, second and second.node_id, reserve_all(order))


def test_the_nodes_are_ranked_once_for_many_reservations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node is compared with the size once, however many are reserved."""
    order = an_order(*(a_node_entry(f"n{number:02}") for number in range(50)))
    compared = []

    def counted(resource: Resource, available: Resource) -> float:
        compared.append(available)
        return fit_score(resource, available)

    monkeypatch.setattr(node_order, "fit_score", counted)

    assert (50, 50) == (len(reserve_all(order)), len(compared))


def test_rankings_of_so_many_sizes_are_kept() -> None:
    """At the bound the oldest is made again."""
    order = an_order(a_node_entry("a"))

    for quantity in range(1, 40):
        first_to_reserve(order, a_resource(memory=quantity))

    assert 16 == len(order.ranked)
    assert a_resource(memory=39) in order.ranked
