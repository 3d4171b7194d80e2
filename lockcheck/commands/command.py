"""The command `licorne-lockcheck ...`, which is also `python -m licorne.lockcheck` and `licorne lockcheck`.

A first word that is not a command is a program to run.

It ends with 0 if all is clean, 1 if something fails, 2 if it was called wrongly, 3 if the checker itself had
an error, and 141 if the reader of its output closes the pipe. If a program fails by itself and the checker
finds nothing, the code is that of the program.

Each entry has a reason to fill in, and a last day. Entries of the file that are still found keep theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

from ..checking.standing import report_on_signal
from ..confirming.steering import PAUSE_SECONDS
from ..findings.findings import Finding
from ..findings.json_files import FOLDER, said
from ..findings.terms import (
    CLEAN,
    FAULT,
    FOUND,
    USAGE,
    Level,
    LockCheckError,
    LockUsageError,
    fault_said,
    level_of,
)
from ..reports.certificate import certify
from ..reports.diagrams import dot, mermaid
from ..reports.documents import read_document
from ..reports.several_runs import NO_REASON, Accepted, Baseline, read_baseline
from ..reports.writing import add_report_options, report_paths, write_reports
from ..sessions.running import refuse_missing, run_program
from ..sessions.session import text_report
from ..sessions.summaries import merged
from .attach import add_attach_command
from .confirm import TIMEOUT_SECONDS, Program, add_confirm_commands, confirmed
from .settings import add_adopt_option, adopting, project_settings

_COMMAND: Final = "licorne-lockcheck"
_COMMANDS: Final = frozenset(
    {"run", "confirm", "replay", "baseline", "graph", "prove", "attach", "steered-run"}
)
DAYS: Final = 90
"""For how long an entry is accepted without `--expires`."""
FILE: Final = Path("lockcheck.toml")
CLOSED_PIPE: Final = 141
"""The status of a program that was ended by a write to a closed pipe."""


def main(arguments: Sequence[str] | None = None, program: str | None = None) -> int:
    """Run the command with some arguments, by default those of the process; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] not in _COMMANDS and not words[0].startswith("-"):
        words.insert(0, "run")
    try:
        code = _do(words, program or _program())
    except (LockCheckError, OSError) as error:
        _say(said(error))
        code = USAGE
    except Exception as error:  # noqa: BLE001 - a program that ran under the command has ended as it does
        _say(fault_said(error))
        code = FAULT
    return _status_of_output() or code


def _program() -> str:
    """Return the name by which the command was called."""
    name = Path(sys.argv[0]).name
    return name if name.startswith(_COMMAND) else "python -m licorne.lockcheck"


def _do(arguments: Sequence[str], program: str) -> int:
    try:
        options = _parser(program).parse_args(arguments)
    except SystemExit as end:  # argparse has reported the error, or printed its help
        return end.code if isinstance(end.code, int) else USAGE
    work: Callable[[argparse.Namespace], int] = options.work
    return work(options)


def _say(text: str) -> None:
    sys.stderr.write(f"lockcheck: {text}\n")


def _status_of_output() -> int:
    """Return 0 if all that was printed has been written; if not, print an error, and drop the rest.

    A reader that has closed its pipe, such as `head`, has enough: that is not an error.
    """
    if sys.stdout is None:
        return CLEAN
    try:
        sys.stdout.flush()
    except OSError as error:
        is_closed = isinstance(error, BrokenPipeError)
        if not is_closed:
            _say(f"standard output: {said(error)}")
        # It would fail once more when the process ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return CLOSED_PIPE if is_closed else USAGE
    return CLEAN


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description="Tell whether locks can deadlock.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a program and report the findings")
    run.add_argument("-m", dest="as_module", action="store_true", help="the program is a module")
    run.add_argument("program", help="the program, a file")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    run.add_argument("--level", choices=("order", "full"), default="full", help="how much is checked")
    run.add_argument("--order", help='the declared order: "a < b < c", or module:NAME')
    run.add_argument("--baseline", help="accepted findings (.toml)")
    add_adopt_option(run)
    add_report_options(run)
    run.add_argument(
        "--blocking", action="append", default=[], metavar="CLASS=KINDS",
        help="kinds of blocking calls that are allowed while a lock of a class is held: archive=file,sleep",
    )  # fmt: skip
    run.add_argument(
        "--into", type=Path, default=FOLDER, metavar="DIR",
        help=f"for replay files of deadlocks that happen ({FOLDER})",
    )  # fmt: skip
    run.add_argument(
        "--confirm", action="store_true",
        help="run it again for each possible deadlock, steered into it, as `confirm` does",
    )  # fmt: skip
    run.set_defaults(work=_run, pause=PAUSE_SECONDS, timeout=TIMEOUT_SECONDS)
    graph = commands.add_parser("graph", help="draw the learned graph of a report")
    graph.add_argument("report", help="what `run --json` wrote")
    form = graph.add_mutually_exclusive_group(required=True)
    for name, draw in (("dot", dot), ("mermaid", mermaid)):
        form.add_argument(f"--{name}", dest="draw", action="store_const", const=draw)
    graph.set_defaults(work=_graph)
    prove = commands.add_parser("prove", help="print the certificate of a report")
    prove.add_argument("report")
    prove.set_defaults(work=_prove)
    add_baseline_command(commands)
    add_confirm_commands(commands)
    add_attach_command(commands)
    return parser


