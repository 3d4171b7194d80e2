"""`licorne simulate`: the command line of simulations."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...model.errors import LicorneError
from ..process_settings import prepare_process
from ..scheduler.engine_names import engine_named
from ..terminal.bad_input import INTERRUPTED, ends_on, write_error
from ..terminal.standard_output import write_line
from .options import (
    AsJsonOption,
    EngineOption,
    NodesOption,
    OwnTimesOption,
    SeedOption,
    ThreadsOption,
    UsersOption,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..resolvers.resolver import UserResolver
    from ..scheduler.engine_names import EngineName
    from ..simulation.core import Core
    from ..simulation.given_queues import GivenQueues
    from ..simulation.report import SimulationReport
    from ..simulation.reporting.figures import RunFigures
    from ..simulation.simulation import CoreFactory
    from ..simulation.workloads.inputs import InputOptions
    from ..simulation.workloads.transcript_input import Transcript
    from ..simulation.workloads.workload import InputNote, Workload

__all__ = ["simulate_command"]


def _open_scheduler_core(engine: EngineName, resolver: UserResolver | None, threads: int | None) -> Core:
    from ..simulation.scheduler_core import SchedulerCore

    return SchedulerCore(engine, resolver, threads)


def simulate_command(
    open_core: Callable[[EngineName, UserResolver | None, int | None], Core] = _open_scheduler_core,
) -> Callable[..., None]:
    """Return the command as typer takes it.

    Args:
        open_core: Opens the scheduler that is simulated, with a resolver of groups and a number of threads.
    """

    def command(
        *,
        input_path: Annotated[
            Path,
            typer.Argument(
                metavar="INPUT",
                help="A scenario (.yaml), a log (.swf), openb pods (.csv) or a transcript (.jsonl).",
            ),
        ],
        nodes: NodesOption = None,
        config: Annotated[
            Path | None, typer.Option(help="The queues (queues.yaml); by default what fits the input.")
        ] = None,
        engine: EngineOption = "direct",
        threads: ThreadsOption = None,
        own_times: OwnTimesOption = False,
        users: UsersOption = None,
        seed: SeedOption = 1,
        as_json: AsJsonOption = False,
        report_path: Annotated[
            Path | None,
            typer.Option("--report", metavar="FILE", help="Write figures over time as a page (HTML)."),
        ] = None,
        report_json: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Write these figures as JSON, for --compare.")
        ] = None,
        report_csv: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Write these figures as CSV.")
        ] = None,
        compare: Annotated[
            Path | None,
            typer.Option(
                metavar="FILE", help="Show figures of --report-json beside those of this run, with --report."
            ),
        ] = None,
    ) -> None:
        """Run a workload against the scheduler on a virtual clock, and report what became of it."""
        from ..resolvers.user_file import read_users
        from ..simulation.workloads.inputs import InputOptions

        options = InputOptions(path=input_path, nodes_path=nodes, own_times=own_times, seed=seed)
        prepare_process()
        with ends_on(LicorneError, "licorne simulate"):
            outputs = report_outputs(report_path, report_json, report_csv, compare)
            resolver = None if users is None else read_users(users)
            report = _run(
                options,
                config,
                engine_named(engine),
                lambda name: open_core(name, resolver, threads),
                with_figures=outputs.is_anything_wanted(),
            )
        _print(report, as_json=as_json)
        with ends_on(LicorneError, "licorne simulate"):
            outputs.write(report)
        if report.is_interrupted:
            write_error("licorne simulate: interrupted; this is what was known")
            raise typer.Exit(INTERRUPTED)

    return command


def _run(
    options: InputOptions,
    config: Path | None,
    engine: EngineName,
    open_core: CoreFactory,
    *,
    with_figures: bool,
) -> SimulationReport:
    """Load everything, and only then simulate."""
    from ..simulation.given_queues import read_queues
    from ..simulation.interruption import interruption_noted
    from ..simulation.progress import progress_on
    from ..simulation.simulation import simulate
    from ..simulation.workloads.inputs import load_input

    given = None if config is None else read_queues(config)
    work = load_input(options)
    notes = () if given is None else _notes_of(given, work)
    with progress_on(sys.stderr, work.name) as progress, interruption_noted() as is_interrupted:
        return simulate(
            work,
            open_core,
            engine=engine,
            configuration=None if given is None else given.text,
            progress=progress,
            stopwatch=time.perf_counter,
            is_interrupted=is_interrupted,
            configuration_notes=notes,
            with_figures=with_figures,
        )


def _notes_of(given: GivenQueues, work: Workload | Transcript) -> tuple[InputNote, ...]:
    """Refuse a configuration that does not fit the work; return what is probably not meant in it."""
    from ..simulation.given_queues import node_types_in, partitions_in
    from ..simulation.workloads.workload import Workload

    if isinstance(work, Workload):
        given.check_partitions()
        return given.notes(work.node_types())
    lines = [step.line for step in work.steps]
    given.check_partitions(partitions_in(lines))
    return given.notes(node_types_in(lines))


def _print(report: SimulationReport, *, as_json: bool) -> None:
    """Print a report to standard output."""
    from ..simulation.report import document_of
    from ..simulation.report_table import print_report
    from ..terminal.tables import is_for_people, output_console

    if as_json:
        write_line(json.dumps(document_of(report)))
    else:
        print_report(report, output_console(), plain=not is_for_people())


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureOutputs:
    """The files to write, `None` where one is not wanted; `other` are the figures to compare with."""

    page: Path | None
    json: Path | None
    csv: Path | None
    other: RunFigures | None

    def is_anything_wanted(self) -> bool:
        """Return whether figures have to be collected."""
        return not (self.page is None and self.json is None and self.csv is None)

    def write(self, report: SimulationReport) -> None:
        """Write all files; each is there as a whole, or as it was before.

        Raises:
            UnwritableFileError: One cannot be written; those before it have been.
        """
        if report.figures is None:
            return
        from ..files.output_files import write_whole
        from ..simulation.reporting.figure_files import to_csv, to_json
        from ..simulation.reporting.page import to_html

        if self.json is not None:
            write_whole(self.json, to_json(report.figures))
        if self.csv is not None:
            write_whole(self.csv, to_csv(report.figures))
        if self.page is not None:
            write_whole(self.page, to_html(report.figures, self.other))


def report_outputs(
    page: Path | None, json: Path | None, csv: Path | None, compare: Path | None
) -> FigureOutputs:
    """Check the options, and read the figures to compare with.

    Raises:
        LicorneError: Two options name one file, one cannot be written, or a comparison has no page.
        InputError: The figures to compare with cannot be read.
    """
    if compare is not None and page is None:
        raise LicorneError("--compare shows two runs on a page: --report FILE has to say which")
    other = None
    if compare is not None:
        from ..simulation.reporting.figure_files import read_figures

        other = read_figures(compare)
    named = [
        (option, path)
        for option, path in (("--report", page), ("--report-json", json), ("--report-csv", csv))
        if path is not None
    ]
    if named:
        from ..files.output_files import check_writable

        seen: dict[Path, str] = {}
        for option, path in named:
            before = seen.setdefault(path.resolve(), option)
            if before != option:
                raise LicorneError(f"{before} and {option} name the same file, {path}")
            check_writable(path)
    return FigureOutputs(page=page, json=json, csv=csv, other=other)
