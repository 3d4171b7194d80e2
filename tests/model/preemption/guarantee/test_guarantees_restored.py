"""Fairness is restored in bounded steps: each queue has its guarantee after so many rounds, and keeps it."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import a_resource, memory
from support.model.preemption_scenes import Scene

from licorne.model.resources.resource import Resource
from licorne.model.values.messages import NodeAction

QUEUES: Final = """
    - name: own
      properties: {preemption.delay: 10s}
    - name: p
      properties: {preemption.delay: 10s}
      queues: [{name: x}, {name: y}]
    - name: q
      properties: {preemption.delay: 10s}
      queues:
      - name: r
        queues: [{name: z}]
    - name: free
"""
CLAIMS: Final = {"root.own": "root.own", "root.p.x": "root.p", "root.q.r.z": "root.q"}
"""Leaves that ask, and the queue with the guarantee: the leaf itself, its parent, or the one above that."""
SIZE: Final = 5
QUIET: Final = 4
"""So many rounds without a preemption are rest: all that is due comes with each of them."""


class Entitled:
    """A cluster full of allocations of one size, of which some are guaranteed to three queues.

    By type, it is full of vcores alone: of memory there is four times what fits, and the queue that has
    everything may be guaranteed more memory than it uses.
    """

    def __init__(self, seed: int, *, by_type: bool = False) -> None:
        self._draw = Random(seed)  # noqa: S311 - nothing is secret
        self._by_type = by_type
        self._serial = self._answered = 0
        self.scene = Scene(QUEUES)
        sizes = [self._draw.randint(1, 6) for _ in range(self._draw.randint(1, 4))]
        for number, size in enumerate(sizes):
            self.scene.nodes(f"n{number}", capacity=self._room(size, plenty=4))
        self.due: dict[str, int] = {}
        """By leaf, how many allocations it may claim: what is guaranteed, and no more than is asked for."""
        asked = {leaf: self._draw.randint(0, 6) for leaf in CLAIMS}
        left = sum(sizes)
        for leaf, queue in CLAIMS.items():
            guaranteed = self._draw.randint(0, left)
            left -= guaranteed
            limit = self._draw.choice((sum(sizes), max(1, guaranteed)))
            plenty = self._draw.randint(1, 4)
            self.scene.queue(queue).set_quota(self._room(guaranteed, plenty=plenty), self._room(limit))
            self.due[leaf] = min(guaranteed, asked[leaf])
        if by_type:
            self.scene.queue("root.free").set_quota(self._room(left, plenty=self._draw.randint(1, 9)), None)
        self.scene.state.tree.limits_changed()
        self._ask("root.free", sum(sizes))
        self.scene.run_until_idle()
        if self._draw.random() < 0.5:
            self._reserve_all(len(sizes))
        for leaf in self._draw.sample(list(CLAIMS), len(CLAIMS)):
            self._ask(leaf, asked[leaf])

    def _room(self, count: int, *, plenty: int = 1) -> Resource:
        """Return room for so many allocations; by type, as many times over in memory."""
        if not self._by_type:
            return a_resource(memory=SIZE * count)
        return a_resource(memory=SIZE * count * plenty, vcore=count)

    def _ask(self, leaf: str, count: int) -> None:
        for _ in range(count):
            self._serial += 1
            willing = self._draw.random() < 0.7
            self.scene.asks(f"t{self._serial}", queue=leaf, resource=self._room(1), willing=willing)

    def _reserve_all(self, nodes: int) -> None:
        """Have a backlog reserve every node: a cordoned one makes the cluster look as if it had room."""
        self.scene.nodes("spare", capacity=self._room(100))
        self.scene.update_node("spare", NodeAction.DRAIN_NODE)
        self._ask("root.free", nodes)
        self.scene.wait(3)
        assert all(node.reserved for node in self.scene.state.nodes if node.node_id != "spare")

    def round(self) -> None:
        """Let sixteen seconds pass; confirm what has to go and ask for it again, until nothing changes."""
        self.scene.advance(16)
        while True:
            self.scene.run_until_idle()
            gone = len(self.scene.preempted) - self._answered
            if not self.scene.confirm():
                return
            self._answered += gone
            self._ask("root.free", gone)

    def lacks(self) -> dict[str, int]:
        """Return how many allocations each leaf has less than it is entitled to."""
        lacks = {}
        for leaf, queue in CLAIMS.items():
            has = self.scene.queue(queue).allocated.get("memory") // SIZE
            if has < self.due[leaf]:
                lacks[leaf] = self.due[leaf] - has
        return lacks


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), by_type=st.booleans())
def test_after_one_round_for_each_missing_allocation_every_guarantee_is_met_for_good(
    *, seed: int, by_type: bool
) -> None:
    """Whichever queue has the guarantee, in whatever type, and however many ask at the same time.

    Each victim makes room for one within its guarantee; that all are asked for again changes nothing.
    """
    entitled = Entitled(seed, by_type=by_type)
    for _ in range(sum(entitled.due.values())):
        entitled.round()
    assert {} == entitled.lacks()
    for _ in range(QUIET):
        entitled.round()
    scene = entitled.scene

    assert sum(entitled.due.values()) >= len(scene.preempted)
    assert len(scene.preempted) == len(scene.state.preemptions)
    assert 0 == scene.state.preemptions.loops


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_asks_that_preempt_at_the_same_time_are_all_placed(seed: int) -> None:
    """Before anybody confirms anything: what one of them preempts for counts against the others."""
    entitled = Entitled(seed)
    entitled.scene.wait(16)
    preemptors = [record.allocation_key for record in entitled.scene.state.preemptions]
    entitled.scene.settle()

    assert set(preemptors) <= set(entitled.scene.placements)


@pytest.mark.parametrize(("willing", "originator"), [(False, False), (True, True)])
@pytest.mark.parametrize("is_full", [False, True])
def test_a_small_willing_victim_does_not_stand_before_a_large_reluctant_one(
    *, willing: bool, originator: bool, is_full: bool
) -> None:
    """The small one would use up half of what the queue is entitled to, and the large one alone is enough."""
    limit = "max: {memory: 30}" if is_full else ""
    scene = Scene(
        f"""
    - name: p
      resources: {{{limit}}}
      queues:
      - {{name: a, properties: {{preemption.delay: 10s}}, resources: {{guaranteed: {{memory: 20}}}}}}
      - name: b
    """
    )
    scene.nodes("n1", capacity=memory(100 if is_full else 30))
    scene.runs("large", queue="root.p.b", resource=memory(20), willing=willing, originator=originator)
    scene.runs("small", queue="root.p.b")
    scene.asks("ask", queue="root.p.a", resource=memory(20))
    scene.wait(16)

    assert ["large"] == scene.preempted


def test_a_team_that_would_fill_the_cluster_ends_work_outside_as_well() -> None:
    """The team and the ask are more than all nodes have: of one victim the team gets the room back itself."""
    scene = Scene(
        """
    - name: p
      resources: {guaranteed: {memory: 30}}
      queues:
      - {name: a, properties: {preemption.delay: 10s}}
      - {name: b, resources: {guaranteed: {memory: 10}}}
    - name: c
    """
    )
    scene.nodes("n1", capacity=memory(30))
    scene.runs("c1", queue="root.c")
    scene.runs("b1", "b2", queue="root.p.b")
    scene.asks("ask", queue="root.p.a", resource=memory(20))
    scene.wait(16)

    assert ["b2", "c1"] == scene.preempted
