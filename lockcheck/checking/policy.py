"""The policy of a session: what it checks, and what happens at a finding."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ..findings.findings import Edge, Finding, finding_text, place_text
from ..findings.terms import (
    FOUND,
    DeadlockPossibleError,
    Level,
    LockCheckError,
    LockOrderError,
    LockOrderWarning,
    LockUsageError,
    Rung,
)
from ..holding.chains import Acquisition, Execution, TrieNode, class_edge_text, held_names, held_nodes
from ..holding.stacks import RawStack, caller, resolve
from ..order.order import Order
from .graph import Graph

FindingAction: TypeAlias = Literal["raise", "warn", "log", "record", "break"]
DEFAULT_ACTIONS: Final[Mapping[Rung, FindingAction]] = {
    Rung.RB: "record",
    Rung.R0: "raise",
    Rung.R1: "record",
    Rung.R2: "raise",
    Rung.R4: "record",
    Rung.R5: "break",
}
NOTE_ALL: Final[Mapping[Rung, FindingAction]] = {rung: "record" for rung in Rung if rung is not Rung.R5}
"""Raise nothing but the error that breaks a real deadlock: otherwise the program is not changed."""
VictimPolicy: TypeAlias = "Callable[[Sequence[Execution]], Execution]"
logger: Final = logging.getLogger("lockcheck")
_LOG_LEVELS: Final = {Rung.RB: logging.WARNING, Rung.R1: logging.INFO}


def youngest(executions: Sequence[Execution]) -> Execution:
    """Choose the execution that began last: it has probably done least."""
    return max(executions, key=lambda execution: execution.serial)


def least_held(executions: Sequence[Execution]) -> Execution:
    """Choose the execution that holds the fewest locks; of equals the youngest."""
    return min(executions, key=lambda execution: (len(list(held_nodes(execution.node))), -execution.serial))


@dataclass(frozen=True, slots=True)
class Policy:
    """The arguments of a `Session`, checked and complete; `Session` explains them.

    Raises:
        LockUsageError: an argument is invalid.
    """

    order: Order | None
    level: Level
    on: Mapping[Rung, FindingAction]
    """For every rung."""
    fail_on: frozenset[Rung]
    name: str | None
    members_max: int
    timeout_seconds: float | None
    blocking: Mapping[str, frozenset[str]]
    victim: VictimPolicy
    witnesses: Path | None
    order_disabled: bool
    exits: bool

    def __post_init__(self) -> None:
        if self.order is not None and not isinstance(self.order, Order):
            raise LockUsageError(f"expected an Order, got {self.order!r}")
        for rung, action in self.on.items():
            if not isinstance(rung, Rung) or action not in get_args(FindingAction):
                raise LockUsageError(f"expected a rung with an action, got {rung!r}: {action!r}")

    @property
    def breaks_deadlocks(self) -> bool:
        """Whether a real deadlock is broken by a victim."""
        return self.on[Rung.R5] in {"break", "raise"}

    def allows(self, what: str, lock: str) -> bool:
        """Return whether something may happen while a lock of a class is held; `*` is any class or kind."""
        return any(self.blocking.get(held, frozenset()) & {what, "*"} for held in (lock, "*"))


def act_on(
    policy: Policy, graph: Graph, finding: Finding, tell: Callable[[Finding, str], None]
) -> LockCheckError | None:
    """Carry out the policy of a finding's rung; return the error to raise, if any.

    Args:
        policy: names the action for each rung.
        graph: counts the places that make each edge, for the suggestion which one to reverse.
        finding: what was found.
        tell: called with the finding and its whole report, if that is the action; `log_finding` as a rule.
    """
    _announce(policy, graph, finding)
    action = policy.on[finding.rung]
    if action == "raise":
        return _error_of(finding, graph)
    if action == "warn":
        _warn(finding)
    elif action in {"log", "break"} and finding.count == 1:
        tell(finding, finding_text(finding, graph.site_counts()))
    return None


def log_finding(finding: Finding, report: str) -> None:
    """Log the whole report of a finding."""
    logger.log(_LOG_LEVELS.get(finding.rung, logging.ERROR), "%s", report)


def log_own_wait(execution: Execution, held: TrieNode) -> None:
    """Log that an execution begins to wait for a lock that it holds: nothing may come after that."""
    text = "%s waits for %s, which it holds itself, taken at %s: only another thread can release it"
    place = place_text(resolve(held.stack)) or "a place unknown"
    logger.warning(text, execution.name, held.acquisition, place)


def log_briefly(finding: Finding, _: str) -> None:
    """Log a finding in one line: its whole report comes at the end."""
    log_finding(finding, f"{finding} [{finding.fingerprint}]")


def _error_of(finding: Finding, graph: Graph) -> LockCheckError:
    """Return the error of a finding, with the whole report as a note."""
    kind = LockOrderError if finding.rung <= Rung.R0 else DeadlockPossibleError
    error = kind(str(finding), finding)
    error.add_note(finding_text(finding, graph.site_counts()))
    return error


def edge_of(node: TrieNode, holder: TrieNode | None, stack: RawStack) -> Edge:
    """Return the edge between what an execution wants at a node and one that is held."""
    return Edge(
        execution=node.execution.name,
        held=str(holder.acquisition) if holder is not None and holder.acquisition is not None else None,
        wanted=str(node.acquisition),
        all_held=held_names(node.parent) if node.parent is not None else (),
        hold_stack=resolve(holder.stack) if holder is not None else (),
        want_stack=resolve(stack),
        class_edge=class_edge_text(holder.acquisition, node.acquisition)
        if holder and holder.acquisition and node.acquisition
        else None,
    )


def edges_of_both(
    held: Acquisition,
    wanted: Acquisition,
    *,
    holder: str,
    hold_stack: RawStack,
    execution: str,
    stack: RawStack,
) -> tuple[Edge, ...]:
    """Return the edges of a lock that one execution holds and another one, or the same, wants."""
    edge = Edge(
        execution=execution,
        held=str(held),
        wanted=str(wanted),
        all_held=(str(held),),
        hold_stack=resolve(hold_stack),
        want_stack=resolve(stack),
        class_edge=class_edge_text(held, wanted),
    )
    if holder == execution:
        return (edge,)
    holding = replace(edge, execution=holder, wanted="None", want_stack=())  # each does its own part
    return holding, replace(edge, held=None, all_held=(), hold_stack=())


def _warn(finding: Finding) -> None:
    frame = caller()
    where = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("lockcheck", 1)
    warnings.warn_explicit(LockOrderWarning(str(finding)), None, *where)


def _announce(policy: Policy, graph: Graph, finding: Finding) -> None:
    """Pass a finding to the audit hooks; end the process at once if it fails and `DEADLOCK_EXIT` is set.

    It does not wait for threads: they may be stuck.
    """
    sys.audit("lockcheck.finding", finding.rung.name, finding.kind.value, finding.text)
    if policy.exits and finding.rung in policy.fail_on:
        sys.stderr.write(finding_text(finding, graph.site_counts()) + "\n")
        sys.stderr.flush()
        os._exit(FOUND)
