"""The order of nodes that fills racks which are in use first."""

from __future__ import annotations

from collections import Counter
from random import Random

from support.model.builders import TEN, a_node_entry, memory
from support.model.configurations import errors_at_marks
from support.model.harness import Harness

from licorne.model.nodes.entry import NodeEntry
from licorne.model.nodes.node_orders import node_order
from licorne.model.nodes.order import NodeOrder
from licorne.model.policies.policies import NO_POLICIES
from licorne.model.resources.comparisons import equals

LEVELS = ("block", "rack")


def an_order(*entries: NodeEntry) -> NodeOrder:
    order = NodeOrder(node_order("domainpacking", NO_POLICIES, LEVELS), {})
    for entry in entries:
        order.add(entry)
    return order


def in_rack(node_id: str, rack: str, used: int = 0) -> NodeEntry:
    """Return the entry of a node of ten in a rack, the empty text for none."""
    entry = a_node_entry(node_id, available=memory(10 - used))
    entry.attributes = {"block": "b", "rack": rack} if rack else {}
    return entry


def names(order: NodeOrder) -> list[str]:
    order.validate()
    return [entry.node_id for entry in order]


def test_nodes_of_racks_in_use_go_first_and_of_these_the_fullest() -> None:
    """A node in no rack is never kept for gangs."""
    order = an_order(in_rack("a", "r1"), in_rack("b", "r2", 1), in_rack("c", "r2"), in_rack("d", ""))

    assert ["b", "c", "d", "a"] == names(order)


def test_all_nodes_of_a_rack_move_with_its_first_and_its_last_work() -> None:
    order = an_order(in_rack("a", "r1"), in_rack("b", "r2"), in_rack("c", "r2"))
    assert ["a", "b", "c"] == names(order)

    entry = order.take_first_fit(memory(4))
    assert entry is not None
    assert "a" == entry.node_id
    order.take(order.by_name()[2], memory(6))
    order.give(entry, TEN)
    assert ["c", "b", "a"] == names(order)

    order.remove("c")
    assert ["a", "b"] == names(order)


def test_other_levels_count_after_a_new_rule() -> None:
    order = an_order(in_rack("a", "r1"), in_rack("b", "r2"), in_rack("c", "r2", 1))
    assert ["c", "b", "a"] == names(order)

    order.set_rule(node_order("domainpacking", NO_POLICIES, ("block",)), {})
    assert ["c", "a", "b"] == names(order)


def test_the_order_is_the_one_of_an_order_that_is_made_anew() -> None:
    """After each of many random changes of nodes."""
    random = Random(5)  # noqa: S311 - it plays, and keeps no secret
    order, made = an_order(), 0
    for _ in range(1_500):
        entries = order.by_name()
        choice = random.random()
        if not entries or (choice < 0.2 and len(entries) < 20):
            made += 1
            order.add(in_rack(f"n{made}", random.choice(["r1", "r2", "r3", "r4", ""])))
        elif choice < 0.3:
            order.remove(random.choice(entries).node_id)
        elif choice < 0.6:
            entry = random.choice(entries)
            order.take(entry, memory(random.randint(0, entry.available.get("memory"))))
        else:
            entry = random.choice(entries)
            order.give(entry, random.choice([TEN, TEN, memory(random.randint(0, 10))]))
        used = {each.attributes.get("rack") for each in order if not equals(each.available, each.capacity)}
        places = []
        for each in order.by_name():
            is_whole = "rack" in each.attributes and each.attributes["rack"] not in used
            places.append((is_whole, each.available.get("memory"), each.node_id))
        assert names(order) == [node_id for *_, node_id in sorted(places)]


def test_single_asks_leave_whole_racks_for_a_gang() -> None:
    """In the order of the fullest alone the first ask goes to another rack than the work that runs."""
    racks: dict[str, Counter[str]] = {}
    for word in ("binpacking", "domainpacking"):
        h = Harness(partition=f"topology: [rack]\nnodesortpolicy: {{type: {word}}}")
        for name, rack in {"a": "r1", "b": "r1", "c": "r2", "d": "r2"}.items():
            h.nodes(name, capacity=TEN, attributes={"rack": rack})
        h.submit()
        h.ask_and_run("x", resource=memory(6), required_node="d")
        h.ask_and_run("y", resource=memory(6))
        racks[word] = Counter("r1" if node in "ab" else "r2" for node in h.placements.values())

    assert {"binpacking": {"r1": 1, "r2": 1}, "domainpacking": {"r2": 2}} == racks


def test_without_domains_the_order_is_refused_at_its_place() -> None:
    text = "partitions: [{name: default, nodesortpolicy: {type: §domainpacking}, queues: [{name: root}]}]"

    assert ["the order domainpacking needs domains of nodes: topology names their levels"] == errors_at_marks(
        text
    )
