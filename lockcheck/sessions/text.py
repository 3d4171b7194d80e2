"""The report of a session as text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ..findings.evidence import Rung
from ..findings.findings import Finding
from ..findings.text import counted, finding_text
from .summaries import Summary

BLOCKING_LINES_MAX: Final = 10
"""How many blocking calls under locks `blocking_lines` lists; the reports have all."""

UNWATCHED_MAX: Final = 5
"""How many locks that are not watched a text names."""


def text_report(summary: Summary, reported: Mapping[str, str] | None = None) -> str:
    """Return the report: the findings, the strongest evidence first, and what was observed.

    Args:
        summary: what was found and observed.
        reported: where findings were reported in full, by fingerprint: those get one line here.
    """
    sites, before = summary.sites, reported or {}
    blocks = [
        f"{finding.sentence}  [{finding.rung_text}, {finding.fingerprint}, reported in full in "
        f"{before[finding.fingerprint]}]"
        if finding.fingerprint in before
        else finding_text(finding, sites)
        for finding in summary.findings
    ]
    return "\n\n".join([*blocks, closing(summary)])


def closing(summary: Summary) -> str:
    """Yield lines on how much was found and observed, and what was left out."""
    kinds = counted(len(summary.class_edges), "kind")
    lines = [
        f"lockcheck, level {summary.level}: {summary.verdict}.",
        f"Looked at: {counted(summary.dependencies, 'edge')}, {kinds} of them by class.",
    ]
    if summary.skipped:
        skipped = counted(summary.skipped, "acquisition")
        lines.append(f"Not looked at: {skipped} that the checker itself had triggered.")
    if summary.unexamined:
        unexamined = counted(summary.unexamined, "repetition")
        lines.append(f"Not looked at: {unexamined} of known edges by short-lived threads.")
    if summary.searches_given_up:
        given_up = counted(summary.searches_given_up, "search", "searches")
        lines.append(f"Given up: {given_up} for cycles that took too long.")
    return "\n".join([*lines, *remarks(summary)])


def remarks(summary: Summary) -> list[str]:
    """Return a line on locks that are not watched, and one on faults of the checker, if there are such."""
    lines = []
    if summary.unwatched:
        existed = counted(len(summary.unwatched), "lock")
        left = len(summary.unwatched) - UNWATCHED_MAX
        more = f" and {left} more, see the reports" if left > 0 else ""
        names = ", ".join(summary.unwatched[:UNWATCHED_MAX])
        lines.append(f"Not watched: {existed} that existed before lockcheck: {names}{more}.")
    if summary.faults:
        lines.append(f"Faults of the checker: {len(summary.faults)}, the first: {summary.faults[0]}")
    return lines


def blocking_lines(findings: Iterable[Finding], failing: Collection[Rung]) -> list[str]:
    """Return a line for each blocking call under a lock that fails nothing, up to a number."""
    found = {one.fingerprint: one for one in findings if one.rung is Rung.RB and one.rung not in failing}
    lines = [f"{one} at {one.edges[0].place} [{one.fingerprint}]" for one in found.values()]
    left = len(lines) - BLOCKING_LINES_MAX
    return lines if left <= 0 else [*lines[:BLOCKING_LINES_MAX], f"... and {left} more, see the reports"]
