"""The queues of a partition: finding, creating, reloading and removing them, and who may submit."""

from __future__ import annotations

import pytest
from support.model.builders import TEN, a_configuration, a_queue_tree, a_resource, the
from support.model.entries import an_entry, facts_of

from licorne.model.configuration.policies import PriorityPolicy
from licorne.model.queues.queue import Queue
from licorne.model.queues.tree import RECOVERY_QUEUE, QueueTree
from licorne.model.resources.quantities import INT32_MIN
from licorne.model.values.states import ObjectState

TEMPLATE = """
- name: parent
  parent: true
  childtemplate:
    maxapplications: 3
    properties:
      application.sort.policy: fair
    resources:
      guaranteed: {memory: 1}
      max: {memory: 10}
"""


def paths(tree: QueueTree) -> list[str]:
    tree.validate()
    return [queue.path for queue in tree]


def created(tree: QueueTree, path: str) -> Queue:
    queue = tree.create(path)
    assert isinstance(queue, Queue), queue
    return queue


def reload(tree: QueueTree, queues: str, *, root: str = "") -> None:
    tree.load(a_configuration(queues, root=root).root)


# -------------------------------------------------------------------------------------------- finding


def test_a_configuration_becomes_a_tree() -> None:
    """A queue with queues, or said to be a parent, is a parent; every other one is a leaf."""
    tree = a_queue_tree("- name: a\n  queues:\n  - name: b\n- name: c\n  parent: true\n- name: d")

    assert ["root", "root.a", "root.a.b", "root.c", "root.d"] == paths(tree)
    assert ["root.a.b", "root.d"] == [queue.path for queue in tree.leaves()]
    assert {True} == {queue.managed for queue in tree}
    assert {ObjectState.ACTIVE} == {queue.state for queue in tree}


def test_names_are_stored_in_lower_case() -> None:
    """Whatever their spelling in the configuration."""
    assert ["root", "root.sales", "root.sales.emea"] == paths(
        a_queue_tree("- name: Sales\n  queues:\n  - name: EMEA")
    )


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("root", "root"),
        ("ROOT.Leaf", "root.leaf"),
        ("root.leaf", "root.leaf"),
        ("root.", None),
        ("leaf", None),
        ("root.leaf.x", None),
        ("", None),
    ],
)
def test_a_queue_is_found_by_its_full_path_in_any_case(path: str, found: str | None) -> None:
    """A path that does not begin with the root finds nothing."""
    queue = a_queue_tree().find(path)

    assert found == (None if queue is None else queue.path)


def test_a_queue_has_what_its_configuration_says() -> None:
    """Quotas, number of applications, properties and access lists."""
    tree = a_queue_tree("""
        - name: leaf
          maxapplications: 3
          submitacl: 'bob'
          properties: {application.sort.policy: fair}
          resources:
            guaranteed: {memory: 5}
            max: {memory: 10, vcore: 1}
        """)
    leaf = the(tree, "root.leaf")

    assert (3, "fair") == (leaf.max_applications, leaf.settings.application_sort_policy)
    assert (a_resource(memory=5), a_resource(memory=10, vcore=1000)) == (leaf.guaranteed, leaf.maximum)
    assert leaf.submit_acl.allows("bob", ())


def test_a_quota_of_zeros_is_none() -> None:
    """A zero beside another type counts."""
    tree = a_queue_tree("""
        - name: none
          resources: {max: {memory: 0}}
        - name: some
          resources: {max: {memory: 0, vcore: 1}}
        """)

    assert the(tree, "root.none").maximum is None
    assert a_resource(memory=0, vcore=1000) == the(tree, "root.some").maximum


def test_the_root_counts_its_applications() -> None:
    """Its number of running applications is that of the configuration."""
    tree = a_queue_tree("- name: leaf\n  maxapplications: 2", root="maxapplications: 5")

    assert 5 == tree.root.max_applications


def test_configured_queues_inherit_properties() -> None:
    """All but the priority's, and of preemption only that it is disabled; own ones override."""
    tree = a_queue_tree("""
        - name: a
          properties:
            application.sort.priority: disabled
            priority.policy: fence
            priority.offset: "7"
            preemption.policy: disabled
            my.own: x
          queues:
          - name: b
            properties: {my.own: y}
        """)
    child = the(tree, "root.a.b")

    assert {
        "application.sort.priority": "disabled",
        "priority.policy": "default",
        "priority.offset": "0",
        "preemption.policy": "disabled",
        "my.own": "y",
    } == child.properties
    assert (False, PriorityPolicy.DEFAULT) == (
        child.settings.priority_sorting,
        child.settings.priority_policy,
    )


