"""The certificate: what was declared allows no deadlock, and what was observed lies inside of it.

Both together say that no interleaving of what was observed deadlocks on its locks. Of what was never run they
say nothing, so the certificate lists the declared nestings, and the contracts, that nobody exercised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..findings.evidence import DEFAULT_FAIL_ON
from ..order.proof import find_strong_cycle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..findings.findings import Finding
    from ..order.proof import OrderStep
    from ..sessions.summaries import Contract, ObservedEdge, Summary

__all__ = ["Certificate", "certify"]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a summary proves, and what stands against it."""

    declared: tuple[OrderStep, ...]
    """All nestings that the declared orders allow, without those that they name twice."""
    cycle: tuple[OrderStep, ...]
    """A closed strong path over what is declared; empty, since an order that has one cannot be made, unless
    several orders close it together."""
    outside: tuple[ObservedEdge, ...]
    """What was observed and not declared."""
    tried: tuple[ObservedEdge, ...]
    """What was not declared, but only tried: nobody waits there."""
    findings: tuple[Finding, ...]
    """What was found on a rung that fails."""
    exercised: tuple[OrderStep, ...]
    unexercised: tuple[OrderStep, ...]
    contracts: tuple[Contract, ...]
    faults: tuple[str, ...]
    """Errors of the checker, after which it may have missed something."""
    unchecked: int
    """Acquisitions that were not looked at."""
    level: str

    @property
    def holds(self) -> bool:
        """Whether the proof is whole."""
        return (
            bool(self.declared)
            and self.level == "full"
            and not (self.cycle or self.outside or self.findings or self.faults)
        )

    def text(self) -> str:
        """Return the certificate in words."""
        every = len(self.declared)
        idle = [contract for contract in self.contracts if not contract.checked]
        share = f"{100 * len(self.exercised) // every} %" if every else "none"
        class_edges = f"{len(self.exercised)} of {every} ({share})" + _never("exercised", self.unexercised)
        contracts = f"{len(self.contracts) - len(idle)} of {len(self.contracts)}" + _never("checked", idle)
        lines = [
            f"The certificate {'holds' if self.holds else 'DOES NOT HOLD'}.",
            self._declared_text(),
            f"Observed nestings outside of the declaration: {len(self.outside)}.",
            *(f"  {class_edge}, first in {class_edge.test}" for class_edge in self.outside),
            f"Outside of it, but only tried: {len(self.tried)}.",
            *(f"  {class_edge}" for class_edge in self.tried),
            f"Findings that fail: {len(self.findings)}.",
            *(f"  {finding} [{finding.fingerprint}]" for finding in self.findings),
            f"Faults of the checker: {len(self.faults)}; acquisitions not looked at: {self.unchecked}.",
            f"Declared nestings exercised: {class_edges}",
            *(f"  {step} by {step.clause!r}" for step in self.unexercised),
            f"Contracts checked: {contracts}",
            *(f"  {contract.name}" for contract in idle),
        ]
        if self.level != "full":
            lines.insert(1, f"At the level {self.level} nestings are not learned: check at the level full.")
        return "\n".join(lines)

    def _declared_text(self) -> str:
        if not self.declared:
            return "Nothing is declared."
        if self.cycle:
            return "What is declared allows a deadlock: " + ", then ".join(map(str, self.cycle)) + "."
        class_edges = (
            "1 nesting closes" if len(self.declared) == 1 else f"{len(self.declared)} nestings close"
        )
        return f"What is declared allows no deadlock: {class_edges} no strong path."


def _never(done: str, rest: Sequence[object]) -> str:
    return f"; never {done}:" if rest else "."


def certify(summary: Summary) -> Certificate:
    """Return what a summary proves."""
    steps = {str(step): step for order in summary.orders for step in order.steps}
    declared = tuple(steps.values())
    readers_first = frozenset(name for order in summary.orders for name in order.readers_first)
    for order in summary.orders:  # readers that wait in one order wait: the weaker promise counts
        readers_first &= {
            *order.readers_first,
            *(name for name in readers_first if not _names(order.steps, name)),
        }
    observed = {str(class_edge) for class_edge in summary.class_edges}
    beyond = [class_edge for class_edge in summary.class_edges if str(class_edge) not in steps]
    return Certificate(
        declared=declared,
        cycle=find_strong_cycle(declared, readers_first),
        outside=tuple(class_edge for class_edge in beyond if class_edge.waits),
        tried=tuple(class_edge for class_edge in beyond if not class_edge.waits),
        findings=tuple(finding for finding in summary.findings if finding.rung in DEFAULT_FAIL_ON),
        exercised=tuple(step for name, step in steps.items() if name in observed),
        unexercised=tuple(step for name, step in steps.items() if name not in observed),
        contracts=summary.contracts,
        faults=summary.faults,
        unchecked=summary.skipped,
        level=summary.level,
    )


def _names(steps: tuple[OrderStep, ...], name: str) -> bool:
    return any(name in {step.held, step.wanted} for step in steps)
