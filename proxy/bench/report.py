"""The figures for people, as tables, and for programs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from rich.table import Table

from ...model.build_kind import build_name
from .figures import Figures, Measurement, figures_to_json

__all__ = ["report_json", "report_tables"]

_ABSENT: Final = "-"

_Cells: TypeAlias = "tuple[str, ...] | None"
"""The figures of one row; `None` for a workload that the table does not show."""


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
    for title, headings, cells_of in _TABLES:
        rows = [(run, cells) for run in runs if (cells := cells_of(run.measurement)) is not None]
        if not rows:
            continue
        table = Table(title=title.format(build=build_name()), title_justify="left")
        for heading in ("workload", "engine"):
            table.add_column(heading, no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="right")
        for run, cells in rows:
            table.add_row(run.workload, run.engine_text, *cells)
        yield table


def _pace(measured: Measurement) -> _Cells:
    return (_number(measured.pace_per_second),)


def _memory(measured: Measurement) -> _Cells:
    return (
        _number(measured.nodes_per_second),
        _number(measured.applications_per_second),
        _number(measured.asks_handed_over_per_second),
        _number(measured.asks_taken_in_per_second),
        _number(measured.peak_bytes / 1_000_000),
        _number(measured.bytes_per_node),
        _number(measured.bytes_per_application),
        _number(measured.bytes_per_ask),
    )


def _churn(measured: Measurement) -> _Cells:
    churn = measured.churn
    if churn is None:
        return None
    return (
        _number(churn.per_second),
        _milliseconds(churn.latency_p50_seconds),
        _milliseconds(churn.latency_p99_seconds),
    )


def _backlog(measured: Measurement) -> _Cells:
    backlog = measured.backlog
    if backlog is None:
        return None
    return (
        _number(backlog.waiting_cpu_share, digits=4),
        _milliseconds(backlog.reaction_median_seconds),
        _milliseconds(backlog.reaction_max_seconds),
    )


def _half_load(measured: Measurement) -> _Cells:
    half_load = measured.half_load
    if half_load is None:
        return None
    return (
        _number(half_load.offered_per_second),
        _milliseconds(half_load.latency_p50_seconds),
        _milliseconds(half_load.latency_p99_seconds),
    )


def _pods(measured: Measurement) -> _Cells:
    pods = measured.pods
    if pods is None:
        return None
    return (
        _number(pods.cpu_seconds_per_application * 1e6),
        _number(pods.cpu_seconds_per_ask * 1e6),
        _number(pods.application_to_ask, digits=2),
    )


_TABLES: Final[tuple[tuple[str, tuple[str, ...], Callable[[Measurement], _Cells]], ...]] = (
    ("Pace, {build}: allocations per second (f_*: replaced allocations)", ("per second",), _pace),
    (
        "Adding, and memory",
        (
            *("node add/s", "application add/s", "asks handed over/s", "taken in/s (no room)"),
            *("peak MB", "bytes a node", "an application", "an ask"),
        ),
        _memory,
    ),
    ("Churn: from a release to the allocation in its place", ("per second", "p50 ms", "p99 ms"), _churn),
    (
        "Backlog that cannot fit",
        ("cores used while it waits", "reaction to a freed node, median ms", "worst ms"),
        _backlog,
    ),
    (
        "Half load: from an ask to its allocation, asks one by one at half of the pace",
        ("offered per second", "p50 ms", "p99 ms"),
        _half_load,
    ),
    (
        "Applications of one ask, from submission to removal: processor time",
        ("us an application", "us an ask of a large one", "application / ask"),
        _pods,
    ),
)


def _milliseconds(seconds: float) -> str:
    return _number(seconds * 1_000, digits=3)


def _number(value: float | None, *, digits: int = 0) -> str:
    return _ABSENT if value is None else f"{value:,.{digits}f}"