# ------------------------------------------------------------------------------------------- creating


def test_a_path_is_created_with_all_that_is_missing() -> None:
    """The last is a leaf, those above are parents; all are dynamic."""
    tree = a_queue_tree(TEMPLATE)

    queue = created(tree, "root.PARENT.a.b")

    assert ["root", "root.parent", "root.parent.a", "root.parent.a.b"] == paths(tree)
    assert ("root.parent.a.b", True) == (queue.path, queue.is_leaf)
    parent = the(tree, "root.parent.a")
    assert (False, False, False) == (parent.is_leaf, parent.managed, queue.managed)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("leaf", "illegal queue name passed in: leaf"),
        ("root", "illegal queue name passed in: root"),
        ("other.leaf", "illegal queue name passed in: other.leaf"),
        (
            "root.leaf.x",
            "creation of queue root.leaf.x failed parent is already a leaf: root.leaf",
        ),
        ("root.a.b$", "illegal queue name 'b$' in root.a.b$"),
        ("root.a..b", "illegal queue name '' in root.a..b"),
        ("root.@recovery@", "illegal queue name '@recovery@' in root.@recovery@"),
        ("root." + "x" * 65, f"illegal queue name '{'x' * 65}' in root.{'x' * 65}"),
    ],
)
def test_what_cannot_be_created_is_refused(path: str, why: str) -> None:
    """With the reason; nothing is created, not even the part that could be."""
    tree = a_queue_tree()

    assert why == tree.create(path)
    assert ["root", "root.leaf"] == paths(tree)


def test_nothing_is_created_below_a_queue_that_is_to_go() -> None:
    """A draining queue takes no new children."""
    tree = a_queue_tree(TEMPLATE)
    reload(tree, "- name: leaf")

    refusal = tree.create("root.parent.x")

    assert "cannot add a child queue when queue is marked for deletion: root.parent" == refusal


def test_a_dynamic_leaf_gets_what_the_template_says() -> None:
    """Number of applications, properties and quotas; it inherits no properties besides."""
    tree = a_queue_tree(TEMPLATE + "  properties: {my.own: x}")

    leaf = created(tree, "root.parent.leaf")

    assert (3, {"application.sort.policy": "fair"}) == (leaf.max_applications, leaf.properties)
    assert (a_resource(memory=1), TEN) == (leaf.guaranteed, leaf.maximum)
    assert "fair" == leaf.settings.application_sort_policy


def test_a_template_is_handed_down_through_parents() -> None:
    """A parent without one of its own has that of its parent, and none of its values itself."""
    tree = a_queue_tree(TEMPLATE)

    leaf = created(tree, "root.parent.middle.leaf")

    middle = the(tree, "root.parent.middle")
    assert (3, TEN) == (leaf.max_applications, leaf.maximum)
    assert (0, None, {}) == (middle.max_applications, middle.maximum, middle.properties)


def test_configured_parents_hand_templates_down_as_well() -> None:
    """Unless they have one of their own; configured leaves use none."""
    tree = a_queue_tree(
        TEMPLATE
        + """  queues:
  - name: heir
    parent: true
  - name: own
    parent: true
    childtemplate: {maxapplications: 9}
  - name: leaf
"""
    )

    numbers = [created(tree, f"root.parent.{name}.x").max_applications for name in ("heir", "own")]

    assert ([3, 9], 0) == (numbers, the(tree, "root.parent.leaf").max_applications)


def test_a_changed_template_is_for_queues_to_come() -> None:
    """Those that are there keep what they got."""
    tree = a_queue_tree(TEMPLATE)
    before = created(tree, "root.parent.before")

    reload(tree, TEMPLATE.replace("maxapplications: 3", "maxapplications: 5"))

    assert (3, 5) == (before.max_applications, created(tree, "root.parent.after").max_applications)


def test_the_recovery_queue_is_made_once_below_the_root() -> None:
    """A dynamic leaf without properties, first in first out."""
    tree = a_queue_tree(
        root="properties: {application.sort.policy: fair}\nchildtemplate: {maxapplications: 2}"
    )

    queue = tree.recovery_queue()

    assert queue is tree.recovery_queue()
    assert (RECOVERY_QUEUE, True, False) == (queue.path, queue.is_leaf, queue.managed)
    assert ({}, 0, "fifo") == (
        queue.properties,
        queue.max_applications,
        queue.settings.application_sort_policy,
    )


