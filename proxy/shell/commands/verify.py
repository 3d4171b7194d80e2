"""`licorne verify`: check the decisions of a recorded day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....model.errors import LicorneError
from ...base.terminal.bad_input import BAD_INPUT, ends_on
from ...base.terminal.standard_output import write_line

if TYPE_CHECKING:
    from collections import Counter

_REFUTED = 1


def verify(
    recordings: Annotated[
        list[Path],
        typer.Argument(metavar="RECORDING...", help="Recordings with outcomes: folders, or files (.jsonl)."),
    ],
) -> None:
    """Check each placement, preemption and promise of recorded days, without the scheduler.

    Ends with status 0 if none is refuted, 1 if one is, and 2 if a recording cannot be read.
    """
    from ...play.transcripts.transcript import recording_files, rows_of_files
    from ...play.verify.queues import UnreadableError
    from ...play.verify.verifier import verify_lines

    statuses = [0]
    for path in recordings:
        with ends_on((LicorneError, UnreadableError), f"licorne verify: {path}", BAD_INPUT):
            files = recording_files(path) if path.is_dir() else [path]
            findings = verify_lines(row.text for row in rows_of_files(files))
        for line, text in findings.refuted:
            write_line(f"{path}: line {line}: {text}")
        write_line(f"{path}: {len(findings.refuted)} refuted; confirmed: {_counts(findings.confirmed)}")
        if findings.unjudged:
            write_line(f"{path}: not judged: {_counts(findings.unjudged)}")
        statuses.append(_REFUTED if findings.refuted else 0)
    raise typer.Exit(max(statuses))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counter.items()) if count) or "nothing"
