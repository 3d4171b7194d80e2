"""Merging the summaries of many sessions into one."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, final

from ..findings.findings import Finding
from ..sessions.summaries import Summary, merged, strongest_first
from .across_sessions import cycles_across_sessions

__all__ = ["MergedSummaries"]

PENDING_MAX: Final = 64
"""How many summaries are collected before they are merged: one by one, each would be compared with all."""


@final
class MergedSummaries:
    """The merged summaries of the sessions of a run so far.

    Args:
        level: how much is checked.
    """

    def __init__(self, level: str) -> None:
        self._summaries = [Summary(level, acquisitions=0)]

    def add(self, summary: Summary) -> None:
        """Add a summary."""
        self._summaries.append(summary)
        if len(self._summaries) > PENDING_MAX:
            self._summaries = [merged(self._summaries)]

    def summary(self) -> Summary:
        """Return everything as one summary."""
        self._summaries = [merged(self._summaries)]
        return self._summaries[0]

    def with_cycles(self) -> tuple[Summary, tuple[Finding, ...]]:
        """Return one summary with the cycles over several sessions; and these cycles alone."""
        summary = self.summary()
        across = cycles_across_sessions(summary)
        return replace(summary, findings=strongest_first([*summary.findings, *across])), across
