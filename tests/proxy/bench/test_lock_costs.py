"""What checking locks costs."""

from __future__ import annotations

import json
from itertools import count

import typer
from typer.testing import CliRunner

from licorne.proxy.bench.command import bench
from licorne.proxy.bench.lock_costs import LockCost, measure_lock_costs
from licorne.proxy.bench.report import lock_costs_json, lock_costs_table


def test_every_kind_is_held_against_its_base() -> None:
    """With a clock on which each round takes one second all ratios are one."""
    ticks = count()

    costs = measure_lock_costs(lambda: float(next(ticks)), times=2, rounds=3)

    assert {1.0} == {cost.ratio for cost in costs}
    assert {500_000_000.0} == {cost.nanoseconds for cost in costs}
    assert 3 == sum(cost.ratio_max is None for cost in costs)
    assert all(cost.base in {base.subject for base in costs if base.ratio_max is None} for cost in costs)


def test_the_fastest_round_counts() -> None:
    """A round that something else has disturbed changes nothing."""
    seconds = iter([9.0] * 10 + [2.0] * 10 + [5.0] * 10)
    now = 0.0
    starts = True

    def clock() -> float:
        nonlocal now, starts
        now += 0.0 if starts else next(seconds)
        starts = not starts
        return now

    costs = measure_lock_costs(clock, times=1, rounds=3)

    assert {2e9} == {cost.nanoseconds for cost in costs}


def test_a_limit_is_met_up_to_itself() -> None:
    """A base has none."""
    costs = [
        LockCost("lock", "base", 1.0, ratio, limit) for ratio, limit in ((2.5, 2.5), (2.6, 2.5), (9, None))
    ]

    assert [True, False, True] == [cost.is_met for cost in costs]


def test_the_table_and_the_document_say_what_is_wanted() -> None:
    """One row, and one entry, for each kind."""
    costs = (LockCost("plain", "plain", 100.0, 1.0, None), LockCost("checked", "plain", 300.0, 3.0, 2.5))

    document = json.loads(lock_costs_json(costs))

    assert [("plain", True), ("checked", False)] == [
        (entry["subject"], entry["is_met"]) for entry in document["lock_costs"]
    ]
    assert ["", "≤ 2.5"] == list(lock_costs_table(costs).columns[3].cells)


def test_locks_and_workloads_are_not_measured_together() -> None:
    """They have nothing in common."""
    application = typer.Typer()
    application.command()(bench)

    result = CliRunner().invoke(application, ["--locks", "a"])

    assert 2 == result.exit_code
    assert "leave the workloads out" in result.output