def test_a_recovery_queue_in_the_configuration_has_no_properties_either() -> None:
    """Neither its own nor inherited ones: what is forced into it comes first in, first out."""
    tree = a_queue_tree(
        "- name: '@recovery@'\n  properties: {application.sort.policy: fair}",
        root="properties: {application.sort.priority: disabled}",
    )

    queue = tree.recovery_queue()

    assert ({}, "fifo", True) == (
        queue.properties,
        queue.settings.application_sort_policy,
        queue.settings.priority_sorting,
    )


# -------------------------------------------------------------------------------------------- removing


def test_empty_dynamic_queues_are_removed_from_below() -> None:
    """A whole branch in one turn, the children first; configured queues stay, also empty parents."""
    tree = a_queue_tree(TEMPLATE)
    created(tree, "root.parent.a.b")

    removed = tree.clean()

    assert ["root.parent.a.b", "root.parent.a"] == [queue.path for queue in removed]
    assert ["root", "root.parent"] == paths(tree)


def test_queues_in_use_are_not_removed() -> None:
    """Neither a leaf with an application nor what is above it."""
    tree = a_queue_tree(TEMPLATE)
    an_entry(created(tree, "root.parent.a.b"))

    assert [] == tree.clean()


def test_a_queue_that_left_the_configuration_goes_when_it_is_empty() -> None:
    """Until then it is draining, with all configured queues in it."""
    tree = a_queue_tree("- name: leaf\n- name: a\n  queues:\n  - name: b")
    entry = an_entry(the(tree, "root.a.b"))

    reload(tree, "- name: leaf")
    states = [the(tree, path).is_draining for path in ("root.a", "root.a.b", "root.leaf")]
    in_use = tree.clean()
    entry.queue.entries.remove(entry)
    removed = tree.clean()

    assert ([True, True, False], []) == (states, in_use)
    assert ["root.a.b", "root.a"] == [queue.path for queue in removed]


def test_dynamic_queues_are_left_alone_by_a_reload() -> None:
    """They go when they are empty, whatever the configuration says."""
    tree = a_queue_tree(TEMPLATE)
    dynamic = created(tree, "root.parent.x")

    reload(tree, "- name: leaf")

    assert (True, False) == (the(tree, "root.parent").is_draining, dynamic.is_draining)


def test_a_removed_queue_is_in_no_order_and_no_priority() -> None:
    """Its parent forgets it."""
    tree = a_queue_tree(TEMPLATE)
    leaf = created(tree, "root.parent.x")
    entry = an_entry(leaf, facts=facts_of(pending=TEN, priority=5))
    tree.refresh(leaf)
    before = tree.root.priority

    leaf.entries.remove(entry)
    tree.clean()

    assert (5, INT32_MIN) == (before, tree.root.priority)
    assert [] == list(tree.leaves_in_order())
    tree.validate()


# ------------------------------------------------------------------------------------------- reloading


def test_a_draining_queue_that_comes_back_is_active() -> None:
    """With what the new configuration says, and with what it holds."""
    tree = a_queue_tree("- name: leaf\n- name: a")
    queue = the(tree, "root.a")
    an_entry(queue)
    reload(tree, "- name: leaf")

    reload(tree, "- name: leaf\n- name: a\n  maxapplications: 7")

    assert queue is the(tree, "root.a")
    assert (ObjectState.ACTIVE, 7, 1) == (queue.state, queue.max_applications, len(queue.entries))


def test_a_dynamic_queue_in_the_configuration_becomes_managed() -> None:
    """And is no longer removed when it is empty."""
    tree = a_queue_tree(TEMPLATE)
    created(tree, "root.parent.x")

    reload(tree, "- name: parent\n  queues:\n  - name: x")

    assert the(tree, "root.parent.x").managed
    assert [] == tree.clean()


def test_a_reload_replaces_everything_that_was_said() -> None:
    """What is no longer said is no longer so."""
    tree = a_queue_tree("""
        - name: leaf
          maxapplications: 3
          submitacl: bob
          adminacl: bob
          properties: {application.sort.policy: fair}
          resources: {guaranteed: {memory: 5}, max: {memory: 10}}
        """)

    reload(tree, "- name: leaf")

    leaf = the(tree, "root.leaf")
    assert (None, None, 0, {}) == (leaf.guaranteed, leaf.maximum, leaf.max_applications, leaf.properties)
    assert "fifo" == leaf.settings.application_sort_policy
    assert not leaf.submit_acl.allows("bob", ())
    assert not leaf.admin_acl.allows("bob", ())


def test_the_roots_maximum_survives_a_reload() -> None:
    """It is what the nodes have, not what is configured."""
    tree = a_queue_tree()
    tree.root.set_maximum_from_nodes(TEN)

    reload(tree, "- name: other")

    assert TEN == tree.root.maximum
