"""What others use of a node, as an RM reports it in one amount."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.nodes.node import Node
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import NodeAction, NodesAnswered, NodeUpdate, Rejection
from licorne.model.views.shown import shown_partition
from licorne.proxy.core.documents.clusters import node_document

FOUR = a_resource(memory=4)
SIX = a_resource(memory=6)


def report(
    h: Harness,
    occupied: Resource,
    action: NodeAction = NodeAction.UPDATE,
    resource: Resource | None = None,
) -> None:
    """Have the RM report what others use of the node `one`."""
    update = NodeUpdate(node_id="one", action=action, attributes={}, resource=resource, occupied=occupied)
    h.partition.update_nodes([update])
    h.validate()


@pytest.mark.parametrize("action", [NodeAction.CREATE, NodeAction.CREATE_DRAIN])
def test_a_new_node_is_occupied_from_the_start(action: NodeAction) -> None:
    """Nothing is placed on what others use."""
    h = Harness()

    report(h, FOUR, action, TEN)

    facts = h.node("one")
    assert (TEN, FOUR, EMPTY, SIX) == (facts.capacity, facts.occupied, facts.allocated, facts.available)


def test_a_later_report_takes_the_place_of_an_earlier_one() -> None:
    """It is the whole amount, not a change; an empty one means that others use nothing."""
    h = a_running_partition(nodes=("one",))

    seen = []
    for amount in (FOUR, SIX, EMPTY):
        report(h, amount)
        seen.append(h.node("one").available)

    assert [SIX, FOUR, TEN] == seen
    assert [] == h.announcements


def test_capacity_and_what_others_use_change_in_one_update() -> None:
    """An update without a capacity keeps the one that is there."""
    h = a_running_partition(nodes=("one",))

    report(h, SIX, resource=a_resource(memory=20))

    assert (a_resource(memory=20), a_resource(memory=14)) == (h.node("one").capacity, h.node("one").available)


def test_what_others_use_may_be_more_than_there_is() -> None:
    """They run already; nothing more is placed until there is room again."""
    h = a_running_partition(nodes=("one",))
    report(h, a_resource(memory=12))
    h.ask_and_run("a", resource=FOUR)
    before = dict(h.placements)

    report(h, SIX)
    h.run_until_idle()

    assert ({}, {"a": "one"}) == (before, h.placements)


def test_foreign_allocations_come_in_addition() -> None:
    """One may use both ways to report; neither counts for a queue."""
    h = a_running_partition(nodes=("one",))
    h.ask("f", application_id="", node_id="one", resource=FOUR, tags={"foreign": "default"})

    report(h, FOUR)
    both = h.node("one").occupied
    h.release("f", application_id="")

    assert (a_resource(memory=8), FOUR) == (both, h.node("one").occupied)
    assert EMPTY == h.queue("root").allocated


def test_the_document_of_a_node_shows_what_others_use() -> None:
    """Under `occupied`; it is no allocation of anyone."""
    h = a_running_partition(nodes=("one",))

    report(h, FOUR)

    (row,) = h.partition.read(shown_partition).nodes
    document = node_document(row)
    assert ({"memory": 4}, {"memory": 6}) == (document["occupied"], document["available"])
    assert not {"allocations", "foreignAllocations", "allocated"} & {
        name for name, value in document.items() if value
    }


@pytest.mark.parametrize("action", [NodeAction.CREATE, NodeAction.UPDATE])
def test_a_negative_amount_is_rejected(action: NodeAction) -> None:
    """It is named, and the node stays as it was."""
    h = a_running_partition(nodes=("one",))
    report(h, FOUR)

    report(h, a_resource(memory=-1), action, TEN)

    why = "what others use of node one is negative: memory is -1"
    assert [NodesAnswered((), (Rejection("one", why),))] == h.announcements
    assert FOUR == h.node("one").occupied


def test_an_amount_with_another_action_is_rejected() -> None:
    """It would be lost; the action is not carried out either."""
    h = a_running_partition(nodes=("one",))

    report(h, FOUR, NodeAction.DRAIN_NODE)

    why = (
        "nothing is done with node one: occupiedResource is for the actions CREATE, CREATE_DRAIN and UPDATE, "
        "not for DRAIN_NODE"
    )
    assert [NodesAnswered((), (Rejection("one", why),))] == h.announcements
    assert h.node("one").schedulable


def test_validation_finds_use_out_of_nowhere() -> None:
    """What is occupied is the sum of what is reported."""
    h = a_running_partition(nodes=("one",))
    report(h, FOUR)
    entry = h.state.nodes.get("one")
    assert entry is not None
    assert isinstance(entry.node, Node)
    entry.node._used_by_others = SIX

    with pytest.raises(AssertionError, match="is not the sum"):
        h.validate()
