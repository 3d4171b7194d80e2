"""Victims by work lost: who loses least since its start or its last checkpoint goes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import (
    SECOND_NS,
    START_NS,
    a_resource,
    an_allocation,
    an_ask,
    an_ask_submission,
    memory,
)
from support.model.preemption_scenes import HUNDRED, Scene

from licorne.model.preemption.losses import WorkLost, work_text
from licorne.model.preemption.victims import Need, Victim, cost_of, needed_only, queue_order
from licorne.model.resources.resource import EMPTY, add, fits

LEAST_WORK: Final = "preemption: {victims: least-work, quotapreemptionenabled: true}"
QUEUES: Final = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 50}}
    - name: b
"""
START_SECONDS: Final = START_NS // SECOND_NS


@dataclass(frozen=True)
class Worker:
    """What runs in root.b: its size, its age in seconds, and how long ago its work was saved."""

    size: int
    age: int
    saved: int | None = None
    node: str = "n1"


@dataclass(frozen=True)
class Case:
    """Who runs when an ask comes, how much that asks for, and who ends under each order."""

    workers: Mapping[str, Worker]
    asked: int
    youngest: list[str]
    least_work: list[str]
    nodes: Mapping[str, int] = field(default_factory=lambda: {"n1": 30})


CASES: Final = {
    "what was saved a minute ago loses less than what has run for ten": Case(
        {"v1": Worker(10, 3600), "v2": Worker(10, 600), "v3": Worker(10, 7200, saved=60)}, 10, ["v2"], ["v3"]
    ),
    "a small one that is older loses less than a large one": Case(
        {"v4": Worker(20, 100), "v5": Worker(10, 150)}, 10, ["v4"], ["v5"]
    ),
    "none of several ends that is not needed": Case(
        {"v4": Worker(20, 100), "v5": Worker(10, 150)}, 20, ["v4"], ["v4"]
    ),
    "the node is chosen where the least is lost, though more ends there": Case(
        {"w": Worker(20, 1000), "s1": Worker(10, 100, node="n2"), "s2": Worker(10, 120, node="n2")},
        20,
        ["w"],
        ["s1", "s2"],
        nodes={"n1": 20, "n2": 20},
    ),
    "a checkpoint of the future loses nothing": Case(
        {"v1": Worker(10, 50), "v2": Worker(10, 900, saved=-100), "v3": Worker(10, 40)}, 10, ["v3"], ["v2"]
    ),
}


