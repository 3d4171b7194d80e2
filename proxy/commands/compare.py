"""`licorne compare`: one input under two configurations, and which jobs start earlier or later."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ...model.errors import LicorneError
from ..process_settings import prepare_process
from ..scheduler.engine_names import engine_named
from ..terminal.bad_input import INTERRUPTED, ends_on, write_error
from ..terminal.standard_output import write_line
from .input_options import DEFAULT_INPUT_SETTINGS, InputSettings, with_input_settings
from .options import (
    AsJsonOption,
    EngineOption,
    ThreadsOption,
    UsersOption,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..scheduler.engine_names import EngineName
    from ..simulation.comparison.comparison import Comparison
    from ..simulation.comparison.conditions import Condition
    from ..simulation.simulation import CoreFactory
    from ..simulation.workloads.inputs import InputOptions

__all__ = ["compare"]

_WHO: Final = "licorne compare"
_FAILED: Final = 1
"""The status of a comparison of which a condition of `--fail-if` holds."""


@with_input_settings
def compare(
    *,
    a: Annotated[Path, typer.Argument(metavar="A", help="The queues as they are (queues.yaml).")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The queues as they could be.")],
    input_path: Annotated[
        Path,
        typer.Option(
            "--input", "-i", metavar="FILE", help="What runs under both: any input of `licorne simulate`."
        ),
    ],
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="CONDITION",
            help="End with status 1 if this holds, such as 'p95 wait of root.prod > 5m'; may be repeated.",
        ),
    ] = None,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    users: UsersOption = None,
    input_settings: InputSettings = DEFAULT_INPUT_SETTINGS,
    as_json: AsJsonOption = False,
) -> None:
    """Run one input under two configurations, and say which jobs start later in B and which earlier.

    Ends with status 1 if a condition of --fail-if holds.
    """
    from ..resolvers.user_file import read_users
    from ..simulation.comparison.conditions import read_condition
    from ..simulation.scheduler_core import SchedulerCore

    prepare_process()
    with ends_on(LicorneError, _WHO):
        conditions = [read_condition(text) for text in fail_if or ()]
        resolver = None if users is None else read_users(users)
        comparison = _compared(
            input_settings.of(input_path),
            (a, b),
            conditions,
            engine=engine_named(engine),
            open_core=lambda name: SchedulerCore(name, resolver, threads),
        )
    if comparison is None:
        write_error(f"{_WHO}: interrupted; nothing is compared")
        raise typer.Exit(INTERRUPTED)
    _print(comparison, as_json=as_json)
    failed = [result for result in comparison.conditions if result.holds]
    for result in failed:
        write_error(f"{_WHO}: {result.sentence()}")
    if failed:
        raise typer.Exit(_FAILED)


def _compared(
    options: InputOptions,
    files: tuple[Path, Path],
    conditions: Iterable[Condition],
    *,
    engine: EngineName,
    open_core: CoreFactory,
) -> Comparison | None:
    """Load everything, simulate under A and then under B; return `None` where that was interrupted."""
    from ..simulation.comparison.comparison import ComparedRun, build_comparison
    from ..simulation.decisions import Decisions
    from ..simulation.given_queues import read_queues
    from ..simulation.interruption import interruption_noted
    from ..simulation.progress import progress_on
    from ..simulation.simulation import simulate
    from ..simulation.workloads.inputs import load_input

    queues = [read_queues(file) for file in files]
    work = load_input(options)
    notes = [given.checked_notes(work) for given in queues]
    runs = []
    with interruption_noted() as is_interrupted:
        for given, noted in zip(queues, notes, strict=True):
            with progress_on(sys.stderr, f"{work.name} under {given.path}") as progress:
                decisions = Decisions()
                report = simulate(
                    work,
                    open_core,
                    engine=engine,
                    configuration=given.text,
                    progress=progress,
                    stopwatch=time.perf_counter,
                    is_interrupted=is_interrupted,
                    configuration_notes=noted,
                    with_jobs=True,
                    decisions=decisions,
                )
            if report.is_interrupted:
                return None
            runs.append(ComparedRun(file=str(given.path), report=report, decisions=tuple(decisions)))
    return build_comparison(runs[0], runs[1], conditions)


def _print(comparison: Comparison, *, as_json: bool) -> None:
    """Print a comparison to standard output."""
    from ..simulation.comparison.comparison import comparison_document
    from ..simulation.comparison.comparison_table import print_comparison
    from ..terminal.tables import is_for_people, output_console

    if as_json:
        write_line(json.dumps(comparison_document(comparison)))
    else:
        print_comparison(comparison, output_console(), plain=not is_for_people())
