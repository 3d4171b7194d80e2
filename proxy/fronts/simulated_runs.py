"""Results of simulations for programs: tables of plain values, documents, and a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any, Final, final

from ...model.configuration.names import did_you_mean
from ...model.errors import RequestError
from ..play.simulation.job_figures import JobReport, JobRow, JobSpread
from ..play.simulation.report import document_of
from ..play.simulation.reporting.figures import RunFigures
from ..play.simulation.reporting.report_files import figure_rows, to_html
from ..play.simulation.runs import FinishedRun
from ..play.simulation.workloads.rows import Row, amount, amounts, seconds

_NS: Final = "_ns"
_PERMILLE: Final = "_permille"
_THOUSAND: Final = 1000
SERIES: Final = ("capacity", "used", "pending", "fairness", "decayed_fairness", "nodes", "fragmentation")
"""The figures over time."""
_AMOUNTS: Final = frozenset({"capacity", "used", "pending"})
_PAGE_HEIGHT: Final = 720


@final
class Run:
    """A finished simulation, with its figures as plain values.

    Times are seconds from the start of the simulation; `resources_vcore` is in cores, `resources_memory` in
    bytes. Shares and slowdowns are numbers, where 1 is the whole, or no delay. A missing event has the value
    `None`.
    """

    def __init__(self, name: str, finished: FinishedRun) -> None:
        self.name: Final = name
        self._finished = finished

    def __repr__(self) -> str:
        summary = self.summary
        return f"<Run {self.name!r}: {summary['completed']} of {summary['jobs']} jobs have completed>"

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C has ended the simulation; then the figures cover the time until the interrupt."""
        return self._finished.report.is_interrupted

    @property
    def jobs(self) -> list[Row]:
        """One row for each job, in the order of submission; `resources_...` is the sum over its tasks."""
        return [_job(row) for row in self._jobs.rows]

    @property
    def decisions(self) -> list[Row]:
        """One row for each placement, preemption and rejection, in their order."""
        return [
            {"at": seconds(decision.at_ns), "kind": decision.kind.value, **_named(decision)}
            for decision in self._finished.decisions
        ]

    @property
    def summary(self) -> Row:
        """One row about all jobs: their number, their waits, and the use of the cluster."""
        report, total = self._finished.report, self._jobs.total
        row: Row = {
            "run": self.name,
            "workload": report.workload,
            "jobs": total.jobs,
            "started": total.started,
            "completed": total.completed,
            "rejected": report.total.rejected,
            "preempted": report.total.preempted,
        }
        for name, spread, unit in (("wait", total.wait_ns, 10**9), ("slowdown", total.slowdown, _THOUSAND)):
            row |= {f"{name}_{part}": _part(spread, part, unit) for part in ("mean", "median", "p95", "max")}
        row["makespan"] = seconds(total.makespan_ns)
        row |= {f"use_{name}": share / _THOUSAND for name, share in total.use.items()}
        return row | {"decisions": report.decisions, "interrupted": report.is_interrupted}

    @property
    def document(self) -> dict[str, Any]:
        """The report in the form of `licorne simulate --json`, with integer nanoseconds and thousandths."""
        document = document_of(self._finished.report)
        assert isinstance(document, dict), "a report is an object"
        return document

    def series(self, figure: str | None = None) -> list[Row]:
        """Return figures over time: one row for each value, with its queue, its item and its interval.

        Args:
            figure: One of `capacity`, `used`, `pending` (amounts by queue, "" for the cluster, and resource),
                `fairness`, `decayed_fairness`, `nodes` (shares of nodes by how full they are) and
                `fragmentation`; all of them by default.

        Raises:
            RequestError: The figure does not exist, or figures over time were not collected.
        """
        if figure is not None and figure not in SERIES:
            known = ", ".join(SERIES)
            raise RequestError(
                f"series: expected one of {known}, got {figure!r}{did_you_mean(figure, SERIES)}"
            )
        rows: list[Row] = []
        for name, queue, item, start_ns, end_ns, value in figure_rows(self._figures()):
            kind = name.removesuffix(_PERMILLE)
            if kind in SERIES and figure in {None, kind}:
                shown = amount(item, value) if kind in _AMOUNTS else value / _THOUSAND
                times = {"start": seconds(start_ns), "end": seconds(end_ns)}
                rows.append({"figure": kind, "queue": queue, "item": item, **times, "value": shown})
        return rows

    def report_html(self, other: Run | None = None) -> str:
        """Return the page of `licorne simulate --report`, optionally with another run for comparison.

        Raises:
            RequestError: Figures over time were not collected.
        """
        return to_html(self._figures(), None if other is None else other._figures())  # noqa: SLF001

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the page, or the summary if figures were not collected."""
        if self._finished.report.figures is None:
            return html_table([self.summary])
        page = escape(self.report_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:{_PAGE_HEIGHT}px;border:0"></iframe>'

    @property
    def _jobs(self) -> JobReport:
        jobs = self._finished.report.jobs
        assert jobs is not None, "figures of jobs are always collected"
        return jobs

    def _figures(self) -> RunFigures:
        figures = self._finished.report.figures
        if figures is None:
            raise RequestError(f"run {self.name!r}: figures over time were not collected: give figures=True")
        return figures


def html_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as an HTML table with a line for each column, since there are more columns than rows."""
    names = dict.fromkeys(name for row in rows for name in row)
    lines = [
        f"<tr><th>{escape(name)}</th>{''.join(f'<td>{_cell(row.get(name))}</td>' for row in rows)}</tr>"
        for name in names
    ]
    return f"<table>{''.join(lines)}</table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return "" if value is None else escape(f"{value:,}" if type(value) is int else str(value))


def _job(row: JobRow) -> Row:
    """Return one job with plain values."""
    plain: Row = {}
    for each in fields(row):
        value = getattr(row, each.name)
        if each.name.endswith(_NS):
            name = each.name.removesuffix(_NS)
            plain["run_time" if name == "run" else name] = seconds(value)
        elif each.name == "groups":
            plain["groups"] = ";".join(value)
        elif each.name == "slowdown":
            plain["slowdown"] = None if value is None else value / _THOUSAND
        elif each.name == "resources":
            plain |= amounts(value)
        else:
            plain[each.name] = value
    return plain


def _named(decision: Iterable[object]) -> Row:
    """Return the names in a decision as plain values."""
    names = ("ask", "node", "reason", "application", "queue", "user")
    _, _, *values = decision
    return {name: str(value) for name, value in zip(names, values, strict=True)}


def _part(spread: JobSpread | None, part: str, unit: int) -> float | None:
    value: int | None = None if spread is None else getattr(spread, part)
    return None if value is None else value / unit
