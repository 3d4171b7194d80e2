"""Preemption below queues with backfilling: by the rules of all asks, and no promise is later for it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from support.model.builders import TEN, memory
from support.model.planned_days import planned_start_of
from support.model.preemption_scenes import Scene

from licorne.model.explanation.dry_run import prospects
from licorne.model.values.messages import NodeAction

TWENTY = memory(20)
QUEUES = """
- {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 20}}}
- {name: b}
- {name: c}
"""
MODES = pytest.mark.parametrize("mode", ["1", "all"])


def a_scene(mode: str, *nodes: str, queues: str = QUEUES, capacity: int = 20) -> Scene:
    """Return nodes below a root that promises starts, to one job or to all."""
    scene = Scene(queues, root='properties: {backfill.reservations: "' + mode + '"}')
    scene.nodes(*nodes, capacity=memory(capacity))
    return scene


def runs(scene: Scene, key: str, walltime: str = "", **options: Any) -> None:
    """Have an allocation, with a walltime or none."""
    scene.runs(key, tags={"walltime": walltime} if walltime else {}, **options)


def starts_in(scene: Scene, application_id: str) -> float:
    """Return in how many seconds the first ask of an application is promised to start."""
    planned = planned_start_of(scene, application_id)
    assert planned is not None
    assert planned.start_ns is not None, planned.reason
    return (planned.start_ns - scene.clock.now_ns()) / 1_000_000_000


@MODES
def test_a_queue_gets_its_guarantee(mode: str) -> None:
    """What ends for it is kept for it, in the queues and on the node, as everywhere."""
    scene = a_scene(mode, "n1")
    scene.runs("v1", "v2")
    scene.asks("p1")
    scene.wait(9)
    assert [] == scene.preempted
    scene.wait(2)
    assert ["v2"] == scene.preempted
    scene.asks("other", queue="root.c", may_preempt=False)
    scene.wait(60)
    assert not {"other", "p1"} & set(scene.placements)
    scene.end("v2", again=True)

    assert {"p1"} == {"p1", "other", "v2'"} & set(scene.placements)
    assert not len(scene.state.reserved)
    scene.wait(300)
    assert ["v2"] == scene.preempted


@MODES
def test_a_gang_gets_its_guarantee(mode: str) -> None:
    """All of it, on the nodes that are kept for it."""
    scene = a_scene(mode, "n1", "n2", capacity=10)
    scene.runs("v1", node="n1")
    scene.runs("v2", node="n2")
    scene.submit("g", "root.a", tags={"gangSize": "2"})
    scene.ask("g1", "g2", application_id="g", resource=TEN, preemption=True)
    scene.wait(11)
    assert {"v1", "v2"} == set(scene.preempted)
    assert {"n1", "n2"} == {each.node_id for each in scene.state.reserved.all()}
    scene.end("v1", again=True)
    scene.wait(60)
    assert not {"g1", "g2", "v1'"} & set(scene.placements)
    scene.end("v2", again=True)

    assert {"g1", "g2"} <= set(scene.placements)
    scene.wait(300)
    assert 2 == len(scene.preempted)


@MODES
def test_work_that_a_promise_waits_for_is_spared(mode: str) -> None:
    """The younger one ends in ten minutes, and then another job is to start in its place."""
    scene = a_scene(mode, "n1")
    runs(scene, "old")
    runs(scene, "young", "600s")
    scene.asks("first", queue="root.c", may_preempt=False, priority=9)
    scene.wait(1)
    before = starts_in(scene, "root.c")
    scene.asks("p1", queue="root.a")
    scene.wait(11)

    assert ["old"] == scene.preempted
    assert starts_in(scene, "root.c") == pytest.approx(before - 11, abs=0.1)
    scene.end("old")
    assert "p1" in scene.placements
    scene.wait(int(before) - 20)
    scene.release("young", application_id="root.b")
    scene.run_until_idle()
    assert "first" in scene.placements


@MODES
def test_nothing_ends_that_would_delay_a_promise(mode: str) -> None:
    """And the ask says so; a promise to the ask itself is as it was."""
    scene = a_scene(mode, "n1", capacity=10)
    runs(scene, "v1", "600s")
    scene.asks("first", queue="root.c", may_preempt=False, priority=9)
    scene.wait(1)
    scene.asks("p1", queue="root.a")
    scene.wait(60)

    assert [] == scene.preempted
    assert "Preemption would delay a promised start" in scene.waits_with("p1")
    (prospect,) = prospects(scene.state, "root.a")
    assert prospect.why_not == "Preemption would delay a promised start"


@MODES
def test_an_ask_that_ends_before_the_promise_preempts_beside_it(mode: str) -> None:
    """What it takes is free again by then, and the minute in which its victim is expected to end is over."""
    scene = a_scene(mode, "n1", capacity=10)
    runs(scene, "v1", "600s")
    scene.asks("first", queue="root.c", may_preempt=False, priority=9)
    scene.wait(1)
    scene.asks("p1", queue="root.a", tags={"walltime": "300s"})
    scene.wait(11)
    assert ["v1"] == scene.preempted
    before = starts_in(scene, "root.c")
    assert before == pytest.approx(300, abs=5)
    scene.end("v1")

    assert "p1" in scene.placements
    assert starts_in(scene, "root.c") == pytest.approx(300, abs=5)


@MODES
def test_inside_of_a_queue_priorities_decide_here_as_well(mode: str) -> None:
    """A guarantee is not asked for."""
    queues = "- {name: a, properties: {preemption.delay: 10s, preemption.within: lower-priority}}"
    scene = a_scene(mode, "n1", queues=queues)
    scene.runs("v1", "v2", queue="root.a")
    scene.asks("p1", priority=5)
    scene.wait(11)

    assert 1 == len(scene.preempted)


@MODES
def test_the_reservation_ends_with_the_claim(mode: str) -> None:
    """The node is for all promises again, when the ask is withdrawn or the node has gone."""
    scene = a_scene(mode, "n1")
    scene.runs("v1", "v2")
    scene.asks("p1")
    scene.wait(11)
    scene.update_node("n1", NodeAction.DRAIN_NODE)
    scene.end("v2")
    scene.wait(20)
    assert not scene.state.claims.by_key
    assert not len(scene.state.reserved)
    scene.update_node("n1", NodeAction.DRAIN_TO_SCHEDULABLE)
    scene.wait(1)

    assert "p1" in scene.placements


@MODES
def test_a_full_queue_gets_back_what_the_ask_takes(mode: str) -> None:
    """The nodes have room; a job beside it in the queue keeps its promise."""
    scene = a_scene(
        mode,
        "n1",
        capacity=100,
        queues="""
