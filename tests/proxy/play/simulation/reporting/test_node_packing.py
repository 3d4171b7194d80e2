from __future__ import annotations

from licorne.proxy.play.simulation.reporting.figures import CLASSES, Intervals, NodePacking


def _classes(packing: NodePacking) -> dict[str, int]:
    return {name: gauge.value for name, gauge in zip(CLASSES, packing.by_class, strict=True) if gauge.value}


def test_a_node_is_as_full_as_its_fullest_resource_type() -> None:
    """The upper bound belongs to a class; more than there is counts as full."""
    packing = NodePacking(Intervals())
    for name in ("a", "b", "c", "d"):
        packing.node_came(name, {"vcore": 100, "memory": 1000}, 0)
    packing.used("a", {"vcore": 10, "memory": 30}, 0, 1)
    packing.used("b", {"vcore": 11}, 0, 1)
    packing.used("c", {"memory": 1200}, 0, 1)

    assert {"empty": 1, "0-10 %": 1, "10-20 %": 1, "90-100 %": 1} == _classes(packing)
    assert (400 - 21, 300 - 21) == (packing.free["vcore"].value, packing.free_on_used["vcore"].value)
    assert (2970, 1970) == (packing.free["memory"].value, packing.free_on_used["memory"].value)


def test_what_is_given_back_is_free_again() -> None:
    """An empty node's room is free, but not on a node in use."""
    packing = NodePacking(Intervals())
    packing.node_came("a", {"vcore": 100}, 0)
    packing.used("a", {"vcore": 40}, 1, 1)
    packing.used("a", {"vcore": 40}, 2, -1)

    assert {"empty": 1} == _classes(packing)
    assert (100, 0) == (packing.free["vcore"].value, packing.free_on_used["vcore"].value)


def test_nodes_come_and_go_in_any_order_with_what_they_hold() -> None:
    """Allocations may be known before their node, and given back after it."""
    packing = NodePacking(Intervals())
    packing.used("a", {"vcore": 60}, 0, 1)
    packing.node_came("a", {"vcore": 100}, 0)
    assert {"50-60 %": 1} == _classes(packing)

    packing.node_left("a", 1)
    assert {} == _classes(packing)
    assert 0 == packing.free["vcore"].value

    packing.node_came("a", {"vcore": 120}, 2)
    assert {"40-50 %": 1} == _classes(packing)

    packing.node_left("a", 3)
    packing.used("a", {"vcore": 60}, 3, -1)
    packing.node_came("a", {"vcore": 100}, 4)
    assert {"empty": 1} == _classes(packing)
