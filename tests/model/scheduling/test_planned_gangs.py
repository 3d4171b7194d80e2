"""Whole gangs below a queue with backfilling: all of a gang is one job."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.harness import Harness, a_resource

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
