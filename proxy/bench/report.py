"""The figures for people, as tables, and for programs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.table import Table

from ...model.build_kind import build_name
from .figures import Figures, figures_to_json

__all__ = ["report_json", "report_tables"]

_ABSENT = "-"


def report_json(runs: Sequence[Figures]) -> str:
    """Return all figures, and the build that was measured, as one JSON document."""
    return json.dumps({"build": build_name(), "runs": [_run_entry(run) for run in runs]}, indent=2)


def _run_entry(run: Figures) -> dict[str, object]:
    entry: dict[str, object] = json.loads(figures_to_json(run))
    pods = run.measurement.pods
    entry["application_to_ask"] = None if pods is None else pods.application_to_ask
    return entry


def report_tables(runs: Sequence[Figures]) -> Iterator[Table]:
    """Yield the tables that have rows."""
    yield _pace_table(runs)
    yield _memory_table(runs)
    churning = [run for run in runs if run.measurement.churn is not None]
    if churning:
        yield _churn_table(churning)
    waiting = [run for run in runs if run.measurement.backlog is not None]
    if waiting:
        yield _backlog_table(waiting)
    half_loaded = [run for run in runs if run.measurement.half_load is not None]
    if half_loaded:
        yield _half_load_table(half_loaded)
    pods = [run for run in runs if run.measurement.pods is not None]
    if pods:
        yield _pods_table(pods)


def _pace_table(runs: Sequence[Figures]) -> Table:
    table = _table(
        f"Pace, {build_name()}: allocations per second (f_*: replaced allocations)",
        ("per second",),
    )
    for run in runs:
        table.add_row(run.workload, run.engine_text, _number(run.measurement.pace_per_second))
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
            "bytes a node",
            "an application",
            "an ask",
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
            _number(measured.bytes_per_node),
            _number(measured.bytes_per_application),
            _number(measured.bytes_per_ask),
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
    table = _table(
        "Backlog that cannot fit",
        ("cores used while it waits", "reaction to a freed node, median ms", "worst ms"),
    )
    for run in runs:
        backlog = run.measurement.backlog
        assert backlog is not None, run.workload
        table.add_row(
            run.workload,
            run.engine_text,
            _number(backlog.waiting_cpu_share, digits=4),
            _number(backlog.reaction_median_seconds * 1_000, digits=3),
            _number(backlog.reaction_max_seconds * 1_000, digits=3),
        )
    return table


def _half_load_table(runs: Sequence[Figures]) -> Table:
    table = _table(
        "Half load: from an ask to its allocation, asks one by one at half of the pace",
        ("offered per second", "p50 ms", "p99 ms"),
    )
    for run in runs:
        half_load = run.measurement.half_load
        assert half_load is not None, run.workload
        table.add_row(
            run.workload,
            run.engine_text,
            _number(half_load.offered_per_second),
            _number(half_load.latency_p50_seconds * 1_000, digits=3),
            _number(half_load.latency_p99_seconds * 1_000, digits=3),
        )
    return table


def _pods_table(runs: Sequence[Figures]) -> Table:
    table = _table(
        "Applications of one ask, from submission to removal: processor time",
        ("us an application", "us an ask of a large one", "application / ask"),
    )
    for run in runs:
        pods = run.measurement.pods
        assert pods is not None, run.workload
        table.add_row(
            run.workload,
            run.engine_text,
            _number(pods.cpu_seconds_per_application * 1e6),
            _number(pods.cpu_seconds_per_ask * 1e6),
            _number(pods.application_to_ask, digits=2),
        )
    return table


def _table(title: str, numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("workload", no_wrap=True)
    table.add_column("engine", no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def _number(value: float | None, *, digits: int = 0) -> str:
    return _ABSENT if value is None else f"{value:,.{digits}f}"
