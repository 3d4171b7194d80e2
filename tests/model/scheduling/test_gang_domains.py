"""Gangs in domains of nodes: placed in one rack, explained, promised one, and preempting in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.model.builders import FakePredicates, a_resource, memory
from support.model.harness import Asked, Harness
from support.model.preemption_scenes import Scene
from support.model.racks import NODES

from licorne.model.explanation.explain import explain
from licorne.model.preemption.guarantee import decision
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.facts import Fact, SingleFact
from licorne.model.values.messages import ApplicationChanged, NodeAction
from licorne.proxy.core.explanation.text import what_blocks

TOPOLOGY = "topology: [block, rack]"


def a_cluster(
    queues: str = "- name: leaf", nodes: Mapping[str, tuple[str, str, int]] = NODES, **options: Any
) -> Harness:
    """Return a partition with nodes in blocks and racks."""
    h = Harness(queues, partition=TOPOLOGY, **options)
    for node_id, (block, rack, capacity) in nodes.items():
        attributes = {"block": block, "rack": rack}
        h.nodes(node_id, capacity=a_resource(memory=capacity), attributes=attributes)
    return h


def gang(
    h: Harness, name: str, members: int, queue: str = "root.leaf", size: int = 1, **tags: str
) -> list[str]:
    """Submit a gang with all its asks; return their keys."""
    assert h.submit(name, queue_name=queue, tags={"gangSize": str(members), **tags}) is None
    keys = [f"{name}{number}" for number in range(members)]
    for key in keys:
        h.ask(key, application_id=name, resource=memory(size))
    return keys


def test_a_gang_gets_one_rack_and_the_next_one_another() -> None:
    h = a_cluster()
    first, second = (gang(h, name, 5, topologyRequired="rack") for name in "ab")
    h.run_until_idle()

    assert {"n3", "n4"} == {h.placements[key] for key in first}
    assert {"n7"} == {h.placements[key] for key in second}


def test_a_gang_that_no_rack_holds_waits_and_says_so() -> None:
    """A smaller one that came later is not held up; the wider level would do."""
    h = a_cluster()
    gang(h, "a", 9, topologyRequired="rack")
    later = gang(h, "b", 2, topologyRequired="rack")
    h.run_until_idle()

    assert set(later) == set(h.placements)
    assert [RefusalReason.DOMAIN_ROOM] == [each.reason for each in h.application("a").asks.refusals()]
    found = explain(h.state, "a")
    assert found is not None
    (blocker,) = found.blockers
    assert blocker.reason is RefusalReason.DOMAIN_ROOM
    assert (
        blocker.detail
        == "9 members in one rack: r1 8 of 8, r3 8 of 8, r4 8 of 8, r2 4 of 6, no rack can ever hold them"
    )
    assert "no domain of nodes has room for all of the gang: 9 members" in what_blocks(
        blocker, h.clock.now_ns()
    )


def test_what_no_rack_can_ever_hold_is_said_with_the_last_ask() -> None:
    """Once, whatever is asked for later, to the RM and as an event; and not of a gang that waits for room."""
    h = a_cluster()
    facts: list[Fact] = []
    h.state.events.sink.report = facts.append
    gang(h, "fits", 8, topologyRequired="rack")
    gang(h, "waits", 8, topologyRequired="rack")
    gang(h, "prefers", 9, topologyPreferred="rack")
    gang(h, "never", 9, topologyRequired="rack")
    h.ask("later", application_id="never", resource=memory(1))
    h.run_until_idle()

    assert 1 == sum("can ever hold" in each.message for each in facts if isinstance(each, SingleFact))
    warned = [each for each in h.heard(ApplicationChanged) if "can ever hold" in each.message]
    assert [("never", "Accepted", "no nodes can ever hold the gang: 9 members in one rack")] == [
        (each.application_id, each.state, each.message) for each in warned
    ]


def test_a_waiting_gang_is_placed_once_its_rack_has_room() -> None:
    h = a_cluster(nodes={"n1": ("b1", "r1", 4), "n2": ("b1", "r2", 3), "n3": ("b1", "r3", 3)})
    h.submit("other")
    h.ask("x", application_id="other", resource=memory(4))
    h.run_until_idle()
    members = gang(h, "a", 4, topologyRequired="rack")
    h.run_until_idle()
    assert not set(members) & set(h.placements)

    h.release("x", application_id="other")
    h.run_until_idle()
    assert {"n1"} == {h.placements[key] for key in members}


def test_a_gang_prefers_a_rack_and_takes_a_block() -> None:
    h = a_cluster()
    members = gang(h, "a", 9, topologyPreferred="rack")
    h.run_until_idle()

    assert {"n1", "n2", "n4"} == {h.placements[key] for key in members}


def test_the_managers_predicates_take_a_gang_to_another_rack() -> None:
    refused = {(f"a{number}", node): "no" for number in range(5) for node in ("n3", "n4", "n7")}
    h = a_cluster(predicates=FakePredicates(refused))
    members = gang(h, "a", 5, topologyRequired="rack")
    h.run_until_idle()

    assert {"n1", "n2"} == {h.placements[key] for key in members}


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        (
            {"gangSize": "2", "topologyRequired": "row"},
            "'row', no level of the partition: its levels are block, rack",
        ),
        ({"topologyRequired": "rack"}, "only gangs that are placed whole can have one"),
        (
            {"gangSize": "2", "topologyRequired": "rack", "topologyPreferred": "block"},
            "is wider than the level rack of topologyRequired",
        ),
        ({"gangSize": "2", "topologyBalanced": "true"}, "needs topologyRequired or topologyPreferred"),
        (
            {"gangSize": "2", "topologyPreferred": "rack", "topologyBalanced": "evenly"},
            "it must be true or false",
        ),
        ({"gangSize": "2", "topologyRequired": "rack", "gangWait": "5m"}, "a Soft gang is placed ask by ask"),
    ],
)
def test_tags_that_make_no_sense_are_refused(tags: Mapping[str, str], why: str) -> None:
    refusal = a_cluster().submit("a", tags=tags)

    assert refusal is not None
    assert why in refusal.reason


def test_a_node_whose_rack_is_in_another_block_is_refused() -> None:
    h = a_cluster()

    (rejected,) = h.nodes("n9", attributes={"block": "b2", "rack": "r1"}).rejected
    assert "node n9 is in rack 'r1' of block 'b2'" in rejected.reason


def test_a_new_topology_counts_for_the_nodes_that_are_there() -> None:
    """With the level gone a gang that requires it stays; it is placed when the level is back."""
    h = a_cluster()
    h.reload("- name: leaf", partition="topology: [block]")
    members = gang(h, "a", 9, topologyRequired="block")
    h.reload("- name: leaf")
    h.run_until_idle()
    assert not h.placements

    h.reload("- name: leaf", partition=TOPOLOGY)
    h.run_until_idle()
    assert {"n1", "n2", "n4"} == {h.placements[key] for key in members}


@pytest.mark.parametrize("exact_max", [10, 0], ids=["all sets", "one after the other"])
def test_a_gang_preempts_in_the_rack_where_it_costs_least(
    exact_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One large victim in each rack would be fewer, but members would be in two racks."""
    monkeypatch.setattr(decision, "SETS_OF_MAX", exact_max)
    owed = "{name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 50}}}"
    scene = Scene(f"- {owed}\n- {{name: b}}", partition=TOPOLOGY)
    works = {"n1": ("r1", [20]), "n2": ("r1", [10, 10]), "n3": ("r2", [20]), "n4": ("r2", [5, 5, 5, 5])}
    for node, (rack, sizes) in works.items():
        scene.nodes(node, capacity=memory(20), attributes={"block": "b", "rack": rack})
        for index, size in enumerate(sizes):
            scene.runs(f"{node}-{index}", node=node, resource=memory(size))
    assert scene.submit("g", "root.a", tags={"gangSize": "2", "topologyRequired": "rack"}) is None
    for key in ("g1", "g2"):
        scene.ask(key, application_id="g", resource=memory(20), preemption=True)
    scene.wait(11)
    assert ["n1-0", "n2-0", "n2-1"] == sorted(scene.preempted)
    for key in scene.preempted:
        scene.end(key)

    assert {"n1", "n2"} == {scene.placements["g1"], scene.placements["g2"]}


