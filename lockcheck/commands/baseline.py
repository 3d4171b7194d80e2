"""The command `baseline`: it writes the baseline that accepts what reports have found.

Each entry has a reason to fill in, and a last day. Entries of the file that are still found keep theirs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Final

from ..findings.errors import LockUsageError
from ..findings.exit_codes import CLEAN
from ..findings.findings import Finding
from ..reports.baseline import NO_REASON, Accepted, read_baseline
from ..reports.documents import read_document
from ..sessions.summaries import merged
from .settings import project_settings

DAYS: Final = 90
"""For how long an entry is accepted, unless `--expires` says otherwise."""
FILE: Final = Path("lockcheck.toml")


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
    print(f"{path}: {len(findings)} accepted, fill in their reasons")  # noqa: T201 - the command says so
    return CLEAN


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise LockUsageError(f"--expires: {text!r} is no day such as 2027-03-31") from None


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
