"""The terms of every finding: rungs of evidence, kinds of fault, modes of locks, levels of checking, errors.

A finding does not claim more than its evidence, so there are no false positives to argue about: R0 needs one
stack and a declaration, RB is a call that may block while a lock is held, R1 is a cycle that something may
guard, R2 is one without any guard that we know of, R5 has happened.

Declared, learned and summed up edges are compared by their text.

The level of checking is set by a lock's constructor, else by the session, else by the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from .findings import Finding

CLEAN: Final = 0
FOUND: Final = 1
"""Something that fails was found."""
USAGE: Final = 2
"""A command was called wrongly, or a file could not be read or written."""
FAULT: Final = 3
"""The checker itself had an error."""


REPORT_FORMS: Final[Mapping[str, str]] = {
    "sarif": "SARIF 2.1.0",
    "json": "JSON",
}
"""The forms of reports by the names of their options: `--json`, under pytest `--lockcheck-json`."""
WITNESSES: Final = "lockcheck-witnesses"
"""The folder for witnesses and replay files, unless an option names another one."""
ADOPTED_HELP: Final = (
    "whose locks of `threading` are checked: program (all but those of the standard library, of which "
    "logging, concurrent.futures and queue count), all, none, or patterns of modules "
    "(LOCKCHECK_ADOPT, else program)"
)
"""The help of the options that name whose locks are adopted."""


class LockCheckError(RuntimeError):
    """The base of all errors of this package.

    Attributes:
        finding: the finding, if the error comes from a check.
    """

    def __init__(self, text: str, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.finding = finding


class LockUsageError(LockCheckError):
    """A lock was used in a way that it cannot serve, such as taken twice by one thread."""


class LockOrderError(LockCheckError):
    """A declared order or a contract was broken (R0); raised before the lock is taken."""


class DeadlockPossibleError(LockCheckError):
    """A cycle that nothing guards (R2 and above); raised before the lock is taken."""


class DeadlockError(LockCheckError):
    """Threads wait for each other (R5), and this one was chosen to give way."""


class OrderDeclarationError(LockCheckError, ValueError):
    """A declaration that cannot be read, contradicts itself or allows a deadlock."""


class LockOrderWarning(RuntimeWarning):
    """A finding of a session whose policy is to warn."""


def fault_said(error: Exception) -> str:
    """Return the text about an error of the checker itself."""
    return f"a fault of its own, please report: {type(error).__name__}: {error}"


_INSTALLED: Final = f"{os.sep}site-packages{os.sep}"
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - likewise
Mode: TypeAlias = Literal["R", "W"]
"""How a lock is held or requested; an exclusive lock has only W."""
RWPolicy: TypeAlias = Literal["writer", "reader"]
"""Whether readers or writers go first while a writer waits for a read/write lock."""


class Rung(IntEnum):
    """How strong the evidence is."""

    RB = -1  # BLOCKING: a lock is held over something that may take long
    R0 = 0  # POLICY: a declared order or a contract was broken
    R1 = 1  # CYCLE: a cycle in the learned graph, guarded by something
    R2 = 2  # UNGUARDED: a strong cycle that no filter excludes
    R4 = 4  # CONFIRMED: a run was steered into it, and the threads were stuck
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
        LockUsageError: one of them is not a rung.
    """
    names = [name.strip().upper() for name in text.split(",")]
    unknown = [name for name in names if name not in Rung.__members__]
    if unknown:
        known = ", ".join(rung.name for rung in Rung)
        raise LockUsageError(f"{text!r}: {unknown[0]!r} is not a rung; the rungs are {known}")
    return failing_from(*(Rung[name] for name in names))


class Kind(Enum):
    """The kind of a fault."""

    ORDER = "order"  # against the declared order of classes
    SAME_CLASS = "same class"  # two instances of a class against its rule
    RECURSION = "recursion"  # a lock requested by its holder
    UPGRADE = "upgrade"  # a write lock requested by its reader
    WRONG_RELEASE = "wrong release"  # released by a thread that does not hold it, or in the other mode
    LEAK = "leak"  # still held when its thread ended
    READ_WRITE = "write under a read lock"
    UNGUARDED_WRITE = "write without the lock"
    BLOCKING = "blocking under a lock"
    ITERATION = "iteration under a lock"
    CONTRACT = "contract"
    CONDITION = "condition"  # waited on or notified without its lock
    FORK = "fork"  # taken in a child of a fork, and by another thread of its parent
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


_TRUE: Final = frozenset({"1", "t", "true"})
_TIMEOUT_SECONDS_DEFAULT: Final = 60.0


class Level(IntEnum):
    """How much is checked."""

    OFF = 0  # the plain types; nothing of this package runs
    ORDER = 1  # declared order, recursion, releases, leaks, real deadlocks
    FULL = 2  # and the learned graph, blocking calls, iterations, stacks
    CONFIRM = 3  # and threads can be paused before they want a lock


def level_of(text: Level | str) -> Level:
    """Return the level of a name: `off`, `order`, `full` or `confirm`, in any case."""
    if isinstance(text, Level):
        return text
    try:
        return Level[text.strip().upper()]
    except KeyError:
        raise LockUsageError(f"{text!r} is not a level of checking: off, order, full or confirm") from None


@dataclass(frozen=True, slots=True)
class Environment:
    """The settings of the environment: ours (`LOCKCHECK`), and the variables of the recorded Go core."""

    level: Level
    timeout_seconds: float | None
    """A longer wait for a lock is reported; `None` without a limit."""
    exits: bool
    """Whether the process ends, with code 1, at the first finding that fails."""
    order_disabled: bool
    """Whether orders, recursion and cycles are not checked: only real deadlocks and stalls are."""

    @staticmethod
    def read(variables: Mapping[str, str] = os.environ) -> Environment:
        """Read the variables.

        As in the Go core, `DEADLOCK_TIMEOUT_SECONDS` is 60 if it is missing or no number.

        Raises:
            LockUsageError: `LOCKCHECK` does not name a level.
        """
        detection = _is_true(variables, "DEADLOCK_DETECTION_ENABLED")
        named = variables.get("LOCKCHECK", "")
        level = level_of(named) if named else (Level.FULL if detection else Level.OFF)
        return Environment(
            level=level,
            timeout_seconds=_seconds(variables.get("DEADLOCK_TIMEOUT_SECONDS", "")) if detection else None,
            exits=detection and _is_true(variables, "DEADLOCK_EXIT"),
            order_disabled=detection and _is_true(variables, "DEADLOCK_DISABLE_LOCK_ORDER"),
        )


def _is_true(variables: Mapping[str, str], name: str) -> bool:
    return variables.get(name, "").strip().lower() in _TRUE


def _seconds(text: str) -> float:
    return float(text) if text.strip().isdecimal() and int(text) > 0 else _TIMEOUT_SECONDS_DEFAULT
