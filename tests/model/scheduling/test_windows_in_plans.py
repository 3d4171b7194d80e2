"""Plans treat windows as jobs that do not move: compared with a second copy of the rule."""

from __future__ import annotations

import random

import pytest
from support.model.planned_days import PooledJob, kept_starts_by_rule, starts_by_rule, starts_in_partition

_POOL = 8


def a_day(seed: int) -> tuple[list[PooledJob], list[tuple[int, int]]]:
    """Return jobs, and windows with room for each job between them."""
    chance = random.Random(seed)  # noqa: S311 - dice, no secret
    jobs, now = [], 0
    for _ in range(16):
        walltime = chance.randint(1, 30)
        jobs.append(PooledJob(now, chance.randint(1, _POOL), chance.randint(1, walltime), walltime))
        now += chance.randint(1, 12)
    windows, begin = [], chance.randint(5, 60)
    for _ in range(3):
        end = begin + chance.randint(1, 40)
        windows.append((begin, end))
        begin = end + chance.randint(1, 60)
    return jobs, windows


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("depth", "shortest"), [(1, False), (1, True), (3, False)])
def test_starts_beside_some_promises_are_those_of_the_rule(seed: int, depth: int, *, shortest: bool) -> None:
    jobs, windows = a_day(seed)
    expected = starts_by_rule(jobs, _POOL, depth, shortest=shortest, windows=windows)
    assert starts_in_partition(jobs, _POOL, depth, shortest=shortest, windows=windows) == expected


@pytest.mark.parametrize("seed", range(12))
def test_starts_beside_promises_to_all_are_those_of_the_rule(seed: int) -> None:
    jobs, windows = a_day(seed)
    expected = kept_starts_by_rule(jobs, _POOL, windows)
    assert starts_in_partition(jobs, _POOL, "all", windows=windows) == expected


@pytest.mark.parametrize("nodes", [1, 4, 8])
@pytest.mark.parametrize("seed", range(4))
def test_whole_gangs_start_as_single_asks_do(seed: int, nodes: int) -> None:
    jobs, windows = a_day(seed)
    expected = starts_by_rule(jobs, _POOL, 1, windows=windows)
    assert starts_in_partition(jobs, _POOL, 1, gangs=True, nodes=nodes, windows=windows) == expected
    kept = kept_starts_by_rule(jobs, _POOL, windows)
    assert starts_in_partition(jobs, _POOL, "all", gangs=True, nodes=nodes, windows=windows) == kept


def test_no_job_runs_during_a_window_of_the_pool() -> None:
    jobs, windows = a_day(3)
    starts = starts_in_partition(jobs, _POOL, 1, windows=windows)
    without = starts_in_partition(jobs, _POOL, 1)
    spans = [(start, start + job.walltime) for start, job in zip(starts, jobs, strict=True)]
    assert all(end <= begin or start >= over for start, end in spans for begin, over in windows)
    assert starts != without