- name: p
  resources: {max: {memory: 20}}
  queues:
  - {name: a, properties: {preemption.delay: 10s}, resources: {guaranteed: {memory: 10}}}
  - {name: b}
""",
    )
    scene.runs("old", queue="root.p.b")
    runs(scene, "young", "600s", queue="root.p.b")
    scene.submit("first", "root.p.b", user="joe")
    scene.ask("first", application_id="first", resource=TEN, priority=9)
    scene.asks("p1", queue="root.p.a")
    scene.wait(11)
    assert ["old"] == scene.preempted
    scene.end("old", "root.p.b")

    assert "p1" in scene.placements


@MODES
def test_a_claim_counts_as_work_that_runs(mode: str) -> None:
    """Others are promised what it leaves: at its walltime, and after the minute of its victims."""
    scene = a_scene(mode, "n1", capacity=40)
    scene.runs("v1", "v2", resource=TWENTY)
    scene.asks("p1", tags={"walltime": "300s"})
    scene.wait(11)
    assert 1 == len(scene.preempted)
    scene.asks("small", queue="root.c", may_preempt=False)
    scene.wait(1)
    assert 0 < starts_in(scene, "root.c") <= 60
    scene.end(scene.preempted[0])

    assert {"p1", "small"} <= set(scene.placements)


def jobs_at_random(rng: Random, scene: Scene) -> None:
    """Have some jobs run and wait, of which those of `root.a` may preempt."""
    for number in range(9):
        key, node = f"v{number}", rng.choice(["n1", "n2"])
        if scene.node(node).available.get("memory") >= 10:
            runs(scene, key, rng.choice(["", "100s", "400s", "2000s"]), node=node, resource=memory(10))
    for number in range(rng.randint(2, 4)):
        queue = rng.choice(["root.b", "root.c"])
        tags = {"walltime": rng.choice(["50s", "200s", "1000s"])}
        size = memory(rng.choice([10, 20, 30]))
        scene.asks(f"w{number}", queue=queue, may_preempt=False, resource=size, tags=tags)
    for number in range(rng.randint(1, 3)):
        tags = {"walltime": rng.choice(["30s", "300s", "3000s"])} if rng.random() < 0.7 else {}
        scene.asks(f"p{number}", resource=memory(rng.choice([10, 20])), tags=tags)


def promised(scene: Scene) -> dict[str, int]:
    """Return the promised starts of what waits, where each job has one."""
    kept = scene.state.ends.kept.get("root")
    by_key = {} if kept is None else kept.by_key
    return {key: promise.start_ns for key, promise in by_key.items()}


@pytest.mark.parametrize("seed", range(40))
def test_no_promise_is_later_for_a_preemption(seed: int) -> None:
    """Of random jobs; victims end within their minute, and all other work at its walltime."""
    scene = a_scene("all", "n1", "n2", capacity=40)
    jobs_at_random(Random(seed), scene)  # noqa: S311 - dice, no secret
    for _ in range(40):
        scene.run_until_idle()
        before, ended = promised(scene), len(scene.preempted)
        scene.wait(1)
        now_ns = scene.clock.now_ns()
        if len(scene.preempted) > ended:
            after = promised(scene)
            if (
                not after.keys() - before.keys()
            ):  # Who is promised a start only now may go before by its share.
                assert all(start_ns <= max(before[key], now_ns) for key, start_ns in after.items())
            for key in scene.preempted[ended:]:
                queues = ("root.b", "root.c")
                (queue,) = [
                    each
                    for each in queues
                    if each in scene.state.entries and scene.application(each).allocations.get(key)
                ]
                scene.end(key, queue)
    assert not scene.state.claims.by_key
