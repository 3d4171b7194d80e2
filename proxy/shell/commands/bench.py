"""The command `licorne bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ....model.errors import LicorneError
from ...base.terminal.bad_input import ends_on, write_error
from ...base.terminal.standard_output import write_line
from ...bench.errors import BenchError, UnknownWorkloadError
from ...bench.workload_table import DEFAULT_NAMES, WORKLOADS, workload_named
from ...core.scheduler.engine_names import ENGINES, EngineName, engine_named
from .options import EngineOption, number_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...bench.figures import Figures
    from ...bench.workloads import BenchWorkload

_NAMES = " ".join(workload.name for workload in WORKLOADS)


def bench(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(help=f"What to run: {_NAMES}. Without names: {' '.join(DEFAULT_NAMES)}."),
    ] = None,
    *,
    engine: EngineOption = "actors",
    threads: Annotated[
        int | None,
        number_option(
            "--threads", "How many scheduling threads the engine `threads` has; by default two.", at_least=1
        ),
    ] = None,
    all_engines: Annotated[bool, typer.Option("--all-engines", help="Run on every engine.")] = False,
    all_workloads: Annotated[bool, typer.Option("--all", help="Run every workload.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
    repeat: Annotated[
        int,
        number_option("--repeat", "Run each so often, and report the run in the middle.", at_least=1),
    ] = 1,
) -> None:
    """Measure how fast the scheduler is on this machine."""
    chosen = _chosen(workloads or [], all_workloads=all_workloads)
    with ends_on(LicorneError, "licorne bench"):
        engines = list(ENGINES) if all_engines else [engine_named(engine)]
    if threads is not None and "threads" not in engines:
        raise typer.BadParameter(f"--threads is for the engine threads, not for {engine}")
    _report(_run(chosen, engines, repeat, threads), as_json=as_json)


def _chosen(names: Sequence[str], *, all_workloads: bool) -> list[BenchWorkload]:
    if all_workloads and names:
        raise typer.BadParameter(f"--all runs every workload; leave out {' '.join(names)}")
    if all_workloads:
        return list(WORKLOADS)
    try:
        return [workload_named(name) for name in names or DEFAULT_NAMES]
    except UnknownWorkloadError as error:
        raise typer.BadParameter(str(error)) from error


def _run(
    workloads: Sequence[BenchWorkload], engines: Sequence[EngineName], repeat: int, threads: int | None
) -> list[Figures]:
    from ...bench.run import run_all

    done: list[Figures] = []
    total = len(workloads) * len(engines)
    with ends_on(BenchError, "Error", status=1):
        for figures in run_all(workloads, engines, repeat=repeat, threads=threads):
            done.append(figures)
            write_error(f"{figures.workload} on {figures.engine_text} ({len(done)} of {total})")
    return done


def _report(runs: Sequence[Figures], *, as_json: bool) -> None:
    from ...base.terminal.tables import is_for_people, output_console, print_table
    from ...bench.report import report_json, report_tables

    if as_json:
        write_line(report_json(runs))
        return
    console = output_console()
    for table in report_tables(runs):
        print_table(table, console, plain=not is_for_people())
