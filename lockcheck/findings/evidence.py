"""The terms of every finding: rungs of evidence, kinds of fault, and modes of locks.

A finding does not claim more than its evidence, so there are no false positives to argue about: R0 needs one
stack and a declaration, R1 is a cycle that something may guard, R2 is one without any guard that we know of,
R5 has happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_FAIL_ON", "MODES", "Frame", "Kind", "Mode", "RWPolicy", "Rung", "failing_from"]

Mode: TypeAlias = Literal["R", "W"]
"""How a lock is held or wanted; an exclusive lock knows W alone."""

MODES: Final[Mapping[str, Mode]] = {"R": "R", "W": "W"}
"""As documents name them."""

RWPolicy: TypeAlias = Literal["writer", "reader"]
"""Whether readers or writers go first while a writer waits for a read/write lock."""


class Rung(IntEnum):
    """How strong the evidence is."""

    R0 = 0  # POLICY: a declared order or a contract was broken
    R1 = 1  # CYCLE: a cycle in the learned graph, guarded by something
    R2 = 2  # UNGUARDED: a strong cycle that no filter excludes
    R3 = 3  # PREDICTED: a schedule of the recorded trace leads to it
    R4 = 4  # CONFIRMED: the schedule was replayed, and the threads were stuck
    R5 = 5  # HAPPENED: the threads of this run waited for each other


DEFAULT_FAIL_ON: Final = frozenset(Rung) - {Rung.R1}
"""The rungs that fail by default; a finding at R1 is only information."""


def failing_from(least: Rung) -> frozenset[Rung]:
    """Return the rungs that fail, given the lowest of them; a broken declaration (R0) always fails."""
    return frozenset({Rung.R0, *(rung for rung in Rung if rung >= max(least, Rung.R1))}) & (
        DEFAULT_FAIL_ON | {least}
    )


class Kind(Enum):
    """What is wrong."""

    ORDER = "order"  # against the declared order of classes
    SAME_CLASS = "same class"  # two instances of a class against its rule
    RECURSION = "recursion"  # a lock wanted by its holder
    UPGRADE = "upgrade"  # a write lock wanted by its reader
    WRONG_RELEASE = "wrong release"  # released by a thread that does not hold it, or in the other mode
    LEAK = "leak"  # still held when its thread ended
    READ_WRITE = "write under a read lock"
    UNGUARDED_WRITE = "write without the lock"
    BLOCKING = "blocking under a lock"
    ITERATION = "iteration under a lock"
    CONTRACT = "contract"
    CONDITION = "condition"  # waited on or notified without its lock
    LONG_HOLD = "long hold"  # held longer than the session allows
    STALL = "stall"  # waited longer than the session allows
    CYCLE = "cycle"
    DEADLOCK = "deadlock"


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack, resolved."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}: {self.source}"
