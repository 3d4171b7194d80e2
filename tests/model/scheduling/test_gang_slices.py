"""Gangs in slices, each in one rack: placed, explained, repaired, swapped, refused, and preempting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from support.model.builders import FakePredicates, memory
from support.model.harness import Harness
from support.model.preemption_scenes import Scene
from support.model.racks import NODES

from licorne.model.explanation.explain import explain
from licorne.model.preemption.guarantee import decision
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import NodeAction, TerminationType

TOPOLOGY = "topology: [block, rack]"
FOURS = {"topologySlice": "rack", "topologySliceSize": "4"}
PAIRS = {"topologySlice": "rack", "topologySliceSize": "2"}


def a_cluster(
    nodes: Mapping[str, tuple[str, str, int]] = NODES, predicates: FakePredicates | None = None
) -> Harness:
    """Return a partition with nodes in blocks and racks."""
    h = Harness(partition=TOPOLOGY, predicates=predicates)
    for node_id, (block, rack, capacity) in nodes.items():
        h.nodes(node_id, capacity=memory(capacity), attributes={"block": block, "rack": rack})
    return h


def gang(h: Harness, members: int, **tags: str) -> list[str]:
    """Submit an application of members of size one; return their keys."""
    assert h.submit(tags={"gangSize": str(members), **tags}) is None
    keys = [f"m{number}" for number in range(members)]
    assert () == h.ask(*keys, resource=memory(1))
    h.run_until_idle()
    return keys


def racks_of(h: Harness, keys: Sequence[str]) -> dict[str, int]:
    """Return how many members run in each rack."""
    return dict(Counter(NODES[h.placements[key]][1] for key in keys if key in h.placements))


def test_each_slice_is_in_one_rack_and_the_whole_gang_in_one_block() -> None:
    h = a_cluster()

    assert {"r3": 8, "r4": 8} == racks_of(h, gang(h, 16, topologyRequired="block", **FOURS))


def test_the_managers_predicates_take_a_slice_to_another_rack() -> None:
    """Slices go to r1 without the predicates, which leave room there for three members."""
    refused = {(f"m{number}", node): "no" for number in range(8) for node in ("n2", "n7")}
    h = a_cluster(predicates=FakePredicates(refused))

    assert {"r1": 4, "r2": 4} == racks_of(h, gang(h, 8, **FOURS))


def test_slices_without_room_wait_and_say_so() -> None:
    h = a_cluster()
    gang(h, 27, topologySlice="rack", topologySliceSize="3")

    assert not h.placements
    found = explain(h.state, "app")
    assert found is not None
    (blocker,) = found.blockers
    assert blocker.reason is RefusalReason.DOMAIN_ROOM
    assert blocker.detail == (
        "9 slices of 3 members, each in one rack: r1 2 of 2, r2 2 of 2, r3 2 of 2, r4 2 of 2, "
        "they can never hold all"
    )


def test_the_explanation_names_the_domain_of_all_slices() -> None:
    h = a_cluster()
    h.submit("other", tags={"gangSize": "1", "topologyRequired": "rack"})
    h.ask("x", application_id="other", resource=memory(8))
    h.run_until_idle()
    gang(h, 16, topologyRequired="block", **FOURS)

    found = explain(h.state, "app")
    assert found is not None
    assert found.blockers[0].detail == (
        "4 slices of 4 members, each in one rack of one block: r1 2 of 2, r3 2 of 2, r2 1 of 1, r4 0 of 2"
    )


def test_a_member_that_lost_its_node_comes_back_into_the_rack_of_its_slice() -> None:
    """There is room in another rack, where no slice lacks a member."""
    nodes = {"n1": ("b", "r1", 2), "n2": ("b", "r1", 2), "n3": ("b", "r2", 4), "n4": ("b", "r3", 3)}
    h = a_cluster(nodes)
    keys = gang(h, 8, **FOURS)
    assert {"n1": 2, "n2": 2, "n3": 4} == dict(Counter(h.placements[key] for key in keys))
    h.update_node("n2", NodeAction.DECOMISSION)
    h.ask_and_run("again", "last", resource=memory(1))
    assert not {"again", "last"} & set(h.placements)
    found = explain(h.state, "app")
    assert found is not None
    texts = [note.text for note in found.waiting[0].noted]
    assert "it is not in rack r1, where a slice of the gang lacks members" in texts

    h.nodes("n5", capacity=memory(2), attributes={"block": "b", "rack": "r1"})
    h.run_until_idle()
    assert {"n5"} == {h.placements["again"], h.placements["last"]}


def test_a_slice_that_is_lost_comes_back_into_one_rack_with_all_members() -> None:
    """The first member may have any rack, and the second one its rack."""
    nodes = {"n1": ("b", "r1", 2), "n2": ("b", "r2", 2), "n3": ("b", "r3", 1), "n4": ("b", "r4", 2)}
    h = a_cluster(nodes)
    gang(h, 4, **PAIRS)
    h.update_node("n1", NodeAction.DECOMISSION)
    h.update_node("n3", NodeAction.DECOMISSION)
    h.ask_and_run("again", "last", resource=memory(1))

    assert {"n4"} == {h.placements["again"], h.placements["last"]}


@pytest.mark.parametrize("refuses_n3", [True, False])
def test_a_member_is_swapped_only_inside_of_its_slice(*, refuses_n3: bool) -> None:
    """The nodes of the placeholders refuse it: it may go to n3 in that rack, and not to n0 in another one."""
    nodes = {"n1": ("b", "r1", 1), "n2": ("b", "r1", 1), "n3": ("b", "r1", 1), "n0": ("b", "r2", 1)}
    refused = {("m1", node): "no" for node in ("n1", "n2", *(["n3"] if refuses_n3 else []))}
    h = a_cluster(nodes, FakePredicates(refused, refused))
    tags = {"gangPlacing": "whole", **PAIRS}
    assert h.submit(placeholder_ask=memory(2), tags=tags) is None
    h.ask_and_run("p1", "p2", resource=memory(1), placeholder=True, task_group_name="g")
    assert {"n1", "n2"} == {h.placements[key] for key in ("p1", "p2")}

    h.ask_and_run("m1", resource=memory(1), task_group_name="g")
    assert ([] if refuses_n3 else ["p1"]) == [key for key, _ in h.releases]
    h.release("p1", termination=TerminationType.PLACEHOLDER_REPLACED)
    h.run_until_idle()
    assert (None if refuses_n3 else "n3") == h.placements.get("m1")


def test_members_replace_placeholders_beside_a_slice_that_lacks_one() -> None:
    nodes = {"n1": ("b", "r1", 1), "n2": ("b", "r1", 1), "n3": ("b", "r2", 2)}
    h = a_cluster(nodes, FakePredicates({}))
    tags = {"gangPlacing": "whole", **PAIRS}
    assert h.submit(placeholder_ask=memory(4), tags=tags) is None
    h.ask_and_run("p1", "p2", "p3", "p4", resource=memory(1), placeholder=True, task_group_name="g")
    assert {"n1", "n2", "n3"} == set(h.placements.values())
    h.update_node("n1", NodeAction.DECOMISSION)

    h.ask_and_run("m1", "m2", "m3", resource=memory(1), task_group_name="g")
    replaced = [key for key, kind in h.releases if kind.name == "PLACEHOLDER_REPLACED"]
    assert 3 == len(replaced), h.releases


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({"topologySlice": "row", "topologySliceSize": "2"}, "'row', no level of the partition"),
        ({"topologySlice": "rack"}, "topologySlice and topologySliceSize need each other"),
        ({"topologySliceSize": "2"}, "topologySlice and topologySliceSize need each other"),
        ({"topologySlice": "rack", "topologySliceSize": "0"}, "is '0': it must be a number from 1 to"),
        ({"topologySlice": "rack", "topologySliceSize": "2.5"}, "is '2.5': it must be a number"),
        ({"topologySlice": "rack", "topologySliceSize": "3"}, "its 8 members by gangSize are no slices of 3"),
        (
            {"topologySlice": "block", "topologySliceSize": "4", "topologyRequired": "rack"},
            "the level block of topologySlice is wider than the level rack of topologyRequired",
        ),
        ({"gangWait": "5m", **FOURS}, "a Soft gang is placed ask by ask"),
    ],
)
def test_slices_that_make_no_sense_are_refused(tags: Mapping[str, str], why: str) -> None:
    refusal = a_cluster().submit(tags={"gangSize": "8", **tags})

    assert refusal is not None
    assert why in refusal.reason


def test_a_member_of_another_size_is_rejected() -> None:
    """The text names both sizes; others are placed once there are enough of one size."""
    h = a_cluster()
    h.submit(tags={"gangSize": "2", **PAIRS})
    assert () == h.ask("m1", resource=memory(2))
    (rejected,) = h.ask("m2", "m3", resource=memory(3))[:1]
    assert rejected.reason == (
        "the gang of application app is placed in slices of 2 members of one size: "
        "m2 needs map[memory:3], not map[memory:2]"
    )

    h.ask_and_run("m4", resource=memory(2))
    assert {"m1", "m4"} == set(h.placements)


@pytest.mark.parametrize("announced", [3, 5, 6], ids=["too few", "no multiple", "no slices"])
def test_announced_placeholders_that_are_no_slices_are_rejected(announced: int) -> None:
    h = a_cluster()
    assert h.submit(placeholder_ask=memory(announced), tags={"gangPlacing": "whole", **PAIRS}) is None
    (rejected,) = h.ask("p1", resource=memory(2), placeholder=True, task_group_name="g")

    assert f"the announced map[memory:{announced}] is no multiple of 2 x map[memory:2]" in rejected.reason


def test_a_member_that_changes_its_size_stops_its_gang_with_a_reason() -> None:
    h = a_cluster()
    h.submit(tags={"gangSize": "2", **PAIRS})
    h.ask("m1", resource=memory(2))
    h.ask("m1", resource=memory(1))
    h.ask_and_run("m2", resource=memory(1))
    assert {"m1", "m2"} == set(h.placements)

    other = a_cluster()
    other.submit(tags={"gangSize": "4", **PAIRS})
    other.ask("m1", "m2", "m3", resource=memory(2))
    other.ask("m1", resource=memory(1))
    other.ask_and_run("m4", resource=memory(1))
    found = explain(other.state, "app")
    assert found is not None
    assert not other.placements
    assert "its slices of 2 members need one size, and they have several" == found.blockers[0].detail


@pytest.mark.parametrize("exact_max", [10, 0], ids=["all sets are compared", "one slice after the other"])
def test_slices_preempt_where_they_cost_least(exact_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of two ends one victim in a rack; the cheapest two nodes are in different racks."""
    monkeypatch.setattr(decision, "SETS_OF_MAX", exact_max)
    owed = "{name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 80}}}"
    scene = Scene(f"- {owed}\n- {{name: b}}", partition=TOPOLOGY)
    works = {
        "n1": ("r1", [20]),
        "n2": ("r1", []),
        "n3": ("r2", [10, 10]),
        "n4": ("r2", []),
        "n5": ("r3", [20]),
        "n6": ("r3", [10, 10]),
    }
    for node, (rack, sizes) in works.items():
        scene.nodes(node, capacity=memory(20), attributes={"block": "b", "rack": rack})
        for index, size in enumerate(sizes):
            scene.runs(f"{node}-{index}", node=node, resource=memory(size))
    assert scene.submit("g", "root.a", tags={"gangSize": "4", **PAIRS}) is None
    for key in ("g1", "g2", "g3", "g4"):
        scene.ask(key, application_id="g", resource=memory(20), preemption=True)
    scene.wait(11)
    assert ["n1-0", "n3-0", "n3-1"] == sorted(scene.preempted)
    for key in scene.preempted:
        scene.end(key)

    assert ["n1", "n2", "n3", "n4"] == sorted(scene.placements[key] for key in ("g1", "g2", "g3", "g4"))
