"""The commands `confirm` and `replay`, which run a program again, steered into deadlocks that were found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..checking.scheduling_points import witness_of
from ..confirming.confirmation import ConfirmationOutcome, in_attempts, raised, ways_to_confirm
from ..confirming.steered_runs import Program, first_run, observe_here, steer_here, steered_run
from ..confirming.steering import PAUSE_SECONDS
from ..findings.errors import CLEAN, FOUND, LockUsageError
from ..findings.evidence import Rung
from ..findings.findings import Finding, Witness
from ..findings.json_values import read_text
from ..findings.text import finding_text
from ..findings.witness_file import FOLDER, read_witness
from ..prediction.predicted_findings import finding_of, findings_of
from ..reports.documents import FORMAT, read_document
from ..reports.writing import add_report_options, report_paths, write_reports
from ..sessions.session import text_report
from ..sessions.summaries import Summary, merged
from ..traces.file import is_trace, read_trace
from .settings import add_adopt_option, adopting, project_settings

TIMEOUT_SECONDS: Final = 60.0
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def add_confirm_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands; each sets `work`, which returns the exit code."""
    confirm = subparsers.add_parser("confirm", help="run a program again, steered into what was found")
    confirm.add_argument(
        "--witness", type=Path, action="append", default=[], metavar="FILE",
        help="what to confirm: a witness, a folder of them, a trace, or a report as JSON; without any "
        "the program runs unsteered first",
    )  # fmt: skip
    _add_runs(confirm)
    confirm.add_argument(
        "--into", type=Path, default=FOLDER, metavar="DIR", help=f"for replay files ({FOLDER})"
    )
    confirm.add_argument("program", help="the program, a file; before it may stand what to confirm")
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
    sources, program = _sources_and_program(given)
    paths = report_paths(given)
    with adopting(given):
        before, contradicted = _found(sources, program, given.timeout)
        after, message = confirmed(before, program, given, contradicted)
    fails = project_settings(Path.cwd()).with_given((), given.fail_on, "").fail_on
    sys.stderr.write(f"{text_report(after)}\n{message}\n")
    write_reports(paths, after, root=Path.cwd(), fail_on=fails, accepted={})
    return FOUND if any(finding.rung in fails for finding in after.findings) else CLEAN


def confirmed(
    before: Summary, program: Program, given: argparse.Namespace, contradicted: Mapping[str, str] = NOTHING
) -> tuple[Summary, str]:
    """Run a program again for what can be confirmed; return all findings then, and how many were confirmed.

    Args:
        before: what was found.
        program: what is run.
        given: `pause`, `timeout` and `into` of the command.
        contradicted: what contradicts findings, by fingerprint.
    """
    open_ones = ways_to_confirm(before.findings)
    rest = tuple(finding for finding in before.findings if witness_of(finding) is None)
    tried = [_tried(ways, program, given, contradicted.get(ways[0].fingerprint)) for ways in open_ones]
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


# ---------------------------------------------------------------------------------- what to confirm


def _sources_and_program(given: argparse.Namespace) -> tuple[list[Path], Program]:
    """Return the source of what is to be confirmed, if any, and the program."""
    sources, words, as_module = list(given.witness), [given.program, *given.arguments], given.as_module
    if not as_module and _is_source(Path(words[0])):
        sources.append(Path(words.pop(0)))
        if words[:1] == ["-m"]:
            as_module = bool(words.pop(0))
    if not words:
        raise LockUsageError(f"{sources[-1]} is what to confirm, but by which program?")
    return sources, Program(words[0], tuple(words[1:]), as_module)


def _is_source(path: Path) -> bool:
    return path.is_dir() or (path.is_file() and (path.suffix == ".json" or is_trace(path)))


def _found(
    sources: Sequence[Path], program: Program, timeout_seconds: float
) -> tuple[Summary, dict[str, str]]:
    """Return the findings to confirm, with all others that were found, and what contradicts which of them."""
    if sources:
        return Summary("confirm", tuple(one for path in sources for one in _findings_in(path))), {}
    learned, predicted, contradicted = first_run(program, timeout_seconds)
    return replace(learned, findings=(*predicted, *learned.findings)), contradicted


def _findings_in(path: Path) -> Iterator[Finding]:
    if path.is_dir():
        for one in sorted(path.glob("*.json")):
            yield finding_of(read_witness(one))
    elif is_trace(path):
        yield from findings_of(read_trace(path))[0]
    elif f'"{FORMAT}"' in read_text(path)[:200]:
        yield from read_document(str(path)).findings
    else:
        yield finding_of(read_witness(path))


# --------------------------------------------------------------------------------------- trying it


def _tried(
    ways: Sequence[Finding], program: Program, given: argparse.Namespace, contradiction: str | None
) -> tuple[Finding, ...]:
    """Return a finding after up to three attempts at each way to it, and deadlocks that happened besides."""
    besides: list[Finding] = []
    outcomes = [_outcome(ways[0], program, given, besides)]
    for way in ways[1:]:
        if outcomes[-1].finding is not None:
            break
        outcomes.append(_outcome(way, program, given, besides))
    best = len(outcomes) - 1 if outcomes[-1].finding is not None else 0
    return raised(ways[best], outcomes[best], contradiction), *besides


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
