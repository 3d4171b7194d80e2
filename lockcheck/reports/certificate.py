"""The certificate: the declared order allows no deadlock, and everything observed is inside it.

Together this means that no interleaving of what was observed deadlocks on its locks. It means nothing for
code that never ran, so the certificate lists the declared edges, and the contracts, that were never
exercised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..findings.findings import Finding
from ..findings.terms import DEFAULT_FAIL_ON
from ..order.order import OrderStep, find_strong_cycle
from ..sessions.summaries import Contract, ObservedEdge, Summary


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof by a summary, and the contradictions to it."""

    declared: tuple[OrderStep, ...]
    """All edges that the declared orders allow, each once."""
    cycle: tuple[OrderStep, ...]
    """A strong cycle in what is declared. One order cannot have any, so it is empty unless several orders
    have one together."""
    outside: tuple[ObservedEdge, ...]
    """Edges that were observed and not declared."""
    tried: tuple[ObservedEdge, ...]
    """Edges that were not declared, but only tried: no execution waits there."""
    findings: tuple[Finding, ...]
    """Findings on a rung that fails."""
    exercised: tuple[OrderStep, ...]
    unexercised: tuple[OrderStep, ...]
    contracts: tuple[Contract, ...]
    faults: tuple[str, ...]
    """Errors of the checker, after which it may have missed something."""
    unchecked: int
    """How many acquisitions were not checked."""
    level: str

    @property
    def holds(self) -> bool:
        """Whether the proof is complete."""
        return (
            bool(self.declared)
            and self.level == "full"
            and not (self.cycle or self.outside or self.findings or self.faults)
        )

    def text(self) -> str:
        """Return the certificate as text."""
        every = len(self.declared)
        idle = [contract for contract in self.contracts if not contract.checked]
        share = f"{100 * len(self.exercised) // every} %" if every else "none"
        exercised = f"{len(self.exercised)} of {every} ({share})" + _never("exercised", self.unexercised)
        contracts = f"{len(self.contracts) - len(idle)} of {len(self.contracts)}" + _never("checked", idle)
        lines = [
            f"The certificate {'holds' if self.holds else 'DOES NOT HOLD'}.",
            self._declared_text(),
            f"Observed edges outside of the declaration: {len(self.outside)}.",
            *(f"  {class_edge}, first in {class_edge.test}" for class_edge in self.outside),
            f"Outside of it, but only tried: {len(self.tried)}.",
            *(f"  {class_edge}" for class_edge in self.tried),
            f"Findings that fail: {len(self.findings)}.",
            *(f"  {finding} [{finding.fingerprint}]" for finding in self.findings),
            f"Faults of the checker: {len(self.faults)}; acquisitions not looked at: {self.unchecked}.",
            f"Declared edges exercised: {exercised}",
            *(f"  {step} by {step.clause!r}" for step in self.unexercised),
            f"Contracts checked: {contracts}",
            *(f"  {contract.name}" for contract in idle),
        ]
        if self.level != "full":
            lines.insert(1, f"At the level {self.level} edges are not learned: check at the level full.")
        return "\n".join(lines)

    def _declared_text(self) -> str:
        if not self.declared:
            return "Nothing is declared."
        if self.cycle:
            return "What is declared allows a deadlock: " + ", then ".join(map(str, self.cycle)) + "."
        edges = "1 edge forms" if len(self.declared) == 1 else f"{len(self.declared)} edges form"
        return f"What is declared allows no deadlock: {edges} no strong cycle."


def _never(done: str, rest: Sequence[object]) -> str:
    return f"; never {done}:" if rest else "."


def certify(summary: Summary) -> Certificate:
    """Return what a summary proves."""
    steps = {str(step): step for order in summary.orders for step in order.steps}
    declared = tuple(steps.values())
    readers_first = frozenset(name for order in summary.orders for name in order.readers_first)
    for (
        order
    ) in summary.orders:  # if readers wait in one of the orders, they wait: the weaker assumption counts
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
