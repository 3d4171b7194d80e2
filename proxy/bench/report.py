"""The figures for people, as tables, and for programs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from rich.table import Table

from ...model.build_kind import build_name
from .figures import Figures, Measurement, figures_to_json

_ABSENT: Final = "-"


def report_json(runs: Sequence[Figures]) -> str:
    """Return all figures, and the build that was measured, as one JSON document."""
    return json.dumps({"build": build_name(), "runs": [_run_entry(run) for run in runs]}, indent=2)


def _run_entry(run: Figures) -> dict[str, object]:
    entry: dict[str, object] = json.loads(figures_to_json(run))
    pods = run.measurement.pods
    entry["application_to_ask"] = None if pods is None else pods.application_to_ask
    return entry


class _Column(NamedTuple):
    """A figure of a table: its heading, its path from a measurement, and how it is written."""

    heading: str
    path: str
    factor: float = 1
    digits: int = 0

    def cell(self, measured: Measurement) -> str:
        """Return the figure of a run."""
        value = attrgetter(self.path)(measured)
        return _ABSENT if value is None else f"{value * self.factor:,.{self.digits}f}"


def _milliseconds(heading: str, path: str) -> _Column:
    return _Column(heading, path, factor=1_000, digits=3)


_TABLES: Final[tuple[tuple[str, str | None, tuple[_Column, ...]], ...]] = (
    (
        "Pace, {build}: allocations per second (f_*: replaced allocations)",
        None,
        (_Column("per second", "pace_per_second"),),
    ),
    (
        "Adding, and memory",
        None,
        (
            _Column("node add/s", "nodes_per_second"),
            _Column("application add/s", "applications_per_second"),
            _Column("asks handed over/s", "asks_handed_over_per_second"),
            _Column("taken in/s (no room)", "asks_taken_in_per_second"),
            _Column("peak MB", "peak_bytes", factor=1e-6),
            _Column("bytes a node", "bytes_per_node"),
            _Column("an application", "bytes_per_application"),
            _Column("an ask", "bytes_per_ask"),
        ),
    ),
    (
        "Churn: from a release to the allocation in its place",
        "churn",
        (
            _Column("per second", "churn.per_second"),
            _milliseconds("p50 ms", "churn.latency_p50_seconds"),
            _milliseconds("p99 ms", "churn.latency_p99_seconds"),
        ),
    ),
    (
        "Backlog that cannot fit",
        "backlog",
        (
            _Column("cores used while it waits", "backlog.waiting_cpu_share", digits=4),
            _milliseconds("reaction to a freed node, median ms", "backlog.reaction_median_seconds"),
            _milliseconds("worst ms", "backlog.reaction_max_seconds"),
        ),
    ),
    (
        "Half load: from an ask to its allocation, asks one by one at half of the pace",
        "half_load",
        (
            _Column("offered per second", "half_load.offered_per_second"),
            _milliseconds("p50 ms", "half_load.latency_p50_seconds"),
            _milliseconds("p99 ms", "half_load.latency_p99_seconds"),
        ),
    ),
    (
        "Applications of one ask, from submission to removal: processor time",
        "pods",
        (
            _Column("us an application", "pods.cpu_seconds_per_application", factor=1e6),
            _Column("us an ask of a large one", "pods.cpu_seconds_per_ask", factor=1e6),
            _Column("application / ask", "pods.application_to_ask", digits=2),
        ),
    ),
)
"""The title of each table, the part of a measurement without which a run has no row in it, its columns."""


def report_tables(runs: Sequence[Figures]) -> Iterator[Table]:
    """Yield the tables that have rows."""
    for title, part, columns in _TABLES:
        shown = [run for run in runs if part is None or getattr(run.measurement, part) is not None]
        if not shown:
            continue
        table = Table(title=title.format(build=build_name()), title_justify="left")
        for heading in ("workload", "engine"):
            table.add_column(heading, no_wrap=True)
        for column in columns:
            table.add_column(column.heading, justify="right")
        for run in shown:
            cells = [column.cell(run.measurement) for column in columns]
            table.add_row(run.workload, run.engine_text, *cells)
        yield table
