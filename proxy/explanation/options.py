"""The options that `explain` and `dry-run` share: what is played, and up to when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ...model.configuration.durations import parse_duration_ns
from ...model.errors import LicorneError
from ..engines import ENGINES, THREADS_HELP, engine_named
from ..simulation.inputs import InputOptions
from ..simulation.openb import OpenbMode
from ..user_file import USERS_HELP
from .stage import StageOptions

__all__ = [
    "AfterOption",
    "AsJsonOption",
    "AtOption",
    "ConfigOption",
    "EngineOption",
    "InputOption",
    "NodesOption",
    "OwnTimesOption",
    "PartitionOption",
    "RmOption",
    "SeedOption",
    "ThreadsOption",
    "UsersOption",
    "stage_options",
]

InputOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE",
        help="A transcript (.jsonl), which is replayed, or what `simulate` takes, which is simulated.",
    ),
]
AtOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--at", metavar="DURATION", help="Stop at this virtual time, such as 90s; else at the end."),
]
AfterOption: TypeAlias = Annotated[
    int | None, typer.Option("--after", metavar="LINE", help="Stop after this line of a transcript.")
]
NodesOption: TypeAlias = Annotated[
    Path | None, typer.Option("--nodes", help="The nodes of openb pods (.csv), or the machines of a log.")
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="The queues (queues.yaml) instead of those of the input.")
]
UsersOption: TypeAlias = Annotated[Path | None, typer.Option("--users", help=USERS_HELP)]
EngineOption: TypeAlias = Annotated[
    str, typer.Option("--engine", help=f"What it runs on: {' or '.join(ENGINES)}.")
]
ThreadsOption: TypeAlias = Annotated[int | None, typer.Option("--threads", help=THREADS_HELP)]
OwnTimesOption: TypeAlias = Annotated[
    bool, typer.Option("--own-times", help="Replay openb pods by their own times, instead of packing them.")
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option("--seed", help="What durations of a scenario are drawn with.")
]
PartitionOption: TypeAlias = Annotated[
    str | None, typer.Option("--partition", help="The partition, where several have the application.")
]
RmOption: TypeAlias = Annotated[
    str | None, typer.Option("--rm", help="The resource manager, where several have the application.")
]
AsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def stage_options(
    path: Path,
    *,
    at: str | None,
    after: int | None,
    nodes: Path | None,
    config: Path | None,
    users: Path | None,
    engine: str,
    threads: int | None,
    own_times: bool,
    seed: int,
) -> StageOptions:
    """Check the options, and return what they ask for.

    Raises:
        LicorneError: The engine is unknown, or the time is none.
    """
    return StageOptions(
        input=InputOptions(
            path=path,
            nodes_path=nodes,
            openb_mode=OpenbMode.OWN_TIMES if own_times else OpenbMode.PACKING,
            seed=seed,
        ),
        config_path=config,
        users_path=users,
        engine=engine_named(engine),
        threads=threads,
        at_ns=None if at is None else _moment_ns(at),
        after_line=after,
    )


def _moment_ns(text: str) -> int:
    moment_ns = parse_duration_ns(text)
    if moment_ns < 0:
        raise LicorneError(f"--at {text}: a time before the start")
    return moment_ns
