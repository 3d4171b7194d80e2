"""What the checker has to say: findings, as frozen values, each on a rung of the ladder.

The ladder is the one idea that takes the words "false positive" out of the talk about lock checkers. A
finding does not claim more than its evidence: R0 needs one stack and a declaration, R1 is a closed path
that something may still keep from closing, R2 is one that nothing we know of does, R5 has happened.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .witness import Stop

__all__ = [
    "DEFAULT_FAIL_ON",
    "MODES",
    "Edge",
    "Finding",
    "Frame",
    "Kind",
    "Mode",
    "Rung",
    "failing_from",
    "fingerprint_of",
    "fingerprint_of_path",
]

Mode: TypeAlias = Literal["R", "W"]
"""How a lock is held or wanted; an exclusive lock knows W alone."""

MODES: Final[Mapping[str, Mode]] = {"R": "R", "W": "W"}
"""As documents name them."""


class Rung(IntEnum):
    """How strong the evidence is."""

    R0 = 0  # POLICY: a declared order or a contract was broken
    R1 = 1  # CYCLE: a closed path in the learned graph, guarded by something
    R2 = 2  # UNGUARDED: a closed strong path that no filter explains away
    R3 = 3  # PREDICTED: a schedule of the recorded trace leads to it
    R4 = 4  # CONFIRMED: the schedule was replayed, and the threads were stuck
    R5 = 5  # HAPPENED: the threads of this run waited for each other


DEFAULT_FAIL_ON: Final = frozenset(Rung) - {Rung.R1}
"""An R1 is information: it says why it is safe."""


def failing_from(least: Rung) -> frozenset[Rung]:
    """Return the rungs that fail where the least of them is given; a broken declaration always does."""
    return frozenset({Rung.R0, *(rung for rung in Rung if rung >= max(least, Rung.R1))}) & (
        DEFAULT_FAIL_ON | {least}
    )


class Kind(Enum):
    """What is wrong."""

    ORDER = "order"  # against the declared order of classes
    SAME_CLASS = "same class"  # two instances of a class against its rule
    RECURSION = "recursion"  # a lock wanted by its holder
    UPGRADE = "upgrade"  # a write lock wanted by its reader
    WRONG_RELEASE = "wrong release"  # released by who does not hold it, or in the other mode
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


@dataclass(frozen=True, slots=True)
class Edge:
    """Somebody held one lock and wanted another: one step of a path, or the place of a broken rule."""

    unit: str
    """Who: the thread, or the named unit."""
    held: str | None
    """The lock that was held, with key and mode; none where nothing was."""
    wanted: str
    all_held: tuple[str, ...]
    """Everything that was held, outermost first."""
    hold_stack: tuple[Frame, ...]
    """Where the held lock was taken, innermost frame first."""
    want_stack: tuple[Frame, ...]
    nesting: str | None = None
    """Classes and modes of both locks, such as `queue[W] -> application[R]`."""

    @property
    def place(self) -> Frame | None:
        """Where the second lock is wanted; where that is not known, where the first one was taken."""
        return next(iter((*self.want_stack, *self.hold_stack)), None)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or that would be if something did not guard it."""

    rung: Rung
    kind: Kind
    text: str
    """One sentence: what, by whom."""
    edges: tuple[Edge, ...]
    why: tuple[str, ...] = ()
    """At R1 why it is safe; above, why no filter applies; at R0 what would be right."""
    clause: str | None = None
    """The clause of the declaration that was broken."""
    fingerprint: str = ""
    count: int = 1
    test: str | None = None
    """What the session was called when it was seen first: the test, under pytest."""
    stops: tuple[Stop, ...] = ()
    """From R2 on, where the units would be stuck, as another run can find these places again."""
    replay: str | None = None
    """At R4, and at R5 over locks, the file that `replay` forces the deadlock with."""

    def __str__(self) -> str:
        return f"{self.rung.name} {self.kind.value}: {self.text}"


def fingerprint_of(*parts: str) -> str:
    """Return a short name for what the parts describe, the same in every run."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:12]


def fingerprint_of_path(kind: str, steps: Sequence[str]) -> str:
    """Return that of a closed path, whichever of its steps it was found from."""
    return fingerprint_of(kind, *min((*steps[at:], *steps[:at]) for at in range(len(steps))))
