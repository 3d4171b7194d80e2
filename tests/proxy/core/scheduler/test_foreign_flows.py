"""Foreign allocations, message by message: they occupy nodes, and nobody is answered about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from support.proxy.wire_manager import WireManager, amount

BOTH_KINDS: Final = pytest.mark.parametrize("kind", ["static", "default"])


def foreign(key: str = "f", node: str = "n1", vcore: int = 4, kind: str = "default") -> dict[str, Any]:
    return {
        "allocationKey": key,
        "nodeID": node,
        "resourcePerAlloc": amount(vcore),
        "allocationTags": {"foreign": kind},
    }


@pytest.fixture(params=["direct", "actors"])
def rm(request: pytest.FixtureRequest) -> Iterator[WireManager]:
    """Give a resource manager with two nodes and an application; what it heard of them is forgotten."""
    with WireManager(request.param) as rm:
        node = {"action": "CREATE", "schedulableResource": amount(10)}
        rm.say_nodes({"nodeID": "n1", **node}, {"nodeID": "n2", **node})
        rm.say_applications("app")
        rm.forget()
        yield rm


def used(rm: WireManager, name: str = "n1") -> tuple[Any, Any, Any]:
    """Return what is occupied, available and allocated on a node."""
    node = rm.node(name)
    return node.get("occupied"), node.get("available"), node.get("allocated")


def rows(rm: WireManager, name: str = "n1") -> list[tuple[Any, ...]]:
    """Return what the document of a node says of its foreign allocations."""
    return [
        (row["allocationKey"], row["nodeId"], row["resource"], row.get("preemptable", False))
        for row in rm.node(name).get("foreignAllocations", [])
    ]


def assert_nobody_else_knows(rm: WireManager) -> None:
    """Assert that no queue and no application has any of it, and that there was no answer."""
    assert "allocatedResource" not in rm.queue()
    assert {} == rm.application()["usedResource"]
    assert ([], [], []) == (rm.allocations, rm.applications, rm.nodes)


@BOTH_KINDS
def test_a_foreign_allocation_is_added_and_removed(rm: WireManager, kind: str) -> None:
    """It is on its node alone; a static one may not be preempted."""
    rm.say_allocations(allocations=[foreign(kind=kind)])
    there, shown = used(rm), rows(rm)
    assert_nobody_else_knows(rm)
    rm.release({"allocationKey": "f", "applicationID": ""})

    assert ({"vcore": 4}, {"vcore": 6}, None) == there
    assert [("f", "n1", {"vcore": 4}, kind == "default")] == shown
    assert ((None, {"vcore": 10}, None), []) == (used(rm), rows(rm))
    assert_nobody_else_knows(rm)


@BOTH_KINDS
def test_a_foreign_allocation_changes_its_size(rm: WireManager, kind: str) -> None:
    """Sent again with the same key; it may be more than the node has."""
    seen = []
    for vcore in (4, 7, 12, 2):
        rm.say_allocations(allocations=[foreign(vcore=vcore, kind=kind)])
        seen.append(used(rm)[:2])

    assert [
        ({"vcore": 4}, {"vcore": 6}),
        ({"vcore": 7}, {"vcore": 3}),
        ({"vcore": 12}, {"vcore": -2}),
        ({"vcore": 2}, {"vcore": 8}),
    ] == seen
    assert [("f", "n1", {"vcore": 2}, kind == "default")] == rows(rm)
    assert_nobody_else_knows(rm)


def test_a_foreign_allocation_moves_to_another_node(rm: WireManager) -> None:
    """It leaves the one before."""
    rm.say_allocations(allocations=[foreign(), foreign("g", vcore=1)])
    rm.say_allocations(allocations=[foreign(node="n2", vcore=5)])

    assert ({"vcore": 1}, {"vcore": 9}, None) == used(rm)
    assert ({"vcore": 5}, {"vcore": 5}, None) == used(rm, "n2")
    assert [["g"], ["f"]] == [[row[0] for row in rows(rm, name)] for name in ("n1", "n2")]
    assert_nobody_else_knows(rm)


def test_a_foreign_allocation_is_gone_with_its_node(rm: WireManager) -> None:
    """Its resource manager may report it on another one later."""
    rm.say_allocations(allocations=[foreign()])
    rm.say_nodes({"nodeID": "n1", "action": "DECOMISSION"})
    rm.release({"allocationKey": "f", "applicationID": ""})
    rm.say_allocations(allocations=[foreign(node="n2")])

    assert ({"vcore": 4}, {"vcore": 6}, None) == used(rm, "n2")
    assert_nobody_else_knows(rm)


def test_work_goes_where_others_leave_room(rm: WireManager) -> None:
    """And is placed as soon as they do."""
    rm.say_allocations(allocations=[foreign(vcore=9), foreign("g", "n2", vcore=9)])
    ask = {"allocationKey": "k", "applicationID": "app", "resourcePerAlloc": amount(5)}
    rm.say_allocations(allocations=[ask])
    before = list(rm.placed)
    rm.release({"allocationKey": "g", "applicationID": ""})

    assert ([], ["n2"]) == (before, [entry.nodeID for told in rm.allocations for entry in told.new])
    assert (None, {"vcore": 5}, {"vcore": 5}) == used(rm, "n2")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (foreign(node=""), "trying to add a foreign request (non-allocation) f"),
        (foreign(node="no"), "failed to find node no for allocation f"),
        (foreign(key=""), "the allocation key of a foreign allocation on node 'n1' is empty"),
    ],
)
def test_a_foreign_allocation_that_cannot_be_is_rejected(
    rm: WireManager, wrong: dict[str, Any], why: str
) -> None:
    """That is the only answer there is; the others of the message are taken."""
    rm.say_allocations(allocations=[wrong, foreign("g")])

    assert [(wrong["allocationKey"], why)] == [
        (entry.allocationKey, entry.reason) for told in rm.allocations for entry in told.rejectedAllocations
    ]
    assert ["g"] == [row[0] for row in rows(rm)]


def test_foreign_allocations_are_known_by_key_to_the_older_generation(rm: WireManager) -> None:
    """It may report them with a node, and an amount for what else is there; both count."""
    rm.say_nodes(
        {
            "nodeID": "n3",
            "action": "CREATE",
            "schedulableResource": amount(10),
            "occupiedResource": amount(3),
            "existingAllocations": [{**foreign(node="n3"), "UUID": "u"}],
        }
    )
    both, shown = used(rm, "n3"), rows(rm, "n3")
    rm.release({"allocationKey": "f", "UUID": "u", "applicationID": ""})

    assert (({"vcore": 7}, {"vcore": 3}, None), ["f"]) == (both, [row[0] for row in shown])
    assert ({"vcore": 3}, {"vcore": 7}, None) == used(rm, "n3")
    assert [] == rm.allocations
