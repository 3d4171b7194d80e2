"""The terms of every finding: rungs of evidence, kinds of fault, and modes of locks.

A finding does not claim more than its evidence, so there are no false positives to argue about: R0 needs one
stack and a declaration, RB is a call that may block while a lock is held, R1 is a cycle that something may
guard, R2 is one without any guard that we know of, R5 has happened.

Declared, learned and summed up edges are compared by their text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, Literal, TypeAlias

from .errors import LockUsageError

_INSTALLED: Final = f"{os.sep}site-packages{os.sep}"
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - likewise
Mode: TypeAlias = Literal["R", "W"]
"""How a lock is held or wanted; an exclusive lock knows W alone."""
MODES: Final[Mapping[str, Mode]] = {"R": "R", "W": "W"}
"""As documents name them."""
RWPolicy: TypeAlias = Literal["writer", "reader"]
"""Whether readers or writers go first while a writer waits for a read/write lock."""


class Rung(IntEnum):
    """How strong the evidence is."""

    RB = -1  # BLOCKING: a lock is held over something that may take long
    R0 = 0  # POLICY: a declared order or a contract was broken
    R1 = 1  # CYCLE: a cycle in the learned graph, guarded by something
    R2 = 2  # UNGUARDED: a strong cycle that no filter excludes
    R3 = 3  # PREDICTED: a schedule of the recorded trace leads to it
    R4 = 4  # CONFIRMED: the schedule was replayed, and the threads were stuck
    R5 = 5  # HAPPENED: the threads of this run waited for each other


DEFAULT_FAIL_ON: Final = frozenset(Rung) - {Rung.R1, Rung.RB}
"""The rungs that fail by default; a finding at R1 or RB is only information."""


def failing_from(*named: Rung) -> frozenset[Rung]:
    """Return the rungs that fail, given the lowest of them; a broken declaration (R0) always fails.

    Args:
        named: the lowest rung, `R2` by default. `RB` may be named besides or alone: then these fail too.
    """
    least = min((rung for rung in named if rung is not Rung.RB), default=Rung.R2)
    failing = {Rung.R0, *(rung for rung in Rung if rung >= max(least, Rung.R1))}
    return frozenset(failing & (DEFAULT_FAIL_ON | set(named)) | (set(named) & {Rung.RB}))


def failing_of(text: str) -> frozenset[Rung]:
    """Return the rungs that fail, given names of rungs separated by commas, such as `R2,RB`.

    Raises:
        LockUsageError: one of them is no rung.
    """
    names = [name.strip().upper() for name in text.split(",")]
    unknown = [name for name in names if name not in Rung.__members__]
    if unknown:
        known = ", ".join(rung.name for rung in Rung)
        raise LockUsageError(f"{text!r}: {unknown[0]!r} is no rung; there are {known}")
    return failing_from(*(Rung[name] for name in names))


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
        return f"{_shown(self.file)}:{self.line} in {self.function}: {self.source}"


def _shown(file: str) -> str:
    """Return the name of a file from the working directory on, or from that of its library."""
    for folder in (os.getcwd() + os.sep, _INSTALLED, _LIBRARY):  # noqa: PTH109 - names of code are texts
        before, found, after = file.partition(folder)
        if found and (not before or folder == _INSTALLED):
            return after
    return file


@dataclass(frozen=True, slots=True)
class ClassEdge:
    """An edge of two classes of locks."""

    held: str
    held_mode: Mode
    wanted: str
    wanted_mode: Mode

    def __str__(self) -> str:
        return f"{self.held}[{self.held_mode}] -> {self.wanted}[{self.wanted_mode}]"
