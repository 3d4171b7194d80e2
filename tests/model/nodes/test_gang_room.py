"""Room for a whole gang: the worked examples, and each search compared with all assignments."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.nodes.gang_room import NodeRoom, assign, slots
from licorne.model.resources.resource import Resource


class Row(NamedTuple):
    """What nodes have, what members ask for, and the node of each; `None` where no room is found."""

    nodes: tuple[int, ...]
    members: tuple[int, ...]
    placed: str | None


CASES: dict[str, Row] = {
    "six members of two on three nodes of four": Row((4, 4, 4), (2,) * 6, "112233"),
    "seven members of two on three nodes of four": Row((4, 4, 4), (2,) * 7, None),
    "a launcher and four workers have room each, not together": Row((16, 16), (1, 8, 8, 8, 8), None),
    "a launcher and four workers with one more node": Row((16, 16, 1), (1, 8, 8, 8, 8), "31122"),
    "four sizes, the largest first": Row((5, 5), (4, 3, 2, 1), "1221"),
    "four sizes in another order": Row((5, 5), (1, 2, 3, 4), "1221"),
    "the smallest first where the largest first fails": Row((4, 5), (2, 2, 2, 3), "1122"),
    "a gang without members": Row((1,), (), ""),
    "no node": Row((), (1,), None),
    "a node that has less than nothing": Row((-3, 1), (1,), "2"),
}


def memory(quantity: int) -> Resource:
    """Return a resource of one type."""
    return Resource({"memory": quantity})


def rooms(*quantities: int) -> list[NodeRoom]:
    """Return the room of nodes `1`, `2` and so on."""
    return [NodeRoom(str(number), memory(quantity)) for number, quantity in enumerate(quantities, 1)]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_gang_gets_a_node_for_each_member_or_none(case: Row) -> None:
    """Each member gets the first node with room; all of them, or none."""
    placed = assign([memory(size) for size in case.members], rooms(*case.nodes))

    assert case.placed == (None if placed is None else "".join(placed))


def test_nodes_are_ordered_anew_as_members_take_room() -> None:
    """With the emptiest node first members spread, as they do when they are placed one by one."""
    nodes = [NodeRoom(node_id, memory(6), (-6.0, node_id)) for node_id in "ab"]

    placed = assign([memory(2)] * 3, nodes, score=lambda _, available: -available.get("memory"))

    assert ("a", "b", "a") == placed


def test_a_pair_that_is_not_allowed_is_left_out() -> None:
    """The member goes to the next node, and the others still use the first one."""
    placed = assign([memory(2)] * 3, rooms(4, 4), may_run=lambda member, node: (member, node) != (0, "1"))

    assert ("2", "1", "1") == placed


SLOTS: dict[str, tuple[Resource, int]] = {
    "whole members a node": (memory(3), 1 + 2),
    "the type that is short decides": (Resource({"memory": 1, "gpu": 1}), 0),
    "a quantity of zero asks for nothing": (Resource({"memory": 5, "gpu": 0}), 1 + 1),
    "a size that asks for nothing": (Resource({}), 2),
}


@pytest.mark.parametrize(("size", "expected"), SLOTS.values(), ids=SLOTS)
def test_the_room_for_one_size_is_counted_node_by_node(size: Resource, expected: int) -> None:
    """What is left over on two nodes does not add up."""
    assert expected == slots(size, rooms(5, 8))


_SIZES = st.builds(lambda memory, vcore: (memory, vcore), st.integers(0, 4), st.integers(1, 4))
_NODES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=5)


def _resource(pair: tuple[int, int]) -> Resource:
    return Resource({"memory": pair[0], "vcore": pair[1]})


def has_room(nodes: list[tuple[int, int]], members: list[tuple[int, int]]) -> bool:
    """Return by a search over all assignments whether all members fit at once."""

    @cache
    def search(free: tuple[tuple[int, int], ...], left: tuple[tuple[int, int], ...]) -> bool:
        if not left:
            return True
        (memory, vcore), rest = left[0], left[1:]
        return any(
            search(tuple(sorted((*free[:at], (one - memory, two - vcore), *free[at + 1 :]))), rest)
            for at, (one, two) in enumerate(free)
            if memory <= one and vcore <= two
        )

    return search(tuple(sorted(nodes)), tuple(members))


@given(_NODES, st.lists(_SIZES, min_size=1, max_size=6))
def test_a_plan_never_uses_more_than_there_is(
    nodes: list[tuple[int, int]], members: list[tuple[int, int]]
) -> None:
    """Room that is found is there, whatever the sizes are."""
    given_rooms = [NodeRoom(str(at), _resource(node)) for at, node in enumerate(nodes)]
    placed = assign([_resource(member) for member in members], given_rooms)

    used = [[0, 0] for _ in nodes]
    for node_id, (memory, vcore) in zip(placed or (), members, strict=placed is not None):
        used[int(node_id)][0] += memory
        used[int(node_id)][1] += vcore

    assert all(one <= node[0] and two <= node[1] for (one, two), node in zip(used, nodes, strict=True))


@given(_NODES, _SIZES, st.integers(1, 6))
def test_members_of_one_size_find_room_whenever_there_is_some(
    nodes: list[tuple[int, int]], size: tuple[int, int], count: int
) -> None:
    """For one size the search agrees with the one over all assignments."""
    given_rooms = [NodeRoom(str(at), _resource(node)) for at, node in enumerate(nodes)]
    placed = assign([_resource(size)] * count, given_rooms)

    assert has_room(nodes, [size] * count) is (placed is not None)


@given(_NODES, _SIZES, st.integers(1, 6))
def test_slots_say_how_many_members_of_one_size_have_room(
    nodes: list[tuple[int, int]], size: tuple[int, int], count: int
) -> None:
    """The count of slots and the search agree."""
    given_rooms = [NodeRoom(str(at), _resource(node)) for at, node in enumerate(nodes)]

    assert has_room(nodes, [size] * count) is (slots(_resource(size), given_rooms) >= count)
