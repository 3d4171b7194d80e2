"""`licorne compare`: one input under two configurations, and which jobs start earlier or later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ....model.errors import LicorneError
from ...base.process_settings import prepare_process
from ...base.terminal.standard_output import INTERRUPTED, ends_on, write_error, write_line
from ...core.scheduler.engine_names import engine_named
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
    from collections.abc import Callable, Iterable

    from ...core.scheduler.engine_names import EngineName
    from ...play.comparison.comparison import Comparison
    from ...play.comparison.conditions import Condition
    from ...play.simulation.core import SchedulerCore
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
    from ...core.resolvers.resolver import read_users
    from ...play.comparison.conditions import read_condition
    from ...play.simulation.core import SchedulerCore

    prepare_process()
    with ends_on(LicorneError, _WHO):
        if html is not None:
            check_writable(html)
        given = policies.given()
        conditions = [read_condition(text) for text in fail_if or ()]
        resolver = None if users is None else read_users(users)
        comparison = _compared(
            input_settings.of(input_path),
            (a, b),
            conditions,
            engine=engine_named(engine),
            open_core=lambda name: SchedulerCore(name, resolver, threads, policies=given),
            with_reasons=why,
        )
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
    options: InputOptions,
    files: tuple[Path, Path],
    conditions: Iterable[Condition],
    *,
    engine: EngineName,
    open_core: Callable[[EngineName], SchedulerCore],
    with_reasons: bool,
) -> Comparison | None:
    """Load everything, simulate under A and then under B; return `None` where that was interrupted."""
    from ...play.comparison.comparison import TwoRuns
    from ...play.simulation.driver import interruption_noted
    from ...play.simulation.simulation import read_queues
    from ...play.simulation.workloads.inputs import load_input

    queues = (read_queues(files[0]), read_queues(files[1]))
    work = load_input(options)
    with interruption_noted() as is_interrupted:
        runs = TwoRuns(work, queues, engine=engine, open_core=open_core, is_interrupted=is_interrupted)
        return runs.compared(conditions, with_reasons=with_reasons)


def _print(comparison: Comparison, *, as_json: bool) -> None:
    """Print a comparison to standard output."""
    from ...base.terminal.tables import is_for_people, output_console
    from ...play.comparison.comparison import comparison_document
    from ...play.comparison.comparison_table import print_comparison

    if as_json:
        write_line(json.dumps(comparison_document(comparison)))
    else:
        print_comparison(comparison, output_console(), plain=not is_for_people())
