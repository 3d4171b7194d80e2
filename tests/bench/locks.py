"""Measure what checking locks costs, and what scheduling threads bring: `python tests/bench/locks.py`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from time import perf_counter, sleep

from lock_asks import checked_asks
from lock_costs import LockCost, added_by_chain, measure_lock_costs
from lock_load import checked_throughput
from lock_memory import bytes_per_lock
from report import Figure, figures_table, verdict
from rich.table import Table
from rich.text import Text
from thread_pace import LEAVES, PREDICATE_SECONDS, ThreadPace, measure_predicate_pace, measure_shared_pace

from licorne.proxy.base.terminal.standard_output import is_for_people, output_console, print_table


def main(arguments: Sequence[str]) -> None:
    """Measure, and print tables or JSON."""
    parser = argparse.ArgumentParser(prog="tests/bench/locks.py", description=__doc__)
    parser.add_argument("--json", action="store_true", help="write JSON instead of tables")
    options = parser.parse_args(arguments)
    costs = measure_lock_costs(perf_counter)
    figures = _figures(perf_counter)
    predicate_paces = measure_predicate_pace(perf_counter, sleep)
    shared_paces = measure_shared_pace(perf_counter)
    if options.json:
        print(costs_json(costs, figures, predicate_paces=predicate_paces, shared_paces=shared_paces))
        return
    console = output_console()
    for table in (
        lock_costs_table(costs),
        figures_table("What else checking costs", figures),
        threads_table(f"Placing, each judged for {PREDICATE_SECONDS * 1_000:g} ms", predicate_paces),
        threads_table(f"Placing in a shared partition of {LEAVES} leaves", shared_paces),
    ):
        print_table(table, console, plain=not is_for_people())


def _figures(clock_seconds: Callable[[], float]) -> tuple[Figure, ...]:
    """Measure chains, threads, asks and memory."""
    return (
        *added_by_chain(clock_seconds),
        *checked_throughput(clock_seconds),
        *checked_asks(clock_seconds),
        *bytes_per_lock(),
    )


def costs_json(
    costs: Sequence[LockCost],
    figures: Sequence[Figure] = (),
    *,
    predicate_paces: Sequence[ThreadPace] = (),
    shared_paces: Sequence[ThreadPace] = (),
) -> str:
    """Return what checking locks costs, and what threads bring, as one JSON document."""
    document = {
        "lock_costs": [asdict(cost) | {"is_met": cost.is_met} for cost in costs],
        "lock_figures": [asdict(figure) | {"is_met": figure.is_met} for figure in figures],
        "judged_pace": [asdict(pace) for pace in predicate_paces],
        "shared_pace": [asdict(pace) for pace in shared_paces],
    }
    return json.dumps(document, indent=2)


def lock_costs_table(costs: Sequence[LockCost]) -> Table:
    """Return what checking locks costs as a table."""
    table = Table(title="Taking and releasing a lock", title_justify="left")
    table.add_column("lock")
    table.add_column("ns", justify="right")
    table.add_column("x unchecked", justify="right")
    table.add_column("wanted", justify="right")
    table.add_column("times of")
    for cost in costs:
        wanted = "" if cost.ratio_max is None else f"≤ {cost.ratio_max:g}"
        ratio = Text("") if cost.ratio_max is None else verdict(cost.ratio, cost.is_met, digits=2)
        against = "" if cost.ratio_max is None else cost.base
        table.add_row(cost.subject, f"{cost.nanoseconds:,.0f}", ratio, wanted, against)
    return table


def threads_table(title: str, paces: Sequence[ThreadPace]) -> Table:
    """Return what several scheduling threads bring as a table."""
    table = Table(title=title, title_justify="left")
    for heading in ("threads", "per second", "x one thread"):
        table.add_column(heading, justify="right")
    for pace in paces:
        table.add_row(str(pace.threads), f"{pace.per_second:,.0f}", f"{pace.ratio:,.2f}")
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
