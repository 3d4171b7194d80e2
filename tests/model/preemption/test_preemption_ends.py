"""Preemption ends: where every victim is asked for again, queues do not alternate."""

from __future__ import annotations

from random import Random
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import a_resource
from support.model.preemption_scenes import Scene

from licorne.model.resources.resource import Resource

QUEUES: Final = """
    - name: p
      properties: {preemption.delay: 10s}
      queues: [{name: a}, {name: b}]
    - name: q
      properties: {preemption.delay: 10s}
      queues: [{name: c}, {name: d}]
    - name: e
      properties: {preemption.delay: 10s}
"""
LEAVES: Final = ("root.p.a", "root.p.b", "root.q.c", "root.q.d", "root.e")
ROUNDS_MAX: Final = 60
QUIET: Final = 6
"""So many rounds without a preemption are rest: whatever is due comes every fifteen seconds."""


class Crowd:
    """Queues with more work than there is room, all of which may preempt and be preempted."""

    def __init__(self, seed: int) -> None:
        self._draw = Random(seed)  # noqa: S311 - nothing is secret
        self.scene = Scene(QUEUES)
        self._serial = 0
        self._sizes: dict[str, tuple[str, Resource, int]] = {}
        for number in range(self._draw.randint(1, 3)):
            self.scene.nodes(f"n{number}", capacity=self._size(12, 30))
        for path in ("root.p", "root.q", *LEAVES):
            if self._draw.random() < 0.6:
                room = self._size(1, 25)
                limit = self._size(25, 50) if self._draw.random() < 0.3 else None
                self.scene.queue(path).set_quota(room, limit)
        self.scene.state.tree.limits_changed()

    def _size(self, low: int, high: int) -> Resource:
        return a_resource(memory=self._draw.randint(low, high), vcore=self._draw.randint(low, high))

    def come(self) -> None:
        """Have each queue ask for more, in turn."""
        for leaf in self._draw.sample(LEAVES, len(LEAVES)):
            for _ in range(self._draw.randint(2, 6)):
                self._ask(leaf, self._size(1, 8), self._draw.choice((0, 0, 0, 1)))
            self.scene.run_until_idle()

    def _ask(self, leaf: str, resource: Resource, priority: int) -> None:
        self._serial += 1
        key = f"t{self._serial}"
        self._sizes[key] = (leaf, resource, priority)
        self.scene.asks(key, queue=leaf, resource=resource, priority=priority)

    def round(self) -> None:
        """Let sixteen seconds pass, confirm what has to go and ask for it again."""
        scene = self.scene
        scene.advance(16)
        known = len(scene.preempted)
        while True:
            scene.run_until_idle()
            gone = scene.preempted[known:]
            known += len(gone)
            if not scene.confirm():
                return
            for key in gone:
                self._ask(*self._sizes[key])


def rounds_until_rest(crowd: Crowd) -> int:
    """Return after how many rounds nothing is preempted any more."""
    quiet = 0
    for number in range(ROUNDS_MAX):
        before = len(crowd.scene.preempted)
        crowd.round()
        quiet = quiet + 1 if len(crowd.scene.preempted) == before else 0
        if quiet == QUIET:
            return number + 1 - QUIET
    raise AssertionError(f"still preempting after {ROUNDS_MAX} rounds: {crowd.scene.preempted[-10:]}")


@settings(max_examples=16)
@given(seed=st.integers(0, 2**32))
def test_preemption_comes_to_rest_and_repeats_none_that_came_to_nothing(seed: int) -> None:
    """Every queue gets what is guaranteed, then none takes from another: no loop is detected."""
    crowd = Crowd(seed)
    crowd.come()

    assert rounds_until_rest(crowd) < ROUNDS_MAX
    assert [record.explain() for record in crowd.scene.state.preemptions if record.loop] == []
