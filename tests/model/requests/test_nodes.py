"""What an RM says of its nodes, carried out on a partition."""

from __future__ import annotations

import pytest
from support.model.builders import FIVE, TEN, TWENTY, FakePredicates, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.resources.quantities import INT64_MAX
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import (
    AllocationsReleased,
    NodeAction,
    NodesAnswered,
    Rejection,
    RejectionCode,
    TerminationType,
)
from licorne.model.values.states import ObjectState

STOPPED = TerminationType.STOPPED_BY_RM


def cluster_size(h: Harness) -> object:
    """Return the root's maximum, which is the partition's capacity."""
    assert (h.state.tree.root.maximum or EMPTY) == h.state.capacity
    return h.state.tree.root.maximum


# ----------------------------------------------------------------------------------------- creations


def test_created_nodes_are_accepted_in_one_answer() -> None:
    """Their capacities add up to the size of the cluster, cordoned or not."""
    h = Harness()

    answer = h.nodes("one", "two")
    h.nodes("three", action=NodeAction.CREATE_DRAIN)

    assert NodesAnswered(("one", "two"), ()) == answer
    assert a_resource(memory=30) == cluster_size(h)
    assert (True, False) == (h.node("one").schedulable, h.node("three").schedulable)


def test_a_node_is_created_once() -> None:
    """A second one with its id is rejected with the words of the interface; the first stays as it is."""
    h = Harness()
    h.nodes("one")

    answer = h.nodes("one", "two", capacity=FIVE)

    why = (
        "failure while adding new node, node rejected with error: failed to add node one to partition "
        "[rm]default, error: partition [rm]default has an existing node one, node name must be unique"
    )
    assert NodesAnswered(("two",), (Rejection("one", why),)) == answer
    assert (TEN, a_resource(memory=15)) == (h.node("one").capacity, cluster_size(h))


@pytest.mark.parametrize("state", [ObjectState.STOPPED, ObjectState.DRAINING])
def test_a_partition_that_goes_away_takes_no_node(state: ObjectState) -> None:
    """Neither a stopped one nor a draining one."""
    h = Harness()
    h.state.state = state

    answer = h.nodes("one")

    why = "partition [rm]default is stopped cannot add a new node one"
    assert (Rejection("one", why),) == answer.rejected


def test_a_cluster_of_nothing_is_none() -> None:
    """Nodes that have nothing leave the root without a maximum."""
    h = Harness()

    h.nodes("one", capacity=a_resource(memory=0))

    assert cluster_size(h) is None


# ------------------------------------------------------------------------------------------- changes


def test_a_new_capacity_changes_the_cluster_by_the_difference() -> None:
    """What runs on the node stays, and may be more than it has now. There is no message."""
    h = a_running_partition("a")

    h.update_node("one", NodeAction.UPDATE, FIVE)

    assert (a_resource(memory=15), a_resource(memory=-5)) == (cluster_size(h), h.node("one").available)
    assert [] == h.announcements


def test_a_node_below_what_it_uses_takes_nothing_until_it_has_room() -> None:
    """What ends there first makes up for what is missing."""
    h = a_running_partition("a", nodes=("one",))
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.ask("b", node_id="one", resource=FIVE)
    h.ask("waits", resource=a_resource(memory=1))
    h.update_node("one", NodeAction.UPDATE, a_resource(memory=6))
    h.run_until_idle()
    h.release("a")
    h.run_until_idle()

    assert (a_resource(), "one") == (h.node("one").available, h.placements.get("waits"))


def test_a_cluster_beyond_the_range_counts_right_again_when_a_node_goes() -> None:
    """The sum is exact."""
    h = Harness()
    h.nodes("one", "two", capacity=a_resource(memory=INT64_MAX))
    h.nodes("three", capacity=a_resource(memory=7))
    assert a_resource(memory=2 * INT64_MAX + 7) == cluster_size(h)

    h.update_node("one", NodeAction.DECOMISSION)
    h.update_node("two", NodeAction.DECOMISSION)

    assert a_resource(memory=7) == cluster_size(h)


def test_a_capacity_of_nothing_is_taken() -> None:
    """It counts for the cluster as it is, and nothing is placed there."""
    h = a_running_partition(nodes=("one", "two"))
    h.update_node("one", NodeAction.UPDATE, EMPTY)
    h.ask_and_run("a", resource=FIVE)

    assert TEN == cluster_size(h)
    assert {"a": "two"} == h.placements


def test_attributes_are_those_of_the_creation() -> None:
    """An update changes the capacity alone."""
    h = Harness()
    h.nodes("one", attributes={"si/instance-type": "small"})

    h._update_nodes(("one",), NodeAction.UPDATE, FIVE, {"si/instance-type": "large"})

    assert ({"si/instance-type": "small"}, FIVE) == (h.node("one").attributes, h.node("one").capacity)


