"""Simulations from a program or a notebook: load an input, simulate it, and compare several runs of it.

Results are tables of plain values, documents, and a page. Nothing is printed, and nothing is kept between
calls. Ctrl-C ends a simulation, which then returns the results so far.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final, overload

from typing_extensions import Unpack

from ...model.configuration.names import did_you_mean
from ...model.errors import RequestError
from ..base.files.input_files import GivenConfiguration
from ..base.terminal.standard_output import counted
from ..core.resolvers.resolver import UserResolver
from ..play.comparison.comparison import compared, comparison_document, with_why
from ..play.simulation.driver import interruption_noted
from ..play.simulation.job_figures import JobReport, JobRow
from ..play.simulation.report import FigureSpread, document_of
from ..play.simulation.reporting.figures import RunFigures
from ..play.simulation.reporting.report_files import figure_rows, to_html
from ..play.simulation.runs import FinishedRun, RunSettings, run_each, run_elsewhere, run_settings
from ..play.simulation.workloads.inputs import Transcript, load_input
from ..play.simulation.workloads.reading import ReadingOptions, input_options
from ..play.simulation.workloads.rows import (
    Row,
    amount,
    amounts,
    nodes_of_rows,
    rows_of_workload,
    seconds,
    workload_of_rows,
)
from ..play.simulation.workloads.workload import SimulatedNode, SimulatedWorkload

if TYPE_CHECKING:
    from typing import Self

GivenWorkload: TypeAlias = "Workload | str | os.PathLike[str] | Mapping[str, object]"
"""The input of a simulation: a loaded workload, the path of any input, or a scenario as a mapping."""


_OPTIONS: Final = ("queues", "policies", "users", "usage", "engine", "threads")
"""The options of a run besides its input, see `simulate`."""
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
        """One row about all jobs: their number, their waits, the use of the cluster, failures of policies."""
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
        row |= {"decisions": report.decisions, "interrupted": report.is_interrupted}
        row["policy_failures"] = sum(note.count for note in report.policy_failures)
        texts = (f"{counted(note.count, 'failure')} of {note.text}" for note in report.policy_failures)
        return row | {"policy_errors": "; ".join(texts)}

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


def _part(spread: FigureSpread | None, part: str, unit: int) -> float | None:
    value: int | None = None if spread is None else getattr(spread, part)
    return None if value is None else value / unit


@final
class Workload:
    """A cluster with the jobs that are submitted to it; made by `load` or `from_rows`."""

    def __init__(self, loaded: SimulatedWorkload | Transcript) -> None:
        self._loaded = loaded

    def __repr__(self) -> str:
        return f"<Workload {self.name!r}>"

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, object]],
        nodes: Iterable[Mapping[str, object]] | Workload,
        *,
        name: str = "rows",
    ) -> Self:
        """Return a workload with one row for each job, such as the records of a data frame.

        Args:
            rows: The jobs, each with the resources of all its tasks together: `resources_vcore` (cores),
                `resources_memory` (bytes) and so on; with the times `submitted` and `run_time` in seconds
                (without a run time the job runs to the end); and optionally with `job`, `queue`, `user`,
                `groups` (`a;b`), `tasks`, `walltime`, `priority`, and `gang`, whether it starts as a whole.
                Other columns of `Run.jobs` are ignored.
            nodes: The cluster, as in a scenario: `{"prefix": "n", "count": 4, "resources": {"vcore": 8}}`, or
                the nodes of another workload.
            name: The name of the workload.

        Raises:
            RequestError: A value in a row or in the nodes is invalid; the error has its place.
        """
        there = cls._nodes_of(nodes) if isinstance(nodes, Workload) else nodes_of_rows(nodes)
        return cls(workload_of_rows(rows, there, name))

    @property
    def name(self) -> str:
        """The name of the workload in reports."""
        return self._loaded.name

    @property
    def jobs(self) -> list[Row]:
        """One row for each job, as `from_rows` reads it; a transcript has no jobs before it is simulated."""
        return rows_of_workload(self._jobs_of("jobs"))

    @property
    def queues(self) -> str:
        """The default queues of a run, as YAML; a transcript has them in its lines."""
        return self._jobs_of("queues").default_configuration

    def _nodes_of(self) -> tuple[SimulatedNode, ...]:
        return self._jobs_of("nodes").nodes

    def _jobs_of(self, what: str) -> SimulatedWorkload:
        """Return the loaded workload, unless it is a transcript."""
        if isinstance(self._loaded, Transcript):
            raise RequestError(f"{what}: expected a workload with jobs, got the transcript {self.name!r}")
        return self._loaded

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        if isinstance(self._loaded, Transcript):
            return html_table([{"transcript": self.name}])
        jobs, nodes = len(self._loaded.applications), len(self._loaded.nodes)
        notes = {note.text: note.count for note in self._loaded.notes}
        return html_table([{"workload": self.name, "nodes": nodes, "jobs": jobs, **notes}])


@final
class Comparison(Sequence[Run]):
    """Runs of one workload, in the given order; `comparison["fifo"]` is the run of that name.

    After Ctrl-C it has the runs that had started.
    """

    def __init__(
        self,
        work: SimulatedWorkload | Transcript,
        settings: Mapping[str, RunSettings],
        finished: Mapping[str, FinishedRun],
    ) -> None:
        self._work = work
        self._settings = settings
        self._finished = finished
        self._runs: Final = tuple(Run(name, run) for name, run in finished.items())

    def __len__(self) -> int:
        return len(self._runs)

    @overload
    def __getitem__(self, index: int | str) -> Run: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...

    def __getitem__(self, index: int | str | slice) -> Run | Sequence[Run]:
        if isinstance(index, str):
            return self._runs[list(self._finished).index(self._known(index))]
        return self._runs[index]

    @property
    def summary(self) -> list[Row]:
        """The `Run.summary` of each run."""
        return [run.summary for run in self._runs]

    @property
    def jobs(self) -> list[Row]:
        """The rows of `Run.jobs` of all runs, each with the name of its `run`."""
        return [{"run": run.name, **row} for run in self._runs for row in run.jobs]

    def document(self, a: str, b: str, *, why: bool = False) -> dict[str, Any]:
        """Return the differences of two runs in the form of `licorne compare --json`: the changes in waits.

        Args:
            a: The name of one run.
            b: The name of the other run.
            why: Whether to find the settings of the queues that cause the first different decision; the
                workload is then simulated up to 60 more times.

        Raises:
            RequestError: A run does not exist.
            InterruptedRunError: Ctrl-C has ended a simulation for `why`.
        """
        names = (self._known(a), self._known(b))
        runs = (self._finished[a], self._finished[b])
        comparison = compared(names, runs, ())
        if why:
            settings = (self._settings[a], self._settings[b])
            with interruption_noted() as is_interrupted:
                comparison = with_why(comparison, self._work, settings, runs, is_interrupted)
        return comparison_document(comparison)

    def _known(self, name: str) -> str:
        if name not in self._finished:
            known = ", ".join(map(repr, self._finished))
            raise RequestError(f"expected the name of a run ({known}), got {name!r}")
        return name

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return html_table(self.summary)


def load(
    source: str | os.PathLike[str] | Mapping[str, object], **reading: Unpack[ReadingOptions]
) -> Workload:
    """Read an input of `licorne simulate`: a log, a trace, a scenario or a transcript.

    Args:
        source: The path of the file, or a scenario as a mapping, as read from its YAML.
        reading: The options of the command as keywords: `nodes`, `csv_mapping`, `own_times`, `seed`, `gang`,
            `task_processors`, `estimate_factor`, `first`, `scale_rate`, `scale_size`, `scale_nodes`, and
            `begin` and `end` for `--from` and `--to`.

    Raises:
        LicorneError: The input cannot be read or is invalid (with its place), or an option is unknown.
    """
    return Workload(load_input(input_options(source, reading)))


def simulate(
    workload: GivenWorkload,
    *,
    name: str = "",
    queues: GivenConfiguration | None = None,
    policies: Mapping[str, Callable[[], object]] | None = None,
    users: str | os.PathLike[str] | UserResolver | None = None,
    usage: str | os.PathLike[str] | None = None,
    engine: str = "direct",
    threads: int | None = None,
    figures: bool = True,
    **reading: Unpack[ReadingOptions],
) -> Run:
    """Simulate a workload on a virtual clock, to its end or until Ctrl-C.

    Args:
        workload: A loaded workload, or an argument of `load`.
        name: The name of the run in tables.
        queues: A path (`pathlib.Path`), YAML text or a mapping; `None` for the queues of the input.
        policies: Classes of policies, by their names in the queues.
        users: A file of users with lists of groups, or a resolver.
        usage: A file with the earlier use of queues and users.
        engine: The engine of the scheduler, which is stepped.
        threads: The number of threads of the engine `threads`.
        figures: Whether to collect figures over time, for `Run.series` and the page.
        reading: The options of `load`; not allowed with a loaded workload.

    Raises:
        LicorneError: The input is invalid (the error has the place), or the scheduler refuses the queues.
    """
    work = _loaded(workload, reading)
    settings = run_settings(
        queues=queues, policies=policies, users=users, usage=usage, engine=engine, threads=threads
    )
    with interruption_noted() as is_interrupted:
        runs = run_each(work, {name: settings}, is_interrupted=is_interrupted, with_figures=figures)
    return Run(name, runs[name])


def compare(
    workload: GivenWorkload,
    runs: Mapping[str, Mapping[str, Any]],
    *,
    processes: int = 1,
    figures: bool = True,
    **reading: Unpack[ReadingOptions],
) -> Comparison:
    """Simulate one workload several times, each time with other queues or policies.

    Args:
        workload: A loaded workload, or an argument of `load`.
        runs: The options of each run, by its name: `queues`, `policies`, `users`, `usage`, `engine` and
            `threads`, as `simulate` takes them.
        processes: The number of processes. A run with a policy that another process cannot import, such as a
            class of a notebook's cell, is simulated in this process.
        figures: Whether to collect figures over time, for `Run.series` and the page.
        reading: The options of `load`; not allowed with a loaded workload.

    Raises:
        LicorneError: The input is invalid (the error has the place), or the scheduler refuses queues.
    """
    if type(processes) is not int or processes < 1:
        raise RequestError(f"processes: expected a number from 1 on, got {processes!r}")
    work = _loaded(workload, reading)
    settings = {name: _settings_of(name, options) for name, options in runs.items()}
    if not settings:
        raise RequestError("runs: expected the options of at least one run, got none")
    with interruption_noted() as is_interrupted:
        found: dict[str, FinishedRun] = {}
        if processes > 1:
            found = run_elsewhere(work, runs, processes, figures, is_interrupted)
        here = {name: one for name, one in settings.items() if name not in found}
        if here and not is_interrupted():
            found |= run_each(work, here, is_interrupted=is_interrupted, with_figures=figures)
    return Comparison(work, settings, {name: found[name] for name in settings if name in found})


def _loaded(given: GivenWorkload, reading: Mapping[str, object]) -> SimulatedWorkload | Transcript:
    """Return the workload, read now if it was not loaded."""
    if not isinstance(given, Workload):
        return load_input(input_options(given, reading))
    if reading:
        raise RequestError(f"{next(iter(reading))}: the workload is loaded already, give it to load")
    return given._loaded  # noqa: SLF001 - private for programs only


def _settings_of(name: str, options: Mapping[str, Any]) -> RunSettings:
    """Return the settings of one of several runs."""
    if not isinstance(options, Mapping):
        raise RequestError(f"runs[{name!r}]: expected a mapping of options, got {options!r:.100}")
    for option in options:
        if option not in _OPTIONS:
            known = f"{did_you_mean(option, _OPTIONS)}; known: {', '.join(_OPTIONS)}"
            raise RequestError(f"runs[{name!r}]: unknown option {option!r}{known}")
    return run_settings(name=f"queues of {name}", **options)
