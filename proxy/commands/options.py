"""The options that several commands have. To load them loads nothing of the scheduler."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from ..scheduler.engine_names import ENGINES

if TYPE_CHECKING:
    from collections.abc import Callable

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
    "whole_number",
]

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


def whole_number(option: str, at_least: int | None = None) -> Callable[[str | int], int]:
    """Return what reads the value of an option: typer's own reader refuses one in words for programmers."""

    def read(value: str | int) -> int:
        text = str(value)
        number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
        if number is None or (at_least is not None and number < at_least):
            least = "" if at_least is None else f" from {at_least:,} on"
            raise typer.BadParameter(
                f"a whole number{least} is wanted, not {text!r}", param_hint=f"'{option}'"
            )
        return number

    return read


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
    int | None,
    typer.Option(
        "--after",
        metavar="LINE",
        parser=whole_number("--after"),
        help="Stop after this line of a transcript.",
    ),
]
NodesOption: TypeAlias = Annotated[
    Path | None, typer.Option("--nodes", help="The nodes of openb pods (.csv), or the machines of a log.")
]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", help="The queues (queues.yaml) instead of those of the input.")
]
UsersOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--users", help="Users with lists of groups (.yaml), asked instead of who is configured."),
]
EngineOption: TypeAlias = Annotated[
    str, typer.Option("--engine", help=f"What it runs on: {' or '.join(ENGINES)}.")
]
ThreadsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="NUMBER",
        parser=whole_number("--threads"),
        help="How many threads the engine `threads` has; the cycles of as many partitions run at once.",
    ),
]
OwnTimesOption: TypeAlias = Annotated[
    bool, typer.Option("--own-times", help="Replay openb pods by their own times, instead of packing them.")
]
SeedOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="NUMBER",
        parser=whole_number("--seed"),
        help="What durations of a scenario are drawn with.",
    ),
]
PartitionOption: TypeAlias = Annotated[
    str | None, typer.Option("--partition", help="The partition, where several have the application.")
]
RmOption: TypeAlias = Annotated[
    str | None, typer.Option("--rm", help="The resource manager, where several have the application.")
]
AsJsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
