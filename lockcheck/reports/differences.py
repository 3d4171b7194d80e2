"""Differences between the findings of two runs, such as before and after a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..findings.findings import Finding
from ..sessions.summaries import ObservedEdge, Summary


@dataclass(frozen=True, slots=True)
class Differences:
    """What is new, and what is gone. A finding that reached a higher rung is new."""

    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]
    class_edges_new: tuple[ObservedEdge, ...]
    class_edges_gone: tuple[ObservedEdge, ...]

    def text(self) -> str:
        """Yield the differences, one line each."""
        return "\n".join(self._lines()) or "No difference."

    def _lines(self) -> Iterator[str]:
        yield from (f"+ {finding} [{finding.fingerprint}]" for finding in self.findings_new)
        yield from (f"- {finding} [{finding.fingerprint}]" for finding in self.findings_gone)
        for class_edge in self.class_edges_new:
            at = ", ".join(class_edge.sites[:3]) + (" and others" if len(class_edge.sites) > 3 else "")
            yield f"+ {class_edge} at {at}"
        yield from (f"- {class_edge}" for class_edge in self.class_edges_gone)


def differences(old: Summary, new: Summary) -> Differences:
    """Compare two summaries: findings by fingerprint and rung, edges by classes and modes."""
    before = {finding.fingerprint: finding for finding in old.findings}
    after = {finding.fingerprint for finding in new.findings}
    known, seen = set(map(str, old.class_edges)), set(map(str, new.class_edges))
    return Differences(
        tuple(
            one
            for one in new.findings
            if one.fingerprint not in before or before[one.fingerprint].rung < one.rung
        ),
        tuple(one for one in old.findings if one.fingerprint not in after),
        tuple(one for one in new.class_edges if str(one) not in known),
        tuple(one for one in old.class_edges if str(one) not in seen),
    )
