"""Victims that end one after the other, and whose jobs ask again at once, are preempted once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from support.model.builders import memory
from support.model.preemption_scenes import Scene

GUARANTEE: Final = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 20}}
    - name: b
"""
QUOTA: Final = """
    - name: p
      resources: {max: {memory: 20}}
      queues:
      - name: a
        properties: {preemption.delay: 10s}
        resources: {guaranteed: {memory: 20}}
      - name: b
"""
WITHIN: Final = "    - {name: a, properties: {preemption.delay: 10s, preemption.within: lower-priority}}"
WITHIN_QUOTA: Final = f"{WITHIN.rstrip('}')}}}, resources: {{max: {{memory: 20}}}}}}"
GANG: Final = {"placeholder": True, "task_group_name": "workers"}


@dataclass(frozen=True)
class Case:
    """Where wA and wB run when an ask for the size of both comes, or a gang of two."""

    queues: str
    leaf: str = "root.a"
    of_victims: str = "root.b"
    of_them: Mapping[str, Any] = field(default_factory=dict)
    asks: Mapping[str, int] = field(default_factory=lambda: {"p": 20})
    terms: Mapping[str, Any] = field(default_factory=dict)
    partition: str = ""
    nodes: tuple[int, ...] = (20,)


CASES: Final = {
    "for a guarantee": Case(GUARANTEE),
    "for a guarantee below a quota that is reached": Case(QUOTA, "root.p.a", "root.p.b", nodes=(20, 20)),
    "a gang for a guarantee": Case(GUARANTEE, of_them=GANG, partition="preemption: {jobs: whole}"),
    "a gang for a gang, below a quota": Case(
        *(QUOTA, "root.p.a", "root.p.b", GANG, {"p1": 10, "p2": 10}, GANG), nodes=(20, 20)
    ),
    "inside of a queue": Case(WITHIN, of_victims="root.a", terms={"priority": 5}),
    "inside of a queue, below its quota": Case(
        WITHIN_QUOTA, of_victims="root.a", terms={"priority": 5}, nodes=(20, 20)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_one_victim_gives_back_waits_for_the_other(case: Case) -> None:
    """One ends at once and one 60 s later: two releases in all, then the preemptor runs."""
    scene = Scene(case.queues, partition=case.partition)
    for number, size in enumerate(case.nodes):
        scene.nodes(f"n{number}", capacity=memory(size))
    scene.runs("wA", "wB", queue=case.of_victims, node="n0", **case.of_them)
    for key, size in case.asks.items():
        scene.asks(key, queue=case.leaf, resource=memory(size), **case.terms)
    for _ in range(3):
        scene.wait(16)
    assert ["wA", "wB"] == sorted(scene.preempted)

    scene.end("wA", case.of_victims, again=True)
    for _ in range(6):
        scene.wait(10)
    scene.end("wB", case.of_victims, again=True)
    for _ in range(12):
        scene.wait(10)

    assert ["wA", "wB"] == sorted(scene.preempted)
    assert {*case.asks} == {*scene.placements} - {"wA", "wB"}