def test_a_cordoned_node_keeps_its_reservation() -> None:
    """The ask has waited for it, and may have it when the node is opened again."""
    h = a_running_partition("a", nodes=("one",))
    h.nodes("spare", capacity=a_resource(memory=100), action=NodeAction.CREATE_DRAIN)
    h.ask("waits")
    h.advance(3)
    h.run_until_idle()

    h.update_node("one", NodeAction.DRAIN_NODE)

    assert ("waits",) == h.node("one").reservations


def test_an_update_without_a_capacity_changes_nothing() -> None:
    """Neither does one with the same."""
    h = a_running_partition()

    h.update_node("one", NodeAction.UPDATE)
    h.update_node("one", NodeAction.UPDATE, TEN)

    assert (TWENTY, TEN) == (cluster_size(h), h.node("one").capacity)


def test_types_that_an_update_no_longer_names_are_gone() -> None:
    """The new capacity replaces the old one."""
    h = Harness()
    h.nodes("one", capacity=a_resource(memory=10, gpu=1))

    h.update_node("one", NodeAction.UPDATE, a_resource(memory=10, gpu=0))

    assert TEN == cluster_size(h)


def test_a_node_is_cordoned_and_opened_again() -> None:
    """What runs there runs on; its capacity counts all the time."""
    h = a_running_partition("a")
    h.ask("b", "c")

    h.update_node("one", NodeAction.DRAIN_NODE)
    h.update_node("one", NodeAction.DRAIN_NODE)
    h.run_until_idle()
    cordoned = (h.node("one").schedulable, dict(h.placements), cluster_size(h))
    h.release("a")
    h.update_node("one", NodeAction.DRAIN_TO_SCHEDULABLE)
    h.run_until_idle()

    assert (False, {"b": "two"}, TWENTY) == cordoned
    assert {"b": "two", "c": "one"} == h.placements


@pytest.mark.parametrize("action", [action for action in NodeAction if action.value])
def test_what_is_said_of_unknown_nodes_is_answered(action: NodeAction) -> None:
    """Except for a removal: such a node is gone, as it should be."""
    h = Harness()

    h.update_node("unknown", action, TEN)

    created = action in (NodeAction.CREATE, NodeAction.CREATE_DRAIN)
    assert int(created) == len(h.state.nodes)
    assert int(action is not NodeAction.DECOMISSION) == len(h.announcements)
    if not created and h.announcements:
        why = f"nothing is done for the action {action.name}: partition {h.state.name} has no node unknown"
        rejection = Rejection("unknown", why, RejectionCode.NODE_UNKNOWN)
        assert [NodesAnswered((), (rejection,))] == h.announcements


def test_a_missing_action_changes_nothing_and_is_answered() -> None:
    """The node stays; the answer says what may be wanted."""
    h = a_running_partition()

    h.update_node("one", NodeAction.UNKNOWN_ACTION_FROM_RM, FIVE)

    why = (
        "nothing is done with node 'one': its action is missing; known are CREATE, UPDATE, DRAIN_NODE, "
        "DECOMISSION, DRAIN_TO_SCHEDULABLE, CREATE_DRAIN"
    )
    assert [NodesAnswered((), (Rejection("one", why),))] == h.announcements
    assert (TEN, True) == (h.node("one").capacity, h.node("one").schedulable)


CHANGES_CAPACITY = (NodeAction.CREATE, NodeAction.CREATE_DRAIN, NodeAction.UPDATE)


@pytest.mark.parametrize("action", CHANGES_CAPACITY)
def test_a_negative_capacity_is_rejected(action: NodeAction) -> None:
    """Whether the node is known; all types that are below zero are named, and nothing changes."""
    h = a_running_partition()
    name = "one" if action is NodeAction.UPDATE else "new"

    h.update_node(name, action, Resource({"gpu": 1, "memory": -5, "vcore": -(2**63)}))

    why = f"the capacity of node {name} is negative: memory is -5, vcore is {-(2**63)}"
    assert [NodesAnswered((), (Rejection(name, why),))] == h.announcements
    assert (2, TWENTY) == (len(h.state.nodes), cluster_size(h))


@pytest.mark.parametrize("action", [action for action in NodeAction if action.value])
def test_a_node_without_an_id_is_rejected(action: NodeAction) -> None:
    """Whatever is to be done with it."""
    h = a_running_partition()

    h.update_node("", action, TEN)

    why = f"nothing is done for the action {action.name}: the node id is empty"
    assert [NodesAnswered((), (Rejection("", why),))] == h.announcements
    assert 2 == len(h.state.nodes)


