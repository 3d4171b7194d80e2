"""A block of neighbouring nodes: where a search in it begins."""

from __future__ import annotations

from support.model.builders import a_node_entry, a_resource

from licorne.model.nodes.entry import NodeEntry
from licorne.model.nodes.order import NodeBlock
from licorne.model.resources.resource import Resource

THREE = a_resource(memory=3)


def an_entry(number: int, left: int) -> NodeEntry:
    """Return the entry of a node of ten, of which so much is left; its place in the order is its number."""
    entry = a_node_entry(f"n{number:02}", available=a_resource(memory=left))
    entry.key = (float(number), entry.node_id)
    return entry


def a_searched_block(*, before: int = 10) -> NodeBlock:
    """Return a block of nodes at the even numbers that has been searched for three: so many have only one."""
    entries = [an_entry(2 * number, 1 if number < before else 5) for number in range(before + 5)]
    block = NodeBlock([entry.key for entry in entries], entries)
    assert entries[before] is block.first_fit(THREE)
    return block


def found(block: NodeBlock, size: Resource = THREE) -> float | None:
    """Return the place of the first node with room; the block is as it should be."""
    entry = block.first_fit(size)
    block.validate()
    return None if entry is None else entry.key[0]


def test_the_next_search_begins_behind_the_nodes_without_room() -> None:
    """A long search is not made twice."""
    block = a_searched_block()

    assert {THREE: 10} == block.passed
    assert found(block) == 20


def test_a_short_search_is_not_remembered() -> None:
    """To remember it would cost more than to make it again."""
    block = a_searched_block(before=3)

    assert {} == block.passed


def test_a_node_with_room_that_comes_before_the_others_is_found() -> None:
    """It is put among the nodes that have no room."""
    block = a_searched_block()
    block.insert(an_entry(7, 5))

    assert found(block) == 7


def test_a_node_without_room_that_comes_before_the_others_is_passed_by() -> None:
    """It is one more that the next search need not look at."""
    block = a_searched_block()
    block.insert(an_entry(7, 1))

    assert found(block) == 20
    assert {THREE: 11} == block.passed


def test_the_first_node_with_room_is_found_after_one_before_it_has_left() -> None:
    """The nodes behind the one that has left move one place to the front."""
    block = a_searched_block()
    block.discard(block.keys[4])

    assert found(block) == 20
    assert {THREE: 9} == block.passed


def test_a_node_that_gains_room_where_it_stands_is_found() -> None:
    """Its place in the order stays as it was."""
    block = a_searched_block()
    block.entries[4].available = a_resource(memory=8)
    block.widen(block.entries[4])

    assert found(block) == 8


def test_a_node_that_becomes_usable_is_found() -> None:
    """Nobody could use it while it was reserved."""
    block = a_searched_block()
    entry = block.entries[4]
    entry.reserved, entry.available = True, a_resource(memory=8)
    block.widen(entry)
    assert found(block) == 20
    entry.reserved = False
    block.forget()

    assert found(block) == 8


def test_the_halves_of_a_block_are_searched_from_their_beginnings() -> None:
    """The first half may be shorter than what was passed by."""
    block = a_searched_block()
    right = block.split()

    assert found(block) is None
    assert found(right) == 20


def test_as_many_sizes_are_remembered_as_the_bound_says() -> None:
    """Beyond it all are forgotten, not kept for ever."""
    block = a_searched_block()
    for size in range(40):
        block.first_fit(a_resource(memory=2, gpu=-size))

    assert len(block.passed) <= 16
    assert found(block) == 20
