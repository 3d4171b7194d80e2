"""The summaries of many sessions, gathered into one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from ..sessions.summaries import Summary, merged, strongest_first
from .across_sessions import cycles_across_sessions

if TYPE_CHECKING:
    from ..findings.findings import Finding

__all__ = ["MergedSummaries"]

PENDING_MAX: Final = 64
"""So many summaries wait to be merged: one by one each would be compared with all before it."""


@final
class MergedSummaries:
    """What the sessions of a run had to say so far.

    Args:
        level: how much is looked at.
    """

    def __init__(self, level: str) -> None:
        self._summaries = [Summary(level)]

    def add(self, summary: Summary) -> None:
        """Take a summary in."""
        self._summaries.append(summary)
        if len(self._summaries) > PENDING_MAX:
            self._summaries = [merged(self._summaries)]

    def summary(self) -> Summary:
        """Return everything as one summary."""
        self._summaries = [merged(self._summaries)]
        return self._summaries[0]

    def with_cycles(self) -> tuple[Summary, tuple[Finding, ...]]:
        """Return everything, with what closes over several sessions; and the latter alone."""
        summary = self.summary()
        across = cycles_across_sessions(summary)
        return replace(summary, findings=strongest_first([*summary.findings, *across])), across
