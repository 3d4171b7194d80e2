"""Preemption inside of a leaf: an ask ends what has a lower priority in its own queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest
from support.model.builders import SECOND_NS, TEN, memory
from support.model.explained import ask_of
from support.model.preemption_scenes import Running, Scene

from licorne.model.explanation.dry_run import prospects
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.resources.resource import Resource
from licorne.model.state.preemption_log import PreemptionCause
from licorne.model.values.allocation import RefusalReason

WITHIN: Final = "preemption.delay: 10s, preemption.within: lower-priority"
LEAF: Final = f"""
    - name: a
      properties: {{{WITHIN}}}
    - name: b
"""


def with_resources(text: str) -> str:
    """Return the queues with resources of root.a."""
    return LEAF.replace(f"{{{WITHIN}}}", f"{{{WITHIN}}}\n      resources: {{{text}}}")


def in_a(keys: str, priority: int = 0, node: str = "n1", *, willing: bool = True, size: int = 10) -> Running:
    """Return a row of what runs in root.a."""
    return Running(keys, "root.a", node, memory(size), priority, willing)


@dataclass(frozen=True)
class Case:
    """What runs in root.a when an ask of priority 5 comes there, and what ends for it."""

    running: Sequence[Running]
    preempted: Sequence[str] = ()
    asked: Resource = TEN
    priority: int = 5
    queues: str = LEAF
    nodes: Mapping[str, int] = field(default_factory=lambda: {"n1": 30})
    partition: str = ""
    may_preempt: bool = True


CASES: Final = {
    "one of lower priority ends, the youngest": Case([in_a("v1 v2"), in_a("w", 5)], ["v2"]),
    "nothing of an equal priority ends": Case([in_a("v1 v2 w", 5)]),
    "an ask of the lowest priority ends nothing": Case([in_a("v1 v2"), in_a("w", 5)], priority=0),
    "the lowest priority goes before the youngest": Case([in_a("v1 v2"), in_a("w", 4)], ["v2"]),
    "the willing go before the lowest priority": Case(
        [in_a("v1 v2", willing=False), in_a("w", 4)],
        ["w"],
    ),
    "the node is chosen where the lowest priorities end": Case(
        [in_a("w", 4, "n1"), in_a("v", 0, "n2")], ["v"], nodes={"n1": 10, "n2": 10}
    ),
    "several end if one is not enough, and none that is not needed": Case(
        [in_a("v1 v2 v3")], ["v3", "v2"], memory(20)
    ),
    "what the node has left is used as well": Case([in_a("v1"), in_a("w", 5)], ["v1"], memory(20)),
    "nothing of other queues ends": Case([Running("x y z")]),
    "without the property nothing ends": Case(
        [in_a("v1 v2 v3")], queues=LEAF.replace("lower-priority", "never")
    ),
    "where the maximum of the leaf is reached its room is given back, on any node": Case(
        [in_a("v1 v2 v3")],
        ["v3"],
        queues=with_resources("max: {memory: 30}"),
        nodes={"n1": 30, "n2": 30},
    ),
    "a leaf whose preemption is disabled has no victims for itself either": Case(
        [in_a("v1 v2 v3")],
        queues=LEAF.replace("preemption.within", "preemption.policy: disabled, preemption.within"),
    ),
    "inside of a queue that is a fence of priorities they count all the same": Case(
        [in_a("v1 v2"), in_a("w", 5)],
        ["v2"],
        queues=LEAF.replace("preemption.within", "priority.policy: fence, preemption.within"),
    ),
    "an ask that may not preempt others ends nothing": Case([in_a("v1 v2 v3")], may_preempt=False),
    "a switch of the partition turns it off": Case(
        [in_a("v1 v2 v3")], partition="preemption: {enabled: false}"
    ),
    "what its queue is entitled to comes from others first": Case(
        [in_a("v1"), Running("x y")],
        ["y"],
        queues=LEAF.replace(
            f"{{{WITHIN}}}", f"{{{WITHIN}}}\n      resources: {{guaranteed: {{memory: 20}}}}"
        ),
    ),
    "beyond the guarantee it comes from its own queue": Case(
        [in_a("v1 v2"), Running("x")],
        ["v2"],
        queues=LEAF.replace(
            f"{{{WITHIN}}}", f"{{{WITHIN}}}\n      resources: {{guaranteed: {{memory: 20}}}}"
        ),
    ),
}


def a_scene(case: Case) -> Scene:
    """Have what a case says run, and its ask wait."""
    scene = Scene(case.queues, partition=case.partition)
    for name, size in case.nodes.items():
        scene.nodes(name, capacity=memory(size))
    scene.start(case.running)
    scene.asks("p", resource=case.asked, priority=case.priority, may_preempt=case.may_preempt)
    return scene


def runs(scene: Scene, key: str) -> bool:
    """Return whether something of root.a runs."""
    return scene.application("root.a").allocations.get(key) is not None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_ask_ends_what_has_a_lower_priority_in_its_leaf(case: Case) -> None:
    """Strictly lower, and no more than is needed; then it runs."""
    scene = a_scene(case)
    scene.wait(11)
    assert sorted(case.preempted) == sorted(scene.preempted)
    for _ in range(3):
        scene.settle()
        scene.wait(16)

    assert sorted(case.preempted) == sorted(scene.preempted)
    assert bool(case.preempted) == runs(scene, "p")


def test_explanations_name_priorities_and_the_line() -> None:
    """Before it is decided, and after."""
    scene = a_scene(Case([in_a("v1 v2"), in_a("w", 4)]))
    (prospect,) = prospects(scene.state, "root.a")
    assert prospect.record is not None
    assert ["v2"] == [victim.allocation_key for victim in prospect.record.victims]

    scene.wait(11)
    record = scene.record
    (victim,) = record.victims
    assert (PreemptionCause.PRIORITY, "root.a", prospect.record.reason) == (
        record.cause,
        record.queue_path,
        record.reason,
    )
    assert (
        "p of root.a asks for memory 10 in root.a: it has priority 5, "
        "preemption.within of root.a is lower-priority (" in record.reason
    )
    assert (
        "priority 0, it allows preemption; the willing go first, then the lowest priority, then the "
        "youngest, and n1 would not fit the ask without it"
    ) == victim.reason


def test_without_lower_priorities_the_refusal_says_so() -> None:
    """It is noted on the ask, and said in a prospect."""
    scene = a_scene(Case([in_a("v1 v2 v3", 5)]))
    scene.wait(11)
    (prospect,) = prospects(scene.state, "root.a")

    assert (NoPreemption.NO_LOWER.text, None) == (prospect.why_not, prospect.record)
    assert NoPreemption.NO_LOWER.text in scene.waits_with("p")


def test_a_minimum_run_time_of_the_leaf_counts_and_the_ask_waits_for_its_end() -> None:
    """Attempts are made at first, and when the oldest has run long enough; none between."""
    queues = LEAF.replace("preemption.within", "preemption.min-runtime: 10m, preemption.within")
    scene = a_scene(Case([in_a("v1 v2 v3")], queues=queues))
    scene.wait(11)
    blocker = ask_of(scene, "p", "root.a").blockers[-1]
    assert (RefusalReason.PROTECTED, "root.a") == (blocker.reason, blocker.subject)
    bound_ns = scene.victim("v1", "root.a").allocation.bound_at_ns
    assert bound_ns + 600 * SECOND_NS == blocker.until_ns

    scene.clock.advance_to(bound_ns + 600 * SECOND_NS - 1)
    scene.run_until_idle()
    assert [] == scene.preempted
    scene.clock.advance_to(bound_ns + 600 * SECOND_NS)
    scene.run_until_idle()
    assert ["v1"] == scene.preempted


def test_it_counts_in_the_budget_of_the_leaf() -> None:
    """One in ten minutes: the second ask waits for the end of the window."""
    scene = a_scene(
        Case(
            [in_a("v1 v2 v3")],
            queues=LEAF.replace("preemption.within", "preemption.victims-max: 1/10m, preemption.within"),
        )
    )
    scene.asks("q", priority=5)
    for _ in range(20):
        scene.wait(16)
        scene.settle()
    assert ["v3"] == scene.preempted
    for _ in range(20):
        scene.wait(16)
        scene.settle()
    assert ["v3", "v2"] == scene.preempted


def test_what_loses_least_goes_first_among_equal_priorities() -> None:
    """The small one is older, and loses less."""
    case = Case(
        [in_a("old", size=10), in_a("large", size=20)], ["old"], partition="preemption: {victims: least-work}"
    )
    scene = a_scene(case)
    scene.wait(11)

    assert ["old"] == scene.preempted


@pytest.mark.parametrize(("priority", "yields"), [(4, True), (5, False)])
def test_a_reservation_for_a_lower_priority_of_the_leaf_yields(priority: int, *, yields: bool) -> None:
    """One of an equal priority keeps its node."""
    nodes = {"n1": 15, "n2": 15}
    running = [in_a("v1", 3), in_a("v2", 4, "n2")]
    scene = a_scene(Case(running, nodes=nodes, priority=priority, may_preempt=False))
    scene.wait(3)
    assert 1 == scene.state.reservations
    scene.asks("q", priority=5)
    scene.wait(11)
    scene.settle()

    assert (["v1" if yields else "v2"], True) == (scene.preempted, runs(scene, "q"))


def test_victims_that_ask_again_do_not_preempt_back() -> None:
    """Their priority is lower: each preemption is final."""
    scene = a_scene(Case([in_a("v1 v2"), in_a("w", 4)]))
    scene.wait(11)
    for key in (*scene.preempted,):
        scene.end(key, "root.a", again=True)
    for _ in range(10):
        scene.wait(16)
        scene.settle()

    assert ["v2"] == scene.preempted
    assert runs(scene, "p")
