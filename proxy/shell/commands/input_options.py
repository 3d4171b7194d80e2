"""How the input of a command is read: the options that all commands with an input of `simulate` share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from ....model.errors import LicorneError
from .options import number_option, value_option, with_settings

if TYPE_CHECKING:
    from ...play.simulation.workloads.inputs import InputOptions

_FACTOR: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InputSettings:
    """The options as they were given: each field is one."""

    nodes: Annotated[
        Path | None,
        typer.Option("--nodes", help="The nodes of openb pods (.csv), or the machines of a log."),
    ] = None
    csv_mapping: Annotated[
        Path | None,
        value_option("--csv-mapping", "FILE", "Which columns of a CSV file of jobs mean what (.yaml)."),
    ] = None
    own_times: Annotated[
        bool,
        typer.Option("--own-times", help="Replay openb pods by their own times, instead of packing them."),
    ] = False
    seed: Annotated[int, number_option("--seed", "What durations of a scenario are drawn with.")] = 1
    gang: Annotated[
        bool, typer.Option("--gang", help="Start each job of a log as a whole, instead of task by task.")
    ] = False
    task_processors: Annotated[
        int | None,
        number_option(
            "--task-processors",
            "How many processors a task of a log has at most; else what its request or a node says.",
            at_least=1,
        ),
    ] = None
    estimate_factor: Annotated[
        int | None,
        number_option(
            "--estimate-factor",
            "The walltime of jobs of a log without a requested time, in run times; by default none.",
            at_least=1,
        ),
    ] = None
    begin: Annotated[
        str | None, value_option("--from", "DURATION", "Leave out jobs that are submitted before this time.")
    ] = None
    end: Annotated[
        str | None, value_option("--to", "DURATION", "Leave out jobs that are submitted from this time on.")
    ] = None
    first: Annotated[
        int | None, number_option("--first", "Take so many jobs, in the order of submission.", at_least=1)
    ] = None
    scale_rate: Annotated[
        str | None, value_option("--scale-rate", "FACTOR", "Jobs follow each other so many times as fast.")
    ] = None
    scale_size: Annotated[
        str | None, value_option("--scale-size", "FACTOR", "Tasks ask for so many times as much.")
    ] = None
    scale_nodes: Annotated[
        str | None, value_option("--scale-nodes", "FACTOR", "There are so many times as many nodes.")
    ] = None

    def of(self, path: Path) -> InputOptions:
        """Return how an input is read.

        Raises:
            LicorneError: A time is no duration, or a factor no number above zero.
        """
        from ...play.simulation.workloads.inputs import InputOptions
        from ...play.simulation.workloads.swf import JobOptions
        from ...play.simulation.workloads.workload import WorkloadCut

        cut = WorkloadCut(
            from_ns=_time_ns("--from", self.begin),
            to_ns=_time_ns("--to", self.end),
            first=self.first,
            rate=_factor("--scale-rate", self.scale_rate),
            size=_factor("--scale-size", self.scale_size),
            nodes=_factor("--scale-nodes", self.scale_nodes),
        )
        if cut.to_ns is not None and cut.to_ns <= (cut.from_ns or 0):
            raise LicorneError(f"--to {self.end} is not after --from {self.begin or '0s'}")
        return InputOptions(
            path=path,
            nodes_path=self.nodes,
            own_times=self.own_times,
            seed=self.seed,
            jobs=JobOptions(
                whole=self.gang,
                task_processors=self.task_processors,
                estimate_factor=self.estimate_factor,
            ),
            csv_mapping_path=self.csv_mapping,
            cut=cut,
        )


DEFAULT_INPUT_SETTINGS: Final = InputSettings()
"""Nothing is said."""

with_input_settings: Final = with_settings("input_settings", InputSettings)
"""Gives a command the options of `InputSettings` in place of its parameter `input_settings`."""


def _time_ns(option: str, text: str | None) -> int | None:
    """Return a time from the start of the input."""
    from ....model.configuration.durations import DurationError, parse_duration_ns

    if text is None:
        return None
    try:
        time_ns = parse_duration_ns(text)
    except DurationError as error:
        raise LicorneError(f"{option}: {error}") from error
    if time_ns < 0:
        raise LicorneError(f"{option} {text}: a time before the start")
    return time_ns


def _factor(option: str, text: str | None) -> Fraction:
    """Return a factor; one where none is given."""
    if text is None:
        return Fraction(1)
    factor = Fraction(text) if _FACTOR.fullmatch(text) is not None else Fraction(0)
    if factor <= 0:
        raise LicorneError(f"{option}: expected a number above 0 such as 1.5, not {text!r}")
    return factor
