"""Asks of one shape share the refusal of a preemption: what that saves, and that it changes nothing."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import FakePredicates, a_resource
from support.model.preemption_scenes import TWO_QUEUES, Scene

from licorne.model.applications.ask_walk import AskWalk, Candidate, FailedTry
from licorne.model.applications.asks import ApplicationAsks

LEAVES: Final = ("root.a", "root.b", "root.c")
QUEUES: Final = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 30}}
    - name: b
      properties: {preemption.delay: 3s}
      resources: {guaranteed: {memory: 20}, max: {memory: 40}}
    - name: c
"""
FULL: Final = TWO_QUEUES.replace("guaranteed: {memory: 50}", "guaranteed: {memory: 50}, max: {memory: 50}")


class Walks:
    """Counts how many asks a partition is given to try."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.tried = 0
        plain = ApplicationAsks.next_candidate

        def counted(
            asks: ApplicationAsks, walk: AskWalk, failed: FailedTry | None = None
        ) -> Candidate | None:
            candidate = plain(asks, walk, failed)
            self.tried += candidate is not None
            return candidate

        patch.setattr(ApplicationAsks, "next_candidate", counted)


def tries_after_a_change(backlog: int, queues: str, walks: Walks) -> int:
    """Return how many of many equal asks that cannot be helped are tried when something ends elsewhere."""
    scene = Scene(queues)
    scene.nodes("n1", capacity=a_resource(memory=100))
    scene.runs(*[f"v{number}" for number in range(10)])
    scene.asks(*[f"p{number}" for number in range(backlog)])
    for _ in range(8):
        scene.wait(16)
        scene.confirm()
    assert a_resource(memory=50) == scene.queue("root.a").allocated
    walks.tried = 0
    scene.release("v0", application_id="root.b")
    scene.asks("w", queue="root.b", may_preempt=False)
    scene.run_until_idle()
    return walks.tried


@pytest.mark.parametrize("queues", [TWO_QUEUES, FULL], ids=["no node has room", "the queue is full"])
def test_a_backlog_that_preemption_cannot_help_costs_the_same_however_long_it_is(
    queues: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few asks stand for all of their shape, in each walk."""
    walks = Walks(monkeypatch)
    short = tries_after_a_change(20, queues, walks)

    assert short == tries_after_a_change(60, queues, walks)
    assert short < 10


def test_asks_that_are_too_young_cost_one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those behind the first one are younger still."""
    walks = Walks(monkeypatch)
    scene = Scene(TWO_QUEUES)
    scene.nodes("n1", capacity=a_resource(memory=100))
    scene.runs(*[f"v{number}" for number in range(10)])
    scene.asks(*[f"p{number}" for number in range(30)])
    scene.cycle()

    assert walks.tried == 1


# ------------------------------------------------------------------------------------- nothing changes


class Fickle(FakePredicates):
    """An RM that refuses every third ask a victim, and every fifth a node."""

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | None:
        agreed = super().preemption_index(allocation_key, node_id, victim_keys, start_index)
        return agreed if int(allocation_key[1:]) % 3 else None

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        refused = super().refuse(allocation_key, node_id, allocate=allocate)
        return refused if int(allocation_key[1:]) % 5 else "not this one"


class Story:
    """A cluster with a backlog of few sizes in three queues, step by step."""

    def __init__(self, seed: int, *, apart: bool) -> None:
        self._draw = Random(seed)  # noqa: S311 - nothing is secret
        predicates = Fickle() if self._draw.random() < 0.3 else None
        self.scene = Scene(QUEUES, predicates=predicates, reservations_on=self._draw.random() < 0.6)
        self.scene.apart = apart
        for number in range(self._draw.randint(1, 3)):
            self.scene.nodes(f"n{number}", capacity=a_resource(memory=self._draw.randint(10, 40)))
        self._serial = 0
        self._come("root.c", 8)
        self.scene.run_until_idle()

    def _come(self, leaf: str, count: int) -> None:
        for _ in range(count):
            self._serial += 1
            self.scene.asks(
                f"t{self._serial}",
                queue=leaf,
                resource=a_resource(memory=self._draw.choice((3, 3, 7))),
                priority=self._draw.choice((0, 0, 1)),
                may_preempt=self._draw.random() < 0.8,
            )

    def step(self) -> None:
        """Let something happen, and the scheduler react to it."""
        scene = self.scene
        chance = self._draw.random()
        if chance < 0.35:
            self._come(self._draw.choice(LEAVES), self._draw.randint(1, 5))
        elif chance < 0.55:
            scene.confirm()
        elif chance < 0.7:
            running = sorted(key for key in scene.placements if self._runs(key))
            if running:
                key = self._draw.choice(running)
                scene.release(key, application_id=self._leaf(key))
        else:
            scene.advance(milliseconds=self._draw.choice((300, 1100, 4000, 16000)))
        for _ in range(self._draw.randint(0, 3)):
            scene.cycle()

    def _leaf(self, key: str) -> str:
        return next(
            (leaf for leaf in LEAVES if leaf in self.scene.state.entries and self._has(leaf, key)), ""
        )

    def _has(self, leaf: str, key: str) -> bool:
        return self.scene.application(leaf).allocations.get(key) is not None

    def _runs(self, key: str) -> bool:
        leaf = self._leaf(key)
        return bool(leaf) and not self.scene.application(leaf).allocations.is_preempted(key)

    def decisions(self) -> list[object]:
        """Return all that was decided so far."""
        scene = self.scene
        nodes = [(entry.node_id, entry.node.facts().reservations) for entry in scene.state.nodes]
        return [scene.placements, scene.releases, nodes]


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_to_share_a_refusal_changes_no_decision(seed: int) -> None:
    """Asks that stand for each other, and the same asks each of a shape of its own."""
    together, apart = Story(seed, apart=False), Story(seed, apart=True)
    for _ in range(30):
        together.step()
        apart.step()

        assert apart.decisions() == together.decisions()
