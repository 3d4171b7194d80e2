"""A transcript as a simulation plays it: the lines, each at its virtual time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....base.files.input_errors import InputError
from ....base.files.input_files import read_text
from ...transcripts.transcript import Line, read_transcript


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
    """Read a transcript; `advance` moves the time of all that follows, snapshots are left out.

    Raises:
        InputError: The file cannot be read, or has no line to play.
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
