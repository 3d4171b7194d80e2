"""The orders that a queue keeps: of its children, and of its applications."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import zip_longest
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import TEN, a_queue_tree, a_resource, an_ask, memory
from support.model.entries import a_leaf, an_entry, facts_of

from licorne.model.applications.effects import ApplicationFacts
from licorne.model.queues.child_orders import QUEUE_ORDERS
from licorne.model.queues.order import ApplicationOrder, ChildOrder
from licorne.model.queues.queue import Queue
from licorne.model.resources.comparisons import shares
from licorne.model.resources.quantities import INT32_MIN
from licorne.model.resources.resource import EMPTY, Resource

FIFO = "fifo"
FAIR = "fair"


# ----------------------------------------------------------------------------------------- of children


def a_child(
    name: str = "child", *, used: Resource = EMPTY, waits: Resource = TEN, priority: int = 0
) -> Queue:
    child = a_leaf()
    child.name = name
    child.charge(used)
    child.add_pending(waits)
    child.priority = priority
    return child


def in_order(*children: Queue, fair_max: Resource | None = None, by_priority: bool = True) -> list[str]:
    """Return the names of children, those first that go first."""
    ranked = sorted(
        children, key=lambda child: QUEUE_ORDERS["fair"].key(child, fair_max, by_priority=by_priority)
    )
    return [child.name for child in ranked]


def test_children_go_by_priority_then_by_share() -> None:
    """Where the parent sorts by priority."""
    urgent = a_child("urgent", used=memory(9), priority=5)
    idle = a_child("idle", used=memory(1))
    busy = a_child("busy", used=memory(5))

    assert ["urgent", "idle", "busy"] == in_order(busy, idle, urgent, fair_max=TEN)


def test_children_go_by_share_then_by_priority() -> None:
    """Where the parent does not sort by priority."""
    urgent = a_child("urgent", used=memory(5), priority=5)
    equal = a_child("equal", used=memory(5))
    idle = a_child("idle", used=memory(1))

    assert ["idle", "urgent", "equal"] == in_order(equal, urgent, idle, fair_max=TEN, by_priority=False)


def test_a_share_is_measured_with_the_guarantee() -> None:
    """Five of ten guaranteed is less than two of two."""
    large = a_child("large", used=memory(5))
    large.guaranteed = TEN
    small = a_child("small", used=memory(2))
    small.guaranteed = memory(2)

    assert ["large", "small"] == in_order(small, large, fair_max=memory(100))


@pytest.mark.parametrize("by_priority", [True, False])
def test_of_equal_children_the_one_with_more_waiting_goes_first(*, by_priority: bool) -> None:
    """Strictly more: in no type less. Then the name decides."""
    much = a_child("much", waits=a_resource(memory=10, gpu=1))
    little = a_child("little", waits=TEN)
    same = a_child("as-little", waits=TEN)

    assert ["much", "as-little", "little"] == in_order(little, much, same, by_priority=by_priority)


def test_the_priority_is_that_which_the_parent_sees() -> None:
    """After the child's offset."""
    raised = a_child("raised")
    raised.apply_properties({"priority.offset": "9"})

    assert ["raised", "high"] == in_order(a_child("high", priority=5), raised)


def test_children_take_their_places_and_leave_them() -> None:
    """Only those with a key are in the order; a new key moves a child."""
    order = ChildOrder()
    children = {name: a_child(name) for name in ("a", "b", "c")}
    for name, share in (("a", 0.3), ("b", 0.1), ("c", 0.2)):
        order.place(children[name], (0.0, share, 0.0, 0, name))
    first = order.names()

    order.place(children["b"], (0.0, 0.9, 0.0, 0, "b"))
    order.place(children["c"], None)
    order.place(children["c"], None)

    assert (["b", "c", "a"], ["a", "b"]) == (first, order.names())
    assert [children["a"], children["b"]] == list(order)


def test_a_stopped_child_is_passed_over() -> None:
    """A draining one goes on."""
    from licorne.model.values.states import ObjectEvent

    tree = a_queue_tree("- name: a\n- name: b\n- name: c")
    for name in "abc":
        queue = tree.root.children[name]
        queue.add_pending(TEN)
    tree.root.children["a"].handle(ObjectEvent.STOP)
    tree.root.children["b"].handle(ObjectEvent.REMOVE)

    for name in "abc":
        tree.refresh(tree.root.children[name])

    assert ["b", "c"] == [queue.name for queue in tree.children_in_order(tree.root)]


# -------------------------------------------------------------------------------------- of applications


def a_leaf_with(policy: str, *, by_priority: bool = True, guaranteed: Resource | None = None) -> Queue:
    """Return a leaf with a sort policy."""
    text = "enabled" if by_priority else "disabled"
    properties = {"application.sort.policy": policy, "application.sort.priority": text}
    return a_leaf(properties, guaranteed=guaranteed)


