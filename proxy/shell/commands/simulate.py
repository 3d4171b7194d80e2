"""`licorne simulate`, and `licorne compare`: one input under two configurations, and which jobs move."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from ....model.errors import LicorneError
from ...base.process import prepare_process
from ...base.terminal.standard_output import INTERRUPTED, ends_on, write_error, write_line
from .options import (
    DEFAULT_INPUT_SETTINGS,
    AsJsonOption,
    EngineOption,
    InputSettings,
    PolicyOptions,
    ThreadsOption,
    UsersOption,
    number_option,
    value_option,
    with_input_settings,
    with_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ...play.comparison.comparison import TwoRuns
    from ...play.comparison.conditions import Condition
    from ...play.simulation.report import SimulationReport
    from ...play.simulation.reporting.figures import RunFigures
    from ...play.simulation.runs import CoreOfSettings, RunSettings
    from ...play.simulation.workloads.inputs import InputOptions, Transcript
    from ...play.simulation.workloads.workload import SimulatedWorkload


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOptions:
    """The files of figures: each field is an option."""

    report: Annotated[
        Path | None, value_option("--report", "FILE", "Write figures over time as a page (HTML).")
    ] = None
    report_json: Annotated[
        Path | None, value_option("--report-json", "FILE", "Write these figures as JSON, for --compare.")
    ] = None
    report_csv: Annotated[
        Path | None, value_option("--report-csv", "FILE", "Write these figures as CSV.")
    ] = None
    jobs_csv: Annotated[
        Path | None,
        value_option("--jobs-csv", "FILE", "Write a row for each job as CSV; the report has jobs then."),
    ] = None
    jobs_jsonl: Annotated[
        Path | None,
        value_option("--jobs-jsonl", "FILE", "Write a line for each job as JSON; the report has jobs then."),
    ] = None
    compare: Annotated[
        Path | None,
        value_option(
            "--compare", "FILE", "Compare figures of --report-json with those of this run, in --report."
        ),
    ] = None

    def outputs(self, write_config: Path | None) -> FigureOutputs:
        """Check the files, and read the figures to compare with.

        Args:
            write_config: Another file that is written, which may not be one of them.

        Raises:
            LicorneError: Two options name one file, one cannot be written, or a comparison has no page.
            InputError: The figures to compare with cannot be read.
        """
        paths = {f"--{each.name.replace('_', '-')}": getattr(self, each.name) for each in fields(self)}
        del paths["--compare"]
        files = {option: path for option, path in paths.items() if path is not None}
        if self.compare is not None and "--report" not in files:
            raise LicorneError("--compare shows two runs on a page: --report FILE must name that page")
        other = None
        if self.compare is not None:
            from ...play.simulation.reporting.report_files import read_figures

            other = read_figures(self.compare)
        _check_files(files if write_config is None else {_WRITE_CONFIG: write_config, **files})
        return FigureOutputs(files=files, other=other)


def _check_files(files: Mapping[str, Path]) -> None:
    """Refuse files that cannot be written, and one of two options."""
    from ...base.files.output_files import check_writable

    seen: dict[Path, str] = {}
    for option, path in files.items():
        before = seen.setdefault(path.resolve(), option)
        if before != option:
            raise LicorneError(f"{before} and {option} name the same file, {path}")
        check_writable(path)


def simulate_command(open_core: CoreOfSettings | None = None) -> Callable[..., None]:
    """Return the command as typer takes it.

    Args:
        open_core: Opens the core that is simulated; `None` for a scheduler.
    """

    @with_settings("policies", PolicyOptions)
    @with_input_settings
    @with_settings("figures", FigureOptions)
    def command(
        *,
        input_path: Annotated[
            Path,
            typer.Argument(
                metavar="INPUT",
                help="A scenario (.yaml), a log (.swf), openb pods (.csv) or a transcript (.jsonl).",
            ),
        ],
        config: Annotated[
            Path | None,
            value_option("--config", "FILE", "The queues (queues.yaml); by default what fits the input."),
        ] = None,
        write_config: Annotated[
            Path | None,
            value_option(
                "--write-config", "FILE", "Write the queues that fit the input, to edit them for --config."
            ),
        ] = None,
        engine: EngineOption = "direct",
        threads: ThreadsOption = None,
        users: UsersOption = None,
        usage: Annotated[
            Path | None,
            value_option("--usage", "FILE", "Begin with what `licorne serve --usage-file` has kept there."),
        ] = None,
        policies: PolicyOptions,
        input_settings: InputSettings = DEFAULT_INPUT_SETTINGS,
        forecast: Annotated[
            bool,
            typer.Option(
                "--forecast", help="Forecast the start of each job that waits, and report how good that was."
            ),
        ] = False,
        as_json: AsJsonOption = False,
        figures: FigureOptions,
    ) -> None:
        """Run a workload against the scheduler on a virtual clock, and report what became of it."""
        from ...play.simulation.runs import opened_core, run_settings
        from ...play.simulation.workloads.inputs import load_input

        prepare_process()
        with ends_on(LicorneError, "licorne simulate"):
            if config is not None and write_config is not None:
                raise LicorneError("--write-config writes the queues of the input: leave out --config")
            given = policies.given()
            outputs = figures.outputs(write_config)
            settings = run_settings(
                queues=config, policies=given, users=users, usage=usage, engine=engine, threads=threads
            )
            work = load_input(input_settings.of(input_path))
            if write_config is not None:
                _write_queues(work, write_config, input_path)
            report = _simulated(work, settings, outputs, open_core or opened_core, with_forecasts=forecast)
            shown = report if input_settings.gang or outputs.needs_jobs() else replace(report, jobs=None)
            try:
                outputs.write(report)  # First: a reader of standard output may end before its end.
            finally:
                _print(shown, as_json=as_json)
        if report.is_interrupted:
            write_error("licorne simulate: interrupted; these are the results so far")
            raise typer.Exit(INTERRUPTED)

    return command


def _write_queues(work: SimulatedWorkload | Transcript, path: Path, input_path: Path) -> None:
    """Write the queues that fit a workload."""
    from ...base.files.output_files import write_whole
    from ...play.simulation.workloads.workload import SimulatedWorkload

    if not isinstance(work, SimulatedWorkload):
        raise LicorneError(f"--write-config: {input_path} is a transcript, with its own queues")
    write_whole(path, work.default_configuration)


def _simulated(
    work: SimulatedWorkload | Transcript,
    settings: RunSettings,
    outputs: FigureOutputs,
    open_core: CoreOfSettings,
    *,
    with_forecasts: bool,
) -> SimulationReport:
    """Simulate the work, with the figures that the files need."""
    from ...play.simulation.driver import interruption_noted
    from ...play.simulation.runs import run_each

    with interruption_noted() as is_interrupted:
        runs = run_each(
            work,
            {"": settings},
            is_shown=True,
            is_interrupted=is_interrupted,
            with_figures=outputs.needs_figures(),
            with_forecasts=with_forecasts,
            open_core=open_core,
        )
    return runs[""].report


simulate: Final = simulate_command()


def _print(report: SimulationReport, *, as_json: bool) -> None:
    """Print a report to standard output."""
    from ...base.terminal.standard_output import is_for_people, output_console
    from ...play.simulation.report import document_of
    from ...play.simulation.report_table import print_report

    if as_json:
        write_line(json.dumps(document_of(report)))
    else:
        print_report(report, output_console(), plain=not is_for_people())


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOutputs:
    """The files of figures, by the option that names each; `other` are the figures to compare with."""

    files: Mapping[str, Path]
    other: RunFigures | None

    def needs_figures(self) -> bool:
        """Return whether figures over time have to be collected."""
        return any(option.startswith("--report") for option in self.files)

    def needs_jobs(self) -> bool:
        """Return whether figures of jobs have to be collected."""
        return any(option.startswith("--jobs") for option in self.files)

    def write(self, report: SimulationReport) -> None:
        """Write all files; each is written as a whole or keeps its old content.

        Raises:
            UnwritableFileError: One cannot be written; those before it have been.
        """
        from ...base.files.output_files import write_whole

        for option, path in self.files.items():
            write_whole(path, self._text(option, report))

    def _text(self, option: str, report: SimulationReport) -> str:
        """Return what the file of an option gets."""
        from ...play.simulation.job_figures import rows_to_csv, rows_to_jsonl
        from ...play.simulation.reporting.report_files import to_csv, to_html, to_json

        if option.startswith("--jobs"):
            assert report.jobs is not None, "the figures of jobs were collected"
            return (rows_to_csv if option == "--jobs-csv" else rows_to_jsonl)(report.jobs.rows)
        assert report.figures is not None, "the figures over time were collected"
        match option:
            case "--report-json":
                return to_json(report.figures)
            case "--report-csv":
                return to_csv(report.figures)
            case _:
                left = report.never_started
                return to_html(report.figures, self.other, "" if left is None else left.sentence())


_WHO: Final = "licorne compare"
_WRITE_CONFIG: Final = "--write-config"
_FAILED: Final = 1
"""The status of a comparison of which a condition of `--fail-if` holds."""


@with_settings("policies", PolicyOptions)
@with_input_settings
def compare(
    *,
    a: Annotated[Path, typer.Argument(metavar="A", help="The current queues (queues.yaml).")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The queues to compare with them.")],
    input_path: Annotated[
        Path,
        value_option(
            "--input", "FILE", "The workload for both: any input of `licorne simulate`.", other="-i"
        ),
    ],
    fail_if: Annotated[
        list[str] | None,
        value_option(
            "--fail-if",
            "CONDITION",
            "End with status 1 if this holds, such as 'p95 wait of root.prod > 5m'; may be repeated.",
        ),
    ] = None,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Explain why the first decision differs, by which settings, and what follows: more runs.",
        ),
    ] = False,
    windows: Annotated[
        int | None,
        number_option(
            "--windows",
            "Also compare this many blocks of days, and print intervals of the differences.",
            at_least=2,
        ),
    ] = None,
    html: Annotated[Path | None, value_option("--html", "FILE", "Write it as one page.")] = None,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    users: UsersOption = None,
    policies: PolicyOptions,
    input_settings: InputSettings = DEFAULT_INPUT_SETTINGS,
    as_json: AsJsonOption = False,
) -> None:
    """Run one input under two configurations, and show which jobs start later in B and which earlier.

    Ends with status 1 if a condition of --fail-if holds.
    """
    from ...base.files.output_files import check_writable, write_whole
    from ...play.comparison.conditions import read_condition
    from ...play.simulation.runs import run_settings

    prepare_process()
    with ends_on(LicorneError, _WHO):
        if html is not None:
            check_writable(html)
        given = policies.given()
        conditions = [read_condition(text) for text in fail_if or ()]
        read = partial(run_settings, policies=given, users=users, engine=engine, threads=threads)
        settings = (read(queues=a), read(queues=b))
        comparison = _compared(
            input_settings.of(input_path),
            (a, b),
            settings,
            conditions,
            {**read.keywords, "queues": b},
            with_reasons=why,
            windows=windows,
        )
    if comparison is None:
        write_error(f"{_WHO}: interrupted; nothing is compared")
        raise typer.Exit(INTERRUPTED)
    if html is not None:
        from ...play.comparison.comparison_page import comparison_html

        with ends_on(LicorneError, _WHO):
            write_whole(html, comparison_html(comparison))
    _print_comparison(comparison, as_json=as_json)
    failed = [result for result in comparison.conditions if result.holds]
    for result in failed:
        write_error(f"{_WHO}: {result.sentence()}")
    if failed:
        raise typer.Exit(_FAILED)


def _compared(
    input_options: InputOptions,
    files: tuple[Path, Path],
    settings: tuple[RunSettings, RunSettings],
    conditions: Iterable[Condition],
    options_of_b: Mapping[str, Any],
    *,
    with_reasons: bool,
    windows: int | None,
) -> TwoRuns | None:
    """Load the input, simulate under A and under B; return `None` where that was interrupted.

    A long workload is simulated under B in another process at the same time.
    """
    from ...play.comparison.comparison import compared, with_why
    from ...play.comparison.why import InterruptedRunError
    from ...play.comparison.windows import compared_windows
    from ...play.simulation.driver import interruption_noted
    from ...play.simulation.runs import run_beside
    from ...play.simulation.workloads.inputs import load_input

    work = load_input(input_options)
    paths = (str(files[0]), str(files[1]))
    a, b = settings
    with interruption_noted() as is_interrupted:
        named = {f"A, {paths[0]}": a, f"B, {paths[1]}": b}
        runs = tuple(run_beside(work, named, options_of_b, is_interrupted).values())
        if any(run.report.is_interrupted for run in runs):
            return None
        both = (runs[0], runs[1])
        comparison = compared(paths, both, conditions)
        if windows is not None:
            seed = input_options.seed
            in_windows = compared_windows(work, settings, windows, seed, is_interrupted)
            if in_windows is None:
                return None
            comparison = replace(comparison, windows=in_windows)
        if not with_reasons:
            return comparison
        try:
            return with_why(comparison, work, settings, both, is_interrupted)
        except InterruptedRunError:
            return None


def _print_comparison(comparison: TwoRuns, *, as_json: bool) -> None:
    """Print a comparison to standard output."""
    from ...base.terminal.standard_output import is_for_people, output_console
    from ...play.comparison.comparison import comparison_document
    from ...play.comparison.comparison_output import print_comparison

    if as_json:
        write_line(json.dumps(comparison_document(comparison)))
    else:
        print_comparison(comparison, output_console(), plain=not is_for_people())