def test_what_does_not_change_the_capacity_may_come_with_any() -> None:
    """It is not looked at."""
    h = a_running_partition()

    h.update_node("one", NodeAction.DRAIN_NODE, a_resource(memory=-1))
    h.update_node("two", NodeAction.DECOMISSION, a_resource(memory=-1))

    assert ([], False) == (h.announcements, h.node("one").schedulable)
    assert TEN == cluster_size(h)


# ------------------------------------------------------------------------------------------- removal


def test_a_removed_node_takes_its_allocations_along() -> None:
    """The RM hears of each, and all that they used is free again."""
    h = a_running_partition("a", "b", "c")

    h.update_node("one", NodeAction.DECOMISSION)

    assert [("a", STOPPED)] == h.releases
    (released,) = h.heard(AllocationsReleased)
    assert ["Node one Removed"] == [release.message for release in released.releases]
    assert (None, TEN) == (h.state.nodes.get("one"), cluster_size(h))
    assert (TEN, TEN, 1) == (h.queue().allocated, h.user_usage(), h.state.placed.allocations)


def test_asks_of_a_removed_node_are_not_placed_again() -> None:
    """The RM is to ask again; until then they count as placed."""
    h = a_running_partition("a", "b", "c")
    h.update_node("one", NodeAction.DECOMISSION)

    h.nodes("new", "newer")
    h.run_until_idle()

    assert {"c": "new"} == h.placements
    assert EMPTY == h.queue().pending


def test_a_node_without_anything_is_removed_silently() -> None:
    """There is nothing to tell."""
    h = a_running_partition()

    h.update_node("one", NodeAction.DECOMISSION)

    assert ([], TEN) == (h.announcements, cluster_size(h))


def test_an_application_completes_when_its_last_allocation_goes_with_a_node() -> None:
    """As it does when the RM ends it."""
    h = a_running_partition("a")

    h.update_node("one", NodeAction.DECOMISSION)

    assert ["Completing"] == h.states()


def test_the_foreign_allocations_of_a_removed_node_are_forgotten() -> None:
    """They may come again on another one."""
    h = a_running_partition()
    foreign = {"foreign": "default"}
    h.ask("f", application_id="", node_id="one", tags=foreign)

    h.update_node("one", NodeAction.DECOMISSION)
    forgotten = dict(h.state.foreign)
    h.ask("f", application_id="", node_id="two", tags=foreign)

    assert ({}, ["f"], TEN) == (forgotten, list(h.state.foreign), h.node("two").occupied)


# ------------------------------------------------------------------------------- removal during swaps


def swapping(where: str) -> Harness:
    """Return a gang of two on node one whose member `m` is to replace `p1`, on that node or on node two."""
    why = {("m", "one"): "not here"} if where == "two" else {}
    h = a_running_partition(
        nodes=("one",),
        capacity=TWENTY,
        predicates=FakePredicates(refused=why, unreservable=why),
        placeholder_ask=TWENTY,
    )
    h.ask_and_run("p1", "p2", task_group_name="g", placeholder=True)
    h.nodes("two", capacity=TWENTY)
    h.ask("m", task_group_name="g", resource=FIVE)
    h.cycle()
    h.forget()
    return h


def test_a_swap_is_confirmed_when_the_node_of_the_placeholder_goes() -> None:
    """The member is elsewhere: it is announced there, and both placeholders are reported as ended."""
    h = swapping("two")

    h.update_node("one", NodeAction.DECOMISSION)

    assert {"m": "two"} == h.placements
    assert [("p1", STOPPED), ("p2", STOPPED)] == h.releases
    assert (FIVE, FIVE, 1, 0) == (
        h.queue().allocated,
        h.user_usage(),
        h.state.placed.allocations,
        h.state.placed.placeholders,
    )


def test_a_member_waits_again_when_the_node_of_both_goes() -> None:
    """Its ask is pending as before the swap."""
    h = swapping("one")

    h.update_node("one", NodeAction.DECOMISSION)

    assert ({}, [("p1", STOPPED), ("p2", STOPPED)], FIVE) == (h.placements, h.releases, h.queue().pending)
    h.run_until_idle()
    assert {"m": "two"} == h.placements


def test_a_member_waits_again_when_the_node_goes_that_it_was_to_run_on() -> None:
    """The placeholder is still on its way out; the member takes the other one."""
    h = swapping("two")

    h.update_node("two", NodeAction.DECOMISSION)
    before = (h.releases, h.queue().pending, h.queue().allocated)
    h.release("p1", termination=TerminationType.PLACEHOLDER_REPLACED)

    assert ([], FIVE, TWENTY) == before
    assert (TEN, ["p2"]) == (
        h.queue().allocated,
        [entry.allocation_key for entry in h.node("one").allocations],
    )
