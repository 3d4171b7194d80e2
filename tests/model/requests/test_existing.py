"""Allocations that exist on a node when it is created."""

from __future__ import annotations

from typing import Any

import pytest
from support.model.builders import PARTITION, TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.resources.resource import EMPTY
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationSubmission,
    NodeAction,
    NodesAnswered,
    NodeUpdate,
    Rejection,
)

TWO = a_resource(memory=2)


def existing(key: str, application_id: str = "app", **more: Any) -> AllocationSubmission:
    """Return an allocation on the node `new`."""
    fields: dict[str, Any] = {
        "partition": PARTITION,
        "resource": TWO,
        "priority": 0,
        "tags": {},
        "node_id": "new",
        "task_group_name": "",
        "placeholder": False,
        "originator": False,
        "allow_preempt_self": False,
        "allow_preempt_other": False,
    }
    return AllocationSubmission(**{**fields, "allocation_key": key, "application_id": application_id, **more})


def create(
    h: Harness, *allocations: AllocationSubmission, action: NodeAction = NodeAction.CREATE
) -> NodesAnswered | None:
    """Have the RM create the node `new` with what exists on it; return the answer."""
    update = NodeUpdate(node_id="new", action=action, attributes={}, resource=TEN, existing=allocations)
    h.partition.update_nodes([update])
    h.validate()
    answers = h.heard(NodesAnswered)
    return answers[-1] if answers else None


def two_applications() -> Harness:
    """Return a partition with a node `one`, two applications, and nothing to say."""
    h = a_running_partition(nodes=("one",))
    h.submit("other")
    h.forget()
    return h


@pytest.mark.parametrize("action", [NodeAction.CREATE, NodeAction.CREATE_DRAIN])
def test_what_exists_is_recovered_with_its_node(action: NodeAction) -> None:
    """It counts for queue, user and application, which runs; the RM gets it back, as any recovered one."""
    h = two_applications()

    answer = create(h, existing("k"), existing("k#allocation:u"), existing("l", "other"), action=action)

    assert NodesAnswered(("new",), ()) == answer
    assert ["k", "k#allocation:u", "l"] == [placed.allocation_key for placed in h.placed]
    six = a_resource(memory=6)
    assert (six, six, six) == (h.node("new").allocated, h.queue().allocated, h.user_usage())
    assert ["Accepted", "Running"] == h.states()


def test_what_exists_need_not_fit() -> None:
    """It runs already, whatever node and quotas have."""
    h = Harness("- {name: leaf, resources: {max: {memory: 1}}}")
    h.submit()

    answer = create(h, existing("k", resource=a_resource(memory=12)))

    assert NodesAnswered(("new",), ()) == answer
    assert a_resource(memory=-2) == h.node("new").available


def test_a_foreign_allocation_may_exist_on_a_new_node() -> None:
    """It occupies the node."""
    h = two_applications()

    create(h, existing("f", "", tags={"foreign": "static"}))

    assert (TWO, EMPTY) == (h.node("new").occupied, h.node("new").allocated)
    assert [] == h.heard(AllocationPlaced)


def test_what_waits_and_exists_waits_no_longer() -> None:
    """The RM has placed it itself."""
    h = two_applications()
    h.update_node("one", NodeAction.DRAIN_NODE)
    h.ask("k", resource=TWO)

    create(h, existing("k"))

    assert (EMPTY, TWO) == (h.queue().pending, h.node("new").allocated)


REFUSED: list[tuple[AllocationSubmission, str]] = [
    (existing("k", "no"), "k is refused: failed to find application no"),
    (existing("k", resource=EMPTY), "k is refused: allocation contains no resources"),
    (existing("k", resource=a_resource(memory=-1)), "k is refused: allocation contains negative resources"),
    (existing("k", node_id="one"), "k is refused: it is on node one"),
    (existing("k", partition="[rm]gpu"), "k is refused: it is in partition [rm]gpu"),
    (existing("fine"), "fine is refused: it is there twice"),
    (existing("fine", "other"), "fine is refused: it is there twice"),
    (existing("runs"), "runs is refused: it runs on node one"),
    (existing("runs", "other"), "runs is refused: allocation key runs is in use by application app"),
    (existing("far", "", tags={"foreign": "static"}), "far is refused: it runs on node one"),
    (existing("", "", tags={"foreign": "static"}), " is refused: its allocation key is empty"),
    (existing(""), " is refused: the allocation key of an ask of application 'app' is empty"),
]


@pytest.mark.parametrize(("wrong", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_a_node_is_rejected_with_what_exists_on_it(wrong: AllocationSubmission, why: str) -> None:
    """Nothing of it is recovered, also what is before the fault: the node is not there."""
    h = two_applications()
    h.ask("runs", resource=TWO, node_id="one")
    h.ask("far", application_id="", resource=TWO, node_id="one", tags={"foreign": "static"})
    h.forget()

    answer = create(h, existing("fine"), wrong)

    why = f"failure while adding new node new: its existing allocation {why}"
    assert NodesAnswered((), (Rejection("new", why),)) == answer
    assert ([answer], None, TEN) == (h.announcements, h.state.nodes.get("new"), h.state.capacity)
    assert (TWO, False) == (h.queue().allocated, h.application().asks.knows("fine"))


def test_a_member_that_is_about_to_run_elsewhere_does_not_exist() -> None:
    """The RM has been asked to end its placeholder."""
    h = a_running_partition(nodes=("one",), placeholder_ask=TWO)
    h.ask_and_run("p", resource=TWO, placeholder=True, task_group_name="tasks")
    h.ask_and_run("m", resource=TWO, task_group_name="tasks")

    answer = create(h, existing("m"))

    assert answer is not None
    assert answer.rejected[0].reason.endswith("m is refused: it is about to run elsewhere")


@pytest.mark.parametrize("action", [NodeAction.UPDATE, NodeAction.DECOMISSION, NodeAction.DRAIN_NODE])
def test_only_a_new_node_has_existing_allocations(action: NodeAction) -> None:
    """With any other action they would be lost: nothing is done."""
    h = two_applications()
    create(h)

    answer = create(h, existing("k"), action=action)

    why = (
        "nothing is done with node new: existingAllocations is for the actions CREATE and CREATE_DRAIN, "
        f"not for {action.name}"
    )
    assert NodesAnswered((), (Rejection("new", why),)) == answer
    assert h.node("new").schedulable
