"""`licorne compare`: one input under two configurations, and which jobs start earlier or later."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ....model.errors import LicorneError
from ...base.process_settings import prepare_process
from ...base.terminal.standard_output import INTERRUPTED, ends_on, write_error, write_line
from .options import (
    DEFAULT_INPUT_SETTINGS,
    AsJsonOption,
    EngineOption,
    InputSettings,
    PolicyOptions,
    ThreadsOption,
    UsersOption,
    value_option,
    with_input_settings,
    with_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...play.comparison.comparison import TwoRuns
    from ...play.comparison.conditions import Condition
    from ...play.simulation.runs import RunSettings
    from ...play.simulation.workloads.inputs import InputOptions

_WHO: Final = "licorne compare"
_FAILED: Final = 1
"""The status of a comparison of which a condition of `--fail-if` holds."""


@with_settings("policies", PolicyOptions)
@with_input_settings
def compare(
    *,
    a: Annotated[Path, typer.Argument(metavar="A", help="The queues as they are (queues.yaml).")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The queues as they could be.")],
    input_path: Annotated[
        Path,
        value_option("--input", "FILE", "What runs under both: any input of `licorne simulate`.", short="-i"),
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
            help="Say why the first decision differs, by which settings, and what follows: more runs.",
        ),
    ] = False,
    html: Annotated[Path | None, value_option("--html", "FILE", "Write it as one page.")] = None,
    engine: EngineOption = "direct",
    threads: ThreadsOption = None,
    users: UsersOption = None,
    policies: PolicyOptions,
    input_settings: InputSettings = DEFAULT_INPUT_SETTINGS,
    as_json: AsJsonOption = False,
) -> None:
    """Run one input under two configurations, and say which jobs start later in B and which earlier.

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
        comparison = _compared(input_settings.of(input_path), (a, b), settings, conditions, with_reasons=why)
    if comparison is None:
        write_error(f"{_WHO}: interrupted; nothing is compared")
        raise typer.Exit(INTERRUPTED)
    if html is not None:
        from ...play.comparison.comparison_page import comparison_html

        with ends_on(LicorneError, _WHO):
            write_whole(html, comparison_html(comparison))
    _print(comparison, as_json=as_json)
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
    *,
    with_reasons: bool,
) -> TwoRuns | None:
    """Load the input, simulate under A and then under B; return `None` where that was interrupted."""
    from ...play.comparison.comparison import compared, with_why
    from ...play.comparison.why import InterruptedRunError
    from ...play.simulation.driver import interruption_noted
    from ...play.simulation.runs import run_each
    from ...play.simulation.workloads.inputs import load_input

    work = load_input(input_options)
    paths = (str(files[0]), str(files[1]))
    a, b = settings
    with interruption_noted() as is_interrupted:
        named = {f"A, {paths[0]}": a, f"B, {paths[1]}": b}
        runs = tuple(run_each(work, named, is_shown=True, is_interrupted=is_interrupted).values())
        if any(run.report.is_interrupted for run in runs):
            return None
        both = (runs[0], runs[1])
        comparison = compared(paths, both, conditions)
        if not with_reasons:
            return comparison
        try:
            return with_why(comparison, work, settings, both, is_interrupted)
        except InterruptedRunError:
            return None


def _print(comparison: TwoRuns, *, as_json: bool) -> None:
    """Print a comparison to standard output."""
    from ...base.terminal.tables import is_for_people, output_console
    from ...play.comparison.comparison import comparison_document
    from ...play.comparison.comparison_table import print_comparison

    if as_json:
        write_line(json.dumps(comparison_document(comparison)))
    else:
        print_comparison(comparison, output_console(), plain=not is_for_people())
