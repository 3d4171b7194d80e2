"""Which leaves a cycle looks at: all but those that sleep."""

from __future__ import annotations

import random
from typing import Final

import pytest
from support.model.builders import a_queue_tree, a_resource
from support.model.entries import an_entry, facts_of

from licorne.model.queues.application_entry import wake
from licorne.model.queues.queue import Queue
from licorne.model.queues.quota import is_reached
from licorne.model.queues.sleep import AwakeLeaves, Sleep, Wake
from licorne.model.queues.tree import QueueTree, awake_in_order
from licorne.model.values.states import ObjectEvent

STAMP: Final = (1, 1, 1, 1)
NAMES: Final = tuple(f"q{number}" for number in range(40))
DEEP: Final = "\n".join(
    f"- name: p{parent}\n  queues:\n" + "\n".join(f"  - name: {name}" for name in NAMES[parent::4])
    for parent in range(4)
)


def a_waiting_tree(seed: int = 1) -> QueueTree:
    """Return a tree in whose leaves something waits, more or less."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    tree = a_queue_tree(DEEP)
    for leaf in tree.leaves():
        pending = a_resource(memory=rng.randint(1, 9))
        an_entry(leaf, leaf.name, facts_of(pending=pending, priority=rng.randint(0, 3)))
        for level in leaf.above:
            level.add_pending(pending)
        tree.refresh(leaf)
        wake(leaf)
    return tree


def may_be_skipped(leaf: Queue, until_ns: int | None = None, placed: int | None = None) -> Queue:
    leaf.entries.sleep = Sleep(STAMP, until_ns, Wake.BY_ROOM, placed=placed)
    return leaf


def leaf_of(tree: QueueTree, name: str) -> Queue:
    return next(leaf for leaf in tree.leaves() if leaf.name == name)


@pytest.mark.parametrize("seed", range(20))
def test_those_that_are_awake_come_in_the_order_of_the_whole_walk(seed: int) -> None:
    """Whether they are few, and sorted, or many, and the others are walked past."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    tree = a_waiting_tree(seed)
    awake = tree.root.awake
    for count in (1, 25, 39):
        asleep = [may_be_skipped(leaf) for leaf in rng.sample(tree.leaves(), count)]
        awake.look((0, 0, 0, 0), 0)
        awake.sleep(asleep, STAMP)
        expected = [leaf for leaf in tree.leaves_in_order() if leaf not in asleep]

        assert expected == [*awake_in_order(tree)]
        awake.look((2, 2, 2, 2), 0)
        assert not awake.asleep


def test_a_stamp_that_has_moved_wakes_all_of_them() -> None:
    """Also those that fell asleep before the last one did, with an earlier stamp."""
    tree = a_waiting_tree()
    awake = tree.root.awake
    awake.sleep([may_be_skipped(leaf_of(tree, "q1"))], STAMP)
    awake.sleep([may_be_skipped(leaf_of(tree, "q2"))], (1, 1, 1, 2))
    assert ["q2"] == [leaf.name for leaf in awake.asleep]

    awake.look((1, 1, 2, 2), 0)
    assert (0, 40) == (len(awake.asleep), len(awake.leaves))


def test_time_wakes_those_that_are_due() -> None:
    """Threads that share the partition see it without a look."""
    tree = a_waiting_tree()
    awake, early, late = tree.root.awake, leaf_of(tree, "q1"), leaf_of(tree, "q2")
    awake.sleep([may_be_skipped(early, 10), may_be_skipped(late, 20)], STAMP)

    assert (10, True) == (awake.next_due_ns(), awake.sleeps_on(early, STAMP, 9))
    assert not awake.sleeps_on(early, STAMP, 10)
    assert not awake.sleeps_on(late, (9, 9, 9, 9), 10)
    awake.look(STAMP, 10)
    assert ([late], 20) == ([*awake.asleep], awake.next_due_ns())


def test_what_waits_no_more_is_never_due() -> None:
    """A timer for it would fire for nothing."""
    tree = a_waiting_tree()
    leaf = leaf_of(tree, "q1")
    tree.root.awake.sleep([may_be_skipped(leaf, 10)], STAMP)
    leaf.remove_pending(leaf.pending)

    assert tree.root.awake.next_due_ns() is None


def test_a_leaf_that_a_placement_may_give_something_does_not_sleep() -> None:
    """No count of changes moves then."""
    tree = a_waiting_tree()
    tree.root.awake.sleep([may_be_skipped(leaf_of(tree, "q1"), placed=7)], STAMP)

    assert not tree.root.awake.asleep


def test_a_removed_leaf_is_forgotten() -> None:
    """A leaf that comes again at its path is another one."""
    tree = a_waiting_tree()
    awake, asleep, gone = tree.root.awake, leaf_of(tree, "q1"), leaf_of(tree, "q2")
    awake.sleep([may_be_skipped(asleep)], STAMP)
    awake.forget(asleep)
    awake.forget(gone)

    assert asleep not in awake.asleep
    assert gone not in awake.leaves


def test_a_leaf_below_a_leaf_or_below_a_stopped_queue_is_not_reached() -> None:
    """A configuration made its parent a leaf, or removes it: what still waits below is not visited."""
    tree = a_waiting_tree()
    leaf = leaf_of(tree, "q1")
    parent = leaf.above[1]
    assert is_reached(leaf)

    parent.is_leaf = True
    assert not is_reached(leaf)
    parent.is_leaf = False
    parent.handle(ObjectEvent.STOP)
    assert not is_reached(leaf)


def test_queues_that_are_no_leaves_are_passed_over() -> None:
    """A reload wakes all queues of the tree."""
    awake, tree = AwakeLeaves(), a_waiting_tree()
    awake.wake(tree.root)

    assert not awake.leaves
