"""The policy of a session: what it checks, and what happens at a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ..findings.errors import LockUsageError
from ..findings.evidence import Rung
from ..findings.levels import Level
from ..holding.chains import Execution, held_nodes
from ..order.order import Order

FindingAction: TypeAlias = Literal["raise", "warn", "log", "record", "break"]

DEFAULT_ACTIONS: Final[Mapping[Rung, FindingAction]] = {
    Rung.RB: "record",
    Rung.R0: "raise",
    Rung.R1: "record",
    Rung.R2: "raise",
    Rung.R3: "record",
    Rung.R4: "record",
    Rung.R5: "break",
}
NOTE_ALL: Final[Mapping[Rung, FindingAction]] = {rung: "record" for rung in Rung if rung is not Rung.R5}
"""Raise nothing but the error that breaks a real deadlock: otherwise the program is not changed."""

VictimPolicy: TypeAlias = "Callable[[Sequence[Execution]], Execution]"


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
    role: str | None
    members_max: int
    timeout_seconds: float | None
    max_hold_seconds: float | None
    blocking: Mapping[str, frozenset[str]]
    victim: VictimPolicy
    witnesses: Path | None
    order_disabled: bool
    exits: bool
    by_key: bool

    def __post_init__(self) -> None:
        if self.order is not None and not isinstance(self.order, Order):
            raise LockUsageError(f"{self.order!r} is no Order")
        for rung, action in self.on.items():
            if not isinstance(rung, Rung) or action not in get_args(FindingAction):
                raise LockUsageError(f"{rung!r}: {action!r} is no rung with what happens at it")

    @property
    def breaks_deadlocks(self) -> bool:
        """Whether a real deadlock is broken by a victim."""
        return self.on[Rung.R5] in {"break", "raise"}

    def allows(self, what: str, lock: str) -> bool:
        """Return whether something may happen while a lock of a class is held; `*` is any class or kind."""
        return any(self.blocking.get(held, frozenset()) & {what, "*"} for held in (lock, "*"))
