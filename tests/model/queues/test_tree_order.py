"""The queues of a partition: who may submit, and the order in which leaves are visited."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_configuration, a_queue_tree, a_resource, the
from support.model.entries import an_entry, facts_of

from licorne.model.queues.quota import ranked_leaves
from licorne.model.queues.tree import QueueTree
from licorne.model.resources.resource import Resource
from licorne.model.values.messages import User

BOB = User("bob", ("dev",))


# ---------------------------------------------------------------------------------------------- access

ACCESS = """
- name: open
  submitacl: '*'
- name: bobs
  submitacl: bob
  queues:
  - name: below
- name: admins
  adminacl: ' dev'
- name: closed
"""


@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        (BOB, ["open", "bobs", "bobs.below", "admins"]),
        (User("eve", ("qa",)), ["open"]),
        (User("dan", ("qa", "dev")), ["open", "admins"]),
    ],
)
def test_who_may_submit(user: User, allowed: list[str]) -> None:
    """Whom the submit list or the admin list of the queue, or of any queue above, names."""
    tree = a_queue_tree(ACCESS)
    tree.root.submit_acl = the(tree, "root.closed").submit_acl
    names = ["open", "bobs", "bobs.below", "admins", "closed"]

    assert allowed == [name for name in names if tree.submit_allowed(f"root.{name}", user)]


def test_a_user_who_may_submit_to_the_root_may_submit_everywhere() -> None:
    """A list above is as good as the queue's own."""
    assert a_queue_tree(ACCESS).submit_allowed("ROOT.closed", BOB)


# ------------------------------------------------------------------------------------------- ordering

PRIORITIES = """
- name: offset
  properties: {priority.offset: "10"}
  queues:
  - name: leaf
- name: fence
  properties: {priority.policy: fence, priority.offset: "4"}
  queues:
  - name: leaf
- name: plain
  queues:
  - name: leaf
"""


def wait(tree: QueueTree, path: str, priority: int) -> None:
    """Have an application wait in a leaf."""
    leaf = the(tree, path)
    an_entry(leaf, path, facts_of(pending=TEN, priority=priority))
    for level in leaf.above:
        level.add_pending(TEN)
    tree.refresh(leaf)


def order_of(tree: QueueTree) -> list[str]:
    return [leaf.name for leaf in tree.leaves_in_order()]


def a_measured_tree(queues: str = "- name: a\n- name: b", *, root: str = "") -> QueueTree:
    """Return queues in a cluster of a hundred, of which their shares are measured."""
    tree = a_queue_tree(queues, root=root)
    tree.root.set_maximum_from_nodes(a_resource(memory=100))
    tree.limits_changed()
    return tree


def use(tree: QueueTree, path: str, resource: Resource) -> None:
    """Have a leaf use something."""
    the(tree, path).charge(resource)
    tree.refresh(the(tree, path))


def test_priorities_go_up_through_offsets_and_fences() -> None:
    """Level by level: an offset is added, a fence lets nothing through but its own offset."""
    tree = a_queue_tree(PRIORITIES)
    for name in ("offset", "fence", "plain"):
        wait(tree, f"root.{name}.leaf", 3)

    exposed = {name: queue.exposed_priority for name, queue in tree.root.children.items()}

    assert {"offset": 13, "fence": 4, "plain": 3} == exposed
    assert 13 == tree.root.exposed_priority
    tree.validate()


def test_leaves_come_in_the_order_of_their_parents() -> None:
    """The order among the children of the root decides first, then that within each of them."""
    tree = a_queue_tree(PRIORITIES)
    for name, priority in (("plain", 5), ("fence", 99), ("offset", 0)):
        wait(tree, f"root.{name}.leaf", priority)

    order = [leaf.path for leaf in tree.leaves_in_order()]

    assert ["root.offset.leaf", "root.plain.leaf", "root.fence.leaf"] == order


def test_leaves_without_anything_waiting_are_passed_over() -> None:
    """And come into the order once something waits."""
    tree = a_queue_tree("- name: a\n- name: b")
    before = order_of(tree)

    wait(tree, "root.b", 0)

    assert ([], ["b"]) == (before, order_of(tree))


def test_the_order_follows_usage() -> None:
    """What a queue uses of its fair maximum moves it behind the others."""
    tree = a_measured_tree()
    for name in "ab":
        wait(tree, f"root.{name}", 0)
    before = order_of(tree)

    use(tree, "root.a", TEN)

    assert (["a", "b"], ["b", "a"]) == (before, order_of(tree))


def test_a_child_that_gets_a_sibling_is_ordered_by_its_usage() -> None:
    """Alone it needs no share for its place; beside another one its share counts, also for those who look."""
    tree = a_measured_tree("- name: a\n  queues:\n  - name: old")
    the(tree, "root.a.old").charge(TEN)
    wait(tree, "root.a.old", 0)
    alone = order_of(tree)

    tree.create("root.a.new")
    wait(tree, "root.a.new", 0)
    looked = [leaf.name for leaf in ranked_leaves(tree)]

    assert (["old"], ["new", "old"], ["new", "old"]) == (
        alone,
        looked,
        order_of(tree),
    )


def test_a_changed_limit_moves_all_that_are_measured_with_it() -> None:
    """A share of a type that the cluster does not have counts nothing until it does."""
    tree = a_measured_tree()
    for name, used in (("a", a_resource(gpu=1)), ("b", a_resource(memory=1))):
        wait(tree, f"root.{name}", 0)
        use(tree, f"root.{name}", used)
    before = order_of(tree)

    tree.root.set_maximum_from_nodes(a_resource(memory=100, gpu=2))
    tree.limits_changed()

    assert (["a", "b"], ["b", "a"]) == (before, order_of(tree))


def test_a_reload_with_another_maximum_orders_anew() -> None:
    """A share is measured with the maximum that a queue has now."""
    tree = a_measured_tree()
    for name, memory in (("a", 10), ("b", 20)):
        wait(tree, f"root.{name}", 0)
        use(tree, f"root.{name}", a_resource(memory=memory))
    before = order_of(tree)

    tree.load(a_configuration("- name: a\n  resources: {max: {memory: 20}}\n- name: b").root)

    assert (["a", "b"], ["b", "a"]) == (before, order_of(tree))


def test_a_parent_without_priority_sorting_goes_by_share() -> None:
    """The property is that of the parent whose children are ordered."""
    tree = a_measured_tree(root="properties: {application.sort.priority: disabled}")
    wait(tree, "root.a", 9)
    wait(tree, "root.b", 0)
    use(tree, "root.a", TEN)

    by_share = order_of(tree)
    tree.load(a_configuration("- name: a\n- name: b").root)

    assert (["b", "a"], ["a", "b"]) == (by_share, order_of(tree))


def test_validation_finds_a_stale_priority() -> None:
    """A priority that is not that of what waits."""
    tree = a_queue_tree()
    wait(tree, "root.leaf", 3)
    the(tree, "root.leaf").priority = 4

    with pytest.raises(AssertionError, match=r"priority . is stale"):
        tree.validate()
