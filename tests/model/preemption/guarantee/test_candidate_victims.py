"""Who may become a victim: the fence, and the pool inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from support.model.builders import TEN, a_resource, an_ask
from support.model.preemption_scenes import HUNDRED, Running, Scene

from licorne.model.preemption.guarantee.candidate_victims import collect_victims, fence_root
from licorne.model.preemption.guarantee.ledger import QueueFactsOf
from licorne.model.values.allocation import Ask

QUEUES = """
    - name: p
      properties: {preemption.policy: fence, priority.offset: "-5"}
      queues:
      - name: a
        properties: {priority.offset: "100"}
        resources: {guaranteed: {memory: 50}}
      - name: b
      - name: low
        properties: {priority.offset: "-7"}
    - name: q
      queues:
      - name: c
        resources: {guaranteed: {memory: 10}}
      - name: disabled
        properties: {preemption.policy: disabled}
      - name: fenced
        properties: {priority.policy: fence, priority.offset: "3"}
    - name: e
      resources: {guaranteed: {memory: 50}}
      properties: {preemption.delay: 10s}
"""


FULL_PARENT = """
    - name: p
      resources: {max: {memory: 20}}
      queues: [{name: a, resources: {guaranteed: {memory: 20}}}, {name: b}]
    - name: o
"""


def a_scene(running: Sequence[Running] = (), queues: str = QUEUES) -> Scene:
    scene = Scene(queues)
    scene.nodes("n1", capacity=a_resource(memory=1000, vcore=1000))
    scene.start(running)
    return scene


def found(scene: Scene, queue: str, ask: Ask) -> list[str]:
    leaf = scene.queue(queue)
    return [victim.key for victim in collect_victims(leaf, ask, QueueFactsOf(leaf), {}).victims]


def root_of(scene: Scene, queue: str, ask: Ask | None = None) -> str:
    return fence_root(scene.queue(queue), ask or an_ask())[0].path


@dataclass(frozen=True)
class Pool:
    """What runs, and who may be preempted for an ask of a leaf, in order."""

    running: Sequence[Running]
    victims: Sequence[str]
    leaf: str = "root.e"
    priority: int = 0
    queues: str = QUEUES


POOLS = {
    "a fence keeps an ask inside": Pool(
        [Running("inside", "root.p.b"), Running("outside", "root.q.c", resource=HUNDRED)],
        ["inside"],
        "root.p.a",
    ),
    "a fence does not protect what is inside": Pool([Running("inside", "root.p.b")], ["inside"]),
    # Its own maximum bars the ask: what is outside would not help.
    "a queue without room keeps an ask inside": Pool(
        [Running("b1 b2", "root.p.b"), Running("o1", "root.o")], ["b2", "b1"], "root.p.a", queues=FULL_PARENT
    ),
    "a full leaf has no candidates": Pool(
        [Running("a1", "root.a"), Running("b1", "root.b")],
        [],
        "root.a",
        queues="- {name: a, resources: {max: {memory: 10}}}\n- name: b",
    ),
    "the leaf of the ask, and with it its application, never gives": Pool(
        [Running("own", "root.e", resource=HUNDRED)], []
    ),
    "a leaf within its guarantee gives nothing": Pool([Running("c1", "root.q.c")], []),
    "a leaf above its guarantee gives any of its allocations": Pool(
        [Running("c1 c2", "root.q.c")], ["c2", "c1"]
    ),
    "a leaf with preemption disabled gives nothing": Pool([Running("d1", "root.q.disabled")], []),
    "an equal priority gives, a higher one does not": Pool(
        [Running("equal", "root.p.b", priority=5), Running("higher", "root.p.b", priority=6)], ["equal"]
    ),
    # What counts as twelve in root.p.low counts as five in root.p, and as nothing at the root.
    "offsets translate priorities on the way down": Pool(
        [Running("equal", "root.p.low", priority=12), Running("higher", "root.p.low", priority=13)], ["equal"]
    ),
    "all behind a priority fence gives where the fence's priority is no higher": Pool(
        [Running("urgent", "root.q.fenced", priority=99)], ["urgent"], priority=3
    ),
    "nothing behind a priority fence gives where the fence's priority is higher": Pool(
        [Running("urgent", "root.q.fenced", priority=99)], [], priority=2
    ),
    "the pool is in order over all queues: the willing first, and of them the youngest": Pool(
        [
            Running("old", "root.p.b"),
            Running("opted-out", "root.p.b", willing=False),
            Running("c1 young", "root.q.c", resource=a_resource(memory=20)),
        ],
        ["young", "c1", "old", "opted-out"],
    ),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_who_may_be_preempted(pool: Pool) -> None:
    """What fences, guarantees, policies and priorities leave."""
    scene = a_scene(pool.running, pool.queues)

    assert pool.victims == found(scene, pool.leaf, an_ask(priority=pool.priority))


def test_the_bound_is_the_innermost_fence_or_full_queue() -> None:
    """Without either it is the root: every queue of the partition may have to give."""
    full = a_scene([Running("b1 b2", "root.p.b")], FULL_PARENT)

    assert ["root", "root.p"] == [root_of(a_scene(), path) for path in ("root.e", "root.p.a")]
    assert root_of(full, "root.p.a") == "root.p"
    assert root_of(full, "root.p.a", an_ask(resource=a_resource(vcore=1))) == "root"


def test_offsets_translate_priorities_on_the_way_up() -> None:
    """What an ask of root.p.a counts as among the children of root.p: a hundred more."""
    root, priorities = fence_root(a_scene().queue("root.p.a"), an_ask(priority=1))

    assert root.path == "root.p"
    assert {"root.p.a": 1, "root.p": 101} == priorities


def test_the_offset_of_a_queue_does_not_count_inside_it() -> None:
    """That of root.p is -5: all of its children have it, whether they are asked or ask."""
    running = [Running("equal", "root.p.b", priority=100), Running("higher", "root.p.b", priority=101)]

    assert ["equal"] == found(a_scene(running), "root.p.a", an_ask(priority=0))


def test_a_priority_fence_on_the_way_up_hides_the_priority() -> None:
    """Outside, everything behind the fence has the priority of the fence."""
    _, priorities = fence_root(a_scene().queue("root.q.fenced"), an_ask(priority=50))

    assert {"root.q.fenced": 50, "root.q": 3, "root": 3} == priorities


def test_what_shares_no_type_with_the_ask_is_no_victim() -> None:
    """Nor what is bound to a node, or on its way out."""
    scene = a_scene(
        [
            Running("vcore", "root.p.b", resource=a_resource(vcore=1)),
            Running("bound", "root.p.b", required_node="n1"),
            Running("going v1", "root.p.b"),
        ]
    )
    scene.application("root.p.b").allocations.mark_released("going")

    assert ["v1"] == found(scene, "root.e", an_ask(resource=TEN))
