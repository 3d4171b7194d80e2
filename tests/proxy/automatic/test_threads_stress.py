"""The engine `threads` under load: what holds after every step holds under any interleaving."""

from __future__ import annotations

import pytest
from support.proxy.threads_stress import stress, stress_of_one_partition, switching_every

from licorne.actors.locks.guards import LOCK_ORDER
from licorne.lockcheck import session

RUNS = [
    pytest.param(range(1), 40, None, id="short"),
    pytest.param(range(1), 25, 1e-6, id="short, eager switches"),
    pytest.param(range(1, 15), 200, None, id="long", marks=pytest.mark.soak),
    pytest.param(range(1, 15), 100, 1e-6, id="long, eager switches", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("seeds", "rounds", "interval"), RUNS)
def test_invariants_hold_while_eight_threads_submit_and_kill(
    seeds: range, rounds: int, interval: float | None
) -> None:
    """Applications and nodes are killed at random; nothing is lost, counted twice or quarantined."""
    with switching_every(interval):
        for seed in seeds:
            assert stress(rounds, seed) > 2


@pytest.mark.parametrize(("seeds", "rounds", "interval"), RUNS)
def test_invariants_hold_while_predicates_run(seeds: range, rounds: int, interval: float | None) -> None:
    """The partition changes while the RM is asked, and the cycle begins anew."""
    with switching_every(interval):
        for seed in seeds:
            assert stress(rounds, seed, judged=True) > 2


@pytest.mark.parametrize(("seeds", "rounds", "interval"), RUNS)
def test_invariants_hold_while_threads_run_predicates_in_one_partition(
    seeds: range, rounds: int, interval: float | None
) -> None:
    """Several cycles are under way at once, and each passes over what is another one's."""
    with switching_every(interval):
        for seed in seeds:
            assert stress_of_one_partition(rounds, seed) > 1


@pytest.mark.parametrize("rounds", [15, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize("judged", [False, True])
def test_the_lock_checker_finds_nothing(rounds: int, judged: bool) -> None:  # noqa: FBT001 - a parameter
    """Neither an order, nor blocking under a lock, nor a cycle."""
    with session(LOCK_ORDER) as checked:
        assert stress(rounds, seed=3, judged=judged) > 2
        if judged:
            assert stress_of_one_partition(rounds, seed=3) > 1

    assert [] == list(checked.findings), checked.report_text()
    assert [] == checked.faults
