"""Budgets of disruption: how many allocations a queue loses to guarantees in any time so long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import SECOND_NS, START_NS, memory
from support.model.explained import ask_of
from support.model.preemption_scenes import HUNDRED, Scene

from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.state.preemption_log import DisruptionLog, Overdraft
from licorne.model.values.allocation import RefusalReason

QUEUES: Final = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 90}}
    - name: b
      properties: {preemption.victims-max: 2/10m}
"""


def a_full_cluster(queues: str = QUEUES) -> Scene:
    """Ten of ten fill the only node."""
    scene = Scene(queues)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs(*(f"v{number}" for number in range(10)))
    return scene


def rounds(scene: Scene, count: int) -> None:
    """Let so many times sixteen seconds pass, and the RM confirm."""
    for _ in range(count):
        scene.wait(16)
        scene.settle()


def test_a_queue_loses_so_many_and_the_next_when_the_first_counts_no_longer() -> None:
    """Four asks, a budget of two in ten minutes: two are served at once, two ten minutes later."""
    scene = a_full_cluster()
    scene.asks("p1", "p2", "p3", "p4")
    rounds(scene, 10)
    assert ["v9", "v8"] == scene.preempted
    first_ns, second_ns = [record.time_ns for record in scene.state.preemptions]

    scene.clock.advance_to(first_ns + 600 * SECOND_NS - 1)
    scene.run_until_idle()
    assert 2 == len(scene.preempted)
    scene.clock.advance_to(first_ns + 600 * SECOND_NS)
    scene.run_until_idle()
    assert ["v7"] == scene.preempted[2:]
    scene.settle()
    scene.clock.advance_to(second_ns + 600 * SECOND_NS + 15 * SECOND_NS)
    scene.run_until_idle()
    assert ["v7", "v6"] == scene.preempted[2:]


def test_a_decision_that_takes_more_than_is_left_is_refused_as_a_whole() -> None:
    """One was lost, two are needed: nothing ends before the one counts no longer."""
    scene = a_full_cluster()
    scene.asks("p1")
    rounds(scene, 2)
    scene.asks("p2", resource=memory(20))
    rounds(scene, 20)
    assert ["v9"] == scene.preempted

    rounds(scene, 20)
    assert ["v9", "v8", "v7"] == scene.preempted


def test_what_needs_more_than_the_budget_ever_has_is_refused_and_says_so() -> None:
    """It is tried again like any attempt that failed."""
    scene = a_full_cluster()
    scene.asks("p1", resource=memory(30))
    rounds(scene, 5)

    assert [] == scene.preempted
    assert NoPreemption.TOO_MANY.text in scene.waits_with("p1")


def test_other_queues_lose_what_one_may_not() -> None:
    """They have no budget, or one of their own."""
    scene = a_full_cluster(f"{QUEUES}    - name: c\n")
    scene.end("v0")
    scene.runs("w0", queue="root.c")
    scene.asks("p1", "p2", "p3")
    rounds(scene, 6)

    assert {"w0", "v9", "v8"} == set(scene.preempted)


def test_a_decision_takes_of_other_queues_what_one_may_not_lose_as_well() -> None:
    """The youngest are of a queue that may lose two; three are needed, and the oldest is of another."""
    scene = Scene(f"{QUEUES}    - name: c\n")
    scene.nodes("n1", capacity=memory(40))
    scene.runs("w0", queue="root.c")
    scene.runs("v0", "v1", "v2")
    scene.asks("p1", resource=memory(30))
    rounds(scene, 2)

    assert ["v2", "v1", "w0"] == scene.preempted
    assert "n1" == scene.placements["p1"]


def test_an_ask_that_needs_its_node_is_not_bound_and_does_not_count() -> None:
    """Only what ends for a guarantee does."""
    scene = a_full_cluster()
    scene.asks("d", resource=memory(30), required_node="n1", may_preempt=False)
    rounds(scene, 2)
    assert 3 == len(scene.preempted)
    scene.asks("p1", "p2")
    rounds(scene, 4)

    assert 5 == len(scene.preempted)


def test_an_explanation_names_the_budget_its_line_and_the_time() -> None:
    """As of a minimum run time."""
    scene = a_full_cluster()
    scene.asks("p1", "p2", "p3")
    rounds(scene, 4)
    blocker = ask_of(scene, "p3", "root.a").blockers[-1]
    assert blocker.position is not None

    assert (RefusalReason.PROTECTED, "root.b") == (blocker.reason, blocker.subject)
    assert "by victims-max 2/10m of root.b" in blocker.detail
    assert "properties.preemption.victims-max" in blocker.position.path
    first = next(iter(scene.state.preemptions))
    assert first.time_ns + 600 * SECOND_NS == blocker.until_ns


# ---------------------------------------------------------------------------------------- the arithmetic

TREE: Final = """
    - name: p
      properties: {preemption.victims-max: 3/10s}
      queues:
      - {name: x, properties: {preemption.victims-max: 2/4s}}
      - {name: y, properties: {preemption.victims-max: 9/1s}}
"""


@dataclass(frozen=True)
class Lost:
    """What was lost at which second, what is wanted at five, and which queue forbids it until when."""

    lost: list[tuple[int, str]]
    wanted: list[str]
    queue: str = ""
    until: int | None = None


LOSSES: Final = {
    "nothing was lost": Lost([], ["x", "x", "y"]),
    "what has left the window does not count": Lost([(0, "x"), (1, "x")], ["x"]),
    "what has not does, until it has": Lost([(2, "x"), (3, "x")], ["x"], "x", 6),
    "two have to wait for the second": Lost([(1, "x"), (3, "x")], ["x", "x"], "", 11),
    "the queue that forbids it longest is named": Lost([(2, "x"), (3, "x")], ["x", "x"], "", 12),
    "a parent counts what ends below it": Lost([(1, "x"), (2, "y"), (3, "y")], ["y"], "", 11),
    "more than a budget is never possible": Lost([], ["x", "x", "x"], "x", None),
}


@pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES)
def test_a_queue_may_lose_what_its_window_leaves(case: Lost) -> None:
    """And so may all above it."""
    tree = Scene(TREE)
    log = DisruptionLog()
    for second, name in case.lost:
        log.note([tree.queue(f"root.p.{name}")], START_NS + second * SECOND_NS)
    found = log.overdraft([tree.queue(f"root.p.{name}") for name in case.wanted], START_NS + 5 * SECOND_NS)

    queue = tree.queue(f"root.p.{case.queue}".rstrip("."))
    until_ns = None if case.until is None else START_NS + case.until * SECOND_NS
    is_allowed = not case.queue and case.until is None
    assert (None if is_allowed else Overdraft(queue, until_ns)) == found


MOVES: Final = st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"]), st.integers(1, 2))


@settings(max_examples=50)
@given(moves=st.lists(MOVES, max_size=40))
def test_no_window_has_more_than_its_budget(moves: list[tuple[int, str, int]]) -> None:
    """Whatever is asked for: by a plain count of all that was allowed."""
    tree = Scene(TREE)
    log, now = DisruptionLog(), 0
    allowed: list[tuple[int, str]] = []
    for pause, name, count in moves:
        now += pause
        leaves = [tree.queue(f"root.p.{name}")] * count
        found = log.overdraft(leaves, now * SECOND_NS)
        recent = [each for second, each in allowed if now - second < 10]
        own = [second for second, each in allowed if each == "x" and now - second < 4]
        fits = len(recent) + count <= 3 and (name != "x" or len(own) + count <= 2)
        assert fits is (found is None)
        if found is None:
            log.note(leaves, now * SECOND_NS)
            allowed += [(now, name)] * count
