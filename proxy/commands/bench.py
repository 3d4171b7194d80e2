"""The command `licorne bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..bench.engine import Engine
from ..bench.errors import BenchError, UnknownWorkloadError
from ..bench.workloads import DEFAULT_NAMES, WORKLOADS, workload_named
from ..terminal.bad_input import ends_on, say
from ..terminal.standard_output import write_line
from .options import whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..bench.figures import Figures
    from ..bench.workloads import Workload

__all__ = ["bench"]

_NAMES = " ".join(workload.name for workload in WORKLOADS)


_TRACE_EVENTS: Final = 50_000


def _engine(value: str | Engine) -> Engine:
    """Return the engine of that name."""
    try:
        return Engine(value)
    except ValueError:
        names = ", ".join(engine.value for engine in Engine)
        raise typer.BadParameter(
            f"{value!r} is unknown, there are {names}", param_hint="'--engine'"
        ) from None


def bench(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(help=f"What to run: {_NAMES}. Without names: {' '.join(DEFAULT_NAMES)}."),
    ] = None,
    *,
    engine: Annotated[
        Engine, typer.Option(metavar="NAME", parser=_engine, help="The engine to run on.")
    ] = Engine.ACTORS,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number("--threads", 1),
            help="How many scheduling threads the engine `threads` has; by default two.",
        ),
    ] = None,
    all_engines: Annotated[bool, typer.Option("--all-engines", help="Run on every engine.")] = False,
    all_workloads: Annotated[bool, typer.Option("--all", help="Run every workload.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of tables.")] = False,
    repeat: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number("--repeat", 1),
            help="Run each so often, and report the run in the middle.",
        ),
    ] = 1,
    locks: Annotated[
        bool,
        typer.Option(
            "--locks", help="Measure what checking locks costs and what threads bring, no workload."
        ),
    ] = False,
    trace_events: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number("--trace-events", 1_000),
            help=f"With --locks: events in the trace that is analysed; by default {_TRACE_EVENTS:,}.",
        ),
    ] = None,
) -> None:
    """Measure how fast the scheduler is, in units of what this machine allows."""
    if trace_events is not None and not locks:
        raise typer.BadParameter("--trace-events is for --locks")
    if locks:
        if workloads or all_workloads:
            raise typer.BadParameter("--locks runs no workload; leave the workloads out")
        _report_locks(trace_events or _TRACE_EVENTS, as_json=as_json)
        return
    chosen = _chosen(workloads or [], all_workloads=all_workloads)
    engines = list(Engine) if all_engines else [engine]
    if threads is not None and Engine.THREADS not in engines:
        raise typer.BadParameter(f"--threads is for the engine threads, not for {engine.value}")
    _report(_run(chosen, engines, repeat, threads), as_json=as_json)


def _chosen(names: Sequence[str], *, all_workloads: bool) -> list[Workload]:
    if all_workloads and names:
        raise typer.BadParameter(f"--all runs every workload; leave out {' '.join(names)}")
    if all_workloads:
        return list(WORKLOADS)
    try:
        return [workload_named(name) for name in names or DEFAULT_NAMES]
    except UnknownWorkloadError as error:
        raise typer.BadParameter(str(error)) from error


def _run(
    workloads: Sequence[Workload], engines: Sequence[Engine], repeat: int, threads: int | None
) -> list[Figures]:
    from ..bench.run import run_all

    done: list[Figures] = []
    total = len(workloads) * len(engines)
    with ends_on(BenchError, "Error", status=1):
        for figures in run_all(workloads, engines, repeat=repeat, threads=threads):
            done.append(figures)
            say(f"{figures.workload} on {figures.engine_text} ({len(done)} of {total})")
    return done


def _report(runs: Sequence[Figures], *, as_json: bool) -> None:
    from ..bench.report import report_json, report_tables
    from ..terminal.tables import is_for_people, output_console, print_table

    if as_json:
        write_line(report_json(runs))
        return
    console = output_console()
    for table in report_tables(runs):
        print_table(table, console, plain=not is_for_people())


def _report_locks(trace_events: int, *, as_json: bool) -> None:
    from time import perf_counter, sleep

    from ..bench.lock_costs import measure_lock_costs
    from ..bench.lock_figures import measure_lock_figures
    from ..bench.report import (
        judged_pace_table,
        lock_costs_json,
        lock_costs_table,
        lock_figures_table,
        shared_pace_table,
    )
    from ..bench.thread_pace import measure_judged_pace, measure_shared_pace
    from ..terminal.tables import is_for_people, output_console, print_table

    costs = measure_lock_costs(perf_counter)
    figures = measure_lock_figures(perf_counter, trace_events=trace_events)
    with ends_on(BenchError, "Error", status=1):
        judged = measure_judged_pace(perf_counter, sleep)
        shared = measure_shared_pace(perf_counter)
    if as_json:
        write_line(lock_costs_json(costs, figures, judged=judged, shared=shared))
    else:
        console = output_console()
        for table in (
            lock_costs_table(costs),
            lock_figures_table(figures),
            judged_pace_table(judged),
            shared_pace_table(shared),
        ):
            print_table(table, console, plain=not is_for_people())