def ordered_names(leaf: Queue, **facts: ApplicationFacts) -> list[str]:
    """Add applications to a leaf; return their names in order."""
    for name, entry in facts.items():
        an_entry(leaf, name, entry)
    return [entry.application_id for entry in leaf.entries]


def waits(
    age: int = 0, *, used: Resource = EMPTY, placeholders: Resource = EMPTY, priority: int = 0
) -> ApplicationFacts:
    return facts_of(
        pending=TEN, allocated=used, placeholder_allocated=placeholders, priority=priority, age=age
    )


ORDERS: Final = {
    "fifo by priority, then by age": (
        a_leaf_with(FIFO),
        {"young": waits(1), "old": waits(9), "urgent": waits(priority=1)},
        ["urgent", "old", "young"],
    ),
    "fifo without priority by age, then by priority": (
        a_leaf_with(FIFO, by_priority=False),
        {"young": waits(1, priority=9), "old": waits(9), "urgent": waits(9, priority=1)},
        ["urgent", "old", "young"],
    ),
    "fair by priority, then by usage": (
        a_leaf_with(FAIR),
        {
            "busy": waits(9, used=memory(9)),
            "idle": waits(used=memory(1)),
            "urgent": waits(used=TEN, priority=1),
        },
        ["urgent", "idle", "busy"],
    ),
    "fair without priority by usage, then by priority": (
        a_leaf_with(FAIR, by_priority=False),
        {
            "busy": waits(used=memory(9), priority=9),
            "idle": waits(used=memory(1)),
            "urgent": waits(used=memory(1), priority=1),
        },
        ["urgent", "idle", "busy"],
    ),
    "half of the guaranteed cores is more than a third of the guaranteed memory": (
        a_leaf_with(FAIR, guaranteed=a_resource(memory=30, vcore=2)),
        {"cores": waits(used=a_resource(vcore=1)), "memory": waits(used=memory(10))},
        ["memory", "cores"],
    ),
    "placeholders are no usage": (
        a_leaf_with(FAIR),
        {"real": waits(used=memory(1)), "gang": waits(placeholders=memory(50))},
        ["gang", "real"],
    ),
}


@pytest.mark.parametrize(("leaf", "facts", "order"), ORDERS.values(), ids=ORDERS)
def test_applications_are_ordered_by_the_policy_of_their_leaf(
    leaf: Queue, facts: dict[str, ApplicationFacts], order: list[str]
) -> None:
    """By age or by usage, which is measured with the guarantee of the queue."""
    assert order == ordered_names(leaf, **facts)


@pytest.mark.parametrize("pending", [EMPTY, memory(0)])
def test_applications_without_anything_waiting_are_not_in_the_order(pending: Resource) -> None:
    """They are known all the same."""
    leaf = a_leaf()

    order = ordered_names(leaf, idle=facts_of(pending=pending), waits=facts_of(pending=TEN))

    assert (["waits"], 2) == (order, len(leaf.entries))
    assert leaf.entries.get("idle") is not None


def test_an_application_moves_with_its_facts() -> None:
    """Into the order, within it, and out of it."""
    leaf = a_leaf()
    ordered_names(leaf, a=facts_of(pending=TEN), b=facts_of(pending=TEN, priority=1))
    entry = leaf.entries.by_id["a"]
    orders = []
    for facts in (facts_of(pending=TEN, priority=2), facts_of()):
        entry.facts = facts
        leaf.entries.refresh(entry)
        orders.append([entry.application_id for entry in leaf.entries])

    assert [["a", "b"], ["b"]] == orders


def test_a_changed_policy_orders_anew() -> None:
    """Old places mean nothing under the new policy."""
    leaf = a_leaf_with(FIFO)
    facts = {
        "old": facts_of(pending=TEN, allocated=memory(9), age=9),
        "young": facts_of(pending=TEN, allocated=memory(1)),
    }
    before = ordered_names(leaf, **facts)

    leaf.apply_properties({"application.sort.policy": FAIR})
    leaf.entries.rebuild()

    assert (["old", "young"], ["young", "old"]) == (before, [entry.application_id for entry in leaf.entries])


def test_an_application_that_leaves_is_in_no_list() -> None:
    """Neither in the order nor among those with placeholders or reservations, and its priority is gone."""
    leaf = a_leaf()
    facts = facts_of(pending=TEN, placeholder_allocated=TEN, reserved=1, priority=5)
    entry = an_entry(leaf, "a", facts)
    listed = (
        list(leaf.entries.placeholder_entries),
        list(leaf.entries.reserved_entries),
        leaf.entries.max_priority(),
    )

    leaf.entries.remove(entry)

    assert (["a"], ["a"], 5) == listed
    assert ({}, {}, {}) == (
        leaf.entries.by_id,
        leaf.entries.placeholder_entries,
        leaf.entries.reserved_entries,
    )
    assert ([], INT32_MIN) == (list(leaf.entries), leaf.entries.max_priority())


