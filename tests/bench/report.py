"""The tables of the bench: figures with their targets, and all that a run of a workload measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple, final

from figures import Figures, Measurement
from rich.table import Table
from rich.text import Text

_ABSENT: Final = "-"


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """One figure."""

    subject: str
    value: float
    unit: str
    wanted_max: float | None = None
    wanted_min: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the value is as wanted; always where nothing is wanted."""
        return (self.wanted_max is None or self.value <= self.wanted_max) and (
            self.wanted_min is None or self.value >= self.wanted_min
        )

    @property
    def wanted(self) -> str:
        """What is wanted, in words."""
        if self.wanted_max is not None:
            return f"≤ {self.wanted_max:,g}"
        return f"≥ {self.wanted_min:,g}" if self.wanted_min is not None else ""


def figures_table(title: str, figures: Iterable[Figure]) -> Table:
    """Return figures as a table: green if the target is met, red if not."""
    table = Table(title=title, title_justify="left")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_column("unit")
    table.add_column("wanted", justify="right")
    for figure in figures:
        digits = 0 if float(figure.value).is_integer() else 2
        value = verdict(figure.value, figure.is_met, digits=digits)
        table.add_row(figure.subject, value if figure.wanted else str(value), figure.unit, figure.wanted)
    return table


def verdict(value: float, as_wanted: bool, *, digits: int = 0) -> Text:  # noqa: FBT001 - the one thing it is about
    """Return a number in the colour that says whether it is as wanted."""
    return Text(f"{value:,.{digits}f}", style="green" if as_wanted else "red")


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


def measured_tables(runs: Sequence[Figures]) -> Iterator[Table]:
    """Yield the tables of all that was measured besides the pace, as far as they have rows."""
    for title, part, columns in _TABLES:
        shown = [run for run in runs if part is None or getattr(run.measurement, part) is not None]
        if not shown:
            continue
        table = Table(title=title, title_justify="left")
        for heading in ("workload", "engine"):
            table.add_column(heading, no_wrap=True)
        for column in columns:
            table.add_column(column.heading, justify="right")
        for run in shown:
            cells = [column.cell(run.measurement) for column in columns]
            table.add_row(run.workload, run.engine_text, *cells)
        yield table
