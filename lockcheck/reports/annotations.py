"""Findings as annotations of GitHub's workflows: one command a finding, which shows it beside the code.

GitHub reads them from the output of a step, and shows the first ten of each level; so the strongest come
first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from ..findings.findings import Finding, suggestion
from ..findings.terms import Rung
from ..sessions.summaries import Summary


def to_annotations(
    summary: Summary, root: Path, fail_on: Collection[Rung], *, accepted: Mapping[str, str] | None = None
) -> str:
    """Return the findings as workflow commands, a line each.

    Args:
        summary: what was found.
        root: the folder to which places in the code are relative.
        fail_on: the rungs on which a finding is an error; others are notices.
        accepted: the reasons of findings that a baseline accepts, by fingerprint; those are notices too.
    """
    lines = [
        _command(finding, summary, root, fail_on, (accepted or {}).get(finding.fingerprint))
        for finding in summary.findings
    ]
    lines += [f"::error title=lockcheck::{_message(fault)}" for fault in summary.faults]
    return "".join(f"{line}\n" for line in lines)


def _command(
    finding: Finding, summary: Summary, root: Path, fail_on: Collection[Rung], reason: str | None
) -> str:
    level = "error" if finding.rung in fail_on and reason is None else "notice"
    title = f"lockcheck {finding.rung.name}: {finding.kind.value}"
    advice = suggestion(finding, summary.sites)
    lines = [finding.text, *finding.why, *([f"Suggestion: {advice}."] if advice else [])]
    lines += [f"Accepted: {reason}"] if reason is not None else []
    place = next((edge.place for edge in finding.edges if edge.place), None)
    where = f"file={_property(_file(place.file, root))},line={place.line}," if place is not None else ""
    return f"::{level} {where}title={_property(title)}::{_message(chr(10).join(lines))}"


def _file(file: str, root: Path) -> str:
    path = Path(file)
    inside = path.is_absolute() and path.is_relative_to(root.resolve())
    return path.relative_to(root.resolve()).as_posix() if inside else file


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
