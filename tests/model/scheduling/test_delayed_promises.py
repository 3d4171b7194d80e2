"""A start beside promises delays none on any node, and what refuses nodes or a gang is reported."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from support.model.builders import FakePredicates, a_resource
from support.model.harness import Harness
from support.model.planned_days import is_placed, planned_start_of, send

from licorne.model.values.allocation import RefusalReason

SECOND_NS = 1_000_000_000
PREDICATES = {"without predicates": False, "with predicates": True}


def a_pool(
    promises: str,
    *capacities: int,
    queues: str = "- name: leaf",
    predicates: FakePredicates | None = None,
) -> Harness:
    """Return a partition with nodes `n1`, `n2` and so on, tried in this order while they are empty."""
    root = f'properties: {{backfill.reservations: "{promises}"}}' if promises else ""
    harness = Harness(queues, root=root, predicates=predicates)
    for number, capacity in enumerate(capacities, 1):
        harness.nodes(f"n{number}", capacity=a_resource(vcore=capacity * 1000))
    return harness


@pytest.mark.parametrize("promises", ["1", "3", "all"])
@pytest.mark.parametrize("judged", PREDICATES.values(), ids=PREDICATES)
def test_a_job_starts_on_a_node_where_it_delays_no_promise(judged: bool, promises: str) -> None:  # noqa: FBT001
    """The first node with room is that of a promise, and it would run there for too long."""
    harness = a_pool(promises, 10, 10, predicates=FakePredicates() if judged else None)
    send(harness, "r", "root.leaf", "eve", size=2, walltime="100s")
    send(harness, "other", "root.leaf", "eve", size=8, walltime="300s")
    send(harness, "big", "root.leaf", "eve", size=10, walltime="10s")
    tried = [node.node_id for node in harness.state.nodes.fitting(a_resource(vcore=2000))]
    send(harness, "small", "root.leaf", "eve", size=2, walltime="200s")

    assert (["n1", "n2"], False) == (tried, is_placed(harness, "big"))
    assert {"r": "n1", "other": "n2", "small": "n2"} == harness.placements


@dataclass(frozen=True)
class Moment:
    """A job of a day: when it comes, what it takes, and how long it runs, which is its walltime."""

    comes: int
    size: int
    runs: int


def a_day(seed: int) -> list[Moment]:
    """Return some jobs."""
    chance = random.Random(seed)  # noqa: S311 - dice, no secret
    comes = 0
    jobs = []
    for _ in range(14):
        comes += chance.randint(0, 3)
        jobs.append(Moment(comes, chance.randint(1, 10), chance.randint(1, 30)))
    return jobs


@pytest.mark.parametrize("promises", ["1", "3", "all"])
@pytest.mark.parametrize("judged", PREDICATES.values(), ids=PREDICATES)
@pytest.mark.parametrize("seed", [7, 8])
def test_no_job_starts_later_than_it_was_promised(promises: str, judged: bool, seed: int) -> None:  # noqa: FBT001
    """On three nodes, where all work ends exactly when it is expected to."""
    harness = a_pool(promises, 10, 10, 10, predicates=FakePredicates() if judged else None)
    began_ns = harness.clock.now_ns()
    jobs = {f"j{number:02}": job for number, job in enumerate(a_day(seed))}
    latest: dict[str, int] = {}
    starts: dict[str, int] = {}
    now = 0
    while len(starts) < len(jobs):
        for name, start in starts.items():
            if start + jobs[name].runs == now:
                harness.release(name, application_id=name)
        for name, job in jobs.items():
            if job.comes == now:
                harness.submit(name)
                size, tags = a_resource(vcore=job.size * 1000), {"walltime": f"{job.runs}s"}
                harness.ask(name, application_id=name, resource=size, tags=tags)
        harness.run_until_idle()
        for name, job in jobs.items():
            if job.comes > now or name in starts:
                continue
            if is_placed(harness, name):
                starts[name] = now
                assert now <= latest.get(name, now), f"{name} was promised {latest[name]} s"
                continue
            planned = None if name in latest else planned_start_of(harness, name)
            if planned is not None and planned.is_promised and planned.start_ns is not None:
                latest[name] = (planned.start_ns - began_ns) // SECOND_NS
        harness.advance(1)
        now += 1


@pytest.mark.parametrize("promises", ["", "1", "all"], ids=["no promises", "one", "for each"])
@pytest.mark.parametrize("is_behind", [False, True], ids=["the first job", "a job behind another one"])
def test_refusals_before_an_allowed_node_are_reported(is_behind: bool, promises: str) -> None:  # noqa: FBT001
    """The ask is placed on the next node, and has what the RM said of the one before."""
    refused = {("small", "n1"): "n1 has a taint"}
    harness = a_pool(promises, 4, 4, predicates=FakePredicates(refused=refused))
    if is_behind:
        send(harness, "big", "root.leaf", "eve", size=5, walltime="10s")
    send(harness, "small", "root.leaf", "eve", size=2, walltime="5s")

    assert {"small": "n2"} == harness.placements
    assert ["n1 has a taint"] == list(harness.ask_record("small", "small").log or ())


@dataclass(frozen=True)
class RefusedGang:
    """Why a gang of two is refused, whether room was looked for, and the cores of each member."""

    reason: RefusalReason
    attempted: bool
    size: int
    queues: str = "- name: leaf"
    nodes: tuple[int, ...] = (10,)
    running: int = 0
    """How many cores of the queue and the user are in use: a gang that is too large alone is rejected."""


LIMITED = "- name: leaf\n  limits: [{limit: all, users: [eve], maxresources: {vcore: 5}}]"
REFUSED_GANGS = {
    "no room": RefusedGang(RefusalReason.GANG_ROOM, True, 6, nodes=(10, 4)),
    "a delay": RefusedGang(RefusalReason.WOULD_DELAY, True, 2),
    "a maximum": RefusedGang(
        RefusalReason.QUEUE_QUOTA, True, 2, "- name: leaf\n  resources: {max: {vcore: 5}}", running=2
    ),
    "a limit of the user": RefusedGang(RefusalReason.USER_QUOTA, False, 2, LIMITED, running=2),
}


@pytest.mark.parametrize("case", REFUSED_GANGS.values(), ids=REFUSED_GANGS)
def test_the_asks_of_a_refused_gang_count_as_attempted(case: RefusedGang) -> None:
    """All members, if room was looked for; and the application has the refusal."""
    harness = a_pool("1", *case.nodes, queues=case.queues)
    if case.reason is RefusalReason.WOULD_DELAY:
        send(harness, "r", "root.leaf", "ann", size=2, walltime="100s")
        send(harness, "big", "root.leaf", "ann", size=10, walltime="100s")
    if case.running:
        send(harness, "runs", "root.leaf", "eve", size=case.running, walltime="1000s")
    harness.submit("gang", user="eve", tags={"gangSize": "2"})
    size = a_resource(vcore=case.size * 1000)
    harness.ask("g1", "g2", application_id="gang", resource=size, tags={"walltime": "200s"})
    harness.run_until_idle()
    application = harness.application("gang")
    shown = [(each.ask.allocation_key, each.attempted) for each in application.shown().asks]

    assert [case.reason] == [refusal.reason for refusal in application.asks.refusals()]
    assert [("g1", case.attempted), ("g2", case.attempted)] == shown
