"""Whole jobs before parts of many: which gangs end where several could."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pytest
from support.model.builders import memory
from support.model.preemption_scenes import Scene

from licorne.model.preemption.losses import by_whole_jobs
from licorne.model.preemption.victims import Victim, gangs_cut_by

WHOLE: Final = "preemption: {jobs: whole, quotapreemptionenabled: true}"
QUEUES: Final = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 90}}
    - name: x
    - name: y
    - name: z
"""


@dataclass(frozen=True)
class Case:
    """What runs, in order of age: the queue, the nodes of its members, and whether it is a gang."""

    running: list[tuple[str, str, bool]]
    asked: int
    parts: list[str]
    whole: list[str]
    nodes: Mapping[str, int] = field(default_factory=dict)


CASES: Final = {
    "the smallest gang that is enough ends whole, and none of the others loses a member": Case(
        [("x", "n1 n1", True), ("y", "n1 n1 n1", True), ("z", "n1 n1 n1", True)],
        20,
        ["z1", "z2"],
        ["x0", "x1"],
        {"n1": 80},
    ),
    "one gang ends rather than a part of two": Case(
        [("x", "n1 n1 n1", True), ("y", "n1 n1", True)],
        30,
        ["x2", "y0", "y1"],
        ["x0", "x1", "x2"],
        {"n1": 50},
    ),
    "if none is enough the largest ends first": Case(
        [("x", "n1 n1 n1", True), ("y", "n1 n1", True)],
        40,
        ["x1", "x2", "y0", "y1"],
        ["x0", "x1", "x2", "y1"],
        {"n1": 50},
    ),
    "what is of no gang ends before any": Case(
        [("x", "n1 n1", False), ("y", "n1 n1", True)], 20, ["y0", "y1"], ["x0", "x1"], {"n1": 40}
    ),
    "the node is chosen where a gang ends whole": Case(
        [("x", "n2 n2", True), ("y", "n1 n1 n2", True)],
        20,
        ["y0", "y1"],
        ["x0", "x1"],
        {"n1": 20, "n2": 30},
    ),
}


def a_scene(case: Case, partition: str) -> Scene:
    """Have what runs in a case, each of ten."""
    scene = Scene(QUEUES, partition=partition)
    for name, size in case.nodes.items():
        scene.nodes(name, capacity=memory(size))
    for name, nodes, is_gang in case.running:
        for number, node in enumerate(nodes.split()):
            options = {"placeholder": True, "task_group_name": "g"} if is_gang else {}
            scene.runs(f"{name}{number}", queue=f"root.{name}", node=node, **options)
    return scene


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_one_gang_ends_as_a_whole_where_the_partition_says_so(case: Case) -> None:
    """Otherwise the youngest end, whatever they are of, as ever."""
    ended = []
    for partition in ("", WHOLE):
        scene = a_scene(case, partition)
        scene.asks("p", resource=memory(case.asked))
        scene.wait(11)
        ended.append(sorted(scene.preempted))

    assert [case.parts, case.whole] == ended


def test_a_gang_that_has_lost_a_member_loses_the_next_one_too() -> None:
    """Before its victim has ended; the other gang is younger, and would lose one otherwise."""
    running = [("y", "n1 n2", True), ("x", "n1 n2 n2", True)]
    scene = a_scene(Case(running, 0, [], [], {"n1": 20, "n2": 30}), WHOLE)
    scene.asks("p1", "p2")
    scene.wait(11)
    scene.wait(16)

    assert ["y0", "y1"] == scene.preempted


def test_an_ask_that_needs_its_node_ends_a_gang_as_a_whole_too() -> None:
    """A gang with members elsewhere comes last: it could only lose a part."""
    scene = Scene(QUEUES, partition=WHOLE)
    for name, size in (("n1", 30), ("n2", 10)):
        scene.nodes(name, capacity=memory(size))
    for key, queue, node in (("x0", "x", "n1"), ("x1", "x", "n1"), ("y0", "y", "n1"), ("y1", "y", "n2")):
        scene.runs(key, queue=f"root.{queue}", node=node, placeholder=True, task_group_name="g")
    scene.asks("d", required_node="n1", resource=memory(20), may_preempt=False)
    scene.wait(1)

    assert ["x0", "x1"] == sorted(scene.preempted)


def test_a_maximum_is_enforced_gang_by_gang_too() -> None:
    """Of a leaf the members of one application go, though the other's are younger."""
    queues = """
    - name: p
      properties: {quota.preemption.delay: 1s}
      resources: {max: {memory: 50}}
      queues: [{name: x}, {name: y}]
"""
    scene = Scene(queues, partition=WHOLE)
    scene.nodes("n1", capacity=memory(100))
    scene.runs("alone", "other", queue="root.p.x")
    scene.runs("g1", "g2", queue="root.p.x", placeholder=True, task_group_name="g")
    scene.reload(queues.replace("50", "20"), partition=WHOLE)
    scene.wait(2)
    scene.partition.preempt_over_quota()

    assert ["alone", "other"] == sorted(scene.preempted)


def test_the_reason_says_that_no_other_gang_is_cut() -> None:
    """Only of members of a gang."""
    scene = a_scene(CASES["one gang ends rather than a part of two"], WHOLE)
    scene.asks("p", resource=memory(30))
    scene.wait(11)

    texts = {victim.reason for victim in scene.record.victims}
    assert all(
        "the willing go first, then what cuts no other gang, then the youngest" in text for text in texts
    )


def victims(scene: Scene, *keys: str) -> list[Victim]:
    """Return possible victims with their places, for an ask for twenty."""
    return by_whole_jobs([scene.victim(key, f"root.{key[0]}") for key in keys], memory(20))


CUTS: Final[dict[str, tuple[list[str], int]]] = {
    "none": ([], 0),
    "a whole gang is not cut": (["x0", "x1"], 0),
    "a part of one": (["x0"], 1),
    "parts of two": (["x0", "y0", "y1"], 2),
    "what is of no gang": (["z0"], 0),
}


@pytest.mark.parametrize("case", CUTS.values(), ids=CUTS)
def test_gangs_are_counted_that_lose_some_members_and_keep_others(case: tuple[list[str], int]) -> None:
    """A node is chosen by that before its cost."""
    keys, expected = case
    running = [("x", "n1 n1", True), ("y", "n1 n1 n1", True), ("z", "n1", False)]
    scene = a_scene(Case(running, 0, [], [], {"n1": 60}), WHOLE)

    assert expected == gangs_cut_by(victims(scene, *keys))
