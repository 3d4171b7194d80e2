"""What checking locks costs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import count

import pytest
from condition_lock import ConditionRWLock
from lock_asks import checked_asks
from lock_costs import LockCost, added_by_chain, measure_lock_costs
from lock_load import checked_throughput
from locks import costs_json, lock_costs_table
from report import Figure, figures_table


def test_every_kind_is_held_against_its_base() -> None:
    """With a clock on which each round takes one second all ratios are one."""
    ticks = count()

    costs = measure_lock_costs(lambda: float(next(ticks)), times=2, rounds=3)

    assert {1.0} == {cost.ratio for cost in costs}
    assert {500_000_000.0} == {cost.nanoseconds for cost in costs}
    assert 7 == sum(cost.ratio_max is None for cost in costs)
    assert all(cost.base in {base.subject for base in costs if base.ratio_max is None} for cost in costs)


def test_the_fastest_round_counts() -> None:
    """A round that something else has disturbed changes nothing."""
    seconds = iter([9.0] * 26 + [2.0] * 26 + [5.0] * 26)
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

    document = json.loads(costs_json(costs))

    assert [("plain", True), ("checked", False)] == [
        (entry["subject"], entry["is_met"]) for entry in document["lock_costs"]
    ]
    assert ["", "≤ 2.5"] == list(lock_costs_table(costs).columns[3].cells)


def test_a_figure_is_met_up_to_its_limit() -> None:
    """From above or from below; where nothing is wanted any is."""
    figures = [
        Figure("most", 1.0, "µs", wanted_max=1.0),
        Figure("too much", 1.1, "µs", wanted_max=1.0),
        Figure("least", 0.9, "x", wanted_min=0.9),
        Figure("too little", 0.8, "x", wanted_min=0.9),
        Figure("any", 50_000, "events"),
    ]
    table = figures_table("", figures)
    entries = json.loads(costs_json((), figures))["lock_figures"]

    assert [True, False, True, False, True] == [entry["is_met"] for entry in entries]
    assert ["≤ 1", "≤ 1", "≥ 0.9", "≥ 0.9", ""] == list(table.columns[3].cells)
    assert ["1", "1.10", "0.90", "0.80", "50,000"] == [str(cell) for cell in table.columns[1].cells]


def ticking() -> Callable[[], float]:
    """Return a clock that is a second later each time."""
    ticks = count()
    return lambda: float(next(ticks))


@pytest.mark.lockcheck(off=True)  # it measures locks, and takes them as no order has it
def test_everything_else_is_measured_by_the_clock_that_is_given() -> None:
    """Where all rounds take a second, checking adds nothing and threads lose nothing."""
    chain = added_by_chain(ticking(), times=2, rounds=1)
    load = checked_throughput(ticking(), allocations=2, rounds=3)
    asks = checked_asks(ticking(), times=2, rounds=1)

    assert [0.0, 0.0] == [figure.value for figure in chain]
    assert [1.0, 1.0] == [figure.value for figure in load]
    assert [5e5, 0.0, 0.0, 5e5, 0.0, 0.0, 0.0, 0.0, 0.0] == [figure.value for figure in asks]


def test_a_lock_on_a_condition_keeps_writers_out_and_lets_them_go_first() -> None:
    """Otherwise it would be no lock to be held against."""
    lock, order = ConditionRWLock(), []

    def write() -> None:
        order.append("wants to write")
        with lock.write():
            order.append("writes")

    def read() -> None:
        with lock.read():
            order.append("reads")

    writer = threading.Thread(target=write)
    with lock.read(), lock.read():
        writer.start()
        while not lock.writers_waiting:
            writer.join(0.001)
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(0.01)
        assert ["wants to write"] == order
    for thread in (writer, reader):
        thread.join(10)

    assert ["wants to write", "writes", "reads"] == order