def a_scene(case: Case, partition: str) -> Scene:
    """Have the workers of a case run, the oldest first, and what they saved reported."""
    scene = Scene(QUEUES, partition=partition)
    for name, size in case.nodes.items():
        scene.nodes(name, capacity=memory(size))
    oldest = max(worker.age for worker in case.workers.values())
    passed = 0
    for key, worker in sorted(case.workers.items(), key=lambda each: -each[1].age):
        scene.advance(seconds=oldest - worker.age - passed)
        passed = oldest - worker.age
        scene.runs(key, node=worker.node, resource=memory(worker.size))
    scene.advance(seconds=oldest - passed)
    for key, worker in case.workers.items():
        if worker.saved is not None:
            report(scene, key, worker.size, scene.clock.now_ns() // SECOND_NS - worker.saved)
    return scene


def report(scene: Scene, key: str, size: int, saved_seconds: int | str) -> None:
    """Report when the work of an allocation was saved, as an update of the allocation."""
    tags = {"checkpointTime": str(saved_seconds)}
    scene.partition.update_allocations(
        [an_ask_submission(key, "root.b", resource=memory(size), tags=tags, willing=True)], []
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_queue_gets_its_guarantee_with_the_least_work_lost(case: Case) -> None:
    """Only where the partition says so; otherwise the youngest go first, and the fewest, as ever."""
    ended = []
    for partition in ("", LEAST_WORK):
        scene = a_scene(case, partition)
        scene.asks("p", resource=memory(case.asked))
        scene.wait(11)
        ended.append(sorted(scene.preempted))

    assert [case.youngest, case.least_work] == ended


def test_an_ask_that_needs_its_node_ends_what_loses_least_too() -> None:
    """Among equal priorities."""
    scene = a_scene(CASES["what was saved a minute ago loses less than what has run for ten"], LEAST_WORK)
    scene.asks("d", required_node="n1", may_preempt=False)
    scene.wait(1)

    assert ["v3"] == scene.preempted
    assert "it loses 1m1s of work since its checkpoint" in scene.record.victims[0].reason


def test_a_maximum_is_enforced_with_the_least_work_lost_too() -> None:
    """Among those whose types and priorities are equal."""
    queues = """
    - name: b
      properties: {quota.preemption.delay: 1s}
      resources: {max: {memory: 30}}
"""
    scene = Scene(queues, partition=LEAST_WORK)
    scene.nodes("n1", capacity=HUNDRED)
    for key in ("v1", "v2", "v3"):
        scene.runs(key)
        scene.advance(seconds=100)
    report(scene, "v2", 10, scene.clock.now_ns() // SECOND_NS - 5)
    scene.reload(queues.replace("30", "20"), partition=LEAST_WORK)
    scene.wait(2)
    scene.partition.preempt_over_quota()

    assert ["v2"] == scene.preempted
    assert "of work since its checkpoint; next in the order of root.b" in scene.record.victims[0].reason


REPORTS: Final[dict[str, tuple[list[int | str], int | None]]] = {
    "the latest counts": ([50, 70], 70),
    "whatever comes later": ([70, 50], 70),
    "a text that is no time says nothing": (["soon", "1.5", "-3", ""], None),
}


@pytest.mark.parametrize("case", REPORTS.values(), ids=REPORTS)
def test_checkpoints_are_what_the_manager_reports(case: tuple[list[int | str], int | None]) -> None:
    """By a tag, in seconds since 1970; the size and the age of the allocation stay."""
    reported, expected = case
    scene = Scene(QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("v1")
    for text in reported:
        report(scene, "v1", 10, text)
    checkpoint_ns = scene.application("root.b").allocations.checkpoint_ns("v1")

    assert (expected and expected * SECOND_NS) == checkpoint_ns
    assert memory(10) == scene.queue("root.b").allocated


def test_what_exists_already_has_the_checkpoint_that_it_comes_with() -> None:
    """So a recovery keeps what the manager knows."""
    scene = Scene(QUEUES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("v1", tags={"checkpointTime": str(START_SECONDS - 7)})

    assert (START_SECONDS - 7) * SECOND_NS == scene.application("root.b").allocations.checkpoint_ns("v1")


def test_an_explanation_says_how_much_is_lost() -> None:
    """And that this decided."""
    scene = a_scene(CASES["a small one that is older loses less than a large one"], LEAST_WORK)
    scene.asks("p")
    scene.wait(11)
    (victim,) = scene.record.victims

    assert "the willing go first, then what loses the least (2m41s of work since its start)" in victim.reason


# ------------------------------------------------------------------------------------------ the number


def _scene() -> Scene:
    scene = Scene(QUEUES)
    scene.submit("root.b", "root.b")
    return scene


def test_the_largest_share_of_the_cluster_counts_in_whole_parts() -> None:
    """A type that no node has counts nothing; a small share of a large cluster is more than none."""
    cluster = a_resource(memory=1_000_000, vcore=500)
    entry = _scene().entry("root.b")
    sizes = [a_resource(memory=1), a_resource(memory=1, vcore=5), a_resource(gpu=9)]
    victims = [Victim(an_allocation("v", "n1", ask=an_ask("v", resource=size)), entry) for size in sizes]
    lost = [WorkLost(cluster, START_NS + 3).measured(victim).lost for victim in victims]

    assert [3 * 1_000, 3 * 10_000_000, 0] == lost


def test_nothing_is_said_of_work_where_it_does_not_decide() -> None:
    """Explanations are what they were."""
    allocation = an_allocation("v", "n1", bound_at_ns=START_NS)

    assert not work_text(Victim(allocation, _scene().entry("root.b")), START_NS + SECOND_NS)


WORKERS: Final = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 1000)), min_size=1, max_size=8)


@settings(max_examples=60)
@given(workers=WORKERS, asked=st.integers(1, 40))
def test_the_victims_are_enough_and_none_could_be_spared_and_their_cost_is_bounded(
    workers: list[tuple[int, int]], asked: int
) -> None:
    """Against all subsets: the greedy choice costs at most so many times the best as it has victims."""
    entry = _scene().entry("root.b")
    victims = [
        WorkLost(HUNDRED, START_NS + lost * SECOND_NS).measured(
            Victim(an_allocation(f"v{number}", "n1", ask=an_ask(f"v{number}", resource=memory(size))), entry)
        )
        for number, (size, lost) in enumerate(workers)
    ]
    wanted = memory(asked)
    chosen: list[Victim] = []
    room = EMPTY
    for victim in sorted(victims, key=queue_order):
        chosen.append(victim)
        room = add(room, victim.resource)
        if fits(room, wanted):
            break
    else:
        return
    kept = needed_only(chosen, Need(EMPTY, wanted))
    enough = [
        cost_of(some)
        for count in range(1, len(victims) + 1)
        for some in combinations(victims, count)
        if sum(each.resource["memory"] for each in some) >= asked
    ]

    assert sum(each.resource["memory"] for each in kept) >= asked
    for victim in kept:
        assert sum(each.resource["memory"] for each in kept if each is not victim) < asked
    assert min(enough) <= cost_of(kept) <= len(kept) * min(enough)
