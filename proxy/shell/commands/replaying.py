"""The input of `licorne replay`: a transcript, or a recording in one file or in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ....model.errors import LicorneError
from ...base.files.input_files import read_standard_input, read_text
from ...base.process_settings import prepare_process
from ...play.transcripts.replay import replay, replay_recording
from ...play.transcripts.transcript import (
    is_recording,
    read_recording,
    recording_files,
    rows_of_files,
    rows_of_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...core.resolvers.resolver import UserResolver
    from ...core.scheduler.engine_names import EngineName


def replay_input(
    path: Path,
    engine: EngineName,
    write_line: Callable[[str], None],
    resolver: UserResolver | None,
    *,
    threads: int | None,
    record: Path | None = None,
) -> None:
    """Replay what a path names, and write the output line by line.

    Args:
        path: A transcript, a folder with a recording, or `-` for standard input.
        engine: The engine.
        write_line: Takes the output.
        resolver: Finds the groups of users, in place of what the transcript configures; `None` for that.
        threads: How many threads the engine `threads` has; `None` for one.
        record: Where a transcript is recorded, with its outcomes; `None` for nowhere.

    Raises:
        LicorneError: The input cannot be read or replayed.
    """
    prepare_process()
    if path.is_dir():
        rows = rows_of_files(recording_files(path))
    else:
        text = read_standard_input() if str(path) == "-" else read_text(path)
        if not is_recording(text):
            replay(text, str(path), engine, write_line, resolver, threads=threads, record=record)
            return
        rows = rows_of_text(text, str(path))
    if record is not None:
        raise LicorneError("--record is for a transcript: this is a recording already")
    if threads is not None:
        raise LicorneError(f"threads={threads}: a recording is replayed with the engines direct and actors")
    replay_recording(read_recording(rows, _note), engine, write_line, resolver)


def _note(text: str) -> None:
    """Tell the user of a line that is left out; what the replay says goes to standard output."""
    typer.echo(f"licorne replay: {text}", err=True)
