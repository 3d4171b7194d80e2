"""Steered runs of a program, each in a process of its own: the code in that process, and the code that waits.

A process writes what it found to a folder. A confirmed deadlock is there as soon as it was found, so that a
program that hangs after one of its threads gave way can be ended.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..findings.errors import LockUsageError
from ..findings.evidence import Rung
from ..findings.findings import Finding, Witness
from ..findings.witness_file import read_witness, write_witness
from ..prediction.contradictions import contradictions_of
from ..prediction.predicted_findings import findings_of
from ..reports.documents import read_document, to_json
from ..sessions.recording import recording
from ..sessions.running import execute
from ..sessions.summaries import Summary
from ..traces.file import read_trace
from .confirmation import ConfirmationOutcome, outcome_of, steered

GRACE_SECONDS: Final = 3.0
"""How long a program may go on after its deadlock was confirmed and broken."""
POLL_SECONDS: Final = 0.02
_PARENT_DEATH_SIGNAL: Final = 1
"""`PR_SET_PDEATHSIG`."""
_REPORT, _TRACE, _NEXT, _REASONS = "report.json", "locks.lct", "next", "reasons"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is run."""

    name: str
    arguments: tuple[str, ...]
    as_module: bool

    @property
    def words(self) -> tuple[str, ...]:
        """It, as part of a command line."""
        return (*(("-m",) if self.as_module else ()), self.name, *self.arguments)


# ---------------------------------------------------------------------------- in the process that runs


def _end_with_parent() -> None:
    """Have Linux end this process with the command that started it, also if that is killed."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library, or one that refuses
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def observe_here(program: Program, folder: Path) -> int:
    """Run a program and write its trace and its report to a folder."""
    _end_with_parent()
    with recording(folder / _TRACE) as session:
        code = execute(program.name, program.arguments, as_module=program.as_module)
    (folder / _REPORT).write_text(to_json(session.summary()), encoding="utf-8")
    return code


def steer_here(
    program: Program, folder: Path, path: Path, kept: Path | None, *, attempt: int, pause: float
) -> int:
    """Run a program steered to a witness; write the outcome and the replay file to two folders."""
    _end_with_parent()

    def confirmed(finding: Finding) -> None:
        _leave(folder / _REPORT, to_json(Summary("confirm", (finding,))))

    with steered(
        read_witness(path), attempt=attempt, folder=kept, pause_seconds=pause, confirmed=confirmed
    ) as (session, steering):
        code = execute(program.name, program.arguments, as_module=program.as_module)
    outcome = outcome_of(steering)
    write_witness(folder / _NEXT, outcome.witness)
    (folder / _REASONS).write_text("\n".join(outcome.reasons), encoding="utf-8")
    _leave(folder / _REPORT, to_json(session.summary()))
    return code


def _leave(path: Path, text: str) -> None:
    """Write a file so that no reader sees half of it."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


# ---------------------------------------------------------------------------- in the process that waits


def first_run(
    program: Program, timeout_seconds: float
) -> tuple[Summary, tuple[Finding, ...], dict[str, str]]:
    """Run a program unsteered; return what was learned of its locks, and what its trace predicts.

    The third is why the trace contradicts some of what was learned, by fingerprint.

    Raises:
        LockUsageError: it did not end in time, or could not be run.
    """
    with _folder() as folder:
        _run([f"--folder={folder}"], program, folder, timeout_seconds)
        if not (folder / _REPORT).exists():
            raise LockUsageError(f"{program.name}: its first run left no report in {timeout_seconds:g} s")
        trace, learned = read_trace(folder / _TRACE), read_document(str(folder / _REPORT))
        predicted, _ = findings_of(trace)
        return learned, predicted, contradictions_of(trace, learned.findings)


def steered_run(
    witness: Witness,
    program: Program,
    kept: Path | None,
    *,
    attempt: int,
    pause: float,
    timeout_seconds: float,
) -> tuple[ConfirmationOutcome, tuple[Finding, ...]]:
    """Run a program steered to a witness; return the outcome, and other deadlocks that happened.

    Args:
        witness: what is to be confirmed.
        program: what is run.
        kept: the folder for the replay file; if there is none, it is not kept.
        attempt: the number of the attempt, from one.
        pause: how long a thread is paused at most in the first attempt, in seconds.
        timeout_seconds: a run that takes longer is ended.
    """
    with _folder() as folder:
        path = write_witness(folder, witness)
        options = [f"--folder={folder}", f"--witness={path}", f"--attempt={attempt}", f"--pause={pause}"]
        options += [f"--kept={kept}"] if kept is not None else []
        ended = _run(options, program, folder, timeout_seconds)
        found = read_document(str(folder / _REPORT)).findings if (folder / _REPORT).exists() else ()
        happened = tuple(one for one in found if one.rung is Rung.R5)
        for one in found:
            if one.rung is Rung.R4:
                return ConfirmationOutcome(one, (), replace(witness, points=one.points), attempt), happened
        if (folder / _REASONS).exists():
            reasons = tuple((folder / _REASONS).read_text("utf-8").splitlines())
            return ConfirmationOutcome(
                None, reasons, read_witness(folder / _NEXT / path.name), attempt
            ), happened
    message = "its process ended early" if ended else f"the program still ran after {timeout_seconds:g} s"
    return ConfirmationOutcome(None, (message,), witness, attempt), ()


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lockcheck-") as name:
        yield Path(name)


def _run(options: Sequence[str], program: Program, folder: Path, timeout_seconds: float) -> bool:
    """Wait for a run, and end it if it takes too long; return whether it ended by itself."""
    command = [sys.executable, "-m", "licorne.lockcheck", "steered-run", *options, *program.words]
    deadline = time.monotonic() + timeout_seconds
    with subprocess.Popen(command) as process:  # noqa: S603 - our own interpreter
        try:
            while process.poll() is None:
                if (folder / _REPORT).exists():
                    deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
                if time.monotonic() > deadline:
                    return False
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
        finally:
            process.kill()
    return True