def test_a_gang_is_promised_the_rack_that_is_free_first() -> None:
    """One node of the first rack is free sooner, and its other one much later."""
    nodes = {node: ("b", rack, 4) for node, rack in {"n1": "r1", "n2": "r1", "n3": "r2", "n4": "r2"}.items()}
    h = a_cluster(nodes=nodes, root='properties: {backfill.reservations: "1"}')
    for node, walltime in {"n1": "100s", "n2": "900s", "n3": "300s", "n4": "200s"}.items():
        tags = {"walltime": walltime}
        h.submit(f"on {node}", tags=tags)
        h.have([Asked(f"work-{node}", application_id=f"on {node}", resource=memory(4), node_id=node)])
    gang(h, "a", 2, size=4, topologyRequired="rack", walltime="100s")
    h.run_until_idle()
    found = explain(h.state, "a")
    assert found is not None

    starts = [ask.planned_start for ask in found.waiting]
    assert ["n3", "n4"] == sorted(start.node_id for start in starts if start is not None)
    assert {300} == {
        (start.start_ns - h.clock.now_ns()) // 10**9 for start in starts if start and start.start_ns
    }


def test_a_member_that_lost_its_node_comes_back_into_the_same_rack() -> None:
    """It waits for room there, though there is room elsewhere."""
    nodes = {"n1": ("b1", "r1", 4), "n2": ("b1", "r1", 4), "n3": ("b1", "r2", 4), "n4": ("b1", "r2", 2)}
    h = a_cluster(nodes=nodes)
    members = gang(h, "a", 4, size=2, topologyRequired="rack")
    h.run_until_idle()
    assert {"n1", "n2"} == {h.placements[key] for key in members}
    h.update_node("n2", NodeAction.DECOMISSION)
    h.ask("again", "last", application_id="a", resource=memory(2))
    h.run_until_idle()
    assert not {"again", "last"} & set(h.placements)
    found = explain(h.state, "a")
    assert found is not None
    assert "it is not in rack r1, where the gang runs" in [note.text for note in found.waiting[0].noted]

    h.nodes("n5", capacity=memory(2), attributes={"block": "b1", "rack": "r1"})
    h.run_until_idle()
    assert "n5" == h.placements["again"]
    assert "last" not in h.placements
