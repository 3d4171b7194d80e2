"""Backfilling: which jobs may start before others that wait for room."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from support.model.planned_days import PooledJob, kept_starts_by_rule, starts_by_rule, starts_in_partition


@dataclass(frozen=True)
class Day:
    """Jobs on a pool of ten (submitted, size, runs, walltime), and their starts."""

    jobs: tuple[tuple[int, int, int, int], ...]
    easy: tuple[int, ...]
    shortest: tuple[int, ...]
    kept: tuple[int, ...]


CASES = {
    "a job starts that ends before the promise": Day(
        ((0, 6, 100, 100), (1, 6, 50, 50), (2, 4, 90, 90)), (0, 100, 2), (0, 100, 2), (0, 100, 2)
    ),
    "a job starts that ends at the promise": Day(
        ((0, 6, 100, 100), (1, 6, 50, 50), (2, 4, 98, 98)), (0, 100, 2), (0, 100, 2), (0, 100, 2)
    ),
    "a job waits that ends one second after the promise": Day(
        ((0, 6, 100, 100), (1, 8, 50, 50), (2, 4, 99, 99)), (0, 100, 150), (0, 100, 150), (0, 100, 150)
    ),
    "what is left beside the promise can be used once": Day(
        ((0, 5, 100, 100), (1, 7, 50, 50), (2, 2, 500, 500), (3, 2, 500, 500), (4, 1, 500, 500)),
        (0, 100, 2, 150, 4),
        (0, 100, 2, 150, 4),
        (0, 100, 2, 150, 4),
    ),
    "one promise does not keep the third job from waiting longer": Day(
        ((0, 7, 10, 10), (1, 5, 20, 20), (2, 5, 10, 10), (3, 2, 10, 10)),
        (0, 10, 13, 3),
        (0, 10, 13, 3),
        (0, 10, 10, 20),
    ),
    "the shortest first is another order": Day(
        ((0, 7, 10, 10), (1, 1, 40, 40), (2, 10, 20, 20), (3, 6, 20, 20), (4, 4, 10, 10)),
        (0, 1, 41, 10, 30),
        (0, 1, 41, 20, 10),
        (0, 1, 41, 10, 30),
    ),
    "an early end moves the promise forward": Day(
        ((0, 10, 15, 30), (1, 4, 10, 10), (2, 7, 20, 40), (3, 5, 10, 10)),
        (0, 15, 25, 15),
        (0, 15, 25, 15),
        (0, 15, 40, 15),
    ),
    "all policies differ": Day(
        ((0, 7, 10, 10), (1, 2, 25, 50), (2, 10, 10, 10), (3, 6, 20, 20), (4, 7, 10, 10)),
        (0, 1, 30, 10, 40),
        (0, 1, 40, 20, 10),
        (0, 1, 40, 10, 30),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_jobs_start_by_one_promise(case: Day) -> None:
    """With one promise jobs start as by EASY backfilling, in the order of the queue or the shortest first."""
    jobs = [PooledJob(*job) for job in case.jobs]
    found = tuple(
        tuple(starts(jobs, 10, 1, shortest=shortest))
        for starts in (starts_by_rule, starts_in_partition)
        for shortest in (False, True)
    )
    assert (case.easy, case.shortest, case.easy, case.shortest) == found


@pytest.mark.parametrize("nodes", [1, 2, 10])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_whole_gangs_start_by_one_promise(case: Day, nodes: int) -> None:
    """A gang of asks of one starts when a single ask of that size would, on one node or many."""
    jobs = [PooledJob(*job) for job in case.jobs]
    found = tuple(
        tuple(starts_in_partition(jobs, 10, 1, shortest=shortest, gangs=True, nodes=nodes))
        for shortest in (False, True)
    )
    assert (case.easy, case.shortest) == found


def a_day(seed: int) -> list[PooledJob]:
    """Return thirty jobs, one a second or later, of which most name more time than they need."""
    chance = random.Random(seed)  # noqa: S311 - dice, no secret
    jobs, now = [], 0
    for _ in range(30):
        now += chance.randint(1, 5)
        runs = chance.randint(1, 30)
        jobs.append(PooledJob(now, chance.randint(1, 10), runs, runs + chance.choice((0, 0, 5, 20))))
    return jobs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("depth", "shortest"), [(1, False), (1, True), (3, False), (1000, False)])
def test_days_of_jobs_start_by_the_rule(seed: int, depth: int, shortest: bool) -> None:  # noqa: FBT001
    """A partition starts the jobs of a day when the rule does, however many of them have promises."""
    jobs = a_day(seed)
    expected = starts_by_rule(jobs, 10, depth, shortest=shortest)
    assert expected == starts_in_partition(jobs, 10, depth, shortest=shortest)
    assert expected == starts_in_partition(jobs, 10, depth, shortest=shortest, gangs=True)


@pytest.mark.parametrize("gangs", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_jobs_start_by_kept_promises(case: Day, gangs: bool) -> None:  # noqa: FBT001
    """With a promise for each, jobs start as by conservative backfilling, single asks and whole gangs."""
    jobs = [PooledJob(*job) for job in case.jobs]
    found = kept_starts_by_rule(jobs, 10), starts_in_partition(jobs, 10, "all", gangs=gangs)
    assert (case.kept, case.kept) == (tuple(found[0]), tuple(found[1]))


@pytest.mark.parametrize("seed", range(3))
def test_days_of_jobs_start_by_kept_promises(seed: int) -> None:
    """A partition makes, keeps and moves up the promises of a day as the rule does."""
    jobs = a_day(seed)[:20]
    expected = kept_starts_by_rule(jobs, 10)
    assert expected == starts_in_partition(jobs, 10, "all")
    assert expected == starts_in_partition(jobs, 10, "all", gangs=True)
