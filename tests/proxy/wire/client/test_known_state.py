"""What a resource manager gives to a recovery is checked as a whole before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from support.proxy.knowing_manager import a_node, an_allocation, an_application

from licorne import LicorneError
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import is_foreign, read_known_state

NODE = a_node("n1")
APPLICATION = an_application("app")
PLACED = an_allocation("a", node_id="n1")


def read(**given: Any) -> Any:
    everything: dict[str, Any] = {
        "nodes": [NODE],
        "applications": [APPLICATION],
        "allocations": [],
        "asks": [],
    }
    return read_known_state("rm", **(everything | given))


def test_messages_are_copied_and_partitions_are_named_in_full() -> None:
    """What the program does with its messages afterwards does not matter."""
    node, placed, foreign = a_node("n1"), an_allocation("a", node_id="n1"), a_foreign("f")
    known = read(nodes=[node], allocations=[placed, foreign], asks=[an_allocation("w")])
    node.nodeID = placed.nodeID = "other"

    assert ["n1"] == [entry.nodeID for entry in known.nodes.values()]
    assert "[rm]default" == known.nodes["n1"].attributes["si/node-partition"]
    assert [("app", "a"), ("", "f")] == list(known.allocations)
    assert ["n1", "n1"] == [entry.message().nodeID for entry in known.allocations.values()]
    assert {"[rm]default"} == {entry.partitionName for entry in known.applications.values()} | {
        entry.partition for entry in (*known.allocations.values(), *known.asks)
    }


def a_foreign(key: str) -> si.Allocation:
    return an_allocation(key, node_id="n1", foreign=True)


def test_a_foreign_allocation_is_known_by_its_tag() -> None:
    """Whatever the value is; an application that it names is nothing that a recovery knows of."""
    foreign = a_foreign("f")
    foreign.applicationID = "theirs"

    assert [True, False] == [is_foreign(foreign), is_foreign(PLACED)]
    assert [("", "f")] == list(read(allocations=[foreign]).allocations)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"nodes": [NODE, NODE]}, "node 'n1' is given twice"),
        ({"nodes": [si.NodeInfo(nodeID="n1")]}, "the action of node 'n1' is UNKNOWN_ACTION_FROM_RM"),
        ({"nodes": [si.NodeInfo(nodeID="n1", action=si.NodeInfo.DECOMISSION)]}, "is DECOMISSION; for a"),
        (
            {"nodes": [si.NodeInfo(nodeID="n1", action=si.NodeInfo.CREATE, existingAllocations=[PLACED])]},
            "node 'n1' has existingAllocations: give them as allocations",
        ),
        ({"applications": [APPLICATION, APPLICATION]}, "application 'app' is given twice"),
        ({"allocations": [PLACED, PLACED]}, "allocation 'a' is given twice"),
        ({"allocations": [an_allocation("a")]}, "allocation 'a' has no node: it is an ask"),
        (
            {"allocations": [an_allocation("a", node_id="n9")]},
            "allocation 'a' is on node 'n9', which is not given",
        ),
        (
            {"allocations": [an_allocation("a", "lost", node_id="n1")]},
            "allocation 'a' is of application 'lost', which is not given",
        ),
        (
            {"allocations": [an_allocation("a", node_id="n1", partition="second")]},
            r"allocation 'a' is in partition \[rm\]second, but its node 'n1' in \[rm\]default",
        ),
        (
            {
                "applications": [an_application("app", partition="second")],
                "allocations": [PLACED],
            },
            r"but its application 'app' in \[rm\]second",
        ),
        ({"asks": [PLACED]}, "ask 'a' is on node 'n1': it is an allocation"),
        ({"asks": [b"\xff"]}, r"b'\\xff' is not a serialized si.v1 Allocation"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_what_does_not_fit_is_refused_by_name(given: dict[str, Any], text: str) -> None:
    """The error names it, and what is wrong with it."""
    with pytest.raises(LicorneError, match=text):
        read(**given)
