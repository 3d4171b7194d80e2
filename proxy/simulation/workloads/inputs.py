"""Load the input of a simulation, from any kind of file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from ...files.input_errors import InputError
from ...files.input_files import read_text
from .openb import POD_COLUMNS, OpenbMode, read_openb
from .scenario import read_scenario
from .swf import JobOptions, read_swf
from .transcript_input import Transcript, read_timed_transcript
from .workload import Workload

__all__ = ["InputKind", "InputOptions", "kind_of_input", "load_input"]

_COLUMNS_OF_A_JOB: Final = 18
_FORMATS: Final = f"openb pods ({','.join(POD_COLUMNS)}), SWF, a transcript and a scenario"


class InputKind(Enum):
    """The kinds of input files."""

    OPENB = "openb pods"
    SWF = "standard workload format"
    TRANSCRIPT = "transcript"
    SCENARIO = "scenario"


_A: Final = {
    InputKind.OPENB: "a file of openb pods",
    InputKind.TRANSCRIPT: "a transcript",
    InputKind.SCENARIO: "a scenario",
}

_SUFFIXES: Final = {
    ".csv": InputKind.OPENB,
    ".swf": InputKind.SWF,
    ".jsonl": InputKind.TRANSCRIPT,
    ".yaml": InputKind.SCENARIO,
    ".yml": InputKind.SCENARIO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """An input and how to read it.

    Attributes:
        path: The file with the work.
        nodes_path: The nodes of an openb trace, or the machines of a log; `None` for none.
        own_times: Whether the pods of an openb trace come at their own times, instead of being packed.
        seed: The seed with which durations of a scenario are drawn.
        jobs: How the jobs of a log become applications.
    """

    path: Path
    nodes_path: Path | None = None
    own_times: bool = False
    seed: int = 1
    jobs: JobOptions = field(default_factory=JobOptions)


def load_input(options: InputOptions) -> Workload | Transcript:
    """Read an input as a whole.

    Raises:
        LicorneError: Something cannot be read or is wrong, with its place; nothing is returned then.
    """
    kind = kind_of_input(options.path)
    if options.nodes_path is not None and kind in {InputKind.SCENARIO, InputKind.TRANSCRIPT}:
        raise InputError(options.path, f"a {kind.value} brings its own nodes: leave out {options.nodes_path}")
    if options.jobs != JobOptions() and kind is not InputKind.SWF:
        text = f"--gang, --task-processors and --estimate-factor are for logs of jobs, and this is {_A[kind]}"
        raise InputError(options.path, text)
    match kind:
        case InputKind.OPENB:
            if options.nodes_path is None:
                _kind_of_text(
                    options.path, read_text(options.path)
                )  # A CSV of another kind is refused as such.
                raise InputError(
                    options.path,
                    "the nodes of an openb trace stand in a file of their own: name it (--nodes)",
                )
            mode = OpenbMode.OWN_TIMES if options.own_times else OpenbMode.PACKING
            return read_openb(options.nodes_path, options.path, mode)
        case InputKind.SWF:
            return read_swf(options.path, options.nodes_path, options.jobs)
        case InputKind.TRANSCRIPT:
            return read_timed_transcript(options.path)
        case InputKind.SCENARIO:
            return read_scenario(options.path, options.seed)


def kind_of_input(path: Path) -> InputKind:
    """Return the kind of a file: by its suffix, else by its first line that is no comment.

    Raises:
        InputError: The file cannot be read, or is of no known kind.
    """
    kind = _SUFFIXES.get(path.suffix.lower())
    return kind if kind is not None else _kind_of_text(path, read_text(path))


def _kind_of_text(path: Path, text: str) -> InputKind:
    """Return the kind of a text."""
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and line[0] not in ";#"), "")
    if first.startswith("{"):
        return InputKind.TRANSCRIPT
    if len(set(POD_COLUMNS) & set(first.split(","))) > 1:
        return InputKind.OPENB
    if len(first.split()) >= _COLUMNS_OF_A_JOB:
        return InputKind.SWF
    if ":" in first:
        return InputKind.SCENARIO
    if not first:
        raise InputError(path, "there is nothing in the file but comments")
    raise InputError(path, f"the format is not known: {first[:60]!r} begins none of {_FORMATS}")