def _run(options: argparse.Namespace) -> int:
    baseline = read_baseline(options.baseline) if options.baseline else Baseline()
    level: Level = level_of(options.level)
    paths, project = report_paths(options), project_settings(Path.cwd())
    project = project.with_given(options.blocking, options.fail_on, "--blocking")
    fail_on = project.fail_on
    refuse_missing(options.program, as_module=options.as_module)
    _report_on_signal()
    with adopting(options):
        session, code, printed = run_program(
            options.program, options.arguments, level, as_module=options.as_module,
            order=options.order or None, witnesses=options.into.absolute(), blocking=project.blocking,
        )  # fmt: skip
        summary, message = session.summary(), ""
        if options.confirm:
            program = Program(options.program, tuple(options.arguments), options.as_module)
            summary, message = confirmed(summary, program, options)
    today = _today()
    verdict = baseline.check(summary.findings, fail_on, today)
    lines = [text_report(summary, printed), *verdict.complaints, *baseline.notes(), *filter(None, [message])]
    if verdict.accepted:
        lines.append(f"Accepted by {baseline.where}: {len(verdict.accepted)}.")
    sys.stderr.write("\n".join(lines) + "\n")
    write_reports(paths, summary, root=Path.cwd(), accepted=baseline.reasons(today))
    if not verdict.clean:
        return FOUND
    return FAULT if summary.faults else code


def _report_on_signal() -> None:
    """Let a signal report where the threads are, unless the environment names another one or none."""
    name = os.environ.get("LOCKCHECK_SIGNAL", "USR1")
    if name and hasattr(signal, "SIGUSR1") and threading.current_thread() is threading.main_thread():
        report_on_signal(name)
        _say(f"`kill -{name.removeprefix('SIG')} {os.getpid()}` shows what each thread holds and waits for")


def _graph(options: argparse.Namespace) -> int:
    sys.stdout.write(options.draw(read_document(options.report)))
    return CLEAN


def _prove(options: argparse.Namespace) -> int:
    certificate = certify(read_document(options.report))
    sys.stdout.write(certificate.text() + "\n")
    return CLEAN if certificate.holds else FAULT if certificate.faults else FOUND


def _today() -> date:
    return datetime.now().astimezone().date()


def add_baseline_command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command; it sets `work`, which returns the exit code."""
    command = subparsers.add_parser("baseline", help="write a baseline that accepts what reports have found")
    command.add_argument("reports", nargs="+", metavar="REPORT", help="what `--json` wrote")
    command.add_argument(
        "--into", type=Path, default=FILE, metavar="FILE",
        help=f"the baseline ({FILE}); entries of it that are still found keep reason and last day",
    )  # fmt: skip
    command.add_argument("--expires", metavar="DAY", help=f"the last day of new entries (in {DAYS} days)")
    command.add_argument("--fail-on", metavar="RUNGS", help="the rungs that fail (R2), such as R2,RB")
    command.set_defaults(work=_write)


def _write(options: argparse.Namespace) -> int:
    today = datetime.now().astimezone().date()
    expires = _day(options.expires) if options.expires else today + timedelta(days=DAYS)
    failing = project_settings(Path.cwd()).with_given((), options.fail_on, "").fail_on
    summary = merged(read_document(path) for path in options.reports)
    findings = [finding for finding in summary.findings if finding.rung in failing]
    path: Path = options.into
    before = read_baseline(str(path)).entries if path.exists() else ()
    kept = {entry.fingerprint: entry for entry in before}
    try:
        path.write_text(baseline_text(findings, kept, expires), encoding="utf-8")
    except OSError as error:
        raise LockUsageError(f"--into {path}: cannot be written: {error.strerror}") from None
    print(f"{path}: {len(findings)} accepted, fill in their reasons")  # noqa: T201 - output of the command
    return CLEAN


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise LockUsageError(f"--expires: {text!r} is not a day such as 2027-03-31") from None


def baseline_text(findings: Iterable[Finding], kept: Mapping[str, Accepted], expires: date) -> str:
    """Return a baseline that accepts findings.

    Args:
        findings: what is accepted.
        kept: entries whose reason and last day are kept, by fingerprint.
        expires: the last day of the other ones.
    """
    return "\n".join(line for finding in findings for line in _entry(finding, kept, expires))


def _entry(finding: Finding, kept: Mapping[str, Accepted], expires: date) -> Iterator[str]:
    known = kept.get(finding.fingerprint)
    place = next((edge.place for edge in finding.edges if edge.place), None)
    for line in (str(finding), *([f"at {place}"] if place is not None else [])):
        yield "# " + "".join(char if char.isprintable() else "?" for char in line)
    yield "[[accepted]]"
    yield f'fingerprint = "{finding.fingerprint}"'
    yield f"reason = {json.dumps(known.reason if known else NO_REASON)}"
    yield f"expires = {(known.expires if known else expires).isoformat()}"
    yield ""
