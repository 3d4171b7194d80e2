"""A node: its sums, what it takes and refuses, and who reserves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import TEN, a_node, a_resource, an_allocation, an_ask

from licorne.model.nodes.node import INSTANCE_TYPE, Node
from licorne.model.resources.resource import EMPTY, Resource

THREE = a_resource(memory=3)
FOUR = a_resource(memory=4)
SEVEN = a_resource(memory=7)


def keys_on(node: Node) -> list[str]:
    return [allocation.allocation_key for allocation in node.facts().allocations]


@pytest.fixture
def node() -> Iterator[Node]:
    """Give a node of ten, which is right in the end as well."""
    node = a_node()
    yield node
    node.validate()


# ------------------------------------------------------------------------------------- what it is made of


def test_a_new_node_has_everything_available() -> None:
    """What it has is what is free; types of which it has nothing are left out."""
    facts = a_node(capacity=a_resource(memory=10, vcore=0)).facts()

    assert (TEN, TEN, EMPTY, EMPTY) == (facts.capacity, facts.available, facts.allocated, facts.occupied)
    assert ((), (), ()) == (facts.allocations, facts.foreign, facts.reservations)


@pytest.mark.parametrize(
    ("attributes", "instance_type"),
    [({}, "UNKNOWN"), ({INSTANCE_TYPE: ""}, "UNKNOWN"), ({"si/instance-type": "m5"}, "m5")],
)
def test_the_instance_type_is_an_attribute(attributes: dict[str, str], instance_type: str) -> None:
    """Without the attribute the type is `UNKNOWN`."""
    assert instance_type == a_node(attributes=attributes).instance_type


# ------------------------------------------------------------------------------------------- allocations


def test_an_allocation_takes_its_room(node: Node) -> None:
    """What is placed is no longer available; the answer is what is left."""
    left = node.try_add(an_allocation(resource=THREE))

    facts = node.facts()
    assert (SEVEN, SEVEN, THREE) == (left, facts.available, facts.allocated)
    assert ["ask"] == keys_on(node)


def test_a_node_never_commits_more_than_it_has(node: Node) -> None:
    """An allocation that does not fit is refused and changes nothing."""
    node.try_add(an_allocation("one", resource=SEVEN))

    refused = node.try_add(an_allocation("two", resource=FOUR))

    assert refused is None
    assert (["one"], THREE) == (keys_on(node), node.facts().available)


def test_a_type_that_the_node_does_not_have_is_refused() -> None:
    """A type that is not defined on a node counts as none of it."""
    assert a_node().try_add(an_allocation(resource=a_resource(memory=1, gpu=1))) is None


def test_what_runs_already_is_taken_whether_it_fits_or_not(node: Node) -> None:
    """A recovered allocation may drive what is available below zero; then nothing more fits."""
    left = node.add(an_allocation("big", resource=a_resource(memory=12, gpu=1)))

    assert a_resource(memory=-2, gpu=-1) == left
    assert node.try_add(an_allocation("small", resource=a_resource(memory=1))) is None


def test_a_removed_allocation_gives_its_room_back(node: Node) -> None:
    """After the removal all is as it was."""
    node.try_add(an_allocation(resource=THREE))

    assert TEN == node.remove("ask")
    assert ([], EMPTY) == (keys_on(node), node.facts().allocated)


def test_an_allocation_that_is_not_there_cannot_be_removed(node: Node) -> None:
    """Nothing changes, and the answer is what is available."""
    node.try_add(an_allocation(resource=THREE))

    assert SEVEN == node.remove("other")
    assert ["ask"] == keys_on(node)


def test_one_key_is_on_a_node_once(node: Node) -> None:
    """A node declines a key that it has; to force it on the node is a mistake of ours."""
    node.try_add(an_allocation(resource=THREE))

    assert node.try_add(an_allocation(resource=THREE)) is None

    with pytest.raises(AssertionError, match="ask is already on node node"):
        node.add(an_allocation(resource=THREE))


def test_an_allocation_takes_the_place_of_another_one(node: Node) -> None:
    """The one goes, the other comes, and the difference is free."""
    node.try_add(an_allocation("placeholder", resource=SEVEN))

    left = node.replace("placeholder", an_allocation("real", resource=FOUR))

    assert (a_resource(memory=6), ["real"]) == (left, keys_on(node))


def test_an_allocation_takes_the_place_of_one_that_is_gone(node: Node) -> None:
    """Where there is nothing to replace, the new allocation is placed all the same."""
    assert SEVEN == node.replace("placeholder", an_allocation("real", resource=THREE))


# ----------------------------------------------------------------------------------------------- foreign


def test_foreign_allocations_occupy_the_node(node: Node) -> None:
    """They count as occupied, not as allocated, and are listed apart."""
    left = node.put_foreign(an_allocation("foreign", resource=THREE))

    facts = node.facts()
    assert (SEVEN, THREE, EMPTY, SEVEN) == (left, facts.occupied, facts.allocated, facts.available)
    assert (["foreign"], ()) == ([entry.allocation_key for entry in facts.foreign], facts.allocations)


def test_a_repeated_foreign_allocation_is_resized(node: Node) -> None:
    """The second message with the same key counts the difference, up or down."""
    node.put_foreign(an_allocation("foreign", resource=SEVEN))

    assert a_resource(memory=6) == node.put_foreign(an_allocation("foreign", resource=FOUR))
    assert 1 == len(node.facts().foreign)


def test_foreign_allocations_need_not_fit(node: Node) -> None:
    """They run already: what is available may fall below zero."""
    node.try_add(an_allocation(resource=SEVEN))

    assert a_resource(memory=-1) == node.put_foreign(an_allocation("foreign", resource=FOUR))


def test_a_removed_foreign_allocation_gives_its_room_back(node: Node) -> None:
    """One that is not there changes nothing."""
    node.put_foreign(an_allocation("foreign", resource=THREE))

    assert SEVEN == node.remove_foreign("other")
    assert TEN == node.remove_foreign("foreign")
    assert EMPTY == node.facts().occupied


# ---------------------------------------------------------------------------------------------- capacity


def test_a_new_capacity_moves_what_is_available(node: Node) -> None:
    """Used and occupied room stays, what is free grows or shrinks."""
    node.try_add(an_allocation(resource=THREE))
    node.put_foreign(an_allocation("foreign", resource=FOUR))

    assert a_resource(memory=8) == node.set_capacity(a_resource(memory=15))
    assert a_resource(memory=-2) == node.set_capacity(a_resource(memory=5))


@pytest.mark.parametrize("capacity", [TEN, a_resource(memory=10, vcore=0)])
def test_the_same_capacity_changes_nothing(capacity: Resource) -> None:
    """A type of zero is no type."""
    assert a_node().set_capacity(capacity) is None


def test_nodes_are_cordoned_and_uncordoned(node: Node) -> None:
    """The answer tells whether that changed anything."""
    changed = [node.set_schedulable(schedulable=wanted) for wanted in (True, False, False, True)]

    assert [False, True, False, True] == changed
    assert node.facts().schedulable


def test_a_cordoned_node_is_shown_as_not_schedulable() -> None:
    """Whether it is drained is another matter."""
    node = a_node(attributes={"licorne/cordoned": "true", "si/zone": "a"})

    assert ({"si/zone": "a"}, False) == (dict(node.facts().attributes), node.facts().schedulable)
    assert [False, True] == [node.set_cordoned(cordoned=cordoned) for cordoned in (True, False)]
    assert node.facts().schedulable


# ------------------------------------------------------------------------------------------ reservations


def test_a_node_has_one_ordinary_reservation(node: Node) -> None:
    """A second ask is refused until the first gives up its reservation."""
    first = node.try_reserve("one", TEN, required=False)
    second = node.try_reserve("two", TEN, required=False)
    free = node.unreserve("one")
    third = node.try_reserve("two", TEN, required=False)

    assert (True, False, True, True) == (first, second, free, third)
    assert ("two",) == node.facts().reservations


@pytest.mark.parametrize(
    ("held", "wanted", "granted"),
    [(True, True, True), (True, False, False), (False, True, False), (False, False, False)],
)
def test_only_asks_that_require_the_node_share_it(
    node: Node, *, held: bool, wanted: bool, granted: bool
) -> None:
    """Any number of required-node asks may reserve a node, together with no other ask."""
    node.try_reserve("one", TEN, required=held)

    assert granted is node.try_reserve("two", TEN, required=wanted)


def test_what_is_larger_than_the_node_cannot_reserve_it(node: Node) -> None:
    """The total counts, not what is free just now."""
    node.try_add(an_allocation("busy", resource=TEN))

    assert not node.try_reserve("big", a_resource(memory=11), required=True)
    assert node.try_reserve("fits", TEN, required=False)


def test_a_node_is_free_when_its_last_reservation_goes(node: Node) -> None:
    """The answer tells whether any is left; one that is not there is no matter."""
    node.try_reserve("one", TEN, required=True)
    node.try_reserve("two", TEN, required=True)

    assert [False, False, True] == [node.unreserve(key) for key in ("one", "unknown", "two")]


# -------------------------------------------------------------------------------------------- validation


def test_validation_finds_a_lost_allocation() -> None:
    """The sum of the allocations is what is allocated, or something is wrong."""
    node = a_node()
    node.try_add(an_allocation(resource=THREE))
    node._allocations.clear()

    with pytest.raises(AssertionError, match="node node: allocated"):
        node.validate()


def test_validation_finds_room_out_of_nowhere() -> None:
    """What is available is the capacity less what is used, or something is wrong."""
    node = a_node()
    node._available = a_resource(memory=11)

    with pytest.raises(AssertionError, match="node node: available"):
        node.validate()


def test_validation_finds_a_stranger_on_the_node() -> None:
    """An allocation knows on which node it is."""
    node = a_node()
    node.try_add(an_allocation("ask", "elsewhere"))

    with pytest.raises(AssertionError, match="is on node node"):
        node.validate()


def test_validation_finds_two_ordinary_reservations() -> None:
    """Two reservations are fine only if both require the node."""
    node = a_node()
    node._reservations.update(one=False, two=True)

    with pytest.raises(AssertionError, match="reserved twice"):
        node.validate()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["try_add", "add", "remove", "foreign", "remove_foreign", "capacity"]),
        st.integers(0, 4),
        st.integers(0, 12),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(STEPS)
def test_nothing_is_ever_lost(steps: list[tuple[str, int, int]]) -> None:
    """Whatever happens in whatever order: available = capacity - allocated - occupied."""
    node = a_node()
    for what, number, quantity in steps:
        key = f"key-{number}"
        allocation = an_allocation(ask=an_ask(key, resource=a_resource(memory=quantity)))
        before = node.facts().available.get("memory")
        if what == "capacity":
            node.set_capacity(a_resource(memory=quantity))
        elif what == "foreign":
            node.put_foreign(allocation)
        elif what in ("remove", "remove_foreign"):
            (node.remove if what == "remove" else node.remove_foreign)(key)
        elif key not in keys_on(node):
            taken = (node.try_add if what == "try_add" else node.add)(allocation)
            assert (taken is not None) is (what == "add" or quantity <= max(0, before))
        node.validate()
        facts = node.facts()
        used = sum(entry.resource.get("memory") for entry in (*facts.allocations, *facts.foreign))
        assert facts.capacity.get("memory") - used == facts.available.get("memory")