def test_the_highest_priority_counts_applications_not_just_values() -> None:
    """One of two with the highest priority leaves, and it stays."""
    leaf = a_leaf()
    entries = [an_entry(leaf, name, facts_of(pending=TEN, priority=5)) for name in "ab"]
    an_entry(leaf, "c", facts_of(pending=TEN, priority=3))

    priorities = []
    for entry in entries:
        leaf.entries.remove(entry)
        priorities.append(leaf.entries.max_priority())

    assert [5, 3] == priorities


def test_sizes_that_wait_are_counted() -> None:
    """A size is forgotten with its last ask; fewer than none is a mistake of ours."""
    order = ApplicationOrder()
    for change in (1, 2, -3):
        order.count_size(TEN, change)

    assert {} == order.sizes
    with pytest.raises(AssertionError, match="waits -1 times"):
        order.count_size(TEN, -1)


# ------------------------------------------------------------------------ compared with the plain rules

USAGES = st.builds(
    lambda memory, gpu: a_resource(**{"memory": memory} | ({"gpu": gpu} if gpu is not None else {})),
    st.integers(0, 3),
    st.none() | st.integers(0, 3),
)
APPLICATIONS = st.lists(st.tuples(USAGES, st.integers(-1, 1), st.integers(0, 2)), max_size=8)


def compared_usage(left: Resource, right: Resource, total: Resource | None) -> int:
    """Compare shares, the largest first; no share equals a share of zero."""
    pairs = zip_longest(reversed(shares(left, total)), reversed(shares(right, total)), fillvalue=0.0)
    return next(((ours > theirs) - (ours < theirs) for ours, theirs in pairs if ours != theirs), 0)


def plain_order(
    facts: dict[str, ApplicationFacts], policy: str, guaranteed: Resource | None, *, by_priority: bool
) -> list[str]:
    """Order as the rules say, comparing pair by pair; the name decides what they leave open."""

    def compare(left: str, right: str) -> int:
        ours, theirs = facts[left], facts[right]
        priority = theirs.max_priority - ours.max_priority
        age = ours.submitted_at_ns - theirs.submitted_at_ns
        if policy == FAIR:
            second = compared_usage(ours.allocated, theirs.allocated, guaranteed)
        else:
            second, age = age, 0
        steps = (priority, second, age) if by_priority else (second, priority, age)
        return next((step for step in steps if step), -1 if left < right else 1)

    return sorted(facts, key=cmp_to_key(compare))


@settings(max_examples=200)
@given(
    APPLICATIONS,
    st.sampled_from([FIFO, FAIR]),
    st.booleans(),
    st.sampled_from([None, memory(2), a_resource(memory=4, gpu=2)]),
)
def test_applications_are_in_the_order_of_the_rules(
    rows: list[tuple[Resource, int, int]],
    policy: str,
    by_priority: bool,  # noqa: FBT001 - drawn
    guaranteed: Resource | None,
) -> None:
    """For all four policies, whatever the usage, priority and age of the applications."""
    facts = {
        f"app-{number}": facts_of(pending=TEN, allocated=used, priority=priority, age=age)
        for number, (used, priority, age) in enumerate(rows)
    }
    leaf = a_leaf_with(policy, by_priority=by_priority, guaranteed=guaranteed)

    expected = plain_order(facts, policy, guaranteed, by_priority=by_priority)

    assert expected == ordered_names(leaf, **facts)


@settings(max_examples=200)
@given(APPLICATIONS, st.sampled_from([FIFO, FAIR]), st.booleans(), st.integers(0, 9))
def test_an_application_that_has_changed_is_where_the_rules_put_it(
    rows: list[tuple[Resource, int, int]],
    policy: str,
    by_priority: bool,  # noqa: FBT001 - drawn
    moved: int,
) -> None:
    """Also one whose first ask may be placed as it is, and whose place may have stayed the same."""
    facts = {
        f"app-{number}": facts_of(
            pending=TEN, allocated=used, priority=priority, age=age, first=an_ask(f"ask-{number}")
        )
        for number, (used, priority, age) in enumerate(rows)
    }
    leaf = a_leaf_with(policy, by_priority=by_priority)
    ordered_names(leaf, **facts)
    if facts:
        name = list(facts)[moved % len(facts)]
        entry = leaf.entries.by_id[name]
        entry.facts = facts[name] = facts[next(iter(facts))]
        leaf.entries.refresh(entry)

    assert plain_order(facts, policy, None, by_priority=by_priority) == [
        entry.application_id for entry in leaf.entries
    ]
