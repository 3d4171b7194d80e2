"""`licorne simulate`: the command line of simulations."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path  # noqa: TC003 - typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ...model.configuration.reader import load
from ...model.errors import LicorneError
from ..bad_input import ends_on
from ..engines import ENGINES, THREADS_HELP, engine_named
from ..user_file import USERS_HELP, read_users
from .input_files import read_text
from .inputs import InputOptions, load_input
from .openb import OpenbMode
from .progress import progress_on
from .report import document_of
from .report_table import print_report
from .scheduler_core import open_scheduler_core
from .simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..resolvers.resolver import UserResolver
    from ..scheduler import EngineName
    from .core import Core
    from .report import SimulationReport
    from .simulation import CoreFactory

__all__ = ["simulate_command"]


def simulate_command(
    open_core: Callable[[EngineName, UserResolver | None, int | None], Core] = open_scheduler_core,
) -> Callable[..., None]:
    """Return the command as typer takes it.

    Args:
        open_core: Opens the scheduler that is simulated, with who is asked for groups and how many threads.
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
        nodes: Annotated[
            Path | None, typer.Option(help="The nodes of openb pods (.csv), or the machines of a log.")
        ] = None,
        config: Annotated[
            Path | None, typer.Option(help="The queues (queues.yaml); by default what fits the input.")
        ] = None,
        engine: Annotated[str, typer.Option(help=f"What it runs on: {' or '.join(ENGINES)}.")] = "direct",
        threads: Annotated[int | None, typer.Option(help=THREADS_HELP)] = None,
        own_times: Annotated[
            bool,
            typer.Option(
                "--own-times", help="Replay openb pods by their own times, instead of packing them."
            ),
        ] = False,
        users: Annotated[Path | None, typer.Option(help=USERS_HELP)] = None,
        seed: Annotated[int, typer.Option(help="What durations of a scenario are drawn with.")] = 1,
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    ) -> None:
        """Run a workload against the scheduler on a virtual clock, and report what became of it."""
        options = InputOptions(
            path=input_path,
            nodes_path=nodes,
            openb_mode=OpenbMode.OWN_TIMES if own_times else OpenbMode.PACKING,
            seed=seed,
        )
        with ends_on(LicorneError, "licorne simulate"):
            resolver = None if users is None else read_users(users)
            report = _run(
                options, config, engine_named(engine), lambda name: open_core(name, resolver, threads)
            )
        _print(report, as_json=as_json)

    return command


def _run(
    options: InputOptions, config: Path | None, engine: EngineName, open_core: CoreFactory
) -> SimulationReport:
    """Load everything, and only then simulate."""
    configuration = None
    if config is not None:
        configuration = read_text(config)
        load(configuration, source=str(config))
    work = load_input(options)
    with progress_on(sys.stderr, work.name) as progress:
        return simulate(
            work,
            open_core,
            engine=engine,
            configuration=configuration,
            progress=progress,
            stopwatch=time.perf_counter,
        )


def _print(report: SimulationReport, *, as_json: bool) -> None:
    """Print a report to standard output."""
    if as_json:
        typer.echo(json.dumps(document_of(report)))
    else:
        print_report(report, Console())
