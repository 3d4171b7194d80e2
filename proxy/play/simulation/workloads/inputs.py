"""Loads the input of a simulation, from any kind of file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from ....base.files.input_files import InputError, read_text, unpacked_name
from ....base.terminal.standard_output import counted
from ...transcripts.transcript import Line, read_transcript
from .csv_log import read_csv_log, read_csv_mapping
from .openb import POD_COLUMNS, OpenbMode, read_openb
from .sacct import is_sacct, read_sacct
from .scenario import read_scenario
from .swf import JobOptions, read_swf, workload_of_log
from .workload import SimulatedWorkload, WorkloadCut, cut_workload

_COLUMNS_OF_A_JOB: Final = 18
_FORMATS: Final = f"openb pods ({','.join(POD_COLUMNS)}), SWF, a transcript and a scenario"


class InputKind(Enum):
    """The kinds of input files, as messages name them."""

    OPENB = "a file of openb pods"
    CSV = "a CSV file of jobs"
    SACCT = "what `sacct -P` prints"
    SWF = "a log in the standard workload format"
    TRANSCRIPT = "a transcript"
    SCENARIO = "a scenario"


_LOGS: Final = frozenset({InputKind.CSV, InputKind.SACCT, InputKind.SWF})
_SUFFIXES: Final = {
    ".csv": InputKind.OPENB,
    ".swf": InputKind.SWF,
    ".jsonl": InputKind.TRANSCRIPT,
    ".yaml": InputKind.SCENARIO,
    ".yml": InputKind.SCENARIO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions:
    """An input with its reading options.

    Attributes:
        path: The file with the work.
        nodes_path: The nodes of an openb trace, or the machines of a log; `None` without such a file.
        own_times: Whether the pods of an openb trace are submitted at their own times, instead of being
            packed.
        seed: The seed for the random durations of a scenario.
        jobs: How the jobs of a log become applications.
        csv_mapping_path: The mapping of the columns of a CSV file of jobs; `None` for other inputs.
        cut: The part of the workload, and its scale; a transcript cannot be cut.
        scenario: The text of a scenario that is not in a file, named `path` in messages; `None` for the file.
    """

    path: Path
    nodes_path: Path | None = None
    own_times: bool = False
    seed: int = 1
    jobs: JobOptions = field(default_factory=JobOptions)
    csv_mapping_path: Path | None = None
    cut: WorkloadCut = field(default_factory=WorkloadCut)
    scenario: str | None = None


def load_input(options: InputOptions) -> SimulatedWorkload | Transcript:
    """Read an input as a whole.

    Raises:
        LicorneError: The input cannot be read or is invalid; the error has the place.
    """
    kind = checked_kind(options)
    work = _loaded(options, kind)
    if options.cut == WorkloadCut() or isinstance(work, Transcript):
        return work
    part = cut_workload(work, options.cut)
    if not part.applications:
        text = f"no job is left of {counted(len(work.applications), 'job')} by the cut"
        raise InputError(options.path, text)
    return part


def checked_kind(options: InputOptions) -> InputKind:
    """Return the kind of an input, after checking that the options are for this kind.

    Raises:
        InputError: The input cannot be read, its kind is unknown, or an option is for inputs of other kinds.
    """
    kind = InputKind.SCENARIO
    if options.scenario is None:
        kind = kind_of_input(options.path, options.csv_mapping_path)
    if options.nodes_path is not None and kind in {InputKind.SCENARIO, InputKind.TRANSCRIPT}:
        raise InputError(options.path, f"{kind.value} brings its own nodes: leave out {options.nodes_path}")
    if options.jobs != JobOptions() and kind not in _LOGS:
        text = (
            f"--gang, --task-processors and --estimate-factor are for logs of jobs, and this is {kind.value}"
        )
        raise InputError(options.path, text)
    if options.cut != WorkloadCut() and kind is InputKind.TRANSCRIPT:
        text = "a transcript is neither cut nor scaled: its lines follow from those before them"
        raise InputError(options.path, text)
    return kind


def _loaded(options: InputOptions, kind: InputKind) -> SimulatedWorkload | Transcript:
    """Return the whole of an input."""
    match kind:
        case InputKind.OPENB:
            if options.nodes_path is None:
                _kind_of_text(
                    options.path, read_text(options.path)
                )  # A CSV file of another kind gets the right error.
                raise InputError(
                    options.path,
                    "the nodes of an openb trace stand in a file of their own: name it (--nodes)",
                )
            mode = OpenbMode.OWN_TIMES if options.own_times else OpenbMode.PACKING
            return read_openb(options.nodes_path, options.path, mode)
        case InputKind.CSV:
            assert options.csv_mapping_path is not None, "only a mapping makes it one"
            log = read_csv_log(options.path, read_csv_mapping(options.csv_mapping_path))
            return workload_of_log(log, options.nodes_path, options.jobs)
        case InputKind.SACCT:
            return workload_of_log(read_sacct(options.path), options.nodes_path, options.jobs)
        case InputKind.SWF:
            return read_swf(options.path, options.nodes_path, options.jobs)
        case InputKind.TRANSCRIPT:
            return read_timed_transcript(options.path)
        case InputKind.SCENARIO:
            return read_scenario(options.path, options.seed, options.scenario)


def kind_of_input(path: Path, csv_mapping_path: Path | None = None) -> InputKind:
    """Return the kind of a file: by its suffix, otherwise by its first line that is not a comment.

    Args:
        path: The file.
        csv_mapping_path: The mapping of its columns; a file with one is a CSV file of jobs.

    Raises:
        InputError: The file cannot be read, its kind is unknown, or it has a mapping and is of another kind.
    """
    if csv_mapping_path is not None:
        other = _SUFFIXES.get(unpacked_name(path).suffix.lower(), InputKind.OPENB)
        if other is not InputKind.OPENB:
            raise InputError(path, f"this is {other.value}: it has no columns for {csv_mapping_path}")
        if is_sacct(read_text(path)):
            text = f"this is {InputKind.SACCT.value}, which needs no mapping: leave out {csv_mapping_path}"
            raise InputError(path, text)
        return InputKind.CSV
    kind = _SUFFIXES.get(unpacked_name(path).suffix.lower())
    if kind is None or kind is InputKind.OPENB:
        text = read_text(path, comment=";")
        return InputKind.SACCT if is_sacct(text) else kind or _kind_of_text(path, text)
    return kind


def _kind_of_text(path: Path, text: str) -> InputKind:
    """Return the kind of a text."""
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and line[0] not in ";#"), "")
    if first.startswith("{"):
        return InputKind.TRANSCRIPT
    if first.startswith("["):
        message = "this is a list in JSON, such as the job log of Philly, and not an input"
        raise InputError(path, f"{message}: write its jobs as CSV, and describe the columns (--csv-mapping)")
    if len(set(POD_COLUMNS) & set(first.split(","))) > 1:
        return InputKind.OPENB
    if len(first.split()) >= _COLUMNS_OF_A_JOB:
        return InputKind.SWF
    if ":" in first:
        return InputKind.SCENARIO
    if not first:
        raise InputError(path, "there is nothing in the file but comments")
    raise InputError(path, f"the format is not known: {first[:60]!r} begins none of {_FORMATS}")


@dataclass(frozen=True, slots=True)
class Step:
    """One line to play, and its time."""

    line: Line
    at_ns: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole transcript; `end_ns` is the time after its last line."""

    name: str
    steps: tuple[Step, ...]
    end_ns: int


def read_timed_transcript(path: Path) -> Transcript:
    """Read a transcript; `advance` moves the time of all later lines, and snapshots are left out.

    Raises:
        InputError: The file cannot be read, or does not have a line to play.
        TranscriptError: A line is malformed.
    """
    steps: list[Step] = []
    now_ns = 0
    for line in read_transcript(read_text(path), str(path)):
        if line.recorded is not None or line.verb == "recording":
            raise InputError(path, "a recording cannot be simulated: replay it")
        if line.verb == "advance":
            now_ns += line.duration_ns()
        elif line.verb != "snapshot":
            steps.append(Step(line, now_ns))
    if not steps:
        raise InputError(path, "there is no message in the file")
    return Transcript(path.name, tuple(steps), now_ns)
