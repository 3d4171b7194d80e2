"""The figures for people, as tables, and for programs, as JSON.

A figure that is worse than wanted is red, one that is as wanted green. What is quoted from the project's
bench table says so in its heading: it was measured on another day, mostly on another machine.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .figures import figures_to_json
from .targets import (
    BYTES_PER_APPLICATION_MAX,
    BYTES_PER_ASK_MAX,
    BYTES_PER_NODE_MAX,
    LIGHT_RATIO_MIN,
    QUOTED,
    REACTION_SECONDS_MAX,
    comparisons,
)
from .thread_pace import JUDGEMENT_SECONDS, LEAVES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .figures import Figures
    from .lock_costs import LockCost
    from .lock_figure import LockFigure
    from .thread_pace import ThreadPace

__all__ = [
    "judged_pace_table",
    "lock_costs_json",
    "lock_costs_table",
    "lock_figures_table",
    "report_json",
    "report_tables",
    "shared_pace_table",
]

_ABSENT = "-"


def report_json(runs: Sequence[Figures]) -> str:
    """Return all figures, their ratios and the comparisons as one JSON document."""
    document = {
        "runs": [_run_entry(run) for run in runs],
        "comparisons": [
            {"subject": each.subject, "quotient": each.quotient, "quotient_min": each.quotient_min}
            for each in comparisons(runs)
        ],
    }
    return json.dumps(document, indent=2)


def _run_entry(run: Figures) -> dict[str, object]:
    quoted = QUOTED[run.workload]
    entry: dict[str, object] = json.loads(figures_to_json(run))
    entry["light_per_second"] = run.light_per_second
    entry["ratio_to_light"] = run.ratio_to_light
    entry["quoted"] = {"recorded_core": quoted.recorded_core, "wanted": quoted.wanted}
    return entry


def report_tables(runs: Sequence[Figures]) -> Iterator[Table]:
    """Give the tables that have something to show."""
    yield _pace_table(runs)
    yield _memory_table(runs)
    churning = [run for run in runs if run.measurement.churn is not None]
    if churning:
        yield _churn_table(churning)
    waiting = [run for run in runs if run.measurement.backlog is not None]
    if waiting:
        yield _backlog_table(waiting)
    if list(comparisons(runs)):
        yield _comparison_table(runs)


def lock_costs_json(
    costs: Sequence[LockCost],
    figures: Sequence[LockFigure] = (),
    *,
    judged: Sequence[ThreadPace] = (),
    shared: Sequence[ThreadPace] = (),
) -> str:
    """Return what checking locks costs, and what threads bring, as one JSON document."""
    document = {
        "lock_costs": [asdict(cost) | {"is_met": cost.is_met} for cost in costs],
        "lock_figures": [asdict(figure) | {"is_met": figure.is_met} for figure in figures],
        "judged_pace": [asdict(pace) for pace in judged],
        "shared_pace": [asdict(pace) for pace in shared],
    }
    return json.dumps(document, indent=2)


def judged_pace_table(paces: Sequence[ThreadPace]) -> Table:
    """Return what scheduling threads bring where the resource manager judges slowly as a table."""
    return _threads_table(f"Placing, each judged for {JUDGEMENT_SECONDS * 1_000:g} ms", paces)


def shared_pace_table(paces: Sequence[ThreadPace]) -> Table:
    """Return what scheduling threads bring where they share a partition as a table."""
    return _threads_table(f"Placing in a shared partition of {LEAVES} leaves", paces)


def _threads_table(title: str, paces: Sequence[ThreadPace]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("threads", "per second", "x one thread"):
        table.add_column(heading, justify="right")
    for pace in paces:
        table.add_row(str(pace.threads), _number(pace.per_second), _number(pace.ratio, digits=2))
    return table


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
        ratio = Text("") if cost.ratio_max is None else _judged(cost.ratio, cost.is_met, digits=2)
        against = "" if cost.ratio_max is None else cost.base
        table.add_row(cost.subject, _number(cost.nanoseconds), ratio, wanted, against)
    return table


def lock_figures_table(figures: Sequence[LockFigure]) -> Table:
    """Return what else checking costs as a table."""
    table = Table(title="What else checking costs", title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_column("unit")
    table.add_column("wanted", justify="right")
    for figure in figures:
        digits = 0 if float(figure.value).is_integer() else 2
        value = _judged(figure.value, figure.is_met, digits=digits)
        table.add_row(figure.subject, value if figure.wanted else str(value), figure.unit, figure.wanted)
    return table


def _pace_table(runs: Sequence[Figures]) -> Table:
    table = _table(
        "Pace: allocations per second (f_*: replaced allocations)",
        ("per second", "the light", f"x light (wanted ≥ {LIGHT_RATIO_MIN})"),
        ("recorded core\n(quoted from bench.md)", "wanted, x recorded core\n(quoted from bench.md)"),
    )
    for run in runs:
        quoted = QUOTED[run.workload]
        ratio = run.ratio_to_light
        table.add_row(
            run.workload,
            run.engine_text,
            _number(run.measurement.pace_per_second),
            _number(run.light_per_second),
            _judged(ratio, ratio is not None and ratio >= LIGHT_RATIO_MIN, digits=2),
            quoted.recorded_core,
            quoted.wanted,
        )
    return table


def _memory_table(runs: Sequence[Figures]) -> Table:
    table = _table(
        "Adding, and memory",
        (
            "node add/s",
            "application add/s",
            "asks handed over/s",
            "taken in/s (no room)",
            "peak MB",
            f"bytes a node (≤ {BYTES_PER_NODE_MAX:,})",
            f"an application (≤ {BYTES_PER_APPLICATION_MAX:,})",
            f"an ask (≤ {BYTES_PER_ASK_MAX:,})",
        ),
    )
    for run in runs:
        measured = run.measurement
        table.add_row(
            run.workload,
            run.engine_text,
            _number(measured.nodes_per_second),
            _number(measured.applications_per_second),
            _number(measured.asks_handed_over_per_second),
            _number(measured.asks_taken_in_per_second),
            _number(measured.peak_bytes / 1_000_000),
            _limited(measured.bytes_per_node, BYTES_PER_NODE_MAX),
            _limited(measured.bytes_per_application, BYTES_PER_APPLICATION_MAX),
            _limited(measured.bytes_per_ask, BYTES_PER_ASK_MAX),
        )
    return table


def _churn_table(runs: Sequence[Figures]) -> Table:
    table = _table("Churn: from a release to the allocation in its place", ("per second", "p50 ms", "p99 ms"))
    for run in runs:
        churn = run.measurement.churn
        assert churn is not None, run.workload
        table.add_row(
            run.workload,
            run.engine_text,
            _number(churn.per_second),
            _number(churn.latency_p50_seconds * 1_000, digits=3),
            _number(churn.latency_p99_seconds * 1_000, digits=3),
        )
    return table


def _backlog_table(runs: Sequence[Figures]) -> Table:
    wanted = f"(wanted ≤ {REACTION_SECONDS_MAX * 1_000:g})"
    table = _table(
        "Backlog that cannot fit",
        ("cores used while it waits", f"reaction to a freed node, median ms {wanted}", "worst ms"),
    )
    for run in runs:
        backlog = run.measurement.backlog
        assert backlog is not None, run.workload
        reaction = backlog.reaction_median_seconds
        table.add_row(
            run.workload,
            run.engine_text,
            _number(backlog.waiting_cpu_share, digits=4),
            _judged(reaction * 1_000, reaction <= REACTION_SECONDS_MAX, digits=3),
            _number(backlog.reaction_max_seconds * 1_000, digits=3),
        )
    return table


def _comparison_table(runs: Sequence[Figures]) -> Table:
    table = Table(title="Flatness, by the ratio to the light", title_justify="left")
    table.add_column("what")
    table.add_column("quotient", justify="right")
    table.add_column("wanted", justify="right")
    for each in comparisons(runs):
        table.add_row(each.subject, _judged(each.quotient, each.is_met, digits=2), f"≥ {each.quotient_min:g}")
    return table


def _table(title: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("workload", no_wrap=True)
    table.add_column("engine", no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right")
    for heading in texts:
        table.add_column(heading)
    return table


def _number(value: float | None, *, digits: int = 0) -> str:
    return _ABSENT if value is None else f"{value:,.{digits}f}"


def _limited(value: float | None, limit: float) -> Text:
    return _judged(value, value is not None and value <= limit)


def _judged(value: float | None, as_wanted: bool, *, digits: int = 0) -> Text:  # noqa: FBT001 - the judgement
    style = "" if value is None else "green" if as_wanted else "red"
    return Text(_number(value, digits=digits), style=style)
