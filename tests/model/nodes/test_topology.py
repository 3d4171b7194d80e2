"""Domains of nodes: the worked examples, and each choice compared with all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations, product
from random import Random
from typing import Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import memory
from support.model.racks import LEVELS, NODES

from licorne.model.nodes.gang_room import NodeRoom, assign
from licorne.model.nodes.topology import Path, Topology, evenly, fewest
from licorne.model.values.domains import DomainTerms


def a_topology(nodes: Mapping[str, tuple[str, str, int]]) -> Topology:
    """Return the domains of nodes that are each in a block and a rack; the empty text is in none."""
    topology = Topology(LEVELS)
    for node_id, (block, rack, _) in nodes.items():
        attributes = {level: name for level, name in zip(LEVELS, (block, rack), strict=True) if name}
        assert topology.refusal(node_id, attributes) is None
        topology.add(node_id, attributes)
    return topology


def placed(
    nodes: Mapping[str, tuple[str, str, int]], members: int, terms: DomainTerms
) -> dict[str, int] | None:
    """Return how many members of size one each node gets, `None` where no room is found."""
    rooms = [NodeRoom(node_id, memory(slots)) for node_id, (_, _, slots) in nodes.items()]
    found = assign([memory(1)] * members, rooms, domains=a_topology(nodes).domains(terms))
    return None if found is None else dict(Counter(found))


RACK: Final = DomainTerms(required="rack")
PREFERRED: Final = DomainTerms(preferred="rack")
SLICES: Final = DomainTerms(slice_level="rack", slice_size=4)


class Row(NamedTuple):
    """A gang, what it wants, and the members of each node; `None` where no room is found."""

    members: int
    terms: DomainTerms
    answer: dict[str, int] | None


CASES: dict[str, Row] = {
    "the rack with the fewest slots left": Row(3, RACK, {"n3": 3}),
    "a rack that it fills": Row(6, RACK, {"n3": 4, "n4": 2}),
    "of three racks of eight the one with one node": Row(7, RACK, {"n7": 7}),
    "no rack has nine": Row(9, RACK, None),
    "the block with fewer slots": Row(9, PREFERRED, {"n1": 4, "n2": 4, "n4": 1}),
    "a block of which it leaves one": Row(15, PREFERRED, {"n5": 4, "n6": 4, "n7": 7}),
    "the root": Row(17, PREFERRED, {"n5": 4, "n6": 4, "n7": 8, "n4": 1}),
    "no block has seventeen": Row(17, DomainTerms("block", "rack"), None),
    "a rack inside of a block": Row(6, DomainTerms("block", "rack"), {"n3": 4, "n4": 2}),
    "more than there is": Row(31, PREFERRED, None),
    "required and preferred are one level": Row(9, DomainTerms("rack", "rack"), None),
    "a level that there is not": Row(1, DomainTerms("row"), None),
    "a gang without members": Row(0, RACK, {}),
    "slices of four, each in one rack: two are in a rack that they fill": Row(
        12, SLICES, {"n1": 4, "n2": 4, "n3": 4}
    ),
    "seven slices, of which one rack of six holds one": Row(
        28, SLICES, {"n1": 4, "n2": 4, "n3": 4, "n5": 4, "n6": 4, "n7": 8}
    ),
    "thirty have room, but not eight slices of four": Row(32, SLICES, None),
    "slices in one block": Row(16, SLICES._replace(required="block"), {"n5": 4, "n6": 4, "n7": 8}),
    "slices that prefer one rack for all": Row(8, SLICES._replace(preferred="rack"), {"n7": 8}),
    "slices that prefer one rack and take two": Row(
        12, SLICES._replace(preferred="rack"), {"n1": 4, "n2": 4, "n3": 4}
    ),
    "a slice lacks a member": Row(7, SLICES, None),
    "slices of a level that there is not": Row(4, DomainTerms(slice_level="row", slice_size=2), None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_gang_gets_the_tightest_domain_of_the_narrowest_level(case: Row) -> None:
    assert case.answer == placed(NODES, case.members, case.terms)


def test_large_nodes_come_first_and_the_last_one_is_the_tightest() -> None:
    """Seven members on nodes of 3, 3, 2 and 1 of one rack leave no more than they must."""
    nodes = {f"n{index}": ("b", "r", slots) for index, slots in enumerate((3, 3, 2, 1))}

    assert {"n0": 3, "n1": 3, "n3": 1} == placed(nodes, 7, RACK)


def test_a_balanced_gang_prefers_equal_parts_and_spreads_over_them() -> None:
    """Racks of 20 and 10, and of 15 and 15: 22 members are 11 and 11; unbalanced they are 20 and 2."""
    sizes = {"a": ("r1", 20), "b": ("r1", 10), "c": ("r2", 15), "d": ("r2", 15)}
    nodes = {node_id: (rack, node_id, slots) for node_id, (rack, slots) in sizes.items()}
    terms = DomainTerms(preferred="block", balanced=True)

    assert {"c": 11, "d": 11} == placed(nodes, 22, terms)
    assert {"a": 20, "b": 2} == placed(nodes, 22, terms._replace(balanced=False))
    assert {"e": 6, "f": 6} == placed({"e": ("r", "e", 10), "f": ("r", "f", 10)}, 12, terms)


def test_a_node_without_the_attribute_is_in_no_rack_but_in_the_root() -> None:
    nodes = {"n1": ("", "", 9), "n2": ("b", "r", 2)}

    assert placed(nodes, 3, RACK) is None
    assert {"n2": 2} == placed(nodes, 2, RACK)
    assert {"n1": 9, "n2": 1} == placed(nodes, 10, PREFERRED)


def test_members_of_several_sizes_get_one_domain() -> None:
    """The first rack has slots for the large ones, but no room for all."""
    nodes = {"n1": ("b", "r1", 4), "n2": ("b", "r2", 4), "n3": ("b", "r2", 3)}
    rooms = [NodeRoom(node_id, memory(slots)) for node_id, (_, _, slots) in nodes.items()]
    domains = a_topology(nodes).domains(RACK)

    assert ("n2", "n3") == assign([memory(4), memory(3)], rooms, domains=domains)
    assert assign([memory(4), memory(4)], rooms, domains=domains) is None


def test_a_member_that_may_not_run_there_takes_the_gang_to_the_next_domain() -> None:
    rooms = [NodeRoom(node_id, memory(slots)) for node_id, (_, _, slots) in NODES.items()]
    domains = a_topology(NODES).domains(RACK)

    found = assign(
        [memory(1)] * 3, rooms, may_run=lambda _, node_id: node_id not in {"n3", "n4"}, domains=domains
    )

    assert ("n1",) * 3 == found


def test_a_rack_of_two_blocks_is_refused_by_name_until_its_nodes_are_gone() -> None:
    topology = a_topology({"n1": ("b1", "r1", 1), "n2": ("b1", "r1", 1)})

    refusal = topology.refusal("n3", {"block": "b2", "rack": "r1"})
    assert refusal is not None
    assert "node n3 is in rack 'r1' of block 'b2', but other nodes of rack 'r1' are in block 'b1'" in refusal

    for node_id in ("n1", "n2"):
        topology.remove(node_id)
    assert topology.refusal("n3", {"block": "b2", "rack": "r1"}) is None
    assert topology.paths == {}


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7), st.data())
@settings(max_examples=400)
def test_no_other_choice_of_parts_is_smaller(slots: list[int], data: st.DataObject) -> None:
    parts = {f"d{index}": count for index, count in enumerate(slots)}
    members = data.draw(st.integers(0, sum(slots)))
    chosen, even = fewest(parts, members), evenly(parts, members)

    least = next(n for n in range(8) if any(sum(some) >= members for some in combinations(slots, n)))
    for answer in (chosen, even):
        assert members == sum(count for _, count in answer)
        assert all(0 < count <= parts[name] for name, count in answer)
        assert least == len(answer)
    for (name, count), (other, more) in product(even, even):
        assert more <= count + 1 or count == parts[name], (name, other)


def test_one_domain_is_found_exactly_where_there_is_one() -> None:
    """The choice among random trees, compared with all domains."""
    random = Random(11)  # noqa: S311 - it plays, and keeps no secret
    for _ in range(2_000):
        nodes = {}
        for index in range(random.randint(1, 9)):
            rack = random.randint(0, 4)
            nodes[f"n{index}"] = (f"b{rack % 2}", f"r{rack}", random.randint(0, 5))
        members = random.randint(1, 12)
        terms = random.choice(
            [RACK, DomainTerms("block"), DomainTerms("block", "rack"), PREFERRED, DomainTerms("", "block")]
        )
        slots = {path: count for depth in range(3) for path, count in sums(nodes, depth).items()}
        chosen = {
            RACK: (2,),
            DomainTerms("block"): (1,),
            DomainTerms("block", "rack"): (2, 1),
            PREFERRED: (2, 1, 0),
            DomainTerms("", "block"): (1, 0),
        }[terms]
        depth = next((d for d in chosen if any(slots[p] >= members for p in slots if len(p) == d)), None)
        answer = placed(nodes, members, terms)
        assert (depth is None) == (answer is None)
        if depth is None or answer is None:
            continue
        used = {(nodes[node_id][0], nodes[node_id][1])[:depth] for node_id in answer}
        assert 1 == len(used)
        assert slots[used.pop()] == min(slots[p] for p in slots if len(p) == depth and slots[p] >= members)


def test_slices_are_found_exactly_where_there_is_room_and_use_the_fewest_racks() -> None:
    """The choice among random trees, compared with all counts of members that nodes may have."""
    random = Random(12)  # noqa: S311 - it plays, and keeps no secret
    found = 0
    for _ in range(600):
        nodes, block_count = {}, random.randint(1, 2)
        for index in range(random.randint(1, 6)):
            rack = random.choice(["r0", "r1", "r2", "r3", ""])
            nodes[f"n{index}"] = (f"b{int(rack[1:] or 0) % block_count}", rack, random.randint(0, 4))
        size = random.randint(1, 3)
        members = size * random.randint(1, 4)
        terms = DomainTerms(random.choice(["", "block"]), "", random.random() < 0.3, "rack", size)
        depth = 1 if terms.required else 0
        racks_of_all = [
            len(racks)
            for counts in product(*(range(slots + 1) for *_, slots in nodes.values()))
            if sum(counts) == members
            for racks, blocks in [in_slices(dict(zip(nodes, counts, strict=True)), nodes, size)]
            if racks and (not depth or len(blocks) == 1)
        ]
        answer = placed(nodes, members, terms)
        assert bool(racks_of_all) == (answer is not None), (nodes, members, terms)
        if answer is None:
            continue
        assert members == sum(answer.values())
        racks, blocks = in_slices(answer, nodes, size)
        assert racks, (nodes, members, terms, answer)
        assert not depth or 1 == len(blocks)
        if block_count == 1:
            found += 1
            assert min(racks_of_all) == len(racks)
    assert found > 100


def in_slices(
    answer: Mapping[str, int], nodes: Mapping[str, tuple[str, str, int]], size: int
) -> tuple[set[str], set[str]]:
    """Return the racks and the blocks of the members of nodes; none if not all are in slices of one rack."""
    counts: Counter[str] = Counter()
    for node_id, count in answer.items():
        counts[nodes[node_id][1]] += count
    if counts[""] or any(count % size for count in counts.values()):
        return set(), set()
    used = [node_id for node_id, count in answer.items() if count]
    return {nodes[node_id][1] for node_id in used}, {nodes[node_id][0] for node_id in used}


def sums(nodes: Mapping[str, tuple[str, str, int]], depth: int) -> Counter[Path]:
    """Return the slots of all domains of a level."""
    found: Counter[Path] = Counter()
    for block, rack, slots in nodes.values():
        path: Path = (block, rack)
        found[path[:depth]] += slots
    return found
