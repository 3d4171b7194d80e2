"""Whole gangs below a queue with backfilling: all of a gang is one job."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness

from licorne.model.explanation.explain import explain
from licorne.model.explanation.planned_starts import PlannedStart
from licorne.model.planning.planned_jobs import running_work
from licorne.model.values.allocation import RefusalReason

ROOT = 'properties: {backfill.reservations: "1", gang.placing: whole}'


def a_pool(*capacities: int, root: str = ROOT) -> Harness:
    """Return a partition with nodes `n1`, `n2` and so on."""
    harness = Harness(root=root)
    for number, capacity in enumerate(capacities, 1):
        harness.nodes(f"n{number}", capacity=a_resource(vcore=capacity * 1000))
    return harness


def send(
    harness: Harness,
    name: str,
    sizes: tuple[int, ...],
    walltime: str = "",
    *,
    announced: bool = False,
    asked: int | None = None,
) -> None:
    """Submit a gang with one ask for each size, with placeholders or without, and run cycles."""
    tags = {"walltime": walltime} if walltime else {}
    if announced:
        total = a_resource(vcore=sum(sizes) * 1000)
        assert harness.submit(name, placeholder_ask=total, tags=tags) is None
    else:
        assert harness.submit(name, tags={**tags, "gangSize": str(len(sizes))}) is None
    for number, size in enumerate(sizes[:asked], 1):
        ask(harness, name, number, size, announced=announced)


def ask(harness: Harness, name: str, number: int, size: int, *, announced: bool = False) -> None:
    """Ask for one member of a gang, and run cycles."""
    harness.ask(
        f"{name}-{number}",
        application_id=name,
        resource=a_resource(vcore=size * 1000),
        placeholder=announced,
        task_group_name="members" if announced else "",
    )
    harness.run_until_idle()


@dataclass(frozen=True)
class Half:
    """A gang with less room than it needs, and the one behind it that has enough."""

    announced: bool
    sizes: tuple[int, ...] = (2, 2, 2)


CASES = {"with placeholders": Half(announced=True), "without placeholders": Half(announced=False)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_part_of_a_gang_is_placed_alone(case: Half) -> None:
    """A gang waits while there is room for some of it, and is placed whole when there is room for all."""
    harness = a_pool(4)
    send(harness, "a", case.sizes, "10s", announced=case.announced)
    before = sorted(harness.placements)
    harness.nodes("n2", capacity=a_resource(vcore=2000))
    harness.run_until_idle()

    assert ([], ["a-1", "a-2", "a-3"]) == (before, sorted(harness.placements))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_is_placed_before_all_of_a_gang_is_asked_for(case: Half) -> None:
    """There is room for each ask as it comes."""
    harness = a_pool(10)
    send(harness, "a", case.sizes, "10s", announced=case.announced, asked=2)
    before = sorted(harness.placements)
    ask(harness, "a", 3, 2, announced=case.announced)

    assert ([], ["a-1", "a-2", "a-3"]) == (before, sorted(harness.placements))


def placed_behind(harness: Harness, name: str, size: int, walltime: str) -> bool:
    """Submit a single ask, and return whether it is placed."""
    harness.submit(name)
    tags = {"walltime": walltime} if walltime else {}
    harness.ask(name, application_id=name, resource=a_resource(vcore=size * 1000), tags=tags)
    harness.run_until_idle()
    return name in harness.placements


def a_promised_gang() -> Harness:
    """Return two nodes of five, three of each taken for 100 s, and a gang that needs four of each."""
    harness = a_pool(5, 5)
    send(harness, "r", (3, 3), "100s")
    send(harness, "a", (4, 4), "100s", announced=True)
    return harness


def test_a_gang_has_a_promise_that_others_may_not_delay() -> None:
    """Each of its members is expected to start with the others; what ends in time or fits beside starts."""
    harness = a_promised_gang()
    explanation = explain(harness.state, "a")
    assert explanation is not None
    starts = [waiting.planned_start for waiting in explanation.waiting]
    began_ns = harness.clock.now_ns()
    expected = [
        PlannedStart(start_ns=began_ns + 100 * 10**9, node_id=node_id, is_promised=True, passes_left=3)
        for node_id in ("n1", "n2")
    ]
    found = [
        placed_behind(harness, "late", 2, "101s"),
        placed_behind(harness, "beside", 1, ""),
        placed_behind(harness, "in-time", 2, "100s"),
    ]

    assert (expected, [False, True, True]) == (starts, found)


def test_the_explanation_of_what_waits_for_a_gang_names_its_nodes() -> None:
    """The promise is one of several nodes."""
    harness = a_promised_gang()
    placed_behind(harness, "late", 2, "101s")
    explanation = explain(harness.state, "late")
    assert explanation is not None
    (blocker,) = explanation.waiting[0].blockers

    expected = ("a", "it would end in 1m41s, 1s after a-1 is to get n1 and 1 more in 1m40s")
    assert expected == (blocker.subject, blocker.detail)


def test_a_gang_that_would_delay_a_promise_waits_and_is_explained() -> None:
    """All of its members are blocked by the promise, and start when their walltime is short enough."""
    harness = a_pool(4)
    send(harness, "r", (2,), "100s")
    assert not placed_behind(harness, "big", 4, "10s")
    send(harness, "long", (1, 1), "101s")
    explanation = explain(harness.state, "long")
    assert explanation is not None
    send(harness, "short", (1, 1), "100s")
    reasons = [[blocker.reason for blocker in waiting.blockers] for waiting in explanation.waiting]

    assert ["r-1", "short-1", "short-2"] == sorted(harness.placements)
    assert [[RefusalReason.WOULD_DELAY]] * 2 == reasons


def test_work_that_has_replaced_a_placeholder_ends_in_the_plan_when_it_ends() -> None:
    """The placeholder does not stay in the plan for ever: what waits behind is planned without it."""
    harness = a_pool(4)
    send(harness, "a", (2, 2), "10s", announced=True)
    for number in (1, 2):
        harness.ask(
            f"a-real-{number}",
            application_id="a",
            resource=a_resource(vcore=2000),
            task_group_name="members",
        )
    harness.run_until_idle()  # A walk while the swaps are under way: it needs to know what runs.
    send(harness, "b", (2, 2), "10s")
    harness.settle()
    send(harness, "c", (2, 2), "10s")
    harness.validate()
    running = {work.allocation_key for work in running_work(harness.state)}

    assert {"a-real-1", "a-real-2"} == running
