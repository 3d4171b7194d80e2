"""The commands `confirm` and `replay`, which run a program again, steered into deadlocks that were found."""

from __future__ import annotations

import argparse
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

from ..checking.acquisition_checks import witness_of
from ..confirming.confirmation import (
    ConfirmationOutcome,
    finding_of,
    in_attempts,
    outcome_of,
    raised,
    steered,
    ways_to_confirm,
)
from ..confirming.steering import PAUSE_SECONDS
from ..findings.findings import Finding, Witness, finding_text
from ..findings.json_files import FOLDER, read_witness, write_witness
from ..findings.terms import CLEAN, FOUND, Level, LockUsageError, Rung
from ..reports.documents import read_document, to_json
from ..reports.writing import add_report_options, report_paths, write_reports
from ..sessions.running import execute, run_program
from ..sessions.session import text_report
from ..sessions.summaries import Summary, merged
from .settings import add_adopt_option, adopting, project_settings

GRACE_SECONDS: Final = 3.0
"""How long a program may go on after its deadlock was confirmed and broken."""
POLL_SECONDS: Final = 0.02
_PARENT_DEATH_SIGNAL: Final = 1
"""`PR_SET_PDEATHSIG`."""
_REPORT, _NEXT, _REASONS = "report.json", "next", "reasons"


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
    """Run a program and write its report to a folder."""
    _end_with_parent()
    session, code, _ = run_program(program.name, program.arguments, Level.FULL, as_module=program.as_module)
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


def first_run(program: Program, timeout_seconds: float) -> Summary:
    """Run a program unsteered; return what was learned of its locks.

    Raises:
        LockUsageError: it did not end in time, or could not be run.
    """
    with _folder() as folder:
        _run([f"--folder={folder}"], program, folder, timeout_seconds)
        if not (folder / _REPORT).exists():
            raise LockUsageError(f"{program.name}: its first run left no report in {timeout_seconds:g} s")
        return read_document(str(folder / _REPORT))


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
        kept: the folder for the replay file; without one the file is not kept.
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


TIMEOUT_SECONDS: Final = 60.0


def add_confirm_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands; each sets `work`, which returns the exit code."""
    confirm = subparsers.add_parser("confirm", help="run a program again, steered into what was found")
    _add_runs(confirm)
    confirm.add_argument(
        "--into", type=Path, default=FOLDER, metavar="DIR", help=f"for replay files ({FOLDER})"
    )
    confirm.add_argument("program", help="the program, a file")
    confirm.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    add_report_options(confirm)
    confirm.set_defaults(work=_confirm)
    replay = subparsers.add_parser("replay", help="force a confirmed deadlock again")
    _add_runs(replay)
    replay.add_argument("witness", type=Path, help="the replay file")
    replay.add_argument("program", help="the program, a file")
    replay.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    replay.set_defaults(work=_replay)
    run = subparsers.add_parser("steered-run")
    run.add_argument("--folder", type=Path, required=True)
    run.add_argument("--witness", type=Path)
    run.add_argument("--kept", type=Path)
    run.add_argument("--attempt", type=int, default=1)
    run.add_argument("--pause", type=float, default=PAUSE_SECONDS)
    run.add_argument("-m", dest="as_module", action="store_true")
    run.add_argument("program")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    run.set_defaults(work=_run_here)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pause", type=float, default=PAUSE_SECONDS, metavar="SECONDS",
        help=f"how long a thread is paused at most in the first run ({PAUSE_SECONDS})",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_SECONDS, metavar="SECONDS",
        help=f"a run that takes longer is ended ({TIMEOUT_SECONDS:g})",
    )  # fmt: skip
    add_adopt_option(parser)
    parser.add_argument("-m", dest="as_module", action="store_true", help="the program is a module")


def _confirm(given: argparse.Namespace) -> int:
    program, paths = Program(given.program, tuple(given.arguments), given.as_module), report_paths(given)
    with adopting(given):
        before = first_run(program, given.timeout)
        after, message = confirmed(before, program, given)
    fails = project_settings(Path.cwd()).with_given((), given.fail_on, "").fail_on
    sys.stderr.write(f"{text_report(after)}\n{message}\n")
    write_reports(paths, after, root=Path.cwd(), accepted={})
    return FOUND if any(finding.rung in fails for finding in after.findings) else CLEAN


def confirmed(before: Summary, program: Program, given: argparse.Namespace) -> tuple[Summary, str]:
    """Run a program again for what can be confirmed; return all findings then, and how many were confirmed.

    Args:
        before: what was found.
        program: what is run.
        given: `pause`, `timeout` and `into` of the command.
    """
    open_ones = ways_to_confirm(before.findings)
    rest = tuple(finding for finding in before.findings if witness_of(finding) is None)
    tried = [_tried(ways, program, given) for ways in open_ones]
    after = merged([replace(before, findings=rest), *(Summary("confirm", findings) for findings in tried)])
    names = {ways[0].fingerprint for ways in open_ones}
    count = sum(_is_confirmed(one) for one in after.findings if one.fingerprint in names)
    return after, f"Confirmed: {count} of {len(open_ones)}." if open_ones else "There was nothing to confirm."


def _is_confirmed(finding: Finding) -> bool:
    """Return whether a re-run got stuck in it; one that happened before stays at R5, with a new file."""
    return finding.rung is Rung.R4 or finding.replay is not None


def _replay(given: argparse.Namespace) -> int:
    witness = read_witness(given.witness)
    program = Program(given.program, tuple(given.arguments), given.as_module)
    with adopting(given):
        outcome, _ = _attempt(witness, program, given, 1, None)
    finding = replace(raised(finding_of(witness), outcome), replay=str(given.witness))
    sys.stderr.write(finding_text(finding, {}) + "\n")
    return FOUND if outcome.finding is not None else CLEAN


def _run_here(given: argparse.Namespace) -> int:
    program = Program(given.program, tuple(given.arguments), given.as_module)
    with adopting(given):
        if given.witness is None:
            return observe_here(program, given.folder)
        return steer_here(
            program, given.folder, given.witness, given.kept, attempt=given.attempt, pause=given.pause
        )


# --------------------------------------------------------------------------------------- trying it


def _tried(ways: Sequence[Finding], program: Program, given: argparse.Namespace) -> tuple[Finding, ...]:
    """Return a finding after up to three attempts at each way to it, and deadlocks that happened besides."""
    besides: list[Finding] = []
    outcomes = [_outcome(ways[0], program, given, besides)]
    for way in ways[1:]:
        if outcomes[-1].finding is not None:
            break
        outcomes.append(_outcome(way, program, given, besides))
    best = len(outcomes) - 1 if outcomes[-1].finding is not None else 0
    return raised(ways[best], outcomes[best]), *besides


def _outcome(
    finding: Finding, program: Program, given: argparse.Namespace, besides: list[Finding]
) -> ConfirmationOutcome:
    witness = witness_of(finding)
    assert witness is not None, "please report: a finding without a witness"

    def once(aim: Witness, attempt: int) -> ConfirmationOutcome:
        outcome, happened = _attempt(aim, program, given, attempt, given.into.absolute())
        besides.extend(happened)
        return outcome

    return in_attempts(witness, once)


def _attempt(
    witness: Witness, program: Program, given: argparse.Namespace, attempt: int, kept: Path | None
) -> tuple[ConfirmationOutcome, tuple[Finding, ...]]:
    return steered_run(
        witness, program, kept, attempt=attempt, pause=given.pause, timeout_seconds=given.timeout
    )
